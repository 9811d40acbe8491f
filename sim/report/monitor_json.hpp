// "monitor" of result.json.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/step/result.hpp"

namespace fabricast::report {

/// null without monitors.
nlohmann::ordered_json monitor_json(const Result& result);

}  // namespace fabricast::report
