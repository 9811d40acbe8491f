// Boards: path types, lanes, NICs, shared host links, NVLink racks.
#include <gtest/gtest.h>

#include "tests/topologies/builders/cluster_probe.hpp"
#include "topologies/builders/rail_fat_tree.hpp"

namespace fabricast::test {
namespace {

const ServerRates kRates = {.nvlink_bytes_per_s = 20e9,
                            .nvlink_latency_s = 0.5e-6,
                            .pcie_bytes_per_s = 12e9,
                            .pcie_latency_s = 1e-6,
                            .uplink_bytes_per_s = 12e9,
                            .socket_bytes_per_s = 10e9,
                            .nic_bytes_per_s = 11e9,
                            .nic_latency_s = 0.6e-6};

using Counts = std::map<PathType, int>;

Cluster on_leaf(const ServerShape& server, std::uint32_t nodes) {
    return build_fat_tree(server, {.nodes = nodes, .nodes_per_leaf = nodes});
}

TEST(ServerShape, HybridCubeMesh) {
    const Cluster cluster = on_leaf(hybrid_cube_mesh_server(4, kRates), 2);
    EXPECT_FALSE(cluster.has_nvswitch());
    EXPECT_TRUE(cluster.has_nvlink());
    EXPECT_EQ(path_counts(cluster), (Counts{{PathType::nvl, 16}, {PathType::nvb, 12}}));
    EXPECT_EQ(cluster.nvlink_domain_of(GpuId{7}), 0u);
    EXPECT_EQ(cluster.nvlink_domain_of(GpuId{8}), 1u);
    std::map<std::uint32_t, std::uint32_t> lanes;  // out of every GPU
    for (std::size_t i = 0; i < cluster.links().size(); ++i) {
        const std::string name = cluster.links().name[i];
        if (name.substr(0, 11) == "node 0 gpu " && name.find("nvlink to") != std::string::npos) {
            lanes[static_cast<std::uint32_t>(name[11] - '0')] += cluster.links().parallel[i];
        }
    }
    EXPECT_EQ(lanes.size(), 8u);
    for (const auto& [gpu, count] : lanes) {
        EXPECT_EQ(count, 6u) << gpu;
    }
    EXPECT_EQ(cluster.nic_of(GpuId{5}), NicId{2});
    EXPECT_EQ(cluster.path_type(GpuId{5}, NicId{2}), PathType::pix);
    EXPECT_EQ(cluster.path_type(GpuId{5}, NicId{3}), PathType::phb);
    EXPECT_EQ(cluster.path_type(GpuId{5}, NicId{0}), PathType::sys);
    // 0 to 5: through 4 (two lanes, then one) or 1 (one lane, then two): the lower number.
    EXPECT_EQ(route_names(cluster, 0, 5), (Names{"node 0 gpu 0 nvlink to gpu 1", "node 0 gpu 1 nvlink to gpu 5"}));
    for (std::uint32_t to = 1; to < 16; ++to) {
        EXPECT_EQ(route(cluster, 0, to).size(), route(cluster, to, 0).size()) << to;
    }
}

TEST(ServerShape, NvlinkPairs) {
    const Cluster cluster = on_leaf(nvlink_pairs_server(4, 12, 2, 2, kRates), 2);
    EXPECT_EQ(path_counts(cluster), (Counts{{PathType::nvl, 2}, {PathType::sys, 4}}));
    EXPECT_DOUBLE_EQ(link_rate(cluster, "node 1 gpu 2 nvlink to gpu 3"), 240e9);
    EXPECT_EQ(cluster.nvlink_domain_count(), 4u);
    EXPECT_EQ(route_names(cluster, 0, 2),
              (Names{"node 0 gpu 0 pcie up", "node 0 host 0 to node 0 host 1", "node 0 gpu 2 pcie down"}));
    EXPECT_TRUE(is_symmetric(cluster, 0, 2));
    EXPECT_TRUE(is_symmetric(cluster, 0, 7));
}

TEST(ServerShape, FullMesh) {
    const Cluster cluster = on_leaf(full_mesh_server(4, 4, 2, 4, kRates), 1);
    EXPECT_EQ(path_counts(cluster), (Counts{{PathType::nvl, 6}}));
    EXPECT_EQ(route(cluster, 3, 0).size(), 1u);
    EXPECT_EQ(cluster.links().parallel[index(route(cluster, 3, 0)[0])], 4u);
}

TEST(ServerShape, PcieOnlyWithNuma) {
    const Cluster switches = on_leaf(pcie_server(8, 2, 2, 4, kRates), 1);
    EXPECT_FALSE(switches.has_nvlink());
    EXPECT_EQ(path_counts(switches), (Counts{{PathType::pix, 4}, {PathType::phb, 8}, {PathType::sys, 16}}));
    EXPECT_EQ(route_names(switches, 1, 6),
              (Names{"node 0 gpu 1 pcie up", "node 0 pcie switch 0 to node 0 host 0", "node 0 host 0 to node 0 host 1",
                     "node 0 host 1 to node 0 pcie switch 3", "node 0 gpu 6 pcie down"}));
    EXPECT_DOUBLE_EQ(link_rate(switches, "node 0 host 0 to node 0 host 1"), 10e9);
    const Cluster bridges = on_leaf(pcie_server(4, 1, 2, 0, kRates), 1);
    EXPECT_EQ(path_counts(bridges), (Counts{{PathType::node, 2}, {PathType::sys, 4}}));
    const Cluster roots = on_leaf(pcie_server(4, 0, 1, 0, kRates), 1);
    EXPECT_EQ(path_counts(roots), (Counts{{PathType::phb, 6}}));
}

TEST(ServerShape, NvswitchBoardAsTheRegularNode) {
    ServerRates rates = kRates;
    rates.nvlink_bytes_per_s = 370e9;
    rates.uplink_bytes_per_s = 0;
    rates.socket_bytes_per_s = 0;
    const Cluster listed = build_rail_fat_tree(nvswitch_server(8, 8, rates), {.nodes = 4, .nodes_per_pod = 2});
    const Cluster regular = build_rail_fat_tree(NodeShape{.gpus = 8,
                                                          .nics = 8,
                                                          .nvlink_bytes_per_s = 370e9,
                                                          .nvlink_latency_s = 0.5e-6,
                                                          .pcie_bytes_per_s = 12e9,
                                                          .pcie_latency_s = 1e-6,
                                                          .nic_bytes_per_s = 11e9,
                                                          .nic_latency_s = 0.6e-6},
                                                {.nodes = 4, .nodes_per_pod = 2});
    EXPECT_EQ(listed.links().name.all(), regular.links().name.all());
    EXPECT_EQ(listed.links().capacity, regular.links().capacity);
    EXPECT_EQ(listed.links().latency, regular.links().latency);
    for (std::uint32_t to = 0; to < 32; ++to) {
        EXPECT_EQ(route(listed, 3, to), route(regular, 3, to));
    }
    EXPECT_EQ(regular.path_type(GpuId{3}, NicId{3}), PathType::pix);
    EXPECT_EQ(regular.path_type(GpuId{3}, NicId{4}), PathType::phb);
    EXPECT_EQ(regular.path_type(GpuId{3}, GpuId{4}), PathType::nvl);
    EXPECT_EQ(regular.nvlink_domain_of(GpuId{31}), 3u);
}

TEST(ServerShape, NvlinkRack) {
    ServerRates rates = kRates;
    rates.nvlink_bytes_per_s = 720e9;
    const ServerShape host = nvlink_rack_server(4, 18, rates);
    const Cluster cluster = build_rail_fat_tree(host, {.nodes = 36, .nodes_per_pod = 18});
    EXPECT_EQ(cluster.gpu_count(), 144u);
    EXPECT_EQ(cluster.nvlink_domain_count(), 2u);
    EXPECT_EQ(cluster.nvlink_domain_of(GpuId{71}), 0u);
    EXPECT_EQ(cluster.nvlink_domain_of(GpuId{72}), 1u);
    EXPECT_EQ(cluster.path_type(GpuId{0}, GpuId{71}), PathType::nvl);
    EXPECT_EQ(cluster.path_type(GpuId{0}, GpuId{72}), PathType::net);
    EXPECT_EQ(cluster.path_type(GpuId{0}, NicId{0}), PathType::p2c);
    EXPECT_EQ(route_names(cluster, 0, 71), (Names{"node 0 gpu 0 nvlink up", "node 17 gpu 3 nvlink down"}));
    EXPECT_EQ(route_names(cluster, 1, 73).size(), 6u);
    EXPECT_EQ(cluster.nic_of(GpuId{73}), NicId{73});
    const Cluster alone = build_fat_tree(nvlink_rack_server(4, 18, rates), {.nodes = 18, .nodes_per_leaf = 18});
    EXPECT_EQ(alone.nvlink_domain_count(), 1u);
}

TEST(ServerShape, RefusesWithPartAndValue) {
    const auto changed = [](const std::function<void(ServerShape&)>& change) {
        ServerShape shape = hybrid_cube_mesh_server(4, kRates);
        change(shape);
        return refusal([&] { on_leaf(shape, 2); });
    };
    EXPECT_EQ(changed([](ServerShape&) {}), "accepted");
    EXPECT_EQ(changed([](ServerShape& s) { s.gpus[3].place.switch_index = 9; }),
              "gpu 3: hangs on pcie switch 9, which the server does not have");
    EXPECT_EQ(changed([](ServerShape& s) { s.gpus[3].nics = {4}; }), "gpu 3: uses nic 4, the server has 4");
    EXPECT_EQ(changed([](ServerShape& s) {
                  s.pairs.push_back({1, 0, 1});
              }),
              "nvlink of gpu 0 and gpu 1, 1 lanes: two GPUs of the server, once, and at least one lane");
    EXPECT_EQ(changed([](ServerShape& s) { s.rates.nvlink_bytes_per_s = 0; }),
              "nvlink_bytes_per_s 0: must be above 0 where a server has NVLink");
    EXPECT_EQ(changed([](ServerShape& s) { s.nodes_per_nvlink_domain = 2; }),
              "nodes_per_nvlink_domain 2: 1, or more with an NVSwitch");
    EXPECT_EQ(refusal([] { nvlink_pairs_server(3, 1, 1, 0, kRates); }), "gpus 3: NVLink pairs need an even number");
}

}  // namespace
}  // namespace fabricast::test
