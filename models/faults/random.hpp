// Random numbers that are a function of a counter, so that skipping work never shifts a stream.
//
//   word(seed, purpose, entity, n) = mix(key + n golden),  key = mix(mix(mix(seed) + purpose) + entity)
//
// mix is the finaliser of SplitMix64 (models/program/mix.hpp) and golden its increment, 2^64 / golden ratio: within a
// stream this is SplitMix64 started at a mixed key. A draw is uniform in (0, 1), never 0 or 1, on 53 bits; all others are
// inverse CDFs of it (distributions.hpp), one word each, so that two scenarios with one seed meet the same luck.
#pragma once

#include <cstdint>

#include "models/program/mix.hpp"

namespace fabricast::faults {

/// What a stream is for; a value is never used for two things.
enum class Purpose : std::uint64_t {
    replica = 1,      ///< entity: number of the replica; gives the seed of all its streams
    node_rate,        ///< entity: node; how prone it is
    node_life,        ///< entity: node; lives under renewal
    fleet_gap,        ///< times between primary faults of the fleet
    fleet_node,       ///< which node a fault strikes
    follow_up,        ///< faults that follow a fault
    component,        ///< what broke
    repair,           ///< how long the node is away
    recovery,         ///< how long the job is away
    degradation,      ///< entity: kind; onsets
    degradation_end,  ///< entity: kind; until mended
    episode,          ///< entity: kind; congestion, flaps
    save,             ///< saves that take long
    queue,            ///< waits for the scheduler
    monitor,          ///< entity: metric, or rule beyond them; noise of what is measured
};

class Draws {
public:
    Draws() = default;
    Draws(std::uint64_t seed, Purpose purpose, std::uint64_t entity = 0)
        : key_(mix(mix(mix(seed + kGolden) + static_cast<std::uint64_t>(purpose)) + entity)) {}

    std::uint64_t word() { return mix(key_ + ++count_ * kGolden); }
    /// Uniform in (0, 1).
    double next() { return (static_cast<double>(word() >> 11) + 0.5) * 0x1p-53; }
    /// Uniform in 0 .. n-1; n > 0.
    std::uint32_t below(std::uint32_t n) {
        return static_cast<std::uint32_t>((static_cast<unsigned __int128>(word()) * n) >> 64);
    }
    std::uint64_t count() const { return count_; }

private:
    static constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ull;
    std::uint64_t key_ = 0, count_ = 0;
};

}  // namespace fabricast::faults
