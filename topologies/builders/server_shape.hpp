// What the inside of a server is, for all fabrics: GPUs, NVLink, PCIe with NUMA, NICs.
//
// A ServerShape is a plain list, so any board can be written down; the functions below write the usual ones.
//   NVLink   an NVSwitch (of the server, or of several servers: NVL72), direct pairs with lanes, or none
//   PCIe     a tree: GPUs and NICs hang on PCIe switches or on a host bridge; a switch on another switch or on a host
//            bridge by an uplink that all below share; host bridges of one NUMA node are joined, and NUMA nodes by
//            links between sockets. A host bridge may have a throughput that all traffic through it shares
//   NICs     each with its rate, and for each GPU the NICs it uses
// All rates in bytes/s per direction, achieved; latencies in seconds, each on the link that leaves the sender, except
// that an NVSwitch hop counts once, on the way down. A rate of 0 for an inner link of the tree means no limit.
// Not modelled: traffic that bounces through host memory, lanes of one NVLink pair that fail one by one.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/cluster_graph.hpp"

namespace fabricast {

/// Rates and latencies of one server's parts.
struct ServerRates {
    double nvlink_bytes_per_s = 0;  ///< behind an NVSwitch: of one GPU; else of one lane
    double nvlink_latency_s = 0;    ///< one hop, or through the switch
    double pcie_bytes_per_s = 0;    ///< of a GPU
    double pcie_latency_s = 0;
    double uplink_bytes_per_s = 0;  ///< PCIe switch to host bridge or switch above, shared
    double host_bytes_per_s = 0;    ///< throughput of a host bridge
    double socket_bytes_per_s = 0;  ///< between NUMA nodes, each pair
    double socket_latency_s = 0;
    double nic_bytes_per_s = 0;
    double nic_latency_s = 0;  ///< adapter, one side
};

struct ServerShape {
    /// Where a device hangs: a PCIe switch, or (switch_index < 0) a host bridge.
    struct Place {
        int switch_index = -1;
        std::uint32_t host = 0;
    };
    struct GpuPart {
        Place place;
        double pcie_bytes_per_s = 0;
        std::vector<std::uint32_t> nics = {};  ///< it uses, best first; empty: the one on its rail
    };
    struct NicPart {
        Place place;
        double bytes_per_s = 0;
    };
    struct NvlinkPair {
        std::uint32_t a = 0, b = 0, lanes = 1;
    };
    struct PcieSwitch {
        Place above;  ///< a switch of lower number or a host bridge
        double uplink_bytes_per_s = 0;
    };
    struct Host {
        std::uint32_t numa = 0;
    };

    std::vector<GpuPart> gpus;
    std::vector<NicPart> nics;
    std::vector<PcieSwitch> switches;
    std::vector<Host> hosts;
    bool nvswitch = false;
    std::vector<double> nvswitch_bytes_per_s = {};  ///< per GPU where they differ; else empty: of rates
    std::uint32_t nodes_per_nvlink_domain = 1;      ///< servers on one NVSwitch
    std::vector<NvlinkPair> pairs;
    bool c2c = false;  ///< GPUs that hang on a host bridge do so by a chip-to-chip link
    ServerRates rates;
};

/// NVSwitch board: GPU g and the NICs of its rail on one PCIe switch, two host bridges (NUMA 0 and 1). nics counts
/// ports; gpus is a multiple of nics or the other way round.
ServerShape nvswitch_server(std::uint32_t gpus, std::uint32_t nics, const ServerRates& rates);
/// DGX-1 with 8 V100: hybrid cube mesh of 6 lanes a GPU, pairs of GPUs on PCIe switches, 4 NICs (one a switch) or fewer.
ServerShape hybrid_cube_mesh_server(std::uint32_t nics, const ServerRates& rates);
/// GPUs 2k and 2k+1 bridged by `lanes`, all on host bridges of `numas` NUMA nodes.
ServerShape nvlink_pairs_server(std::uint32_t gpus, std::uint32_t lanes, std::uint32_t numas, std::uint32_t nics,
                                const ServerRates& rates);
/// Every GPU joined to every other by `lanes` (4x A100 SXM, xGMI boards).
ServerShape full_mesh_server(std::uint32_t gpus, std::uint32_t lanes, std::uint32_t numas, std::uint32_t nics,
                             const ServerRates& rates);
/// No NVLink: gpus_per_switch GPUs on a PCIe switch (1: each on a host bridge of its own, which nvidia-smi calls NODE;
/// 0: all of a NUMA node on one host bridge, PHB), NUMA nodes filled in order.
ServerShape pcie_server(std::uint32_t gpus, std::uint32_t gpus_per_switch, std::uint32_t numas, std::uint32_t nics,
                        const ServerRates& rates);
/// The same with the switches of each NUMA node under one more switch: neighbours PIX, others of a NUMA node PXB.
ServerShape cascaded_pcie_server(std::uint32_t gpus, std::uint32_t gpus_per_switch, std::uint32_t numas,
                                 std::uint32_t nics, const ServerRates& rates);
/// NVL72 and its kind: hosts of one rack on one NVSwitch domain, GPUs on the CPU by chip-to-chip links, a NIC each.
ServerShape nvlink_rack_server(std::uint32_t gpus_per_host, std::uint32_t hosts_per_rack, const ServerRates& rates);

/// Throws std::invalid_argument with the offending part and value.
void check_server(const ServerShape& shape);

/// Adds servers 0..nodes-1; returns their NIC vertices, [node][nic].
std::vector<std::vector<ClusterBuilder::VertexId>> add_servers(ClusterBuilder& builder, const ServerShape& shape,
                                                               std::uint32_t nodes);

}  // namespace fabricast
