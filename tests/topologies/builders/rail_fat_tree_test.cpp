// Rail-optimised fat tree: counts, capacities, routes, refusals, and agreement with a searched hand-made copy.
#include "topologies/builders/rail_fat_tree.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "topologies/graph/cluster_graph.hpp"

namespace fabricast {
namespace {

NodeShape node_shape(std::uint32_t gpus = 8, std::uint32_t nics = 8) {
    return {.gpus = gpus,
            .nics = nics,
            .nvlink_bytes_per_s = 370e9,
            .nvlink_latency_s = 0.6e-6,
            .pcie_bytes_per_s = 50e9,
            .pcie_latency_s = 0.4e-6,
            .nic_bytes_per_s = 46e9,
            .nic_latency_s = 1e-6};
}

RailFatTree fat_tree(std::uint32_t nodes, std::uint32_t nodes_per_pod, double oversubscription = 1) {
    return {.nodes = nodes,
            .nodes_per_pod = nodes_per_pod,
            .oversubscription = oversubscription,
            .switch_latency_s = 0.3e-6};
}

using Names = std::vector<std::string>;

std::vector<LinkId> route(const Cluster& cluster, std::uint32_t from, std::uint32_t to) {
    std::vector<LinkId> links;
    cluster.route(GpuId{from}, GpuId{to}, links);
    return links;
}

Names route_names(const Cluster& cluster, std::uint32_t from, std::uint32_t to) {
    Names names;
    for (const LinkId link : route(cluster, from, to)) {
        names.push_back(cluster.links().name[index(link)]);
    }
    return names;
}

std::vector<LinkKind> route_kinds(const Cluster& cluster, std::uint32_t from, std::uint32_t to) {
    std::vector<LinkKind> kinds;
    for (const LinkId link : route(cluster, from, to)) {
        kinds.push_back(cluster.links().kind[index(link)]);
    }
    return kinds;
}

std::size_t find_link(const Cluster& cluster, const std::string& name) {
    const std::vector<std::string> names = cluster.links().name.all();
    return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

TEST(RailFatTree, CountsAndCoordinates) {
    const Cluster cluster = build_rail_fat_tree(node_shape(), fat_tree(6, 4));
    EXPECT_EQ(cluster.node_count(), 6u);
    EXPECT_EQ(cluster.gpu_count(), 48u);
    EXPECT_EQ(cluster.links().size(), 6u * (8 * 4 + 8 * 2) + 2 * 2 * 8);
    EXPECT_EQ(cluster.node_of(GpuId{43}), NodeId{5});
    EXPECT_EQ(cluster.local_index(GpuId{43}), 3u);
    EXPECT_EQ(cluster.nic_of(GpuId{43}), NicId{43});
    EXPECT_EQ(cluster.links().name[index(cluster.nvlink_up(GpuId{29}))], "node 3 gpu 5 nvlink up");
    EXPECT_EQ(cluster.links().name[index(cluster.nic_down(NicId{29}))], "node 3 nic 5 down");
    EXPECT_EQ(cluster.links().kind[index(cluster.pcie_down(GpuId{0}))], LinkKind::pcie);
}

TEST(RailFatTree, SameNodeGoesThroughTheNvSwitch) {
    const Cluster cluster = build_rail_fat_tree(node_shape(), fat_tree(6, 4));
    EXPECT_EQ(route_names(cluster, 9, 12), (Names{"node 1 gpu 1 nvlink up", "node 1 gpu 4 nvlink down"}));
    EXPECT_EQ(cluster.latency(route(cluster, 9, 12)), 600'000);
    EXPECT_TRUE(route(cluster, 9, 9).empty());
}

TEST(RailFatTree, SameRailSamePodStaysOnItsLeaf) {
    const Cluster cluster = build_rail_fat_tree(node_shape(), fat_tree(6, 4));
    EXPECT_EQ(route_names(cluster, 2, 3 * 8 + 2),
              (Names{"node 0 gpu 2 pcie up", "node 0 nic 2 up", "node 3 nic 2 down", "node 3 gpu 2 pcie down"}));
    EXPECT_EQ(cluster.latency(route(cluster, 2, 3 * 8 + 2)), 2 * 400'000 + 2 * 1'000'000 + 300'000);
}

TEST(RailFatTree, OtherRailAndOtherPodCrossTrunks) {
    const Cluster cluster = build_rail_fat_tree(node_shape(), fat_tree(6, 4));
    EXPECT_EQ(route_names(cluster, 2, 8 + 5),
              (Names{"node 0 gpu 2 pcie up", "node 0 nic 2 up", "pod 0 rail 2 trunk up", "pod 0 rail 5 trunk down",
                     "node 1 nic 5 down", "node 1 gpu 5 pcie down"}));
    EXPECT_EQ(route_names(cluster, 2, 5 * 8 + 2),
              (Names{"node 0 gpu 2 pcie up", "node 0 nic 2 up", "pod 0 rail 2 trunk up", "pod 1 rail 2 trunk down",
                     "node 5 nic 2 down", "node 5 gpu 2 pcie down"}));
    EXPECT_EQ(cluster.latency(route(cluster, 2, 5 * 8 + 2)), 2 * 400'000 + 2 * 1'000'000 + 3 * 300'000);
}

TEST(RailFatTree, TrunkCapacityFollowsThePodAndOversubscription) {
    const Cluster cluster = build_rail_fat_tree(node_shape(), fat_tree(6, 4, 1.5));
    const Rate nic = cluster.links().capacity[index(cluster.nic_up(NicId{0}))];
    const std::size_t full = find_link(cluster, "pod 0 rail 3 trunk up");
    const std::size_t partial = find_link(cluster, "pod 1 rail 3 trunk down");
    EXPECT_NEAR(static_cast<double>(cluster.links().capacity[full]), static_cast<double>(nic) * 4 / 1.5, 1);
    EXPECT_NEAR(static_cast<double>(cluster.links().capacity[partial]), static_cast<double>(nic) * 2 / 1.5, 1);
    EXPECT_EQ(cluster.links().parallel[full], 3u);
    EXPECT_EQ(cluster.links().parallel[partial], 2u);
}

TEST(RailFatTree, UnderSubscriptionWidensTrunks) {
    const Cluster cluster = build_rail_fat_tree(node_shape(), fat_tree(4, 4, 0.5));
    const std::size_t trunk = find_link(cluster, "pod 0 rail 0 trunk up");
    EXPECT_EQ(cluster.links().parallel[trunk], 8u);
    EXPECT_EQ(cluster.links().capacity[trunk], 8 * cluster.links().capacity[index(cluster.nic_up(NicId{0}))]);
}

TEST(RailFatTree, GpusShareNics) {
    const Cluster shared = build_rail_fat_tree(node_shape(8, 2), fat_tree(3, 2));
    EXPECT_EQ(shared.nic_of(GpuId{8 + 5}), NicId{2 + 1});
    const Cluster one = build_rail_fat_tree(node_shape(8, 1), fat_tree(3, 2));
    EXPECT_EQ(one.nic_of(GpuId{16 + 7}), NicId{2});
    EXPECT_EQ(route_names(one, 7, 8),
              (Names{"node 0 gpu 7 pcie up", "node 0 nic 0 up", "node 1 nic 0 down", "node 1 gpu 0 pcie down"}));
}

TEST(RailFatTree, WithoutNvlinkTrafficStaysOnPcie) {
    NodeShape shape = node_shape();
    shape.nvlink_bytes_per_s = 0;
    const Cluster cluster = build_rail_fat_tree(shape, fat_tree(2, 2));
    EXPECT_FALSE(cluster.has_nvswitch());
    EXPECT_EQ(route_names(cluster, 0, 7), (Names{"node 0 gpu 0 pcie up", "node 0 gpu 7 pcie down"}));
}

TEST(RailFatTree, SingleNodeWithoutNetwork) {
    const Cluster cluster = build_rail_fat_tree(node_shape(8, 0), fat_tree(1, 64));
    EXPECT_EQ(cluster.nics_per_node(), 0u);
    EXPECT_EQ(cluster.links().size(), 32u);
    EXPECT_EQ(route_kinds(cluster, 0, 1), (std::vector{LinkKind::nvlink, LinkKind::nvlink}));
}

/// The same fabric entered by hand with two spines, routed by search.
Cluster hand_made(std::uint32_t nodes, std::uint32_t nodes_per_pod, std::uint32_t gpus, std::uint32_t rails) {
    ClusterBuilder builder;
    const std::uint32_t pods = (nodes + nodes_per_pod - 1) / nodes_per_pod;
    const LinkSpec spec = {.bytes_per_s = 46e9};
    std::vector<ClusterBuilder::VertexId> leaves;
    for (std::uint32_t i = 0; i < pods * rails; ++i) {
        leaves.push_back(builder.add_switch(VertexKind::leaf, "leaf " + std::to_string(i)));
    }
    for (int s = 0; s < 2; ++s) {
        const auto spine = builder.add_switch(VertexKind::spine, "spine " + std::to_string(s));
        for (const auto leaf : leaves) {
            builder.add_cable(leaf, spine, spec);
        }
    }
    for (std::uint32_t n = 0; n < nodes; ++n) {
        const NodeId node{n};
        const auto host = builder.add_in_node(VertexKind::host, node);
        const auto nvswitch = builder.add_in_node(VertexKind::nvswitch, node);
        for (std::uint32_t g = 0; g < gpus; ++g) {
            const auto gpu = builder.add_gpu(node);
            builder.add_cable(gpu, nvswitch, spec);
            builder.add_cable(gpu, host, spec);
        }
        for (std::uint32_t r = 0; r < rails; ++r) {
            const auto nic = builder.add_nic(node);
            builder.attach(host, nic);
            builder.add_cable(nic, leaves[n / nodes_per_pod * rails + r], spec);
        }
    }
    return std::move(builder).freeze();
}

TEST(RailFatTree, ArithmeticRoutesAgreeWithSearch) {
    const Cluster arithmetic = build_rail_fat_tree(node_shape(4, 2), fat_tree(5, 2));
    const Cluster searched = hand_made(5, 2, 4, 2);
    ASSERT_EQ(arithmetic.gpu_count(), searched.gpu_count());
    for (std::uint32_t from = 0; from < arithmetic.gpu_count(); ++from) {
        for (std::uint32_t to = 0; to < arithmetic.gpu_count(); ++to) {
            EXPECT_EQ(route_kinds(arithmetic, from, to), route_kinds(searched, from, to)) << from << " to " << to;
        }
    }
}

TEST(RailFatTree, RefusesWithFieldAndValue) {
    const auto refusal = [](const std::function<void(NodeShape&, RailFatTree&)>& change) -> std::string {
        NodeShape node = node_shape();
        RailFatTree fabric = fat_tree(4, 2);
        change(node, fabric);
        try {
            build_rail_fat_tree(node, fabric);
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "accepted";
    };
    EXPECT_EQ(refusal([](NodeShape&, RailFatTree& f) { f.nodes = 0; }), "nodes 0: needs at least one");
    EXPECT_EQ(refusal([](NodeShape& n, RailFatTree&) { n.gpus = 0; }), "gpus 0: a node needs at least one");
    EXPECT_EQ(refusal([](NodeShape& n, RailFatTree&) { n.nics = 0; }), "nics 0: 4 nodes need a NIC each");
    EXPECT_EQ(refusal([](NodeShape& n, RailFatTree&) { n.nics = 3; }),
              "nics 3: gpus 8 is not a multiple of it; several NICs of one GPU are entered as one with their summed "
              "rate");
    EXPECT_EQ(refusal([](NodeShape& n, RailFatTree&) { n.nvlink_bytes_per_s = -1; }),
              "nvlink_bytes_per_s -1: must be a number, 0 or more");
    EXPECT_EQ(refusal([](NodeShape& n, RailFatTree&) { n.nic_latency_s = std::numeric_limits<double>::quiet_NaN(); }),
              "nic_latency_s nan: must be a number, 0 or more");
    EXPECT_EQ(refusal([](NodeShape& n, RailFatTree&) { n.nic_bytes_per_s = 0; }),
              "nic_bytes_per_s 0: must be above 0 where a node has NICs");
    EXPECT_EQ(refusal([](NodeShape& n, RailFatTree&) { n.pcie_bytes_per_s = 0; }),
              "pcie_bytes_per_s 0: must be above 0 where GPUs reach a NIC");
    EXPECT_EQ(refusal([](NodeShape&, RailFatTree& f) { f.oversubscription = 0; }),
              "oversubscription 0: must be above 0 (leaf down / leaf up capacity)");
    EXPECT_EQ(refusal([](NodeShape&, RailFatTree& f) { f.nodes_per_pod = 0; }),
              "nodes_per_pod 0: a leaf switch needs at least one port that looks down");
    EXPECT_EQ(refusal([](NodeShape&, RailFatTree& f) { f.nodes = 4'000'000'000u; }),
              "nodes 4000000000 x gpus 8: more than 67108864 GPUs");
}

TEST(RailFatTree, LargeClusterIsBuiltAndRouted) {
    const Cluster cluster = build_rail_fat_tree(node_shape(), fat_tree(12'288, 64));
    EXPECT_EQ(cluster.gpu_count(), 98'304u);
    EXPECT_EQ(cluster.links().size(), 12'288u * 48 + 192 * 8 * 2);
    EXPECT_EQ(route_names(cluster, 0, 98'303).front(), "node 0 gpu 0 pcie up");
    EXPECT_EQ(route(cluster, 0, 98'303).size(), 6u);
}

/// Routes that follow from ends are those of the adapters, links to and from them added.
TEST(RailFatTree, RoutesFollowFromEnds) {
    RailFatTree three = fat_tree(12, 2);
    three.levels = 3;
    three.pods_per_block = 2;
    for (const RailFatTree& fabric : {fat_tree(6, 4), three}) {
        const Cluster cluster = build_rail_fat_tree(node_shape(), fabric);
        ASSERT_TRUE(cluster.has_ends());
        for (std::uint32_t from = 0; from < cluster.gpu_count(); from += 3) {
            for (std::uint32_t to = 0; to < cluster.gpu_count(); ++to) {
                const GpuId a{from}, b{to};
                if (cluster.node_of(a) == cluster.node_of(b)) {
                    continue;
                }
                std::vector<LinkId> expected;
                cluster.host_route(a, cluster.nic_of(a), expected);
                cluster.network_route(cluster.nic_of(a), cluster.nic_of(b), expected);
                cluster.host_route(cluster.nic_of(b), b, expected);
                ASSERT_EQ(route(cluster, from, to), expected) << from << " to " << to;
            }
        }
    }
    RailFatTree hashed = fat_tree(6, 4);
    hashed.routing.spreading = Spreading::ecmp;
    EXPECT_FALSE(build_rail_fat_tree(node_shape(), hashed).has_ends()) << "a hash decides";
}

}  // namespace
}  // namespace fabricast
