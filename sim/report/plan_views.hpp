// Views of a plan: the ranked table, the front of cost against days, why the rest lost, what the winner hangs on.
#pragma once

#include <string>

#include "sim/plan/plan.hpp"

namespace fabricast {

/// Text of at most 190 columns.
std::string plan_text(const plan::PlanResult& result, bool color, bool unicode = true);

/// schema_version 1, keys in fixed order, trailing newline.
std::string plan_json(const plan::PlanResult& result);

}  // namespace fabricast
