// One step of the 64-bit mix of fingerprints and state hashes.
#pragma once

#include <cstdint>

namespace fabricast::engine {

constexpr std::uint64_t mix(std::uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/// Bit of a stream in the masks of a rank.
constexpr std::uint32_t bit(std::uint8_t stream) { return 1u << stream; }

}  // namespace fabricast::engine
