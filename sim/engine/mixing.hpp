// Bits and hashes of the engine's state.
#pragma once

#include <cstdint>

#include "models/program/mix.hpp"

namespace fabricast::engine {

/// Bit of a stream in the masks of a rank.
constexpr std::uint32_t bit(std::uint8_t stream) { return 1u << stream; }

}  // namespace fabricast::engine
