// What one layout costs: memory first, then the step as `run` simulates it. A pure function of the cluster and the layout.
#pragma once

#include <string>

#include "sim/plan/plan_cluster.hpp"
#include "sim/plan/where.hpp"
#include "sim/step/result.hpp"

namespace fabricast::plan {

struct Evaluation {
    bool fits = false;    ///< in the memory of its GPUs, and of their servers
    std::string failure;  ///< of what fits and does not run
    int stage = 0;        ///< fullest
    Bytes memory = 0, capacity = 0;
    StepResult step;  ///< ps 0: not run
    std::uint64_t events = 0;
    bool ran() const { return step.ps > 0; }
    double step_s() const { return seconds(step.ps); }
};

Evaluation evaluate(const PlanCluster& cluster, const TrainingPlan& plan);

/// Figures derived from a step that ran.
struct Figures {
    double step_s = 0, mfu = 0, tokens_per_s = 0, bubble = 0, exposed = 0, memory_gib = 0;
    double days = 0, gpu_hours = 0, cost = 0;  ///< of the run's tokens, of 10^12 where it states none; cost 0: no price
};
Figures figures(const PlanCluster& cluster, const Evaluation& evaluation);
inline constexpr double kTokensWithoutRun = 1e12;

/// Of the layout alone; what only a run tells is 0.
Values values_of(const PlanCluster& cluster, const TrainingPlan& plan);
/// With what the run told.
Values values_of(const PlanCluster& cluster, const TrainingPlan& plan, const Figures& figures);

}  // namespace fabricast::plan
