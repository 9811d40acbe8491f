// A StepResult as bytes and back, exactly: words of 64 bits, low byte first; doubles by their bits, 128-bit accounts as two
// words, lists behind their length. The step time itself is not in it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/step/result.hpp"

namespace fabricast::plan {

std::string step_bytes(const StepResult& step);
/// False where the bytes are not what step_bytes writes.
bool read_step(std::string_view bytes, StepResult& out);

}  // namespace fabricast::plan
