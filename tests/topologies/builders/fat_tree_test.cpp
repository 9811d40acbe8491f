// Fat trees: levels, oversubscription, planes, routing policies, collisions, bisection, size.
#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/topologies/builders/cluster_probe.hpp"
#include "topologies/builders/rail_fat_tree.hpp"
#include "topologies/graph/bisection.hpp"

namespace fabricast::test {
namespace {

constexpr double kNic = 50e9;

NodeShape shape(std::uint32_t gpus, std::uint32_t nics) {
    return {.gpus = gpus,
            .nics = nics,
            .nvlink_bytes_per_s = 370e9,
            .pcie_bytes_per_s = 55e9,
            .pcie_latency_s = 1e-6,
            .nic_bytes_per_s = kNic,
            .nic_latency_s = 0.6e-6};
}

TEST(FatTree, PlainLeafTakesAllNicsOfItsNodes) {
    const Cluster cluster = build_fat_tree(
        shape(8, 8), {.nodes = 8, .nodes_per_leaf = 4, .leaf_oversubscription = 2, .switch_latency_s = 0.3e-6});
    EXPECT_EQ(cluster.links().size(), 8u * 48 + 2 * 2);
    EXPECT_EQ(route_names(cluster, 0, 3 * 8 + 5),
              (Names{"node 0 gpu 0 pcie up", "node 0 nic 0 up", "node 3 nic 5 down", "node 3 gpu 5 pcie down"}));
    EXPECT_EQ(route_names(cluster, 0, 7 * 8),
              (Names{"node 0 gpu 0 pcie up", "node 0 nic 0 up", "leaf 0 trunk up", "leaf 1 trunk down",
                     "node 7 nic 0 down", "node 7 gpu 0 pcie down"}));
    EXPECT_DOUBLE_EQ(link_rate(cluster, "leaf 0 trunk up"), 32 * kNic / 2);
    EXPECT_EQ(cluster.latency(route(cluster, 0, 56)), 2 * 1'000'000 + 2 * 600'000 + 3 * 300'000);
    const Bisection bisected = bisection(cluster);
    EXPECT_DOUBLE_EQ(bisected.bytes_per_s, 32 * kNic / 2);
    EXPECT_EQ(cluster.links().kind[index(bisected.bottleneck)], LinkKind::fabric);
}

TEST(FatTree, ThreeLevelsOversubscribeAtEach) {
    const Cluster cluster = build_fat_tree(shape(2, 2), {.nodes = 16,
                                                         .nodes_per_leaf = 2,
                                                         .levels = 3,
                                                         .leaves_per_block = 4,
                                                         .leaf_oversubscription = 2,
                                                         .block_oversubscription = 4});
    EXPECT_EQ(route_names(cluster, 0, 8).size(), 6u);  // another leaf of the block
    EXPECT_EQ(route_names(cluster, 0, 16),
              (Names{"node 0 gpu 0 pcie up", "node 0 nic 0 up", "leaf 0 trunk up", "block 0 trunk up",
                     "block 1 trunk down", "leaf 4 trunk down", "node 8 nic 0 down", "node 8 gpu 0 pcie down"}));
    EXPECT_DOUBLE_EQ(link_rate(cluster, "leaf 0 trunk up"), 4 * kNic / 2);
    EXPECT_DOUBLE_EQ(link_rate(cluster, "block 0 trunk up"), 16 * kNic / 2 / 4);
    EXPECT_DOUBLE_EQ(bisection(cluster).bytes_per_s, 16 * kNic / 8);
    for (std::uint32_t to = 1; to < 32; ++to) {
        EXPECT_TRUE(is_symmetric(cluster, 0, to)) << to;
    }
}

TEST(FatTree, FullBisectionOfRails) {
    for (const std::uint32_t levels : {2u, 3u}) {
        const Cluster cluster =
            build_rail_fat_tree(shape(8, 8), {.nodes = 32, .nodes_per_pod = 4, .levels = levels, .pods_per_block = 2});
        EXPECT_NEAR(bisection(cluster).bytes_per_s, 128 * kNic, 1) << levels;
    }
}

TEST(FatTree, PlanesAreNetworksOfTheirOwn) {
    const Cluster cluster = build_rail_fat_tree(shape(8, 16), {.nodes = 8, .nodes_per_pod = 4, .planes = 2});
    const auto nics = cluster.nics_of(GpuId{8 + 3});
    ASSERT_EQ(nics.size(), 2u);
    EXPECT_EQ(nics[0], NicId{16 + 6});
    EXPECT_EQ(nics[1], NicId{16 + 7});
    EXPECT_EQ(cluster.path_type(GpuId{8 + 3}, nics[1]), PathType::pix);
    std::vector<LinkId> links;
    cluster.network_route(nics[1], NicId{4 * 16 + 7}, links);
    EXPECT_EQ(names(cluster, links), (Names{"node 1 nic 7 up", "pod 0 rail 3 plane 1 trunk up",
                                            "pod 1 rail 3 plane 1 trunk down", "node 4 nic 7 down"}));
    EXPECT_EQ(refusal([&] { cluster.network_route(nics[0], NicId{4 * 16 + 7}, links); }),
              "no route from node 1 nic 6 to node 4 nic 7");
    EXPECT_NEAR(bisection(cluster).bytes_per_s, 64 * kNic, 1);
    const Cluster plain = build_fat_tree(shape(4, 4), {.nodes = 6, .nodes_per_leaf = 2, .planes = 4});
    EXPECT_EQ(plain.nics_of(GpuId{1}).size(), 4u);
    EXPECT_NEAR(bisection(plain).bytes_per_s, 12 * kNic, 1);
}

/// Two pods of 8 single-GPU nodes under 8 spines.
Cluster leaf_spine(RoutingPolicy routing) {
    return build_rail_fat_tree(shape(1, 1), {.nodes = 16, .nodes_per_pod = 8, .routing = routing});
}

TEST(FatTree, StaticTablesNeverCollideOnShifts) {
    const Cluster cluster = leaf_spine({.spreading = Spreading::static_table});
    EXPECT_EQ(cluster.links().size(), 16u * 6 + 2 * 8 * 2);
    EXPECT_EQ(route_names(cluster, 3, 8 + 5)[2], "pod 0 rail 0 spine 5 up");
    EXPECT_EQ(route_names(cluster, 3, 8 + 5)[3], "pod 1 rail 0 spine 5 down");
    EXPECT_DOUBLE_EQ(bisection(cluster).bytes_per_s, 8 * kNic);
    const Cluster three = build_fat_tree(shape(1, 1), {.nodes = 32,
                                                       .nodes_per_leaf = 4,
                                                       .levels = 3,
                                                       .leaves_per_block = 2,
                                                       .routing = {.spreading = Spreading::static_table}});
    EXPECT_DOUBLE_EQ(bisection(three).bytes_per_s, 16 * kNic);
}

TEST(FatTree, HashedFlowsCollideAsChanceHasIt) {
    // 64 flows over 8 spines; the largest load of 8 is 2.11 to 1.53 times the mean for 2 to 8 flows a link (balls
    // into bins), so a mean of 1.53 is expected here over many seeds.
    double sum = 0, least = 64, most = 0;
    constexpr int kSeeds = 400;
    for (int seed = 0; seed < kSeeds; ++seed) {
        const Cluster cluster = leaf_spine({.spreading = Spreading::ecmp, .seed = static_cast<std::uint64_t>(seed)});
        std::map<LinkId, int> load;
        for (std::uint32_t from = 0; from < 8; ++from) {
            for (std::uint64_t flow = 0; flow < 8; ++flow) {
                std::vector<LinkId> links;
                cluster.network_route(NicId{from}, NicId{8 + from}, flow, links);
                ASSERT_EQ(links.size(), 4u);
                ++load[links[1]];
            }
        }
        int largest = 0;
        for (const auto& [link, flows] : load) {
            largest = std::max(largest, flows);
        }
        sum += largest / 8.0;
        least = std::min(least, largest / 8.0);
        most = std::max(most, largest / 8.0);
    }
    EXPECT_NEAR(sum / kSeeds, 1.53, 0.04);
    EXPECT_GE(least, 1);
    EXPECT_GT(most, 1.8);
}

TEST(FatTree, HashedRoutesRepeatAndDependOnSeedAndFlow) {
    const RoutingPolicy policy = {.spreading = Spreading::ecmp, .seed = 3};
    const Cluster a = leaf_spine(policy), b = leaf_spine(policy);
    std::set<LinkId> spines;
    for (std::uint64_t flow = 0; flow < 40; ++flow) {
        std::vector<LinkId> x, y;
        a.network_route(NicId{0}, NicId{9}, flow, x);
        b.network_route(NicId{0}, NicId{9}, flow, y);
        EXPECT_EQ(x, y);
        spines.insert(x[1]);
    }
    EXPECT_EQ(spines.size(), 8u);
    std::vector<LinkId> first, zero;
    a.network_route(NicId{0}, NicId{9}, first);
    a.network_route(NicId{0}, NicId{9}, 0, zero);
    EXPECT_EQ(first, zero);
    // One flow a NIC collides; many flows come close to ideal.
    EXPECT_LT(bisection(a).bytes_per_s, 8 * kNic * 0.51);
    EXPECT_GT(bisection(a, 64).bytes_per_s, 8 * kNic * 0.75);
}

TEST(FatTree, HashedThreeLevelsGoUpAndDownThroughOneSpine) {
    const Cluster cluster = build_fat_tree(shape(2, 2), {.nodes = 16,
                                                         .nodes_per_leaf = 2,
                                                         .levels = 3,
                                                         .leaves_per_block = 2,
                                                         .routing = {.spreading = Spreading::ecmp, .seed = 5}});
    std::set<std::string> ups;
    for (std::uint64_t flow = 0; flow < 100; ++flow) {
        std::vector<LinkId> links;
        cluster.network_route(NicId{0}, NicId{30}, flow, links);
        const Names route = names(cluster, links);
        ASSERT_EQ(route.size(), 6u);
        EXPECT_EQ(route[1].substr(0, 14), "leaf 0 spine " + route[4].substr(13, 1));
        EXPECT_EQ(route[2].substr(8, 14), route[3].substr(8, 14));  // "spine s core c"
        EXPECT_EQ(route[1][13], route[2][14]);
        ups.insert(route[2]);
    }
    EXPECT_EQ(ups.size(), 8u);  // 4 spines of 2 leaves x 4 cables: 2 cores each
}

TEST(FatTree, AdaptiveIsIdealWithAnEfficiency) {
    const Cluster cluster = leaf_spine({.spreading = Spreading::adaptive, .adaptive_efficiency = 0.9});
    EXPECT_EQ(cluster.links().size(), 16u * 6 + 4);
    EXPECT_NEAR(bisection(cluster).bytes_per_s, 8 * kNic * 0.9, 1);
    EXPECT_EQ(cluster.routing().spreading, Spreading::adaptive);
}

TEST(FatTree, RefusesWithFieldAndValue) {
    const auto plain = [](FatTree fabric) { return refusal([&] { build_fat_tree(shape(4, 4), fabric); }); };
    EXPECT_EQ(plain({.nodes = 4, .nodes_per_leaf = 0}),
              "nodes_per_leaf 0: a leaf switch needs at least one port that looks down");
    EXPECT_EQ(plain({.nodes = 4, .levels = 4}), "levels 4: 1 to 3");
    EXPECT_EQ(plain({.nodes = 40, .nodes_per_leaf = 4, .levels = 1}),
              "levels 1: 40 nodes need more than one leaf a plane");
    EXPECT_EQ(plain({.nodes = 4, .levels = 1}), "accepted");
    EXPECT_EQ(plain({.nodes = 4, .levels = 3, .leaves_per_block = 0}), "leaves_per_block 0: at least one");
    EXPECT_EQ(plain({.nodes = 4, .planes = 3}), "planes 3: the 4 NICs of a node must be a multiple of it");
    EXPECT_EQ(plain({.nodes = 4, .leaf_oversubscription = -1}), "oversubscription -1: must be a number, 0 or more");
    EXPECT_EQ(plain({.nodes = 4, .routing = {.spreading = Spreading::adaptive, .adaptive_efficiency = 1.5}}),
              "adaptive_efficiency 1.5: must be above 0 and at most 1");
}

TEST(FatTree, LargeHashedClusterIsBuiltAndRouted) {
    const Cluster cluster = build_rail_fat_tree(shape(8, 8), {.nodes = 12'288,
                                                              .nodes_per_pod = 32,
                                                              .levels = 3,
                                                              .pods_per_block = 16,
                                                              .routing = {.spreading = Spreading::ecmp, .seed = 1}});
    EXPECT_EQ(cluster.gpu_count(), 98'304u);
    EXPECT_EQ(route(cluster, 0, 98'303).size(), 8u);
    EXPECT_EQ(route(cluster, 0, 98'303), route(cluster, 0, 98'303));
}

}  // namespace
}  // namespace fabricast::test
