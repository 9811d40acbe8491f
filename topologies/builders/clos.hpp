// Leaf, spine and core switches over servers: the body of all fat trees.
//
// Servers come in groups that share leaves. NIC n of a server has plane n mod planes; within a plane it has port
// n / planes. With rails a group has a leaf for every port (and plane), without rails one leaf (a plane) takes all
// ports. Planes never meet. Above the leaves:
//   1 level   nothing: one group only
//   2 levels  spines join all leaves of a plane
//   3 levels  groups come in blocks; the spines of a block join its leaves, cores join the spines of all blocks
// The links above a leaf have, per direction,   NICs on the leaf x NIC rate / leaf oversubscription
// and those above a block                        sum over its leaves / block oversubscription.
// Spreading ideal and adaptive: that sum is one trunk link (adaptive: times its efficiency). Static and ecmp: it is
// split evenly over `spines` links a leaf, and over spines x `cores` links a block (core c of spine s meets spine s of
// every block), so a way up is a pair (s, c) and the way down follows from it.
// Latency of a hop sits on the link that leaves it: one switch on each link towards a switch or NIC, the adapter on
// both NIC links.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topologies/graph/cluster_graph.hpp"

namespace fabricast {

struct Clos {
    std::uint32_t nodes = 1;
    std::uint32_t nics_per_node = 0;
    std::uint32_t nodes_per_group = 1;
    std::uint32_t levels = 2;
    std::uint32_t groups_per_block = 1;  ///< read with 3 levels
    std::uint32_t planes = 1;
    bool rails = true;
    double leaf_oversubscription = 1, block_oversubscription = 1;
    double switch_latency_s = 0;
    double nic_latency_s = 0;
    std::vector<double> nic_bytes_per_s;  ///< [nic of a node]
    std::uint32_t spines = 0;             ///< links up a leaf (static, ecmp); 0: one a NIC at full rate
    std::uint32_t cores = 0;              ///< links up a spine (static, ecmp, 3 levels); 0: likewise
    RoutingPolicy routing;
};

/// Throws std::invalid_argument with the offending field and value.
void check_clos(const Clos& clos);

/// Adds leaves, NIC links and the switches above to servers; freezes.
Cluster freeze_under_clos(ClusterBuilder&& builder, const Clos& clos);

}  // namespace fabricast
