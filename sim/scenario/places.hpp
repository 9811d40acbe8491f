// Places of a cluster and a job in words: "gpu 29.2", "nic 3.2", "node 4", "rank 17", "stage 1", "all".
#pragma once

#include <string>
#include <string_view>

#include "sim/scenario/scenario.hpp"

namespace fabricast {

inline constexpr std::string_view kRankPlaces = "gpu NODE.GPU, node N, rank N, stage N or all";

/// What is wrong with a place; empty when it exists, or is the name of a link (which only the built cluster knows).
std::string wrong_place(const Scenario& scenario, const std::string& where);

/// Whether the place is one of kRankPlaces.
bool names_ranks(std::string_view where);

}  // namespace fabricast
