// One training step of a scenario: cluster, program, run, accounts.
//
//   scenario -> cluster (graph, frozen) -> compute and communication models -> program -> engine -> result
//
// The step time is the period of repeated steps (sim/engine/engine.hpp). A job that does not fit in memory is not run:
// the result says by how much it misses and which single changes would make it fit.
#pragma once

#include <string>

#include "models/compute/compute_model.hpp"
#include "sim/step/result.hpp"

namespace fabricast {

struct ForecastOptions {
    int max_steps = 6;          ///< give up looking for a period after so many steps
    bool over_memory = false;   ///< run also what does not fit: the verdict says so, the step is timed all the same
    bool critical_path = true;  ///< follow the chain of causes; costs time and memory
};

/// Never throws for a scenario that load_scenario accepted, except std::bad_alloc and std::logic_error (our bug).
Result forecast(const Scenario& scenario, ForecastOptions options = {});

ComputeModel build_compute(const Scenario& scenario);

}  // namespace fabricast
