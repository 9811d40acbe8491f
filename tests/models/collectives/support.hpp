// Clusters and a clock for the tests of models/collectives: one collective alone on its links.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "models/collectives/comm_model.hpp"
#include "models/collectives/execution.hpp"
#include "models/collectives/tuner.hpp"
#include "topologies/graph/cluster_graph.hpp"

namespace fabricast::test {

inline constexpr Bytes kMiB = 1 << 20;
inline constexpr Bytes kGiB = 1 << 30;

/// Bytes/s per direction, achieved.
struct NodeRates {
    std::uint32_t nics = 8;
    double nvlink = 0, pcie = 0, nic = 0;
};
struct Platform {
    NodeRates node;
    CommFacts facts;
};

inline Platform h100() {
    Platform p;
    p.node = {.nics = 8, .nvlink = 367e9, .pcie = 51.5e9, .nic = 46e9};
    p.facts = {.generation = GpuGeneration::hopper,
               .nvswitch = true,
               .nvls = true,
               .amd_cpu = false,
               .nvlink_nccl_bytes_per_s = 370.8e9,
               .pcie_nccl_bytes_per_s = 48e9,
               .nic_line_bytes_per_s = 50e9};
    return p;
}
inline Platform a100() {
    Platform p = h100();
    p.node.nvlink = 235e9;
    p.node.pcie = 25.5e9;
    p.node.nic = 23e9;
    p.facts = {.generation = GpuGeneration::ampere,
               .nvswitch = true,
               .nvls = false,
               .amd_cpu = true,
               .nvlink_nccl_bytes_per_s = 240e9,
               .pcie_nccl_bytes_per_s = 24e9,
               .nic_line_bytes_per_s = 25e9};
    return p;
}

/// Nodes of eight GPUs, a leaf a rail and pod, trunks to one spine level, routed by breadth-first search. NIC
/// `slow_nic` of node 0 runs at `slow_share` of the others.
inline Cluster cluster_of(const Platform& p, std::uint32_t nodes, std::uint32_t nodes_per_pod = 64,
                          double oversubscription = 1, std::uint32_t slow_nic = 0, double slow_share = 1) {
    ClusterBuilder builder;
    const std::uint32_t rails = p.node.nics;
    std::vector<ClusterBuilder::VertexId> leaves;
    const auto spine = builder.add_switch(VertexKind::spine, "spine");
    for (std::uint32_t i = 0; i < (nodes + nodes_per_pod - 1) / nodes_per_pod * rails; ++i) {
        leaves.push_back(builder.add_switch(VertexKind::leaf, "leaf"));
        builder.add_cable(leaves.back(), spine,
                          {.bytes_per_s = std::min(nodes, nodes_per_pod) * p.node.nic / oversubscription});
    }
    for (std::uint32_t n = 0; n < nodes; ++n) {
        const NodeId id{n};
        const auto nvswitch = builder.add_in_node(VertexKind::nvswitch, id);
        const auto host = builder.add_in_node(VertexKind::host, id);
        for (std::uint32_t g = 0; g < 8; ++g) {
            const auto gpu = builder.add_gpu(id);
            if (p.node.nvlink > 0) {
                builder.add_cable(gpu, nvswitch, {.bytes_per_s = p.node.nvlink});
            }
            builder.add_cable(gpu, host, {.bytes_per_s = p.node.pcie});
        }
        for (std::uint32_t rail = 0; rail < rails; ++rail) {
            const auto nic = builder.add_nic(id);
            builder.attach(host, nic);
            builder.add_cable(nic, leaves[n / nodes_per_pod * rails + rail],
                              {.bytes_per_s = p.node.nic * (n == 0 && rail == slow_nic ? slow_share : 1)});
        }
    }
    return std::move(builder).freeze();
}

/// GPUs first, first + stride, ...
inline std::vector<GpuId> gpus(std::uint32_t count, std::uint32_t first = 0, std::uint32_t stride = 1) {
    std::vector<GpuId> list;
    for (std::uint32_t i = 0; i < count; ++i) {
        list.push_back(GpuId{first + i * stride});
    }
    return list;
}

/// Bytes that cross each link, from the demands.
inline std::map<LinkId, double> link_bytes(const CommModel& model, const CommGroup& group, Collective kind,
                                           const CollectivePlan& plan) {
    std::map<LinkId, double> bytes;
    for (const PlannedActivity& activity : plan.activities) {
        for (const LinkUse& use : model.demand(group, kind, plan, activity.demand)) {
            bytes[use.link] +=
                static_cast<double>(activity.work) * static_cast<double>(use.coefficient) / kCoefficientOne;
        }
    }
    return bytes;
}

/// One node of the GPUs a measured table names ("H100-SXM"). spec is null for unknown names.
struct TableNode {
    const GpuSpec* spec = nullptr;
    Cluster cluster;
    CommFacts facts;
};
inline TableNode table_node(const std::string& gpu) {
    const std::string name = gpu == "H100-SXM"   ? "H100-SXM-80G"
                             : gpu == "H200-SXM" ? "H200-SXM-141G"
                             : gpu == "B200"     ? "B200-SXM-180G"
                                                 : gpu;
    TableNode out;
    out.spec = Catalogue::builtin().find_gpu(name);
    if (out.spec == nullptr)
        return out;
    Platform p;
    p.node = {
        .nics = 0, .nvlink = out.spec->nvlink_achieved_bytes_per_s, .pcie = out.spec->pcie_bytes_per_s, .nic = 1e9};
    out.cluster = cluster_of(p, 1);
    out.facts.generation = out.spec->generation;
    out.facts.nvls = out.spec->nvls;
    out.facts.nvlink_nccl_bytes_per_s = out.spec->nvlink_nccl_bytes_per_s;
    return out;
}

/// Latency + the busiest link (or own ceiling): exact for one collective alone.
inline double run_seconds(const Cluster& cluster, const CommModel& model, const CommGroup& group, Collective kind,
                          const CollectivePlan& plan) {
    double wire = 0;
    for (const auto& [link, bytes] : link_bytes(model, group, kind, plan)) {
        wire = std::max(wire, bytes / bytes_per_s(cluster.links().capacity[index(link)]));
    }
    for (const PlannedActivity& activity : plan.activities) {
        if (activity.cap > 0) {
            wire = std::max(wire, static_cast<double>(activity.work) / bytes_per_s(activity.cap));
        }
    }
    return wire + seconds(plan.latency);
}

inline double bus_gb_per_s(Collective kind, std::uint32_t ranks, Bytes size, double time_s) {
    const double factor = bus_bandwidth_factor(kind, ranks);
    return static_cast<double>(size) * factor / time_s / 1e9;
}

}  // namespace fabricast::test
