// What holds a step that waits for its network, in one sentence.
#pragma once

#include <string>
#include <vector>

#include "sim/step/result.hpp"

namespace fabricast {

/// Where links inside the nodes that are no NVLink hold the communication that is exposed most, and it is a tenth of the
/// step or more: says so. Otherwise empty.
std::vector<std::string> limit_hints(const Result& result);

}  // namespace fabricast
