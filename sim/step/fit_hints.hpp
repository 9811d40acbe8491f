// What would fit: single changes to a job that is over the memory of its GPUs.
#pragma once

#include <string>
#include <vector>

#include "models/compute/compute_model.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast {

/// Use above this share of a GPU's memory is called tight: public runs met allocator stalls above about 85 % predicted use;
/// of the layouts of nanotron's sweep that ran out of memory and were predicted to fit nine in ten lie above.
inline constexpr double kTightUse = 0.85;

/// One sentence a change that brings the fullest stage under capacity, cheapest kind first: what costs no time (sequence
/// parallelism, sharding of states), little (selective recomputation, a smaller micro-batch), a third of a forward more (full
/// recomputation), other communication (tp, pp). "recompute: full fits: 61.2 of 79.6 GiB", with ", tight" where it is; one sentence saying that no single change helps otherwise. Every change is checked by the same
/// replay that gave the verdict.
std::vector<std::string> what_would_fit(const Scenario& scenario, const ComputeModel& compute);

}  // namespace fabricast
