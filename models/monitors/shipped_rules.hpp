// Rules that come with the program, each with its reason, and those of one field report word by word.
//
// `default` looks for what a step-time alarm cannot see: it compares parts with their peers and steps with their own past,
// because slow faults cost 0-10 % of a step. `case-a` are the thresholds of a report on 1024 H800 (70B model), to be judged
// beside them; the report's InfiniBand rule can be read of traffic or of the port, so it is there twice.
#pragma once

#include <vector>

#include "models/monitors/rule.hpp"

namespace fabricast::monitors {

std::vector<Rule> default_rules();
std::vector<Rule> case_a_rules();

}  // namespace fabricast::monitors
