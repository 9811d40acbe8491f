// The program of a job that goes over many steps: the step of the compiler, repeated epoch by epoch.
//
//   epoch e   repeat steps_r(e) { step, with a fetch of the next batch before its first forward, and the stops that strike }
//             what the rank does at the boundary            (on its own)
//             meeting                                       (a barrier of all ranks, where the job has one)
//             the workers of the loader start anew          (unless they are persistent)
//
// A rank whose shard is used up earlier leaves the loop earlier. Times that differ from rank to rank and from item to item
// are sources (program::Source):
//
//   loader     batch = samples of a step x sample_time, x factors of storage, loader, wandering, leak; by the workers of a rank
//   boundary   what ends of epochs take on the rank
//   stops      allocator and garbage: `seconds` in one step of `every` of them, each rank in a phase of its own (allocator:
//              drawn step by step with probability 1 / every), or all together where synchronised
//              and in every step the copy of its sequences where memory is not pinned
//   sequences  compute of a replica in step j is f_j of the mean, f log-normal of mean 1: the program computes f_min and
//              waits (f_j - f_min) of its step's compute. Drawn once a replica and step, not a micro-batch.
//
// A loader or stops make steps differ: those of kSampledSteps are simulated where nothing longer is asked for.
#pragma once

#include <cstdint>
#include <vector>

#include "models/parallel/compiler.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast {

inline constexpr std::int64_t kSampledSteps = 32;
inline constexpr std::int64_t kSettlingSteps = 4;

/// Something makes the steps of a healthy machine differ, or makes them wait for data.
bool steps_differ(const Scenario& scenario);
/// They differ by chance or trend, so that no stretch of them repeats itself.
bool steps_vary(const Scenario& scenario);

struct JobShape {
    std::vector<std::vector<std::int64_t>> steps;  ///< [epoch][rank]: how many are simulated
    Picoseconds meeting = 0;                       ///< latency of the barrier
    Picoseconds step = 0;                          ///< of a healthy machine, for what grows with time
    bool has_epochs = false;                       ///< false: one stretch of steps without an end
};

program::Program job_program(const Scenario& scenario, const CompiledStep& compiled, const JobShape& shape);

}  // namespace fabricast
