// From a network's own files (topologies/importers) to a cluster.
//
//   dimensions     ASTRA-sim grids: build_grid, the first inner_dimensions a server
//   GPUs listed    ns-3 files: servers as the file tells, or so many GPUs each in order. A GPU's links to NVSwitches are
//                  its NVLink (NVSwitches that share a GPU count as one), each link to a network switch is a NIC of its
//                  own, links between GPUs of one server are direct NVLink
//   hosts listed   Slurm, InfiniBand: every host has the given inside. Its k-th link (by port name) is that of NIC k; a
//                  single link stands for all NICs, which then hang on that switch
// Links that are down are left out. A link has the rate its file tells, times link_efficiency, else the one given here;
// latency likewise, plus one switch on every link that leaves a switch. Routes are searched (bfs_router.hpp): separate
// links for every cable the file lists, so spreading is fixed (ideal), static or ecmp; adaptive is refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topologies/builders/server_shape.hpp"
#include "topologies/importers/fabric.hpp"

namespace fabricast {

struct FabricOptions {
    ServerShape server = {};              ///< hosts: the inside of each; GPUs: its rates alone are read
    std::uint32_t gpus_per_server = 1;    ///< GPUs listed without servers
    std::uint32_t inner_dimensions = 1;   ///< grids
    std::vector<std::string> hosts = {};  ///< which hosts, in node order; empty: all, in file order
    double link_efficiency = 1;           ///< achieved / told rate, of network links
    double trunk_bytes_per_s = 0;         ///< achieved, of links between switches whose rate the file does not tell
    double switch_latency_s = 0;
    RoutingPolicy routing = {};
};

/// Throws std::invalid_argument with the node or link of the description that does not fit.
Cluster build_from_fabric(const importers::FabricDescription& fabric, const FabricOptions& options);

}  // namespace fabricast
