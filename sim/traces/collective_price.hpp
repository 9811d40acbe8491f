// What a collective takes on the links of its group.
//
// A collective of s bytes is cut into C chunks, A of which are under way at once in a dimension (SystemConfig). With
//   m   bytes of one message of a chunk, n ranks, h passes (all-reduce 2, else 1)
//   P   time of one chunk alone: h (serial bytes / rate + latencies + steps x endpoint) + reductions
//   B   time of a chunk on the busiest link
//   t   what is left when the last byte is out: one step's latency where all links are busy all the time (ring, direct,
//       halving-doubling), P - B where chunks pass through a pipe (tree, chain)
// The chunks go in turns of A, the last of g = 1 + (C - 1) mod A:
//   T = (turns - 1) max( A B, P ) + max( g B + t, P + (g - 1) B / steps )
// The engine gets the links' work and T - C B as latency.
// ASTRA-sim's congestion-unaware network lets the A chunks use a link at once, each at its full rate, and so falls below
// the time the link needs: C B / A.
//
// m and steps of a pass by algorithm (s: see workload.hpp; all-gather's s is a rank's shard):
//   ring, direct       m = s/n (all-gather s), n - 1 messages; ring all-to-all relays: n (n-1)/2 messages of s/n;
//                      direct pays one latency for every `window` messages
//   halving_doubling   s/2, s/4 ... (all-gather n s/2 ...)
//   tree               all-reduce only; broadcast and reduce: chain of s; gather, scatter: star of s/n;
//   barrier            ceil(log2 n) steps without data
// A reduction reads two operands and writes one in the GPU's memory: 3 m / local-mem-bw after each message that is added.
#pragma once

#include "sim/traces/pattern.hpp"
#include "sim/traces/system_file.hpp"
#include "sim/traces/workload.hpp"

namespace fabricast::traces {

/// Which pattern runs a collective. Throws std::runtime_error where the algorithm cannot.
Pattern pattern_of(CollectiveKind kind, const DimensionAlgorithm& algorithm, std::uint32_t ranks);

/// One chunk.
struct ChunkPrice {
    double work = 0;  ///< bytes on the busiest link, see pattern.hpp
    double path_s = 0, busy_s = 0, message_s = 0, tail_s = 0;
};
/// window: messages of a rank that a direct algorithm has under way at once, 0: all.
ChunkPrice chunk_price(CollectiveKind kind, Pattern pattern, std::uint32_t window, const PatternShape& shape,
                       double chunk_bytes, const SystemConfig& system);

/// T of `chunks` chunks, `active` of them at once.
double time_of_chunks(const ChunkPrice& chunk, std::uint32_t chunks, std::uint32_t active);

/// Into how many chunks a collective of so many bytes is cut.
std::uint32_t chunks_of(Bytes bytes, const SystemConfig& system);

/// Bytes of a rank after the collective, by ASTRA-sim's convention: what the next dimension gets.
double bytes_after(CollectiveKind kind, double bytes, std::uint32_t ranks);

/// Bus bandwidth as nccl-tests counts it, for whole-buffer sizes of ASTRA-sim's convention; 0 for no data.
double bus_bandwidth(CollectiveKind kind, double bytes, std::uint32_t ranks, double time_s);

}  // namespace fabricast::traces
