// How an algorithm loads the links of a group, and how long its path is.
//
// Work is counted in bytes so that a link with coefficient 1 carries as many; a pass of n ranks with messages m:
//   ring              every rank to the next in the order of the group; n - 1 steps of m; work (n-1) m
//   direct            every rank to all others at once; work (n-1) m
//   halving_doubling  step k with the rank whose number differs in bit k, half as much each time (whole: m = s);
//                     work s (1 - 1/n); n a power of two
//   tree              two binary trees, half the data each; up and down moves 2 s at a rank that is inner in one and a
//                     leaf in the other; each of 2 depth steps moves what two children send
//   chain             from the first rank to the last through all others; work s
//   star              between the first rank and all others at once; work at the first
// Latencies of a step are those of the route, for rings the mean over the ring, as data pass every hop of it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/traces/grid_network.hpp"
#include "sim/traces/link_table.hpp"

namespace fabricast::traces {

enum class Pattern : std::uint8_t { ring, direct, halving_doubling, tree, chain, star, count };

struct PatternShape {
    std::uint32_t ranks = 0;
    double bytes_per_s = 0;        ///< of work, alone on the network
    double scale = 1;              ///< bytes on the narrowest link for a byte of work: there the coefficient is 1
    double serial_s_per_byte = 0;  ///< messages of a pass one after the other, for a byte of work
    double latency_s = 0;          ///< of all steps of a pass
    std::uint32_t steps = 0;       ///< of a pass
    double step_latency_s = 0;     ///< of one step to any other rank
    bool operator==(const PatternShape&) const = default;
};

struct PatternUse {
    std::vector<LinkUse> demand;
    PatternShape shape;
    LinkId narrowest{0};  ///< link of the grid that sets the rate
};

class PatternBuilder {
public:
    PatternBuilder(const GridNetwork& network, LinkTable& links);

    /// `dimension`: the members are a whole line of it, in order; kNoLine otherwise. Precondition: 2 members or more;
    /// halving_doubling: a power of two.
    static constexpr std::size_t kNoLine = SIZE_MAX;
    PatternUse build(Pattern pattern, const std::vector<std::uint32_t>& members, std::size_t dimension);

private:
    double load(std::uint32_t from, std::uint32_t to, double bytes);
    void ring(const std::vector<std::uint32_t>& members, PatternShape& shape);
    void direct(const std::vector<std::uint32_t>& members, std::size_t dimension, PatternShape& shape);
    void halving_doubling(const std::vector<std::uint32_t>& members, PatternShape& shape);
    void tree(const std::vector<std::uint32_t>& members, PatternShape& shape);
    void chain(const std::vector<std::uint32_t>& members, PatternShape& shape);
    void star(const std::vector<std::uint32_t>& members, PatternShape& shape);

    const GridNetwork& network_;
    LinkTable& links_;
    std::vector<double> load_;  ///< by link of the grid, for a unit of work
    std::vector<LinkId> loaded_, route_;
};

}  // namespace fabricast::traces
