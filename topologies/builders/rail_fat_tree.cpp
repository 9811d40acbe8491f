#include "topologies/builders/rail_fat_tree.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "topologies/builders/checks.hpp"
#include "topologies/builders/clos.hpp"
#include "topologies/graph/cluster_graph.hpp"

namespace fabricast {
namespace {

using Vertices = std::vector<ClusterBuilder::VertexId>;

void check_size(std::uint32_t nodes, std::size_t gpus, std::size_t nics) {
    if (nodes == 0) {
        refuse_build("nodes 0: needs at least one");
    }
    if (gpus == 0) {
        refuse_build("gpus 0: a node needs at least one");
    }
    if (std::uint64_t{nodes} * gpus > kMaxGpus) {
        refuse_build("nodes {} x gpus {}: more than {} GPUs", nodes, gpus, kMaxGpus);
    }
    if (nics > 0 && nodes > std::uint64_t{kMaxGpus} / nics) {
        refuse_build("nodes {} x nics {}: more than {} NICs", nodes, nics, kMaxGpus);
    }
}

void check(const NodeShape& node, std::uint32_t nodes, std::uint32_t planes) {
    check_size(nodes, node.gpus, node.nics);
    if (node.nics == 0 && nodes > 1) {
        refuse_build("nics 0: {} nodes need a NIC each", nodes);
    }
    const std::uint32_t rails = planes == 0 ? 0 : node.nics / planes;
    if (node.nics > 0 && (rails == 0 || node.gpus % rails != 0)) {
        refuse_build(
            "nics {}: gpus {} is not a multiple of it; several NICs of one GPU are entered as one with their "
            "summed rate",
            node.nics, node.gpus);
    }
    check_not_negative("nvlink_bytes_per_s", node.nvlink_bytes_per_s);
    check_not_negative("nvlink_latency_s", node.nvlink_latency_s);
    check_not_negative("pcie_bytes_per_s", node.pcie_bytes_per_s);
    check_not_negative("pcie_latency_s", node.pcie_latency_s);
    check_not_negative("nic_bytes_per_s", node.nic_bytes_per_s);
    check_not_negative("nic_latency_s", node.nic_latency_s);
    if (nodes > 1) {
        check_positive("pcie_bytes_per_s", node.pcie_bytes_per_s, "where GPUs reach a NIC");
    } else if (node.gpus > 1 && node.nvlink_bytes_per_s == 0) {
        check_positive("pcie_bytes_per_s", node.pcie_bytes_per_s, "where GPUs have no NVLink");
    }
    if (node.nics > 0) {
        check_positive("nic_bytes_per_s", node.nic_bytes_per_s, "where a node has NICs");
    }
}

/// Adds a server's inside. GPUs and NICs of one rail sit on one PCIe switch.
void add_node(ClusterBuilder& builder, const NodeShape& node, std::uint32_t planes, NodeId id) {
    Vertices gpus, nics, switches;
    for (std::uint32_t g = 0; g < node.gpus; ++g) {
        gpus.push_back(builder.add_gpu(id));
    }
    if (node.nvlink_bytes_per_s > 0) {
        const auto nvswitch = builder.add_in_node(VertexKind::nvswitch, id);
        for (const auto gpu : gpus) {
            builder.add_link(gpu, nvswitch, {.bytes_per_s = node.nvlink_bytes_per_s});
            builder.add_link(nvswitch, gpu,
                             {.bytes_per_s = node.nvlink_bytes_per_s, .latency_s = node.nvlink_latency_s});
        }
    }
    const auto host = builder.add_in_node(VertexKind::host, id);
    const std::uint32_t rails = node.nics / planes;
    for (std::uint32_t i = 0; i < rails; ++i) {
        switches.push_back(builder.add_in_node(VertexKind::pcie_switch, id));
        builder.attach(switches.back(), host);
    }
    if (node.pcie_bytes_per_s > 0) {
        for (std::uint32_t g = 0; g < node.gpus; ++g) {
            builder.add_cable(gpus[g], rails > 0 ? switches[g % rails] : host,
                              {.bytes_per_s = node.pcie_bytes_per_s, .latency_s = node.pcie_latency_s});
        }
    }
    for (std::uint32_t n = 0; n < node.nics; ++n) {
        nics.push_back(builder.add_nic(id));
        builder.attach(switches[n / planes], nics.back());
    }
    for (std::uint32_t g = 0; planes > 1 && rails > 0 && g < node.gpus; ++g) {
        const auto first = nics.begin() + g % rails * planes;
        builder.use_nics(gpus[g], Vertices(first, first + planes));
    }
}

Cluster build(const NodeShape& node, Clos clos) {
    check(node, clos.nodes, clos.planes);
    clos.nics_per_node = node.nics;
    clos.nic_latency_s = node.nic_latency_s;
    clos.nic_bytes_per_s.assign(node.nics, node.nic_bytes_per_s);
    check_clos(clos);
    ClusterBuilder builder;
    builder.reserve(std::size_t{clos.nodes} * (4 * node.gpus + 2 * node.nics));
    add_node(builder, node, clos.planes, NodeId{0});
    builder.repeat_server(clos.nodes - 1);
    return freeze_under_clos(std::move(builder), clos);
}

Cluster build(const ServerShape& server, Clos clos) {
    check_size(clos.nodes, server.gpus.size(), server.nics.size());
    check_server(server);
    clos.nics_per_node = static_cast<std::uint32_t>(server.nics.size());
    clos.nic_latency_s = server.rates.nic_latency_s;
    for (const ServerShape::NicPart& nic : server.nics) {
        clos.nic_bytes_per_s.push_back(nic.bytes_per_s);
    }
    check_clos(clos);
    ClusterBuilder builder;
    if (server.nodes_per_nvlink_domain > 1) {
        add_servers(builder, server, clos.nodes);
    } else {
        add_servers(builder, server, 1);
        builder.repeat_server(clos.nodes - 1);
    }
    return freeze_under_clos(std::move(builder), clos);
}

Clos clos_of(const RailFatTree& fabric) {
    Clos clos;
    clos.nodes = fabric.nodes;
    clos.nodes_per_group = fabric.nodes_per_pod;
    clos.levels = fabric.levels;
    clos.groups_per_block = fabric.pods_per_block;
    clos.planes = fabric.planes;
    clos.leaf_oversubscription = fabric.oversubscription;
    clos.block_oversubscription = fabric.block_oversubscription;
    clos.switch_latency_s = fabric.switch_latency_s;
    clos.spines = fabric.spines;
    clos.cores = fabric.cores;
    clos.routing = fabric.routing;
    return clos;
}

Clos clos_of(const FatTree& fabric) {
    Clos clos;
    clos.nodes = fabric.nodes;
    clos.nodes_per_group = fabric.nodes_per_leaf;
    clos.levels = fabric.levels;
    clos.groups_per_block = fabric.leaves_per_block;
    clos.planes = fabric.planes;
    clos.rails = false;
    clos.leaf_oversubscription = fabric.leaf_oversubscription;
    clos.block_oversubscription = fabric.block_oversubscription;
    clos.switch_latency_s = fabric.switch_latency_s;
    clos.spines = fabric.spines;
    clos.cores = fabric.cores;
    clos.routing = fabric.routing;
    return clos;
}

}  // namespace

Cluster build_rail_fat_tree(const NodeShape& node, const RailFatTree& fabric) { return build(node, clos_of(fabric)); }
Cluster build_fat_tree(const NodeShape& node, const FatTree& fabric) { return build(node, clos_of(fabric)); }
Cluster build_rail_fat_tree(const ServerShape& server, const RailFatTree& fabric) {
    return build(server, clos_of(fabric));
}
Cluster build_fat_tree(const ServerShape& server, const FatTree& fabric) { return build(server, clos_of(fabric)); }

Cluster build_cluster_of(const ServerShape& server, const FabricShape& fabric) {
    return std::visit([&](const auto& shape) { return build(server, clos_of(shape)); }, fabric);
}

}  // namespace fabricast
