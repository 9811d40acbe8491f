#include "models/collectives/latency.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "models/collectives/execution.hpp"

namespace fabricast {

namespace {

// Rows by generation (Volta: NCCL's own figures), columns LL and Simple. LL128 keeps NCCL's figures.
constexpr HopLatency kLowLatencyRing[] = {{6.6, .6}, {8.5, .9}, {5.0, .8}, {8.0, 1.2}};
constexpr HopLatency kSimpleRing[] = {{8.4, 3.4}, {23.5, 7.4}, {17.5, 2.8}, {16.5, 4.4}};
constexpr double kNvlsRoundTrip = 8e-6;  // s

constexpr double kKiB = 1024;
constexpr double kNvlsTreeChunk = 128 * kKiB;  // NCCL_NVLS_CHUNKSIZE

HopLatency ring_latency(const LatencyInput& in) {
    if (in.tuner.nodes == 1 && in.tuner.search.nvlink_intra) {
        return nvlink_ring_latency(in.tuner.generation, in.protocol);
    }
    return {base_latency_us(in.algorithm, in.protocol),
            hop_latency_us(in.algorithm, in.protocol, in.tuner.search.nvlink_intra, false)};
}

/// Hops between nodes of a chain over all ranks: it comes back to the root's node, where the root stands in the middle of
/// the node on all channels but one.
double chain_crossings(const TunerInput& tuner) {
    return tuner.nodes == 1 ? 0.0 : static_cast<double>(tuner.nodes) - (tuner.one_rank_a_node ? 1 : 0);
}

/// Bytes one channel handles in an elementary step.
double chunk_bytes(Protocol p) {
    constexpr double kChunk[] = {32 * kKiB, 576'000, 512 * kKiB};
    return kChunk[static_cast<int>(p)];
}

/// NVLS: 16, 32, 64, 128 KiB from 0, 2, 8, 64 loops of full chunks on. Taken as 16 KiB sqrt(loops), which passes
/// through those steps, so that time rises with size.
double nvls_chunk_bytes(double size, double streams) {
    const double loops = size / (streams * 128 * kKiB);
    return std::clamp(16 * kKiB * std::sqrt(loops), 16 * kKiB, 128 * kKiB);
}

/// NCCL's tree correction, straight between its points, so that time rises with size.
double smooth_tree_correction(Protocol p, Bytes size) {
    if (size < 64) {
        return 1;
    }
    const Bytes point = static_cast<Bytes>(std::bit_floor(static_cast<std::uint64_t>(size)));
    const double here = tree_correction(p, point);
    const double next = tree_correction(p, 2 * point);
    return here + (next - here) * (static_cast<double>(size - point) / static_cast<double>(point));
}

}  // namespace

HopLatency nvlink_ring_latency(GpuGeneration generation, Protocol p) {
    if (p == Protocol::ll128) {
        return {base_latency_us(Algorithm::ring, p), hop_latency_us(Algorithm::ring, p, true, false)};
    }
    return (p == Protocol::ll ? kLowLatencyRing : kSimpleRing)[static_cast<int>(generation)];
}

namespace {

/// Levels under the root of the binary trees over nodes (wiring.hpp). NCCL's tuner counts floor(log2 nodes).
int tree_depth(const TunerInput& tuner) { return std::bit_width(tuner.nodes - 1); }

/// NCCL's own figures, and the fitted ones on one node.
double table_latency_s(const LatencyInput& in) {
    const TunerInput& tuner = in.tuner;
    if (in.algorithm == Algorithm::tree || in.algorithm == Algorithm::nvls_tree) {
        const Algorithm as = tuner.one_rank_a_node ? Algorithm::tree : in.algorithm;
        const double uncounted = tree_depth(tuner) - (std::bit_width(tuner.nodes) - 1);
        return (in.entry.latency_us + 2 * uncounted * hop_latency_us(as, in.protocol, true, true)) * 1e-6;
    }
    if (in.algorithm != Algorithm::ring) {
        return in.entry.latency_us * 1e-6;
    }
    const double steps = static_cast<double>(tuner.ranks) - 1;
    if (in.kind == Collective::broadcast || in.kind == Collective::reduce) {
        const bool simple = in.protocol == Protocol::simple;
        const HopLatency inside =
            simple ? HopLatency{base_latency_us(in.algorithm, in.protocol),
                                hop_latency_us(in.algorithm, in.protocol, tuner.search.nvlink_intra, false)}
                   : ring_latency(in);
        const double crossings = chain_crossings(tuner);
        const double outside = hop_latency_us(in.algorithm, in.protocol, true, true);
        return (inside.base_us + (steps - crossings) * inside.hop_us + crossings * outside) * 1e-6;
    }
    if (tuner.nodes == 1) {
        const HopLatency inside = ring_latency(in);
        return (inside.base_us + steps * (in.kind == Collective::all_reduce ? 2 : 1) * inside.hop_us) * 1e-6;
    }
    return 0;  // over nodes: ring_latency_s
}

/// A ring over nodes: what steps x s_max does not cover.
double ring_latency_s(const LatencyInput& in) {
    const RingStep step = ring_step(in);
    const double g = std::max(1.0, static_cast<double>(in.tuner.ranks) / in.tuner.nodes);
    const double steps = (static_cast<double>(in.tuner.ranks) - 1) * (in.kind == Collective::all_reduce ? 2 : 1);
    const double crossings = std::ceil(steps / g - 1e-9);  // a path of `steps` hops that starts with one between nodes
    const double path = (steps - crossings) * (step.inside_step + step.inside_latency) +
                        crossings * (step.outside_step + step.outside_latency);
    const double wire = steps * std::max(steps > crossings ? step.inside_step : 0, step.outside_step);
    return step.base + std::max(path - wire, step.outside_latency);
}

/// Network hops on the longest path of a chain or tree.
double network_hops(const LatencyInput& in) {
    if (in.algorithm == Algorithm::ring) {
        return in.tuner.nodes == 1 ? 0 : chain_crossings(in.tuner);
    }
    return in.algorithm == Algorithm::pat ? std::bit_width(in.tuner.nodes) - 1 : 2 * tree_depth(in.tuner);
}

/// Trees with Simple over nodes: chunks that find the slots of their connection empty.
double slots_s(const LatencyInput& in) {
    constexpr double kSlots = 8;
    if (in.tuner.nodes == 1 || in.protocol != Protocol::simple) {
        return 0;
    }
    const double chunk = in.algorithm == Algorithm::tree ? chunk_bytes(in.protocol) : kNvlsTreeChunk;
    return std::min(kSlots, static_cast<double>(in.size) / (in.channels * chunk)) * in.network.slot_us * 1e-6;
}

}  // namespace

double extra_hop_us(const LatencyInput& in) {
    return in.network.hop_us[static_cast<int>(in.protocol)] *
           (in.protocol == Protocol::simple ? std::max(1.0, in.ranks_per_nic) : 1);
}

double ring_hop_share(const TunerInput& tuner, Protocol p) {
    if (tuner.one_rank_a_node) {
        return 1;
    }
    return hop_latency_us(Algorithm::ring, p, true, true) / hop_latency_us(Algorithm::tree, p, true, true);
}

RingStep ring_step(const LatencyInput& in) {
    const TunerInput& tuner = in.tuner;
    const bool simple = in.protocol == Protocol::simple;
    const double steps = (static_cast<double>(tuner.ranks) - 1) * (in.kind == Collective::all_reduce ? 2 : 1);
    const double bytes = in.wire_bytes / steps;
    const double block = in.cap > 0 ? bytes / in.cap : 0;
    const double post = (tuner.amd_cpu ? 2.0 : 1.0) * (simple ? 3 : 1);
    const HopLatency inside = ring_latency(in);
    const double outside =
        hop_latency_us(tuner.one_rank_a_node ? Algorithm::tree : in.algorithm, in.protocol, true, true);
    return {.base = inside.base_us * 1e-6,
            .inside_latency = std::max(inside.hop_us, post) * 1e-6,
            .outside_latency = (outside + ring_hop_share(tuner, in.protocol) * extra_hop_us(in)) * 1e-6,
            .inside_step = std::max(block, bytes * in.pace.inside),
            .outside_step = std::max(block, bytes * in.pace.outside)};
}

double hop_latency_s(const LatencyInput& in) {
    const bool chain = in.kind == Collective::broadcast || in.kind == Collective::reduce;
    if (in.algorithm == Algorithm::ring && in.tuner.nodes > 1 && !chain) {
        return ring_latency_s(in);
    }
    const double share = in.algorithm == Algorithm::ring ? ring_hop_share(in.tuner, in.protocol) : 1;
    return table_latency_s(in) + network_hops(in) * share * extra_hop_us(in) * 1e-6;
}

namespace {

/// Every hop of a chain that stores a chunk holds one of each channel once; the slowest hop's time is part of the wire time.
double chain_fill_s(const LatencyInput& in) {
    const TunerInput& tuner = in.tuner;
    const bool stores = in.protocol == Protocol::simple || !tuner.search.nvlink_intra;  // hops in the node
    const double payload = std::min(static_cast<double>(in.size), in.channels * chunk_bytes(in.protocol));
    const double in_flight = static_cast<double>(wire_bytes(static_cast<Bytes>(payload), in.protocol));
    const double own = 1 / (in.channels * channel_gb_per_s(tuner.generation) * 1e9);
    const double hops = static_cast<double>(tuner.ranks) - 1;
    if (tuner.nodes == 1) {
        return stores ? std::max(0.0, hops - 1) * in_flight * own : 0;
    }
    const double crossings = chain_crossings(tuner);
    const double inside = stores ? in_flight * std::max(own, in.pace.inside) : 0;
    const double outside = in_flight * std::max({own, in.pace.outside, in.cap > 0 ? 1 / in.cap : 0});
    return std::max(0.0, hops - crossings) * inside + crossings * outside -
           std::max(hops > crossings ? inside : 0, outside);
}

}  // namespace

double fill_s(const LatencyInput& in) {
    const TunerInput& tuner = in.tuner;
    const double bytes = static_cast<double>(in.size);
    const double rate = in.entry.bandwidth_gb_per_s * 1e9;
    if (in.algorithm == Algorithm::ring && (in.kind == Collective::broadcast || in.kind == Collective::reduce)) {
        return chain_fill_s(in);
    }
    if (in.algorithm == Algorithm::ring && tuner.nodes == 1 && tuner.search.nvlink_intra) {
        const double stored = static_cast<double>(wire_bytes(in.size, in.protocol)) / tuner.ranks;
        return stored / (in.channels * channel_gb_per_s(tuner.generation) * 1e9);
    }
    if (in.algorithm == Algorithm::tree) {
        return slots_s(in) + bytes / rate * (1 / smooth_tree_correction(in.protocol, in.size) - 1);
    }
    if (in.algorithm == Algorithm::nvls_tree) {
        return slots_s(in);
    }
    if (in.algorithm == Algorithm::nvls && tuner.nodes == 1) {
        const double streams = static_cast<double>(in.channels) * tuner.search.nvls.channels;
        const double loop = std::min(bytes, streams * nvls_chunk_bytes(bytes, streams));
        const double loops = bytes / loop;
        const double wire = loop / rate;
        return (loops + 1) * std::sqrt(wire * wire + kNvlsRoundTrip * kNvlsRoundTrip) - loops * wire;
    }
    return 0;
}

}  // namespace fabricast
