// Regular GPU clusters: servers on fat trees, rail-optimised or plain.
//
// Node: every GPU has one link to and one from the NVSwitch (non-blocking), one PCIe link each way, and
// shares NIC (local index mod nics). Fabric: NIC r of the nodes of one pod meets leaf switch r of that
// pod; leaves meet the spine level through a trunk of capacity
//   nodes in the pod * nic rate / oversubscription   in each direction (the last pod may be smaller).
// Traffic between equal rails of one pod stays on its leaf. Traffic between rails or pods crosses trunk up,
// trunk down. Spreading over spines is ideal (one aggregated trunk entry with its cable count) unless `routing` says
// otherwise; planes, a third level and separate spines are those of clos.hpp.
//
// Latency of a hop sits on the link that leaves it: nvlink up 0, nvlink down one NVSwitch hop; each PCIe link its
// own; nic up the adapter, trunk up and trunk down one switch each, nic down one switch and the adapter. So
// a route inside a leaf passes one switch, any other three.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "topologies/builders/server_shape.hpp"
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
    std::uint32_t levels = 2;          ///< 3: pods in blocks under a core
    std::uint32_t pods_per_block = 1;  ///< 3 levels
    double block_oversubscription = 1;
    std::uint32_t planes = 1;  ///< separate networks; NIC n of a node is of plane n mod planes, rail n / planes
    RoutingPolicy routing = {};
    std::uint32_t spines = 0;  ///< static and ecmp: links up a leaf; 0: one a NIC at full rate
    std::uint32_t cores = 0;   ///< static and ecmp, 3 levels: links up a spine; 0: likewise
};

/// Fat tree without rails: all NICs of a node on one leaf (a plane). Leaf-spine with 2 levels; with 3 levels leaves come
/// in blocks (pods) under a core.
struct FatTree {
    std::uint32_t nodes = 1;
    std::uint32_t nodes_per_leaf = 16;
    std::uint32_t levels = 2;
    std::uint32_t leaves_per_block = 1;  ///< 3 levels
    double leaf_oversubscription = 1, block_oversubscription = 1;
    double switch_latency_s = 0;
    std::uint32_t planes = 1;  ///< NIC n of a node is of plane n mod planes
    RoutingPolicy routing = {};
    std::uint32_t spines = 0, cores = 0;  ///< as in RailFatTree; 0: one a NIC at full rate
};

/// Builds, checks and freezes the cluster. Throws std::invalid_argument with the offending field and value
/// (zero GPUs, negative bandwidth, several nodes without a NIC, gpus not a multiple of nics ...).
Cluster build_rail_fat_tree(const NodeShape& node, const RailFatTree& fabric);

/// The same over any server (server_shape.hpp), rails or not.
Cluster build_rail_fat_tree(const ServerShape& server, const RailFatTree& fabric);
Cluster build_fat_tree(const ServerShape& server, const FatTree& fabric);
Cluster build_fat_tree(const NodeShape& node, const FatTree& fabric);

/// Servers under a fabric of either kind.
using FabricShape = std::variant<RailFatTree, FatTree>;
Cluster build_cluster_of(const ServerShape& server, const FabricShape& fabric);

}  // namespace fabricast
