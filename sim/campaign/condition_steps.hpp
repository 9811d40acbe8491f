// The step under each condition of the cluster, from the step simulator.
//
// A condition changes the scenario and the step is forecast again: a PCIe link or adapter below its rate, an NVLink lane less,
// one GPU slower, all adapters slower by the factor of congestion. One part stands for all of its kind: a synchronous step
// waits for the slowest, and two of one kind on different parts cost what one costs (two on one ring, too: it is as slow as
// its slowest link). Phases change batch, sequence and layout.
#pragma once

#include "sim/campaign/step_times.hpp"
#include "sim/step/result.hpp"

namespace fabricast::campaign {

/// `scenario` under the condition. Bits are those of scenario.run.faults.degradations, then congestion.
Scenario under(const Scenario& scenario, const Condition& condition);

/// Told of each step under a condition whenever it is simulated: once with `memo`, before its time is known to anybody else;
/// without, each time somebody asks. One at a time.
using StepSeen = std::function<void(const Condition&, const Scenario&, const Result&)>;

/// Step times of the scenario, of which `healthy` is known; both outlive them. Throws ScenarioError for a phase that does
/// not run (memory). keys: phases of the run, at least 1; one more when gradients are not compressed at first. memo: see
/// StepTimes; without it the healthy step is forecast again, too.
StepTimes condition_steps(const Scenario& scenario, const Result& healthy, bool memo = true, const StepSeen& seen = {});

}  // namespace fabricast::campaign
