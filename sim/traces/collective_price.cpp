#include "sim/traces/collective_price.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include <fmt/format.h>

namespace fabricast::traces {
namespace {

double rounds_of_two(std::uint32_t ranks) { return static_cast<double>(std::bit_width(ranks - 1)); }

/// Bytes of one pass's messages that a rank adds to its own.
double reduced_bytes(CollectiveKind kind, Pattern pattern, const PatternShape& shape, double s) {
    const double n = shape.ranks;
    if (kind == CollectiveKind::reduce)
        return pattern == Pattern::chain ? (n - 1) * s : s;
    if (kind != CollectiveKind::all_reduce && kind != CollectiveKind::reduce_scatter)
        return 0;
    return pattern == Pattern::tree ? shape.steps / 2.0 * s : (n - 1) / n * s;
}

}  // namespace

Pattern pattern_of(CollectiveKind kind, const DimensionAlgorithm& algorithm, std::uint32_t ranks) {
    switch (kind) {
        case CollectiveKind::broadcast:
        case CollectiveKind::reduce: return Pattern::chain;
        case CollectiveKind::gather:
        case CollectiveKind::scatter: return Pattern::star;
        case CollectiveKind::barrier: return Pattern::star;
        default: break;
    }
    switch (algorithm.kind) {
        case AlgorithmKind::ring: return Pattern::ring;
        case AlgorithmKind::direct: return Pattern::direct;
        case AlgorithmKind::halving_doubling:
            if (kind == CollectiveKind::all_to_all)
                throw std::runtime_error("halving-doubling does no all_to_all; ring and direct do");
            if (!std::has_single_bit(ranks))
                throw std::runtime_error(
                    fmt::format("halving-doubling over {} ranks: a power of two is needed", ranks));
            return Pattern::halving_doubling;
        case AlgorithmKind::double_binary_tree: break;
    }
    if (kind != CollectiveKind::all_reduce) {
        throw std::runtime_error(
            fmt::format("a double binary tree does all_reduce only, not {}", collective_name(kind)));
    }
    return Pattern::tree;
}

ChunkPrice chunk_price(CollectiveKind kind, Pattern pattern, std::uint32_t window, const PatternShape& shape, double s,
                       const SystemConfig& system) {
    const double n = shape.ranks;
    ChunkPrice out;
    if (kind == CollectiveKind::barrier) {
        out.path_s = rounds_of_two(shape.ranks) * (shape.step_latency_s + system.endpoint_s);
        out.tail_s = out.path_s;
        return out;
    }
    double steps = shape.steps, latency = shape.latency_s, passes = 1;
    switch (pattern) {
        case Pattern::ring:
        case Pattern::direct:
            passes = kind == CollectiveKind::all_reduce ? 2 : 1;
            out.work = kind == CollectiveKind::all_gather ? (n - 1) * s : (n - 1) / n * s;
            if (pattern == Pattern::ring && kind == CollectiveKind::all_to_all) {  // relayed from rank to rank
                steps = n * (n - 1) / 2;
                latency = steps * shape.step_latency_s;
                out.work = (n - 1) / 2 * s;
            }
            if (pattern == Pattern::direct && window > 0 && window < shape.ranks - 1) {
                steps = (shape.ranks - 1 + window - 1) / window;
                latency *= steps;
            }
            break;
        case Pattern::halving_doubling:
            passes = kind == CollectiveKind::all_reduce ? 2 : 1;
            out.work = (kind == CollectiveKind::all_gather ? n * s : s) * (1 - 1 / n);
            break;
        case Pattern::tree: out.work = 2 * s; break;
        case Pattern::chain: out.work = s; break;
        case Pattern::star:
        case Pattern::count: out.work = (n - 1) / n * s; break;
    }
    const double serial = out.work * shape.serial_s_per_byte;
    const double added = reduced_bytes(kind, pattern, shape, s);
    const double reduction = system.memory_bytes_per_s > 0 ? 3 * added / system.memory_bytes_per_s : 0;
    out.work *= passes;
    steps *= passes;
    out.busy_s = out.work / shape.bytes_per_s;
    out.path_s = passes * (serial + latency) + steps * system.endpoint_s + reduction;
    out.message_s = out.busy_s / steps;
    const bool pipe = pattern == Pattern::tree || pattern == Pattern::chain;
    out.tail_s = pipe ? out.path_s - out.busy_s : shape.step_latency_s + system.endpoint_s;
    return out;
}

double time_of_chunks(const ChunkPrice& chunk, std::uint32_t chunks, std::uint32_t active) {
    const std::uint32_t at_once = std::min(active, chunks);
    const std::uint32_t turns = (chunks - 1) / at_once, last = chunks - turns * at_once;
    return turns * std::max(at_once * chunk.busy_s, chunk.path_s) +
           std::max(last * chunk.busy_s + chunk.tail_s, chunk.path_s + (last - 1) * chunk.message_s);
}

std::uint32_t chunks_of(Bytes bytes, const SystemConfig& system) {
    return static_cast<std::uint32_t>(std::clamp<Bytes>(bytes, 1, system.splits));
}

double bytes_after(CollectiveKind kind, double bytes, std::uint32_t ranks) {
    switch (kind) {
        case CollectiveKind::all_gather: return bytes * ranks;
        case CollectiveKind::reduce_scatter:
        case CollectiveKind::scatter: return bytes / ranks;
        default: return bytes;
    }
}

double bus_bandwidth(CollectiveKind kind, double bytes, std::uint32_t ranks, double time_s) {
    if (bytes <= 0 || time_s <= 0)
        return 0;
    const double n = ranks, part = (n - 1) / n;
    switch (kind) {
        case CollectiveKind::all_reduce: return 2 * part * bytes / time_s;
        case CollectiveKind::all_gather: return (n - 1) * bytes / time_s;
        case CollectiveKind::reduce_scatter:
        case CollectiveKind::all_to_all:
        case CollectiveKind::gather:
        case CollectiveKind::scatter: return part * bytes / time_s;
        case CollectiveKind::broadcast:
        case CollectiveKind::reduce: return bytes / time_s;
        case CollectiveKind::barrier: break;
    }
    return 0;
}

}  // namespace fabricast::traces
