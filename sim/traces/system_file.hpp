// The system layer of ASTRA-sim (JSON): how collectives are run and what a GPU computes.
//
// Every key is checked; an unknown one is refused by name. What is read and not simulated is told in notes.
//   preferred-dataset-splits    C, chunks a collective is cut into; required (leaving it out crashes ASTRA-sim)
//   active-chunks-per-dimension A, chunks of a dimension under way at once
//   endpoint-delay              ns a message spends in its endpoint; 10 by default
//   <collective>-implementation one algorithm a dimension, ring | direct[window] | halvingDoubling | doubleBinaryTree;
//                               oneRing, oneDirect, oneHalvingDoubling: all dimensions as one
//   collective-optimization     localBWAware: all-reduce as reduce-scatters up to the last dimension and all-gathers
//                               back; baseline: one all-reduce of everything after the other
//   local-mem-bw, peak-perf     10^9 bytes/s, 10^12 FLOP/s; roofline-enabled prices computations with them
//   replay-only                 every node takes the time that was recorded, communication too
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/traces/workload.hpp"

namespace fabricast::traces {

enum class AlgorithmKind : std::uint8_t { ring, direct, halving_doubling, double_binary_tree };
std::string_view algorithm_name(AlgorithmKind kind);

struct DimensionAlgorithm {
    AlgorithmKind kind = AlgorithmKind::ring;
    std::uint32_t window = 0;  ///< direct: messages of a rank under way at once; 0: all
    bool whole = false;        ///< over all dimensions as one
    bool operator==(const DimensionAlgorithm&) const = default;
};

/// The collectives that have algorithms of their own.
enum class Implemented : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, count };

struct SystemConfig {
    std::uint32_t splits = 1, active_chunks = 1;
    double endpoint_s = 10e-9;
    bool local_bandwidth_aware = true;
    double memory_bytes_per_s = 0;  ///< 0: not told
    double flops_per_s = 0;
    bool roofline = false, replay_only = false;
    /// By Implemented, then dimension. One entry that is `whole`, or one a dimension.
    std::array<std::vector<DimensionAlgorithm>, static_cast<std::size_t>(Implemented::count)> algorithms;
    std::vector<std::string> notes;

    const std::vector<DimensionAlgorithm>& of(Implemented what) const {
        return algorithms[static_cast<std::size_t>(what)];
    }
};

/// Rings everywhere, one chunk.
SystemConfig default_system(std::uint32_t dimensions);

/// Throws ImportError with the key.
SystemConfig read_system_file(const std::string& path, std::uint32_t dimensions);

/// Remote memory of ASTRA-sim (JSON): a load or store takes latency + bytes / bandwidth, of which each GPU, each server
/// or the whole pool has one.
struct RemoteMemory {
    enum class Kind : std::uint8_t { none, per_node, per_npu, pool } kind = Kind::none;
    std::uint32_t npus_per_node = 1;
    double latency_s = 0, bytes_per_s = 0;
};
/// Throws ImportError with the key.
RemoteMemory read_remote_memory(const std::string& path);

}  // namespace fabricast::traces
