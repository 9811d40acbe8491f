// "campaign" of result.json; null without one.
#pragma once

#include <nlohmann/json.hpp>

#include "sim/step/result.hpp"

namespace fabricast::report {

nlohmann::ordered_json campaign_json(const Result& result);

}  // namespace fabricast::report
