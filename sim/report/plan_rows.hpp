// What text and JSON of a plan share.
#pragma once

#include <string>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/plan/told.hpp"
#include "sim/report/interval.hpp"

namespace fabricast::report {

/// Interval of the row's step, from published runs like it.
StepInterval interval_of(const plan::PlanResult& result, const plan::PlanRow& row);
/// The intervals of the steps, a token each, overlap: nobody can tell the two apart by this forecast.
bool is_tie(const plan::PlanResult& result, const plan::PlanRow& a, const plan::PlanRow& b);
/// "tp 8 sp, pp 2, dp 64, zero 1; micro-batch 1, recompute selective" without what is usual.
std::string plan_layout_text(const TrainingPlan& plan);

}  // namespace fabricast::report
