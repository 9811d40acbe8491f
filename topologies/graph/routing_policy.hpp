// How flows spread over the parallel paths of a fabric.
//
//   ideal      every flow is spread over all of them: they are one trunk link of their summed capacity
//   static     the forwarding table of a destination-routed fabric (InfiniBand): the destination alone decides. The
//              NICs of a leaf take its uplinks in turn, so rails that shift by whole nodes never collide
//   ecmp       a hash decides: links are separate, and flows that meet on one share it
//   adaptive   ideal, with each trunk at `adaptive_efficiency` of its capacity
// The hash is counter-based, mix(seed, from, to, flow, level): equal on every machine, and independent from level to
// level (no polarisation). A flow stands for what a switch hashes, say one queue pair.
// Does not model: flowlet timing, re-routing after congestion.
#pragma once

#include <cstdint>

namespace fabricast {

enum class Spreading : std::uint8_t { ideal, static_table, ecmp, adaptive };

struct RoutingPolicy {
    Spreading spreading = Spreading::ideal;
    double adaptive_efficiency = 1;  ///< above 0, at most 1; read with adaptive only
    std::uint64_t seed = 0;          ///< read with ecmp only

    /// Parallel paths are links of their own.
    bool separate_links() const { return spreading == Spreading::static_table || spreading == Spreading::ecmp; }
    bool operator==(const RoutingPolicy&) const = default;
};

/// One step of a counter-based hash (finaliser of splitmix64).
constexpr std::uint64_t mix_counter(std::uint64_t hash, std::uint64_t value) {
    std::uint64_t x = hash ^ (value + 0x9e3779b97f4a7c15u);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/// Which of `ways` paths the flow takes at this level of switches.
constexpr std::uint32_t ecmp_choice(std::uint64_t seed, std::uint32_t from, std::uint32_t to, std::uint64_t flow,
                                    std::uint32_t level, std::uint32_t ways) {
    std::uint64_t hash = mix_counter(seed, (std::uint64_t{from} << 32) | to);
    hash = mix_counter(mix_counter(hash, flow), level);
    return static_cast<std::uint32_t>(hash % ways);
}

}  // namespace fabricast
