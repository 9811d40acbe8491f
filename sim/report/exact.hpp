// Integers of 128 bits in JSON: a JSON integer where 64 bits hold it, else a string of digits.
#pragma once

#include <nlohmann/json.hpp>

namespace fabricast::report {

nlohmann::ordered_json exact(__int128 value);

}  // namespace fabricast::report
