// Beyond NVSwitch servers: direct NVLink, PCIe trees, NIC tables, NVLink across servers, hashed routes.
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "topologies/graph/cluster_graph.hpp"

namespace fabricast {
namespace {

using VertexId = ClusterBuilder::VertexId;
using Names = std::vector<std::string>;

Names names(const Cluster& cluster, const std::vector<LinkId>& route) {
    Names result;
    for (const LinkId link : route) {
        result.push_back(cluster.links().name[index(link)]);
    }
    return result;
}

Names route_names(const Cluster& cluster, std::uint32_t from, std::uint32_t to) {
    std::vector<LinkId> route;
    cluster.route(GpuId{from}, GpuId{to}, route);
    return names(cluster, route);
}

std::string refusal(const std::function<void()>& action) {
    try {
        action();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "accepted";
}

PathType type(const Cluster& cluster, std::uint32_t a, std::uint32_t b) {
    return cluster.path_type(GpuId{a}, GpuId{b});
}

/// Four GPUs in a line of NVLinks 0-1-2-3; GPUs 0 and 2 share a PCIe switch of the rate given, 1 and 3 sit elsewhere.
Cluster nvlink_line(double pcie_bytes_per_s) {
    ClusterBuilder builder;
    const NodeId node{0};
    std::vector<VertexId> gpus;
    for (int g = 0; g < 4; ++g) {
        gpus.push_back(builder.add_gpu(node));
    }
    const VertexId host = builder.add_in_node(VertexKind::host, node);
    const VertexId shared = builder.add_in_node(VertexKind::pcie_switch, node);
    builder.attach(shared, host);
    for (int g = 0; g < 4; ++g) {
        builder.add_cable(gpus[g], g % 2 == 0 ? shared : host, {.bytes_per_s = pcie_bytes_per_s});
    }
    for (int g = 0; g < 3; ++g) {
        builder.add_cable(gpus[g], gpus[g + 1], {.bytes_per_s = 25e9, .parallel = 1});
    }
    return std::move(builder).freeze();
}

TEST(GeneralGraph, ThroughAnotherGpuUnlessOnePcieSwitchIsFaster) {
    const Cluster slow = nvlink_line(12e9);
    EXPECT_FALSE(slow.has_nvswitch());
    EXPECT_TRUE(slow.has_nvlink());
    EXPECT_EQ(slow.nvlink_domain_count(), 1u);
    EXPECT_EQ(type(slow, 0, 0), PathType::loc);
    EXPECT_EQ(type(slow, 0, 1), PathType::nvl);
    EXPECT_EQ(type(slow, 0, 2), PathType::nvb);
    EXPECT_EQ(type(slow, 0, 3), PathType::phb);  // two GPUs between: PCIe instead
    EXPECT_EQ(route_names(slow, 0, 1), Names{"node 0 gpu 0 nvlink to gpu 1"});
    EXPECT_EQ(route_names(slow, 2, 0), (Names{"node 0 gpu 2 nvlink to gpu 1", "node 0 gpu 1 nvlink to gpu 0"}));
    EXPECT_EQ(route_names(slow, 0, 3), (Names{"node 0 gpu 0 pcie up", "node 0 gpu 3 pcie down"}));
    const Cluster fast = nvlink_line(50e9);
    EXPECT_EQ(type(fast, 0, 2), PathType::pix);
    EXPECT_EQ(type(fast, 1, 3), PathType::nvb);  // phb never beats it
}

TEST(GeneralGraph, HostLinksAreShared) {
    ClusterBuilder builder;
    const NodeId node{0};
    std::vector<VertexId> hosts;
    for (std::uint32_t numa : {0u, 0u, 1u}) {
        hosts.push_back(builder.add_host(node, numa));
    }
    builder.attach(hosts[0], hosts[1]);
    builder.add_cable(hosts[1], hosts[2], {.bytes_per_s = 20e9, .latency_s = 0.2e-6});
    builder.limit(hosts[1], {.bytes_per_s = 30e9});
    for (const VertexId host : {hosts[0], hosts[1], hosts[2]}) {
        const VertexId pcie = builder.add_in_node(VertexKind::pcie_switch, node);
        builder.add_cable(pcie, host, {.bytes_per_s = 24e9});
        for (int g = 0; g < 2; ++g) {
            builder.add_cable(builder.add_gpu(node), pcie, {.bytes_per_s = 24e9});
        }
    }
    EXPECT_NE(refusal([&] { builder.limit(hosts[1], {.bytes_per_s = 1e9}); }), "accepted");
    const Cluster cluster = std::move(builder).freeze();
    EXPECT_FALSE(cluster.has_nvlink());
    EXPECT_EQ(cluster.nvlink_domain_count(), 6u);
    EXPECT_EQ(type(cluster, 0, 1), PathType::pix);
    EXPECT_EQ(type(cluster, 0, 2), PathType::node);
    EXPECT_EQ(type(cluster, 2, 4), PathType::sys);
    EXPECT_EQ(route_names(cluster, 0, 1), (Names{"node 0 gpu 0 pcie up", "node 0 gpu 1 pcie down"}));
    EXPECT_EQ(route_names(cluster, 0, 5), (Names{"node 0 gpu 0 pcie up", "node 0 pcie switch 0 to node 0 host 0",
                                                 "node 0 host 1 throughput", "node 0 host 1 to node 0 host 2",
                                                 "node 0 host 2 to node 0 pcie switch 2", "node 0 gpu 5 pcie down"}));
    // Two transfers between the sockets meet on the socket link.
    EXPECT_EQ(route_names(cluster, 2, 4)[3], route_names(cluster, 0, 5)[3]);
    EXPECT_EQ(cluster.links().kind[index(LinkId{0})], LinkKind::host);
}

/// nodes servers of one GPU with `planes` NICs, plane p of all on leaf p.
ClusterBuilder& add_planes(ClusterBuilder& builder, std::uint32_t nodes, std::uint32_t planes, bool shifted) {
    std::vector<VertexId> leaves;
    for (std::uint32_t p = 0; p < planes; ++p) {
        leaves.push_back(builder.add_switch(VertexKind::leaf, "leaf " + std::to_string(p)));
    }
    for (std::uint32_t n = 0; n < nodes; ++n) {
        const VertexId gpu = builder.add_gpu(NodeId{n});
        const VertexId pcie = builder.add_in_node(VertexKind::pcie_switch, NodeId{n});
        builder.add_cable(gpu, pcie, {.bytes_per_s = 50e9});
        std::vector<VertexId> nics;
        for (std::uint32_t p = 0; p < planes; ++p) {
            nics.push_back(builder.add_nic(NodeId{n}));
            builder.attach(pcie, nics.back());
            builder.add_cable(nics.back(), leaves[shifted ? (p + n) % planes : p], {.bytes_per_s = 25e9});
        }
        builder.use_nics(gpu, nics);
    }
    return builder;
}

TEST(GeneralGraph, PlanesNeverMeet) {
    ClusterBuilder builder;
    const Cluster cluster = std::move(add_planes(builder, 3, 2, false)).freeze();
    ASSERT_EQ(cluster.nics_of(GpuId{1}).size(), 2u);
    EXPECT_EQ(cluster.nics_of(GpuId{1})[1], NicId{3});
    EXPECT_EQ(cluster.nic_of(GpuId{1}), NicId{2});
    EXPECT_EQ(cluster.path_type(GpuId{1}, NicId{3}), PathType::pix);
    EXPECT_EQ(cluster.path_type(GpuId{1}, NicId{5}), PathType::net);
    EXPECT_EQ(type(cluster, 0, 1), PathType::net);
    std::vector<LinkId> route;
    EXPECT_EQ(refusal([&] { cluster.network_route(NicId{0}, NicId{3}, route); }),
              "no route from node 0 nic 0 to node 1 nic 1");
    EXPECT_TRUE(route.empty());
    cluster.network_route(NicId{1}, NicId{3}, route);
    EXPECT_EQ(names(cluster, route), (Names{"node 0 nic 1 up", "node 1 nic 1 down"}));
    EXPECT_NE(refusal([&] { cluster.host_route(GpuId{0}, NicId{3}, route); }), "accepted");
}

TEST(GeneralGraph, TheFirstPairOfNicsThatMeetIsTaken) {
    ClusterBuilder builder;
    const Cluster cluster = std::move(add_planes(builder, 2, 2, true)).freeze();
    EXPECT_EQ(route_names(cluster, 0, 1),
              (Names{"node 0 gpu 0 pcie up", "node 0 nic 0 up", "node 1 nic 1 down", "node 1 gpu 0 pcie down"}));
}

TEST(GeneralGraph, NicTablesAreChecked) {
    ClusterBuilder builder;
    const VertexId gpu = builder.add_gpu(NodeId{0});
    const VertexId nic = builder.add_nic(NodeId{0});
    const VertexId elsewhere = builder.add_nic(NodeId{1});
    EXPECT_EQ(refusal([&] { builder.use_nics(gpu, {elsewhere}); }),
              "node 0 gpu 0 cannot use node 1 nic 0: it is no NIC of its node");
    EXPECT_EQ(refusal([&] { builder.use_nics(gpu, {nic, nic}); }), "node 0 gpu 0 is given node 0 nic 0 twice");
    EXPECT_NE(refusal([&] { builder.use_nics(gpu, {}); }), "accepted");
    EXPECT_NE(refusal([&] { builder.add_cable(gpu, nic, {.bytes_per_s = 1e9}); }), "accepted");
}

TEST(GeneralGraph, OneNvlinkDomainNeedsNoNetwork) {
    ClusterBuilder builder;
    const VertexId rack = builder.add_nvlink_domain("rack");
    for (std::uint32_t n = 0; n < 3; ++n) {
        for (int g = 0; g < 2; ++g) {
            builder.add_cable(builder.add_gpu(NodeId{n}), rack, {.bytes_per_s = 800e9});
        }
    }
    const Cluster cluster = std::move(builder).freeze();
    EXPECT_TRUE(cluster.has_nvswitch());
    EXPECT_EQ(cluster.node_count(), 3u);
    EXPECT_EQ(cluster.nvlink_domain_count(), 1u);
    EXPECT_EQ(type(cluster, 0, 5), PathType::nvl);
    EXPECT_EQ(route_names(cluster, 0, 5), (Names{"node 0 gpu 0 nvlink up", "node 2 gpu 1 nvlink down"}));
    EXPECT_TRUE(cluster.nics_of(GpuId{0}).empty());
}

TEST(GeneralGraph, RailsApartCrossNvlinkFirst) {
    const auto build = [](bool apart, bool nvlink) {
        ClusterBuilder builder;
        const VertexId leaves[] = {builder.add_switch(VertexKind::leaf, "rail 0"),
                                   builder.add_switch(VertexKind::leaf, "rail 1")};
        for (std::uint32_t n = 0; n < 2; ++n) {
            const VertexId nvswitch = nvlink ? builder.add_in_node(VertexKind::nvswitch, NodeId{n}) : 0;
            const VertexId host = builder.add_in_node(VertexKind::host, NodeId{n});
            for (int g = 0; g < 2; ++g) {
                const VertexId gpu = builder.add_gpu(NodeId{n}), nic = builder.add_nic(NodeId{n});
                if (nvlink) {
                    builder.add_cable(gpu, nvswitch, {.bytes_per_s = 400e9});
                }
                builder.add_cable(gpu, host, {.bytes_per_s = 50e9});
                builder.attach(host, nic);
                builder.add_cable(nic, leaves[g], {.bytes_per_s = 50e9});
            }
        }
        if (apart) {
            builder.set_rails_apart();
        }
        return std::move(builder).freeze();
    };
    const Cluster cluster = build(true, true);
    EXPECT_EQ(route_names(cluster, 0, 3),
              (Names{"node 0 gpu 0 nvlink up", "node 0 gpu 1 nvlink down", "node 0 gpu 1 pcie up", "node 0 nic 1 up",
                     "node 1 nic 1 down", "node 1 gpu 1 pcie down"}));
    EXPECT_EQ(route_names(cluster, 0, 2).size(), 4u);
    EXPECT_NE(refusal([&] { build(false, true); }), "accepted");
    EXPECT_EQ(refusal([&] { build(true, false); }),
              "node 0 gpu 1 has no NVLink to gpu 0 of its node, which a network of rails apart needs");
}

/// Two leaves with 8 servers each under 8 spines, routes searched.
Cluster searched_leaf_spine(RoutingPolicy policy) {
    ClusterBuilder builder;
    builder.set_routing(policy);
    VertexId leaves[2];
    for (int l = 0; l < 2; ++l) {
        leaves[l] = builder.add_switch(VertexKind::leaf, "leaf " + std::to_string(l));
    }
    for (int s = 0; s < 8; ++s) {
        const VertexId spine = builder.add_switch(VertexKind::spine, "spine " + std::to_string(s));
        builder.add_cable(leaves[0], spine, {.bytes_per_s = 50e9});
        builder.add_cable(leaves[1], spine, {.bytes_per_s = 50e9});
    }
    for (std::uint32_t n = 0; n < 16; ++n) {
        const VertexId gpu = builder.add_gpu(NodeId{n}), nic = builder.add_nic(NodeId{n});
        const VertexId host = builder.add_in_node(VertexKind::host, NodeId{n});
        builder.add_cable(gpu, host, {.bytes_per_s = 50e9});
        builder.attach(host, nic);
        builder.add_cable(nic, leaves[n / 8], {.bytes_per_s = 50e9});
    }
    return std::move(builder).freeze();
}

/// Different first uplinks of a shift by eight servers.
std::size_t spines_used(const Cluster& cluster, std::uint64_t flow = 0) {
    std::set<LinkId> uplinks;
    for (std::uint32_t n = 0; n < 8; ++n) {
        std::vector<LinkId> route;
        cluster.network_route(NicId{n}, NicId{n + 8}, flow, route);
        EXPECT_EQ(route.size(), 4u);
        uplinks.insert(route[1]);
    }
    return uplinks.size();
}

TEST(GeneralGraph, SearchedRoutesSpreadByPolicy) {
    EXPECT_EQ(spines_used(searched_leaf_spine({})), 1u);
    EXPECT_EQ(spines_used(searched_leaf_spine({.spreading = Spreading::static_table})), 8u);
    const Cluster hashed = searched_leaf_spine({.spreading = Spreading::ecmp, .seed = 7});
    EXPECT_GT(spines_used(hashed), 2u);
    EXPECT_LT(spines_used(hashed), 8u);
    std::set<LinkId> of_one_pair;
    for (std::uint64_t flow = 0; flow < 64; ++flow) {
        std::vector<LinkId> route;
        hashed.network_route(NicId{0}, NicId{8}, flow, route);
        of_one_pair.insert(route[2]);
    }
    EXPECT_EQ(of_one_pair.size(), 8u);  // flows of one pair reach every spine
}

TEST(GeneralGraph, DegradeLowersOnly) {
    Cluster cluster = nvlink_line(12e9);
    const Rate before = cluster.links().capacity[0];
    cluster.degrade(LinkId{0}, before / 2);
    EXPECT_EQ(cluster.links().capacity[0], before / 2);
    EXPECT_EQ(refusal([&] { cluster.degrade(LinkId{0}, before); }),
              "link node 0 gpu 0 pcie up: 12000000000 bytes/s must be above 0 and at most the 6000000000 it has");
    EXPECT_NE(refusal([&] { cluster.degrade(LinkId{0}, 0); }), "accepted");
}

}  // namespace
}  // namespace fabricast
