// Views of the network a step needs: the answer in sentences, bytes by kind, the curve over micro-batches.
#pragma once

#include <string>
#include <vector>

#include "sim/step/network_need.hpp"

namespace fabricast {

/// What the scenario needs and has, what remains with an infinite network, which micro-batch would do; empty where the
/// scenario's own row was not simulated.
std::vector<std::string> network_verdict(const NetworkNeed& need);

std::string network_text(const NetworkNeed& need, bool color, bool unicode = true);

/// result.json of the run with one more key, `network`.
std::string network_json(const NetworkNeed& need);

}  // namespace fabricast
