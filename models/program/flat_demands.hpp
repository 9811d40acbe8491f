// Demands one after the other in memory, over the links that are used alone, numbered in the order in which they occur:
// neighbours in the program are neighbours in memory. A use is eight bytes; coefficients are few and kept in a table.
//
// Links that can never decide a rate are left out (deciding_links.hpp). Demands that have the network to themselves
// (sole_groups.hpp) get links of their own: of links l and m, with coefficients a, b per demand d and capacities C, l never
// decides when
//
//   a_d / C_l  <=  b_d / C_m   for all d,
//
// since whatever the rates, m is as full or fuller; and where nothing else runs, which links it is does not matter to others.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "topologies/graph/links.hpp"

namespace fabricast::program {

class FlatDemands {
public:
    struct Use {
        std::uint32_t link;         ///< number among the used ones
        std::uint32_t coefficient;  ///< index into coefficients()
    };
    /// together: sets of demands that run when no other does; a demand is in one set at most. capacity: one entry a link.
    FlatDemands(const std::vector<std::vector<LinkUse>>& demands, std::span<const Rate> capacity,
                const std::vector<std::vector<std::uint32_t>>& together = {});

    std::span<const Use> of(std::uint32_t demand) const {
        return {uses_.data() + first_[demand], first_[demand + 1] - first_[demand]};
    }
    std::uint32_t size() const { return static_cast<std::uint32_t>(first_.size() - 1); }
    const std::vector<std::uint64_t>& coefficients() const { return coefficients_; }
    /// number -> link; demands of a set have numbers that no other demand has.
    const std::vector<LinkId>& links() const { return links_; }

private:
    std::uint32_t coefficient(std::uint64_t value);
    std::uint32_t link(LinkId id);
    void add_alone(const std::vector<std::vector<LinkUse>>& demands, std::span<const Rate> capacity,
                   const std::vector<std::uint32_t>& set, std::vector<std::vector<Use>>& out);

    std::vector<Use> uses_;
    std::vector<std::uint32_t> first_;  ///< demand -> its uses; one more at the end
    std::vector<std::uint64_t> coefficients_;
    std::vector<LinkId> links_;
    std::vector<std::uint32_t> number_;                       ///< link -> number, while they are entered
    std::unordered_map<std::uint64_t, std::uint32_t> known_;  ///< coefficient -> index; looked up only
    std::uint32_t last_ = 0;                                  ///< coefficient found last
};

}  // namespace fabricast::program
