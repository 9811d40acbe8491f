// One training step of a scenario: cluster, program, run, accounts.
//
//   scenario -> cluster (graph, frozen) -> compute and communication models -> program -> engine -> result
//
// The step time is the period of repeated steps (sim/engine/engine.hpp). A job that does not fit in memory is not run:
// the result says by how much it misses and which single changes would make it fit.
#pragma once

#include <string>

#include "models/compute/compute_model.hpp"
#include "models/parallel/compiler.hpp"
#include "sim/step/result.hpp"
#include "sim/step/step_run.hpp"
#include "topologies/graph/cluster.hpp"

namespace fabricast {

struct ForecastOptions {
    int max_steps = 6;           ///< give up looking for a period after so many steps
    bool over_memory = false;    ///< run also what does not fit: the verdict says so, the step is timed all the same
    bool critical_path = true;   ///< follow the chain of causes; costs time and memory
    bool split_waiting = false;  ///< pipelines: re-run with equal stages, to tell imbalance from warm-up and drain
    // The same result with and without, except counts of the engine and what was simulated:
    bool fold = true;       ///< one rank of each class stands for it (models/program/fold.hpp), and as `memo`
    bool fold_time = true;  ///< what recurs inside a step is replayed (sim/engine/passage.hpp)
    bool memo = true;       ///< stretches of a job that repeat are left out (job_run.hpp)
};

/// Never throws for a scenario that load_scenario accepted, except std::bad_alloc and std::logic_error (our bug).
Result forecast(const Scenario& scenario, ForecastOptions options = {});

ComputeOptions compute_options(const Scenario& scenario);
ComputeModel build_compute(const Scenario& scenario);

/// What the engine runs: the program of a step and the links it runs on.
struct BuiltStep {
    Cluster cluster;
    CompiledStep compiled;
    Picoseconds meeting = 0;  ///< latency of a barrier of all ranks, where the job has epochs
};
/// Throws std::invalid_argument where the communication library refuses its settings. Memory is not looked at.
BuiltStep build_step(const Scenario& scenario, const ComputeModel& compute, int max_steps,
                     const CompileOptions& compiling = {});

/// Tokens, FLOPs, peak: what does not depend on a run.
StepResult step_of(const Scenario& scenario, const ComputeModel& compute);
/// What of `run`'s waiting is gone in `equal`, the same job with equal stages; a re-run that waits longer counts as nothing.
WaitingSplit waiting_split(const StepResult& run, const StepResult& equal);
/// Period and accounts of a run.
void fill_step(StepResult& step, const StepRun& run, const CompiledStep& compiled);

}  // namespace fabricast
