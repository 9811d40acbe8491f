// Views of a plan: the ranked table, the front of cost against days, why the rest lost, what the winner hangs on.
#pragma once

#include <string>

#include "sim/plan/plan.hpp"

namespace fabricast {

/// Text of at most 160 columns.
std::string plan_text(const plan::PlanResult& result, bool color, bool unicode = true);

/// schema_version 1, keys in fixed order, trailing newline.
std::string plan_json(const plan::PlanResult& result);

/// Why no layout is left, as sentences; empty where one is.
std::string nothing_left(const plan::PlanResult& result);

/// "--tp 8", "training.layout.tp=8": the overrides of `run` that make the row.
std::vector<std::string> plan_overrides(const plan::PlanResult& result, std::uint32_t cluster,
                                        const TrainingPlan& layout);

}  // namespace fabricast
