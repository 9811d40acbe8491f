// GPUs of a job that are slower than nominal (models/compute/spread.hpp).
#pragma once

#include "models/program/program.hpp"
#include "sim/engine/engine.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast {

/// Sets Rank::slowness: drawn GPU by GPU, or of the expected slowest alone; of every stage's where fp8 scales keep replicas
/// in step. The program has ranks.
void set_gpu_speeds(const Scenario& scenario, program::Program& program);

/// Sets Operation::late of collectives whose members compute until they meet: what the last of them is expected to be behind
/// for the jitter of kernels. None where it is drawn. Only calls on stream 0 over ranks of several eights (rank / 8, whatever
/// the server holds); T is what the first rank of the template computes since its last such call. Calls on other streams
/// and messages neither pay nor start T anew.
void set_lateness(const Scenario& scenario, program::Program& program);

/// What the engine draws, where it does: for programs of which nothing is folded.
engine::EngineOptions::Noise kernel_noise_of(const Scenario& scenario);

}  // namespace fabricast
