// Views of a plan: the ranked table, the front of cost against days, why the rest lost, what the winner hangs on.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sim/plan/plan.hpp"

namespace fabricast {

/// Text of at most 190 columns.
std::string plan_text(const plan::PlanResult& result, bool color, bool unicode = true);

/// schema_version 1, keys in fixed order, trailing newline.
std::string plan_json(const plan::PlanResult& result);

namespace report {
bool is_plan(const nlohmann::ordered_json& json);
std::string plan_page(const nlohmann::ordered_json& plan);  ///< the page, from plan_json
}  // namespace report

}  // namespace fabricast
