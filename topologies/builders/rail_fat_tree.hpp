// Regular GPU clusters: NVSwitch nodes on a rail-optimised two-level fat tree.
//
// Node: every GPU has one link to and one from the NVSwitch (non-blocking), one PCIe link each way, and
// shares NIC (local index mod nics). Fabric: NIC r of the nodes of one pod meets leaf switch r of that
// pod; leaves meet the spine level through a trunk of capacity
//   nodes in the pod * nic rate / oversubscription   in each direction (the last pod may be smaller).
// Traffic between equal rails of one pod stays on its leaf. Traffic between rails or pods crosses trunk up,
// trunk down. Spreading over spines is taken as ideal (one aggregated trunk entry with its cable count).
//
// Latency of a hop sits on the link that leaves it: nvlink up 0, nvlink down one NVSwitch hop; each PCIe link its
// own; nic up the adapter, trunk up and trunk down one switch each, nic down one switch and the adapter. So
// a route inside a leaf passes one switch, any other three.
#pragma once

#include <cstdint>
#include <string>

#include "topologies/graph/cluster.hpp"

namespace fabricast {

/// All rates in bytes/s per direction, achieved (protocol overhead already taken off); latencies in seconds.
struct NodeShape {
    std::uint32_t gpus = 8;
    std::uint32_t nics = 8;         ///< 0 for a single node without a network
    double nvlink_bytes_per_s = 0;  ///< per GPU; 0 = no NVLink, traffic goes over PCIe
    double nvlink_latency_s = 0;    ///< one hop through the switch
    double pcie_bytes_per_s = 0;
    double pcie_latency_s = 0;
    double nic_bytes_per_s = 0;
    double nic_latency_s = 0;  ///< adapter, one side
};

struct RailFatTree {
    std::uint32_t nodes = 1;
    std::uint32_t nodes_per_pod = 64;  ///< ports of a leaf switch that look down
    double oversubscription = 1;       ///< leaf down capacity / leaf up capacity, >= 1 usually; > 0
    double switch_latency_s = 0;       ///< one switch hop
};

/// Builds, checks and freezes the cluster. Throws std::invalid_argument with the offending field and value
/// (zero GPUs, negative bandwidth, several nodes without a NIC, gpus not a multiple of nics ...).
Cluster build_rail_fat_tree(const NodeShape& node, const RailFatTree& fabric);

}  // namespace fabricast
