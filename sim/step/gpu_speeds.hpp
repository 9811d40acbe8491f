// GPUs of a job that are slower than nominal (models/compute/spread.hpp).
#pragma once

#include "models/program/program.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast {

/// Sets Rank::slowness: drawn GPU by GPU, or of the expected slowest alone; of every stage's where fp8 scales keep replicas
/// in step. The program has ranks.
void set_gpu_speeds(const Scenario& scenario, program::Program& program);

}  // namespace fabricast
