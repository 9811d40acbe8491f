// What would fit: single changes to a job that is over the memory of its GPUs.
#pragma once

#include <string>
#include <vector>

#include "models/compute/compute_model.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast {

/// One sentence a change that brings the fullest stage under capacity, cheapest kind first ("recompute: full fits:
/// 61.2 of 79.6 GiB"); one sentence saying that no single change helps otherwise. Every change is checked by the same
/// replay that gave the verdict.
std::vector<std::string> what_would_fit(const Scenario& scenario, const ComputeModel& compute);

}  // namespace fabricast
