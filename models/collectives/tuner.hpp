// NCCL's tuning model: a latency and a bandwidth for each (collective, algorithm, protocol), and the choice.
//
//   time_us = latency_us + size / (1000 * bandwidth)        bandwidth in decimal GB/s of algorithm bandwidth
//
// Bandwidth starts at channels x channel speed (search_presets.hpp; the speed inside a node up to 2 nodes, else the
// speed between nodes), is cut by caps that depend on protocol, generation and node count, and is turned into
// algorithm bandwidth: x n/nsteps for Ring, NVLS, NVLSTree, x 1/2 for Tree. Latency is a base plus hops: linear in
// ranks for Ring, logarithmic in nodes for Tree, NVLSTree, PAT. All-reduce on Tree is corrected by a table over
// size; Ring/Simple all-reduce over several nodes has its latency multiplied once messages are large (plateau).
//
// It chooses; it is not the clock (it knows no congestion, no other collectives). CollNet, and NVLS over several
// nodes, need switches that reduce (SHARP) and NCCL_COLLNET_ENABLE. Several collectives fused into one group are not modelled.
// Source: NCCL 2.28.9 and 2.30.7 src/graph/tuning.cc, src/enqueue.cc. Tables are data of tuner.cpp.
#pragma once

#include <string_view>

#include "models/collectives/comm_model.hpp"
#include "models/collectives/search_presets.hpp"

namespace fabricast {

enum class NcclVersion : std::uint8_t { v2_28, v2_30 };

/// "nccl 2.28", "nccl 2.30", with or without a patch number. Throws std::invalid_argument naming the two.
NcclVersion nccl_version(std::string_view library);

struct TunerInput {
    NcclVersion version = NcclVersion::v2_28;
    GpuGeneration generation = GpuGeneration::hopper;
    bool amd_cpu = false;
    std::uint32_t ranks = 8, nodes = 1;
    bool one_rank_a_node = false;  ///< every node has exactly one rank
    bool ll128 = true;             ///< NVLink-only inside, one GPU capability
    bool collnet = false;          ///< switches reduce, the plugin is there and enabled, several nodes
    bool nvswitch = true;          ///< several ranks a node behind an NVSwitch
    std::uint32_t most_on_node = 8;
    int channels = 24;  ///< executed channels (the plateau depends on them)
    SearchResult search;
};

TunerTable tune(const TunerInput& in, Collective kind);

/// Size-dependent factor on the bandwidth of Tree all-reduce, in (0, 1].
double tree_correction(Protocol protocol, Bytes size);

/// Factor on Ring/Simple all-reduce latency over several nodes: 1, or 1.4 (1.9 before Ampere) on the plateau.
double ring_plateau(const TunerInput& in, Bytes size);

/// Seconds NCCL expects, infinity where the entry is not available.
double tuner_time_s(const TunerInput& in, const TunerTable& table, Collective kind, Algorithm a, Protocol p,
                    Bytes size);

// --- Limits of one channel that the clock needs too (decimal GB/s) ---

/// Total low-latency (LL) bus bandwidth, all channels.
double ll_total_gb_per_s(const TunerInput& in);
/// LL128 on rings, one search channel.
double ring_ll128_channel_gb_per_s(const TunerInput& in);
/// Trees, one search channel.
double tree_channel_gb_per_s(const TunerInput& in, Protocol p);
/// NVLSTree, one search channel.
double nvls_tree_channel_gb_per_s(const TunerInput& in);
/// Share of NVLink that NVLS reaches, in per cent (85 on Hopper, 74 on Blackwell); 0 = no NVLS.
int nvls_efficiency_percent(GpuGeneration generation);
/// Ring and point-to-point hop latency, us.
double hop_latency_us(Algorithm a, Protocol p, bool nvlink, bool network);
double base_latency_us(Algorithm a, Protocol p);

}  // namespace fabricast
