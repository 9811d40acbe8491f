#include "models/collectives/execution.hpp"

#include <algorithm>

namespace fabricast {

int executed_channels(const SearchResult& search, GpuGeneration generation, std::uint32_t nodes, ChannelLimits limits) {
    int channels = 2 * search.ring.channels;
    if (generation >= GpuGeneration::hopper && nodes > 1 && search.ring.intra_gb_per_s > 45 && channels < 16) {
        channels *= 2;
    }
    return std::clamp(channels, limits.least, limits.most);
}

int nvls_channels(GpuGeneration generation, std::uint32_t nodes, ChannelLimits limits) {
    const int channels = generation >= GpuGeneration::blackwell ? (nodes == 1 ? 24 : 32) : 16;
    return std::min(channels, limits.most);
}

double used_channels(Algorithm a, Protocol p, Bytes size, std::uint32_t ranks, const SearchResult& search,
                     int executed) {
    if (a == Algorithm::nvls || a == Algorithm::nvls_tree) {
        return executed;
    }
    const bool slow_ring = a == Algorithm::ring && search.ring.channels * search.ring.intra_gb_per_s <= 12;
    double threads = 512, threshold = 64;
    if (p == Protocol::ll) {
        threshold = a == Algorithm::ring ? 8.0 * ranks : 8;
    } else if (p == Protocol::ll128) {
        threads = 640;
        threshold = 8;
    } else if (slow_ring) {
        threads = 256;
    }
    return std::clamp<double>(static_cast<double>(size) / (threads * threshold), 1, executed);
}

double channel_gb_per_s(GpuGeneration generation) {
    constexpr double kRate[] = {20, 20, 36.7, 40};
    return kRate[static_cast<int>(generation)];
}

Bytes scaled_up(Bytes value, std::int64_t numerator, std::int64_t denominator) {
    const __int128 product = static_cast<__int128>(value) * numerator;
    return static_cast<Bytes>((product + denominator - 1) / denominator);
}

Bytes wire_bytes(Bytes payload, Protocol p) {
    switch (p) {
        case Protocol::ll: return 2 * payload;
        case Protocol::ll128: return scaled_up(payload, 128, 120);
        default: return payload;
    }
}

}  // namespace fabricast
