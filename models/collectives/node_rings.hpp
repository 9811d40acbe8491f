// In which order rings and chains pass the GPUs of a node that no NVSwitch joins.
//
// Direct NVLinks: a channel is a cycle over all GPUs of the group on the node, one lane a hop. The cycles are a packing
// of Hamiltonian cycles into the lanes, as many as fit: at most min over GPUs of floor(lanes / 2), each run both ways.
//   rings      lanes a GPU sends on in all cycles together (6 on the cube mesh of 8 V100)
//   NVLink     rings x rate of a lane
// Two GPUs: one cycle, as many rings as lanes. No such cycle: one tour that goes on to the nearest GPU next (path type,
// then width of its narrowest link, then lower number), over NVLink through another GPU, PCIe, host bridges or between
// sockets, whatever joins them.
// Lanes that are lost are gone when the job starts; a link that only runs slower keeps its rings.
//
// Source: NCCL src/graph/search.cc searches such orders under a time limit; the packing is exact here up to a budget.
// Not modelled: channels of unequal order on PCIe, rings over some NVLinks and PCIe at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topologies/graph/cluster.hpp"

namespace fabricast {

struct NodeRings {
    std::vector<std::vector<std::uint32_t>> cycles;  ///< positions among the GPUs given; at least one cycle
    /// Channel pattern p runs `cycle` from `entry` on (over several nodes it ends at the GPU before). Entries and exits
    /// take NICs in turn, as far as cycles allow, so that few channels use all of them.
    struct Pattern {
        std::uint32_t cycle = 0, entry = 0;
        bool operator==(const Pattern&) const = default;
    };
    std::vector<Pattern> patterns = {};  ///< until GPUs and cycles come round
    bool nvlink = true;                  ///< every hop is NVLink, direct or through another GPU
    bool sockets = false;                ///< a hop passes between NUMA nodes
    double bytes_per_s = 0;              ///< NVLink of one GPU in all rings together, as built; 0 without
    bool operator==(const NodeRings&) const = default;
};

/// Precondition: at least one GPU, distinct, of one node or NVSwitch domain.
NodeRings node_rings(const Cluster& cluster, std::span<const GpuId> gpus);

/// The same for GPUs behind an NVSwitch: one cycle, by index.
NodeRings switched_rings(const Cluster& cluster, std::span<const GpuId> gpus);

/// NVSwitch domain where one spans servers, else the server: what NCCL calls a node.
std::uint32_t locality_of(const Cluster& cluster, GpuId gpu);

}  // namespace fabricast
