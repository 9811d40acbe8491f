// One step of a 64-bit mix: fingerprints, state hashes, counter-based draws.
#pragma once

#include <cstdint>

namespace fabricast {

constexpr std::uint64_t mix(std::uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

}  // namespace fabricast
