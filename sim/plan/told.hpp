// What a plan says in words that need no table.
#pragma once

#include <string>
#include <vector>

#include "sim/plan/plan.hpp"

namespace fabricast::plan {

/// "tp x cp x pp does not divide the GPUs", of the rule `gpus`; conditions as they are.
std::string rule_text(const std::string& rule);

/// Why no layout is left, and what removed how many; empty where one is.
std::string nothing_left(const PlanResult& result);

/// "training.layout.tp=8": the overrides with which `run` simulates the layout.
std::vector<std::string> plan_overrides(const PlanResult& result, std::uint32_t cluster, const TrainingPlan& layout);

}  // namespace fabricast::plan
