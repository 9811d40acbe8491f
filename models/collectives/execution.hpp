// How NCCL executes a chosen collective: channels, their rate, bytes on the wire.
//
// Channels: 2 x search channels; from Hopper on doubled again over several nodes when the ring runs above 45 GB/s
// and there are fewer than 16; clamped to 64 and to the settings. Small operations use fewer: one for each
// threads x threshold bytes. A channel is one thread block; it moves at most `channel_gb_per_s` wire bytes.
//
// Source: NCCL 2.28.9 src/enqueue.cc, src/graph/connect.cc. Channel rate: NCCL's LL128 cap of one ring
// channel, 20 / 20 / 36.7 / 40 GB/s (Blackwell: the 2.30 value); the local step of 2- and 4-GPU tables measured on
// A100 and B200 gives 20 and 38 for it.
#pragma once

#include "models/collectives/comm_model.hpp"
#include "models/collectives/tuner.hpp"

namespace fabricast {

inline constexpr int kMaxChannels = 64;  // MAXCHANNELS since 2.25

struct ChannelLimits {
    int least = 1, most = kMaxChannels;
};

/// Channels of rings and trees at full size.
int executed_channels(const SearchResult& search, GpuGeneration generation, std::uint32_t nodes, ChannelLimits limits);
/// Channels of NVLS and NVLSTree.
int nvls_channels(GpuGeneration generation, std::uint32_t nodes, ChannelLimits limits);
/// Channels an operation of this size uses, 1 .. executed; NCCL rounds down. Rates use the fraction, so that time
/// does not fall where one more channel comes in.
double used_channels(Algorithm a, Protocol p, Bytes size, std::uint32_t ranks, const SearchResult& search,
                     int executed);

/// Wire bytes/s of one channel (thread block).
double channel_gb_per_s(GpuGeneration generation);

/// Bytes on the wire for payload bytes: x 2 for LL, x 128/120 for LL128, rounded up.
Bytes wire_bytes(Bytes payload, Protocol p);
/// ceil(value * numerator / denominator) without overflow.
Bytes scaled_up(Bytes value, std::int64_t numerator, std::int64_t denominator);

}  // namespace fabricast
