// Clusters from network files: ns-3, ASTRA-sim grids, Slurm, InfiniBand.
#include "topologies/builders/from_fabric.hpp"

#include <set>

#include <gtest/gtest.h>

#include "tests/topologies/builders/cluster_probe.hpp"
#include "topologies/graph/bisection.hpp"
#include "topologies/importers/detect.hpp"

namespace fabricast::test {
namespace {

importers::FabricDescription read(const std::string& text) {
    return std::get<importers::FabricDescription>(importers::import_text(importers::SourceText::from_text("x", text)));
}

const ServerRates kRates = {.nvlink_bytes_per_s = 370e9,
                            .pcie_bytes_per_s = 50e9,
                            .pcie_latency_s = 1e-6,
                            .nic_bytes_per_s = 46e9,
                            .nic_latency_s = 0.6e-6};

TEST(FromFabric, Ns3OfAstra) {
    const auto fabric = read(
        "5 1 4\n4\n0 4 200Gbps 0.0005ms 0\n1 4 200Gbps 0.0005ms 0\n2 4 200Gbps 0.0005ms 0\n3 4 200Gbps 0.0005ms 0\n");
    const Cluster cluster = build_from_fabric(fabric, {});
    EXPECT_EQ(cluster.node_count(), 4u);
    EXPECT_EQ(cluster.nics_per_node(), 1u);
    EXPECT_DOUBLE_EQ(link_rate(cluster, "node 2 nic 0 up"), 25e9);
    EXPECT_DOUBLE_EQ(link_rate(cluster, "node 2 gpu 0 pcie up"), 25e9);
    EXPECT_EQ(cluster.latency(route(cluster, 0, 3)), 1'000'000);
    EXPECT_NE(refusal([&] { build_from_fabric(fabric, {.gpus_per_server = 2}); }), "accepted");  // no NVLink, no PCIe
}

TEST(FromFabric, Ns3OfSimAi) {
    const auto fabric = read(
        "8 2 2 2 10 H100\n4 5 6 7\n"
        "0 4 2880Gbps 0.000025ms 0\n1 4 2880Gbps 0.000025ms 0\n2 5 2880Gbps 0.000025ms 0\n3 5 2880Gbps 0.000025ms 0\n"
        "0 6 400Gbps 0.0005ms 0\n1 7 400Gbps 0.0005ms 0\n2 6 400Gbps 0.0005ms 0\n3 7 400Gbps 0.0005ms 0\n"
        "6 7 400Gbps 0.0005ms 0\n6 7 400Gbps 0.0005ms 0");
    const Cluster cluster = build_from_fabric(fabric, {.routing = {.spreading = Spreading::ecmp, .seed = 1}});
    EXPECT_TRUE(cluster.has_nvswitch());
    EXPECT_EQ(cluster.gpus_per_node(), 2u);
    EXPECT_EQ(cluster.nvlink_domain_of(GpuId{3}), 1u);
    EXPECT_EQ(cluster.path_type(GpuId{0}, GpuId{1}), PathType::nvl);
    EXPECT_EQ(cluster.path_type(GpuId{2}, NicId{2}), PathType::pix);
    EXPECT_EQ(route(cluster, 0, 2).size(), 4u);
    EXPECT_EQ(route(cluster, 0, 3).size(), 5u);
    std::set<LinkId> trunks;  // the two cables between the switches
    for (std::uint64_t flow = 0; flow < 20; ++flow) {
        std::vector<LinkId> links;
        cluster.network_route(NicId{0}, NicId{3}, flow, links);
        trunks.insert(links[1]);
    }
    EXPECT_EQ(trunks.size(), 2u);
    EXPECT_NE(refusal([&] { build_from_fabric(fabric, {.routing = {.spreading = Spreading::adaptive}}); }), "accepted");
}

TEST(FromFabric, AstraGrid) {
    const auto fabric = read(
        "topology: [ Ring, Switch ]\nnpus_count: [ 4, 8 ]\nbandwidth: [ 100.0, 50.0 ]\nlatency: [ 500.0, 1000.0 ]\n");
    const Cluster cluster = build_from_fabric(fabric, {});
    EXPECT_EQ(cluster.gpus_per_node(), 4u);
    EXPECT_EQ(cluster.node_count(), 8u);
    EXPECT_EQ(cluster.latency(route(cluster, 0, 28)), 2'000'000);
    EXPECT_DOUBLE_EQ(bisection(cluster).nic_bytes_per_s, 50.0 * 1024 * 1024 * 1024);
}

TEST(FromFabric, SlurmWithPlacement) {
    const auto fabric =
        read("SwitchName=leaf1 Nodes=n[1-4]\nSwitchName=leaf2 Nodes=n[5-8]\nSwitchName=spine Switches=leaf[1-2]\n");
    FabricOptions options;
    options.server = nvswitch_server(8, 8, kRates);
    EXPECT_NE(refusal([&] { build_from_fabric(fabric, options); }).find("its rate is not in the file and not given"),
              std::string::npos);
    options.trunk_bytes_per_s = 16 * 46e9;
    options.switch_latency_s = 0.25e-6;
    options.hosts = {"n5", "n6", "n2"};
    const Cluster cluster = build_from_fabric(fabric, options);
    EXPECT_EQ(cluster.node_count(), 3u);
    EXPECT_EQ(route(cluster, 0, 8 + 3).size(), 4u);   // n5 and n6: one leaf
    EXPECT_EQ(route(cluster, 0, 16 + 3).size(), 6u);  // n2: another
    EXPECT_TRUE(is_symmetric(cluster, 0, 16 + 3));
    options.hosts = {"n5", "n9"};
    EXPECT_EQ(refusal([&] { build_from_fabric(fabric, options); }), "host 'n9' is not in x");
    options.hosts = {"n5", "n5"};
    EXPECT_EQ(refusal([&] { build_from_fabric(fabric, options); }), "host 'n5' is listed twice");
}

/// A host or switch by hand, as the InfiniBand readers would write it.
importers::FabricDescription two_rails(bool joined) {
    using importers::NodeKind;
    importers::FabricDescription fabric;
    fabric.source = "rails";
    for (const auto& [name, kind] : {std::pair{"h1", NodeKind::host},
                                     {"h2", NodeKind::host},
                                     {"s1", NodeKind::network_switch},
                                     {"s2", NodeKind::network_switch}}) {
        fabric.nodes.push_back({.name = name, .kind = kind});
    }
    const auto link = [&](std::uint32_t from, std::uint32_t to, const char* port, double rate) {
        importers::FabricLink added;
        added.from = from;
        added.to = to;
        added.from_port = port;
        added.bytes_per_s = rate;
        fabric.links.push_back(added);
    };
    link(0, 3, "mlx5_1", 25e9);
    link(0, 2, "mlx5_0", 25e9);
    link(1, 2, "mlx5_0", 12.5e9);  // trained down
    link(1, 3, "mlx5_1", 25e9);
    if (joined) {
        link(2, 3, "", 25e9);
    }
    return fabric;
}

TEST(FromFabric, HostPortsAreNics) {
    FabricOptions options;
    options.server = nvswitch_server(2, 2, kRates);
    options.link_efficiency = 0.9;
    const Cluster cluster = build_from_fabric(two_rails(true), options);
    EXPECT_DOUBLE_EQ(link_rate(cluster, "node 0 nic 0 up"), 22.5e9);
    EXPECT_DOUBLE_EQ(link_rate(cluster, "node 1 nic 0 down"), 11.25e9);
    EXPECT_EQ(route(cluster, 0, 2).size(), 4u);  // mlx5_0 to mlx5_0 on s1
    EXPECT_EQ(route(cluster, 0, 3).size(), 5u);
    EXPECT_EQ(refusal([&] { build_from_fabric(two_rails(false), options); }),
              "no route from node 0 nic 0 to node 0 nic 1: their switches are not connected in this direction");
    options.server = nvswitch_server(8, 8, kRates);
    EXPECT_EQ(refusal([&] { build_from_fabric(two_rails(true), options); }),
              "rails: host h1 has 2 links that are up, its server has 8 NICs");
}

TEST(FromFabric, DirectGpuLinksStayInAServer) {
    const auto ring = read(
        "5 1 6\n4\n0 4 200Gbps 1us 0\n1 4 200Gbps 1us 0\n2 4 200Gbps 1us 0\n3 4 200Gbps 1us 0\n"
        "0 1 800Gbps 1us 0\n2 3 800Gbps 1us 0\n");
    const Cluster cluster = build_from_fabric(ring, {.gpus_per_server = 2});
    EXPECT_EQ(cluster.path_type(GpuId{2}, GpuId{3}), PathType::nvl);
    EXPECT_FALSE(cluster.has_nvswitch());
    EXPECT_NE(refusal([&] { build_from_fabric(ring, {}); }).find("joins GPUs of servers 0 and 1"), std::string::npos);
}

}  // namespace
}  // namespace fabricast::test
