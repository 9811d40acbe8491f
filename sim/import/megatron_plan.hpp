// What Megatron-LM's flags mean: flags -> Plan, with the defaults that matter.
// Source: Megatron-LM arguments.py at the releases named in the table of names (megatron_flags.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/import/megatron_flags.hpp"

namespace fabricast::import {

/// Everything the flags say, into the plan (which knows the world already). dump: absent flags are off, not unknown.
void take_flags(Flags& flags, Plan& plan);

/// "Et|(tt|)*30mL" -> layers of every stage chunk; empty when it cannot be read.
std::vector<std::int64_t> pipeline_layout(const std::string& text);

}  // namespace fabricast::import
