#include "sim/step/build_cluster.hpp"

#include <stdexcept>
#include <vector>

#include "topologies/builders/degradation.hpp"

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
    const NodeShape node = node_shape(s.gpu, s.node);
    try {
        Cluster cluster = s.rails ? build_rail_fat_tree(node, rail_fabric(s)) : build_fat_tree(node, plain_fabric(s));
        std::vector<Degradation> degraded;
        for (const Scenario::DegradedPart& part : s.degraded) {
            degraded.emplace_back();
            degraded.back().what = part.what;
            degraded.back().factor = part.factor;
        }
        fabricast::apply(cluster, degraded);
        return cluster;
    } catch (const std::invalid_argument& refused) {
        const std::string where = s.degraded_where.empty() ? s.file : s.degraded_where;
        throw ScenarioError(where + ": cluster: " + refused.what());
    }
}

CommFacts comm_facts(const Scenario& s) {
    CommFacts facts = comm_facts(s.gpu, s.node);
    facts.sharp = s.comm.collnet;  // asked for: the switches are taken to reduce
    return facts;
}

}  // namespace fabricast
