// Hand-made graphs: what freezes, how it is routed, what is refused and in which words.
#include "topologies/graph/cluster_graph.hpp"

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fabricast {
namespace {

using VertexId = ClusterBuilder::VertexId;

const LinkSpec kNvlink = {.bytes_per_s = 370e9, .latency_s = 0.5e-6};
const LinkSpec kPcie = {.bytes_per_s = 50e9, .latency_s = 0.3e-6};
const LinkSpec kNic = {.bytes_per_s = 46e9, .latency_s = 1e-6};
const LinkSpec kTrunk = {.bytes_per_s = 92e9, .latency_s = 0.6e-6, .parallel = 2};

struct Server {
    std::vector<VertexId> gpus, nics;
    VertexId host = 0;
};

Server add_server(ClusterBuilder& builder, std::uint32_t node, int gpus, int nics, bool nvlink) {
    Server server;
    const NodeId id{node};
    server.host = builder.add_in_node(VertexKind::host, id);
    const VertexId nvswitch = nvlink ? builder.add_in_node(VertexKind::nvswitch, id) : 0;
    for (int g = 0; g < gpus; ++g) {
        server.gpus.push_back(builder.add_gpu(id));
        builder.add_cable(server.gpus.back(), server.host, kPcie);
        if (nvlink) {
            builder.add_cable(server.gpus.back(), nvswitch, kNvlink);
        }
    }
    for (int n = 0; n < nics; ++n) {
        server.nics.push_back(builder.add_nic(id));
        builder.attach(server.host, server.nics.back());
    }
    return server;
}

std::vector<std::string> names(const Cluster& cluster, const std::vector<LinkId>& route) {
    std::vector<std::string> result;
    for (const LinkId link : route) {
        result.push_back(cluster.links().name[index(link)]);
    }
    return result;
}

std::vector<std::string> route_names(const Cluster& cluster, std::uint32_t from, std::uint32_t to) {
    std::vector<LinkId> route;
    cluster.route(GpuId{from}, GpuId{to}, route);
    return names(cluster, route);
}

std::string refusal(const std::function<void()>& action) {
    try {
        action();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "accepted";
}

using Names = std::vector<std::string>;

TEST(ClusterGraph, TwoServersOnOneSwitch) {
    ClusterBuilder builder;
    const VertexId leaf = builder.add_switch(VertexKind::leaf, "leaf");
    for (std::uint32_t node = 0; node < 2; ++node) {
        builder.add_cable(add_server(builder, node, 2, 1, true).nics[0], leaf, kNic);
    }
    const Cluster cluster = std::move(builder).freeze();
    EXPECT_EQ(cluster.gpu_count(), 4u);
    EXPECT_TRUE(cluster.has_nvswitch());
    EXPECT_EQ(cluster.nic_of(GpuId{3}), NicId{1});
    EXPECT_EQ(route_names(cluster, 2, 3), (Names{"node 1 gpu 0 nvlink up", "node 1 gpu 1 nvlink down"}));
    EXPECT_EQ(route_names(cluster, 1, 2),
              (Names{"node 0 gpu 1 pcie up", "node 0 nic 0 up", "node 1 nic 0 down", "node 1 gpu 0 pcie down"}));
    EXPECT_EQ(route_names(cluster, 1, 1), Names{});
    std::vector<LinkId> route;
    cluster.route(GpuId{1}, GpuId{2}, route);
    EXPECT_EQ(cluster.latency(route), 2'600'000);
    EXPECT_EQ(cluster.links().capacity[index(route[1])], Rate{46'000'000'000} * 1024);
}

/// Four servers, each on its own leaf; the leaves form a ring 0-1-2-3-0 entered in the order given.
Cluster leaf_ring(const std::vector<std::pair<int, int>>& cables) {
    ClusterBuilder builder;
    std::vector<VertexId> leaves;
    for (int i = 0; i < 4; ++i) {
        leaves.push_back(builder.add_switch(VertexKind::leaf, "leaf " + std::to_string(i)));
    }
    for (std::uint32_t node = 0; node < 4; ++node) {
        builder.add_cable(add_server(builder, node, 1, 1, false).nics[0], leaves[node], kNic);
    }
    for (const auto& [a, b] : cables) {
        builder.add_cable(leaves[a], leaves[b], kTrunk);
    }
    return std::move(builder).freeze();
}

TEST(ClusterGraph, EqualRoutesAreDecidedByVertexNumber) {
    const Names expected = {"node 0 gpu 0 pcie up", "node 0 nic 0 up",   "leaf 0 to leaf 1",
                            "leaf 1 to leaf 2",     "node 2 nic 0 down", "node 2 gpu 0 pcie down"};
    EXPECT_EQ(route_names(leaf_ring({{0, 1}, {1, 2}, {2, 3}, {3, 0}}), 0, 2), expected);
    EXPECT_EQ(route_names(leaf_ring({{3, 0}, {2, 3}, {1, 2}, {0, 1}}), 0, 2), expected);
}

TEST(ClusterGraph, OfParallelLinksTheFirstIsTaken) {
    const Cluster cluster = leaf_ring({{0, 1}, {0, 1}, {1, 2}, {2, 3}});
    std::vector<LinkId> first, second;
    cluster.network_route(NicId{0}, NicId{1}, first);
    cluster.network_route(NicId{0}, NicId{1}, second);
    EXPECT_EQ(first, second);
    ASSERT_EQ(first.size(), 3u);
    EXPECT_EQ(cluster.links().parallel[index(first[1])], 2u);
    EXPECT_EQ(cluster.links().kind[index(first[1])], LinkKind::fabric);
    // The cables were entered one after the other: the first direction of the first is the smallest fabric id.
    for (std::size_t i = 0; i < index(first[1]); ++i) {
        EXPECT_NE(cluster.links().kind[i], LinkKind::fabric);
    }
}

TEST(ClusterGraph, RouteNeverPassesThroughAServer) {
    // Server 1 has a NIC on either leaf, which would be the only bridge between them.
    ClusterBuilder builder;
    const VertexId a = builder.add_switch(VertexKind::leaf, "leaf a");
    const VertexId b = builder.add_switch(VertexKind::leaf, "leaf b");
    for (std::uint32_t node = 0; node < 2; ++node) {
        const Server server = add_server(builder, node, 2, 2, true);
        builder.add_cable(server.nics[0], a, kNic);
        builder.add_cable(server.nics[1], b, kNic);
    }
    EXPECT_EQ(refusal([&] { std::move(builder).freeze(); }),
              "no route from node 0 nic 0 to node 0 nic 1: their switches are not connected in this direction");
}

TEST(ClusterGraph, OneWayFabricIsRefusedInTheMissingDirection) {
    ClusterBuilder builder;
    const VertexId a = builder.add_switch(VertexKind::leaf, "leaf a");
    const VertexId b = builder.add_switch(VertexKind::leaf, "leaf b");
    builder.add_cable(add_server(builder, 0, 1, 1, false).nics[0], a, kNic);
    builder.add_cable(add_server(builder, 1, 1, 1, false).nics[0], b, kNic);
    builder.add_link(a, b, kTrunk);
    EXPECT_EQ(refusal([&] { std::move(builder).freeze(); }),
              "no route from node 1 nic 0 to node 0 nic 0: their switches are not connected in this direction");
}

TEST(ClusterGraph, UnconnectedNicsOfASingleServerFailWhenAsked) {
    ClusterBuilder builder;
    const Server server = add_server(builder, 0, 2, 2, true);
    builder.add_cable(server.nics[0], builder.add_switch(VertexKind::leaf, "leaf a"), kNic);
    builder.add_cable(server.nics[1], builder.add_switch(VertexKind::leaf, "leaf b"), kNic);
    const Cluster cluster = std::move(builder).freeze();
    std::vector<LinkId> route = {LinkId{0}};
    try {
        cluster.network_route(NicId{0}, NicId{1}, route);
        FAIL() << "a route was found";
    } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "no route from node 0 nic 0 to node 0 nic 1");
    }
    EXPECT_EQ(route.size(), 1u);
    EXPECT_EQ(route_names(cluster, 0, 1).size(), 2u);
}

TEST(ClusterGraph, NumaServerJoinsPcieSwitchesThroughTheHost) {
    ClusterBuilder builder;
    const NodeId node{0};
    const VertexId host = builder.add_in_node(VertexKind::host, node);
    for (int socket = 0; socket < 2; ++socket) {
        const VertexId pcie = builder.add_in_node(VertexKind::pcie_switch, node);
        builder.attach(pcie, host);
        for (int g = 0; g < 2; ++g) {
            builder.add_cable(builder.add_gpu(node), pcie, kPcie);
        }
    }
    const Cluster cluster = std::move(builder).freeze();
    EXPECT_FALSE(cluster.has_nvswitch());
    EXPECT_EQ(cluster.nics_per_node(), 0u);
    EXPECT_EQ(route_names(cluster, 0, 3), (Names{"node 0 gpu 0 pcie up", "node 0 gpu 3 pcie down"}));
}

TEST(ClusterGraph, GpusThatCannotReachEachOtherAreRefused) {
    ClusterBuilder builder;
    for (int socket = 0; socket < 2; ++socket) {
        const VertexId pcie = builder.add_in_node(VertexKind::pcie_switch, NodeId{0});
        builder.add_cable(builder.add_gpu(NodeId{0}), pcie, kPcie);
    }
    EXPECT_EQ(refusal([&] { std::move(builder).freeze(); }),
              "node 0 gpu 1 cannot reach gpu 0 of its node: their PCIe switches are not joined");
}

TEST(ClusterGraph, NicMustBeAttachedToItsGpus) {
    ClusterBuilder builder;
    const VertexId leaf = builder.add_switch(VertexKind::leaf, "leaf");
    for (std::uint32_t node = 0; node < 2; ++node) {
        const Server server = add_server(builder, node, 2, 0, true);
        const VertexId nic = builder.add_nic(NodeId{node});
        builder.add_cable(nic, leaf, kNic);
        if (node == 0) {
            builder.attach(server.host, nic);
        }
    }
    EXPECT_EQ(refusal([&] { std::move(builder).freeze(); }),
              "node 1 gpu 0 cannot reach node 1 nic 0: its PCIe switch is not attached to it");
}

TEST(ClusterGraph, LinkFiguresAreChecked) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    ClusterBuilder builder;
    const VertexId gpu = builder.add_gpu(NodeId{3});
    const VertexId nvswitch = builder.add_in_node(VertexKind::nvswitch, NodeId{3});
    const VertexId elsewhere = builder.add_in_node(VertexKind::nvswitch, NodeId{2});
    const VertexId leaf = builder.add_switch(VertexKind::leaf, "leaf 7");
    const auto adding = [&](VertexId from, VertexId to, LinkSpec spec) {
        return refusal([&] { builder.add_link(from, to, spec); });
    };
    EXPECT_EQ(adding(gpu, nvswitch, {.bytes_per_s = 0}),
              "link node 3 gpu 0 nvlink up: bandwidth 0 bytes/s must be a number above 0");
    EXPECT_EQ(adding(gpu, nvswitch, {.bytes_per_s = -5}),
              "link node 3 gpu 0 nvlink up: bandwidth -5 bytes/s must be a number above 0");
    EXPECT_EQ(adding(nvswitch, gpu, {.bytes_per_s = nan}),
              "link node 3 gpu 0 nvlink down: bandwidth nan bytes/s must be a number above 0");
    EXPECT_EQ(adding(gpu, nvswitch, {.bytes_per_s = 1e18}),
              "link node 3 gpu 0 nvlink up: bandwidth 1e+18 bytes/s must lie between 1 byte/s and 4 PB/s");
    EXPECT_EQ(adding(gpu, nvswitch, {.bytes_per_s = 1e9, .latency_s = nan}),
              "link node 3 gpu 0 nvlink up: latency nan s must lie between 0 and 1000 s");
    EXPECT_EQ(adding(gpu, nvswitch, {.bytes_per_s = 1e9, .parallel = 0}),
              "link node 3 gpu 0 nvlink up: needs at least one cable");
    EXPECT_EQ(adding(gpu, elsewhere, {.bytes_per_s = 1e9}),
              "node 3 gpu 0 cannot be linked to node 2 nvswitch: they are in different nodes");
    EXPECT_EQ(adding(gpu, leaf, {.bytes_per_s = 1e9}),
              "node 3 gpu 0 cannot be linked to leaf 7: a link joins a GPU and an NVSwitch, two GPUs, a GPU or "
              "NIC and a PCIe switch or host, two of these, a NIC and a leaf or spine, or two different switches");
    EXPECT_EQ(refusal([&] { builder.attach(gpu, nvswitch); }),
              "node 3 gpu 0 cannot be attached to node 3 nvswitch: an attachment joins PCIe switches, NICs and the "
              "host of one node");
}

TEST(ClusterGraph, CountsMustAgree) {
    EXPECT_EQ(refusal([] { ClusterBuilder().freeze(); }), "the cluster has no GPU");
    EXPECT_EQ(refusal([] {
                  ClusterBuilder builder;
                  add_server(builder, 0, 2, 0, true);
                  add_server(builder, 1, 1, 0, true);
                  std::move(builder).freeze();
              }),
              "node 1 has 1 GPUs, node 0 has 2: all nodes need the same number, at least one");
    EXPECT_EQ(refusal([] {
                  ClusterBuilder builder;
                  add_server(builder, 0, 2, 1, true);
                  add_server(builder, 1, 2, 2, true);
                  std::move(builder).freeze();
              }),
              "node 1 has 2 NICs, node 0 has 1: all nodes need the same number");
    EXPECT_EQ(refusal([] {
                  ClusterBuilder builder;
                  add_server(builder, 0, 2, 0, true);
                  add_server(builder, 1, 2, 0, true);
                  std::move(builder).freeze();
              }),
              "2 nodes without a NIC: only a single node can do without");
    EXPECT_EQ(refusal([] {
                  ClusterBuilder builder;
                  add_server(builder, 0, 3, 2, true);
                  std::move(builder).freeze();
              }),
              "3 GPUs and 2 NICs a node: GPUs must be a multiple of NICs, or the NICs of each GPU be given");
}

TEST(ClusterGraph, MissingAndDoubleLinksAreNamed) {
    EXPECT_EQ(refusal([] {
                  ClusterBuilder builder;
                  add_server(builder, 0, 2, 1, true);
                  std::move(builder).freeze();
              }),
              "node 0 nic 0 has no network link up");
    EXPECT_EQ(refusal([] {
                  ClusterBuilder builder;
                  const Server server = add_server(builder, 0, 1, 0, false);
                  builder.add_link(server.gpus[0], server.host, kPcie);
                  std::move(builder).freeze();
              }),
              "node 0 gpu 0 pcie up is the second of its kind and direction: enter parallel cables as one link");
    EXPECT_EQ(refusal([] {
                  ClusterBuilder builder;
                  const VertexId nvswitch = builder.add_in_node(VertexKind::nvswitch, NodeId{0});
                  builder.add_cable(builder.add_gpu(NodeId{0}), nvswitch, kNvlink);
                  builder.add_link(nvswitch, builder.add_gpu(NodeId{0}), kNvlink);
                  std::move(builder).freeze();
              }),
              "node 0 gpu 1 has no nvlink link up");
}

TEST(ClusterGraph, LoneGpuNeedsNothing) {
    ClusterBuilder builder;
    builder.add_gpu(NodeId{0});
    const Cluster cluster = std::move(builder).freeze();
    EXPECT_EQ(cluster.gpu_count(), 1u);
    EXPECT_EQ(cluster.links().size(), 0u);
    EXPECT_FALSE(cluster.has_pcie());
}

}  // namespace
}  // namespace fabricast
