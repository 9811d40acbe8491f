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

/// "a GPU-hour: H100 2.50 USD (plan.price.h100), A100 without a price": what cost comes from. Empty: no prices at all.
std::string prices_text(const PlanResult& result);

/// "training.layout.tp=8": the overrides with which `run` simulates the layout, with the file and the calibration of the
/// result's source; those of the source, which are not of `plan`, come first.
std::vector<std::string> plan_overrides(const PlanResult& result, std::uint32_t cluster, const TrainingPlan& layout);

}  // namespace fabricast::plan
