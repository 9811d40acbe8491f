// Demands without the links that can never decide a rate.
//
// Links that the same demands use with the same coefficients always carry the same load, so only the narrowest of them
// can be full. A ring over private NVLink ports thus costs the solver one link instead of sixteen, and the rates stay
// the same to the bit: a wider link's level is never below that of the narrowest, and after that one is full no member
// is left. Holds as long as capacities do not change.
#pragma once

#include <span>
#include <vector>

#include "topologies/graph/links.hpp"

namespace fabricast::program {

/// The demands with only the narrowest link of each class (the first of equal ones). capacity: one entry a link.
std::vector<std::vector<LinkUse>> deciding_links(const std::vector<std::vector<LinkUse>>& demands,
                                                 std::span<const Rate> capacity);

/// Rate of a demand alone on the network, in rate units: min over its links of capacity / coefficient, at least 1.
Rate alone_rate(std::span<const LinkUse> demand, std::span<const Rate> capacity);

}  // namespace fabricast::program
