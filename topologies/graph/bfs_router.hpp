// Routes of hand-made and imported fabrics: fewest hops, found by breadth-first search.
//
// The graph holds switches only, so a route never passes through a server. Which of several shortest routes is taken
// follows the policy (routing_policy.hpp):
//   ideal      the one whose sequence of switches is lexicographically smallest by vertex number; of parallel links
//              between two switches the one entered first. Spreading over a listed fabric is not modelled
//   static     at each switch, seen from the destination: the destination's number among the NICs of its own switch picks
//              among the equal links
//   ecmp       the same with the hash of the flow
// One search answers all destinations of a source switch; its tree is made when a pair from that source is first
// asked for and kept (12 bytes a switch), so all pairs are never computed unless all are asked for.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include "topologies/graph/router.hpp"
#include "topologies/graph/routing_policy.hpp"

namespace fabricast {

struct FabricEdge {
    LinkId link;
};
/// Switches, numbered in the order they were added, and the directed links between them.
using FabricGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, FabricEdge>;

class BfsRouter final : public Router {
public:
    /// switch_of_nic: for each NIC the vertex of its switch in `fabric`.
    BfsRouter(const FabricGraph& fabric, std::vector<std::uint32_t> switch_of_nic, RoutingPolicy policy = {});

    bool append_fabric_links(NicId from, NicId to, std::uint64_t flow, std::vector<LinkId>& out) const override;

private:
    /// For each switch the switch before it on the way from the source, the link between them, the way's length.
    struct Step {
        std::uint32_t previous;  ///< kUnreached when there is no way
        LinkId link;
        std::uint32_t hops;
    };
    using Tree = std::vector<Step>;
    struct Entry {
        std::uint32_t source, target;
        LinkId link;
    };
    static constexpr std::uint32_t kUnreached = 0xFFFFFFFFu;

    const Tree& tree_from(std::uint32_t source) const;
    const Entry& chosen_entry(const Tree& tree, std::uint32_t at, NicId from, NicId to, std::uint64_t flow) const;

    FabricGraph fabric_;  ///< out-edges sorted by (target, link)
    std::vector<std::uint32_t> switch_of_nic_;
    RoutingPolicy policy_;
    std::vector<std::uint32_t> number_on_switch_;  ///< [nic]
    std::vector<Entry> entries_;                   ///< with separate links: sorted by (target, source, link)
    std::vector<std::uint32_t> first_entry_;       ///< [switch]: its part of entries_
    mutable std::mutex mutex_;
    mutable std::unordered_map<std::uint32_t, Tree> trees_;  ///< looked up, never iterated
};

}  // namespace fabricast
