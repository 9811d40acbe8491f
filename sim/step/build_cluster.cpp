#include "sim/step/build_cluster.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "sim/scenario/calibration.hpp"
#include "sim/step/build_server.hpp"
#include "sim/step/step_faults.hpp"
#include "topologies/builders/degradation.hpp"
#include "topologies/builders/from_fabric.hpp"

namespace fabricast {
namespace {

RailFatTree rail_fabric(const Scenario& s) {
    RailFatTree fabric;
    fabric.nodes = s.nodes;
    fabric.nodes_per_pod = s.fabric.nodes_per_pod;
    fabric.oversubscription = s.oversubscription;
    fabric.switch_latency_s = s.fabric.switch_latency_s;
    fabric.levels = s.levels;
    fabric.pods_per_block = s.pods_per_block;
    fabric.block_oversubscription = s.block_oversubscription;
    fabric.planes = s.planes;
    fabric.routing = s.routing;
    fabric.routing.seed = s.seed;
    fabric.spines = s.spines;
    return fabric;
}

FatTree plain_fabric(const Scenario& s) {
    const RailFatTree rails = rail_fabric(s);
    FatTree fabric;
    fabric.nodes = rails.nodes;
    fabric.nodes_per_leaf = rails.nodes_per_pod;
    fabric.levels = rails.levels;
    fabric.leaves_per_block = rails.pods_per_block;
    fabric.leaf_oversubscription = rails.oversubscription;
    fabric.block_oversubscription = rails.block_oversubscription;
    fabric.switch_latency_s = rails.switch_latency_s;
    fabric.planes = rails.planes;
    fabric.routing = rails.routing;
    fabric.spines = rails.spines;
    return fabric;
}

Cluster build_from_file(const Scenario& s) {
    FabricOptions options;
    if (s.fabric_file->count(importers::NodeKind::gpu) == 0) {
        options.server = server_shape(s);
        options.link_efficiency = s.node.nic_efficiency;
    } else {  // what an ns-3 file tells is what its links reach
        options.server.rates.nic_latency_s = s.node.nic_latency_s;
        options.server.rates.nic_bytes_per_s = s.node.nic_bits_per_s / 8 * s.node.nic_efficiency;
    }
    options.gpus_per_server = s.gpus_per_server;
    options.hosts = s.hosts;
    options.switch_latency_s = s.fabric.switch_latency_s;
    options.routing = s.routing;
    options.routing.seed = s.seed;
    return build_from_fabric(*s.fabric_file, options);
}

Cluster build_whole(const Scenario& s) {
    if (s.graph) {
        HandMade graph = *s.graph;
        graph.routing = s.routing;
        graph.routing.seed = s.seed;
        return build_hand_made(graph);
    }
    if (!s.grid.empty())
        return build_grid({s.grid, s.inner_dimensions});
    if (s.fabric_file)
        return build_from_file(s);
    if (!is_plain_node(s)) {
        const ServerShape server = server_shape(s);
        return s.rails ? build_rail_fat_tree(server, rail_fabric(s)) : build_fat_tree(server, plain_fabric(s));
    }
    const NodeShape node = node_shape(s.gpu, s.node);
    return s.rails ? build_rail_fat_tree(node, rail_fabric(s)) : build_fat_tree(node, plain_fabric(s));
}

ScenarioError refused_at(const std::string& where, const Scenario& s, const std::invalid_argument& refused) {
    return ScenarioError((where.empty() ? s.file : where) + ": cluster: " + refused.what());
}

/// Rates that a file, a grid or a graph tells count for the library as well.
void take_listed_rates(const Cluster& cluster, CommFacts& facts) {
    if (cluster.has_nvswitch()) {
        facts.nvswitch = true;
        facts.nvlink_nccl_bytes_per_s = bytes_per_s(cluster.links().capacity[index(cluster.nvlink_up(GpuId{0}))]);
    } else if (cluster.has_nvlink()) {
        facts.nvlink_nccl_bytes_per_s = facts.nvlink_bytes_per_s = 1;  // rings count as built
    }
    double line = 0;
    for (std::uint32_t nic = 0; nic < cluster.nics_per_node(); ++nic)
        line = std::max(line, bytes_per_s(cluster.links().capacity[index(cluster.nic_up(NicId{nic}))]));
    if (line > 0) {
        facts.nic_line_bytes_per_s = line;
        facts.pcie_nccl_bytes_per_s = std::max(facts.pcie_nccl_bytes_per_s, line);
    }
}

}  // namespace

NodeShape node_shape(const GpuSpec& gpu, const NodeSpec& node) {
    NodeShape shape;
    shape.gpus = node.gpus;
    shape.nics = node.nics;
    shape.nvlink_bytes_per_s = gpu.nvlink_achieved_bytes_per_s;
    shape.nvlink_latency_s = node.nvlink_latency_s;
    shape.pcie_bytes_per_s = gpu.pcie_bytes_per_s;
    shape.pcie_latency_s = node.pcie_latency_s;
    shape.nic_bytes_per_s = node.nic_bits_per_s / 8 * node.nic_efficiency;
    shape.nic_latency_s = node.nic_latency_s;
    return shape;
}

Cluster build_cluster(const Scenario& s) {
    Cluster cluster;
    try {
        cluster = build_whole(s);
    } catch (const std::invalid_argument& refused) {
        throw refused_at(s.shape_where, s, refused);
    }
    try {
        std::vector<Degradation> degraded;
        for (const Scenario::DegradedPart& part : s.degraded) {
            degraded.emplace_back();
            degraded.back().what = part.what;
            degraded.back().factor = part.factor;
            degraded.back().lanes_lost = part.lanes_lost;
            degraded.back().lanes = part.lanes;
        }
        fabricast::apply(cluster, degraded);
    } catch (const std::invalid_argument& refused) {
        throw refused_at(s.degraded_where, s, refused);
    }
    degrade_by_faults(s, cluster);
    return cluster;
}

CommFacts comm_facts(const Scenario& s, const Cluster& cluster) {
    CommFacts facts = comm_facts(s.gpu, s.node);
    facts.sharp = s.comm.collnet;  // asked for: the switches are taken to reduce
    if (s.fabric_is_listed())
        take_listed_rates(cluster, facts);
    if (s.network) {
        facts.network = {.hop_us = {s.network->ll_hop_us, s.network->ll128_hop_us, s.network->simple_hop_us},
                         .slot_us = s.network->slot_us,
                         .channel_gb_per_s = s.gpu.network_channel_bytes_per_s * 1e-9};
    }
    if (s.calibration)
        apply(*s.calibration, s.node.network, facts);
    return facts;
}

}  // namespace fabricast
