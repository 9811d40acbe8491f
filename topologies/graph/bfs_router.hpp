// Routes of hand-made and imported fabrics: fewest hops, found by breadth-first search.
//
// The graph holds switches only, so a route never passes through a server. Among shortest routes the one whose
// sequence of switches is lexicographically smallest by vertex number is taken; of parallel links between two
// switches the one entered first. One search answers all destinations of a source switch; its tree is made when
// a pair from that source is first asked for and kept (4 bytes a switch), so all pairs are never computed
// unless all are asked for.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include "topologies/graph/router.hpp"

namespace fabricast {

struct FabricEdge {
    LinkId link;
};
/// Switches, numbered in the order they were added, and the directed links between them.
using FabricGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, FabricEdge>;

class BfsRouter final : public Router {
public:
    /// switch_of_nic: for each NIC the vertex of its switch in `fabric`.
    BfsRouter(const FabricGraph& fabric, std::vector<std::uint32_t> switch_of_nic);

    bool append_fabric_links(NicId from, NicId to, std::vector<LinkId>& out) const override;

private:
    /// For each switch the switch before it on the way from the source, and the link between them.
    struct Step {
        std::uint32_t previous;  ///< kUnreached when there is no way
        LinkId link;
    };
    using Tree = std::vector<Step>;
    static constexpr std::uint32_t kUnreached = 0xFFFFFFFFu;

    const Tree& tree_from(std::uint32_t source) const;

    FabricGraph fabric_;  ///< out-edges sorted by (target, link)
    std::vector<std::uint32_t> switch_of_nic_;
    mutable std::mutex mutex_;
    mutable std::unordered_map<std::uint32_t, Tree> trees_;  ///< looked up, never iterated
};

}  // namespace fabricast
