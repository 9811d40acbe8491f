// Bits and hashes of the engine's state.
#pragma once

#include <cstdint>

#include "models/program/mix.hpp"
#include "topologies/graph/units.hpp"

namespace fabricast::engine {

/// Bit of a stream in the masks of a rank.
constexpr std::uint32_t bit(std::uint8_t stream) { return 1u << stream; }

/// What an operation of a rank adds to the fingerprint: mix(finish_constant), a sum of multiples, so that for times that
/// lie `later` by T it is mix(finish_constant + finish_shift(T)).
constexpr std::uint64_t finish_constant(std::uint32_t tmpl, std::uint32_t operation, Picoseconds started,
                                        Picoseconds finished) {
    const std::uint64_t id = static_cast<std::uint64_t>(tmpl) << 32 | operation;
    return id * 0x9e3779b97f4a7c15ull + static_cast<std::uint64_t>(started) * 0xd1342543de82ef95ull +
           static_cast<std::uint64_t>(finished) * 0xaf251af3b0f025b5ull;
}
constexpr std::uint64_t finish_shift(Picoseconds later) { return finish_constant(0, 0, later, later); }

}  // namespace fabricast::engine
