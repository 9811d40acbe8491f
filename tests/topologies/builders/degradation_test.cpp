// Worse than built: names, figures, nearest matches.
#include "topologies/builders/degradation.hpp"

#include <gtest/gtest.h>

#include "tests/topologies/builders/cluster_probe.hpp"
#include "topologies/builders/rail_fat_tree.hpp"

namespace fabricast::test {
namespace {

Cluster regular() {
    return build_rail_fat_tree(
        NodeShape{.gpus = 8, .nics = 4, .nvlink_bytes_per_s = 360e9, .pcie_bytes_per_s = 50e9, .nic_bytes_per_s = 46e9},
        {.nodes = 4, .nodes_per_pod = 2});
}

Cluster mesh() {
    return build_fat_tree(full_mesh_server(4, 4, 1, 0, {.nvlink_bytes_per_s = 20e9, .pcie_bytes_per_s = 24e9}),
                          {.nodes = 1});
}

std::string refused(Cluster cluster, const Degradation& degradation) {
    return refusal([&] { apply(cluster, {degradation}); });
}

TEST(Degradation, HalfRateNicBothWays) {
    Cluster cluster = regular();
    apply(cluster, {{.what = "nic 3.2", .factor = 0.5}});
    EXPECT_DOUBLE_EQ(link_rate(cluster, "node 3 nic 2 up"), 23e9);
    EXPECT_DOUBLE_EQ(link_rate(cluster, "node 3 nic 2 down"), 23e9);
    EXPECT_DOUBLE_EQ(link_rate(cluster, "node 3 nic 1 up"), 46e9);
}

TEST(Degradation, LostNvlinkLanesAndPcieDowngrade) {
    Cluster cluster = regular();
    apply(cluster, {{.what = "gpu 1.0 nvlink", .lanes_lost = 2, .lanes = 18},
                    {.what = "gpu 2.7 pcie", .bytes_per_s = 12e9},
                    {.what = "pod 1 rail 3 trunk down", .factor = 0.25}});
    EXPECT_DOUBLE_EQ(link_rate(cluster, "node 1 gpu 0 nvlink up"), 320e9);
    EXPECT_DOUBLE_EQ(link_rate(cluster, "node 1 gpu 0 nvlink down"), 320e9);
    EXPECT_DOUBLE_EQ(link_rate(cluster, "node 2 gpu 7 pcie up"), 12e9);
    EXPECT_DOUBLE_EQ(link_rate(cluster, "pod 1 rail 3 trunk down"), 23e9);
    EXPECT_DOUBLE_EQ(link_rate(cluster, "pod 1 rail 3 trunk up"), 92e9);
}

TEST(Degradation, DirectLinksByGpuAndByPair) {
    Cluster cluster = mesh();
    apply(cluster, {{.what = "gpu 0.1 nvlink gpu 3", .lanes_lost = 1}});
    EXPECT_DOUBLE_EQ(link_rate(cluster, "node 0 gpu 1 nvlink to gpu 3"), 60e9);
    EXPECT_DOUBLE_EQ(link_rate(cluster, "node 0 gpu 3 nvlink to gpu 1"), 60e9);
    EXPECT_DOUBLE_EQ(link_rate(cluster, "node 0 gpu 1 nvlink to gpu 2"), 80e9);
    EXPECT_EQ(links_named(cluster, "gpu 0.2 nvlink").size(), 6u);
}

TEST(Degradation, UnknownNamesAreToldWithTheNearest) {
    EXPECT_EQ(refused(regular(), {.what = "nic 4.0", .factor = 0.5}),
              "'nic 4.0': the cluster has nodes 0 to 3 with 4 NICs each");
    EXPECT_EQ(refused(regular(), {.what = "gpu 0.9 pcie", .factor = 0.5}),
              "'gpu 0.9 pcie': the cluster has nodes 0 to 3 with 8 GPUs each");
    EXPECT_EQ(refused(regular(), {.what = "pod 1 rial 3 trunk up", .factor = 0.5}),
              "'pod 1 rial 3 trunk up': no link of this cluster; expected nic NODE.NIC, gpu NODE.GPU nvlink, gpu "
              "NODE.GPU pcie or a link name; did you mean 'pod 1 rail 3 trunk up'?");
    EXPECT_EQ(refused(regular(), {.what = "warp core", .factor = 0.5}),
              "'warp core': no link of this cluster; expected nic NODE.NIC, gpu NODE.GPU nvlink, gpu NODE.GPU pcie or "
              "a link name");
    EXPECT_EQ(refused(regular(), {.what = "gpu 0.1 nvlink gpu 3", .factor = 0.5}),
              "'gpu 0.1 nvlink gpu 3': no direct NVLink joins these GPUs");
    EXPECT_EQ(refused(mesh(), {.what = "nic 0.0", .factor = 0.5}),
              "'nic 0.0': the cluster has nodes 0 to 0 with 0 NICs each");
}

TEST(Degradation, FiguresMustLower) {
    EXPECT_EQ(refused(regular(), {.what = "nic 0.0", .bytes_per_s = 60e9}),
              "'nic 0.0': 60000000000 bytes/s is not below the 46000000000 that node 0 nic 0 up has");
    EXPECT_EQ(refused(mesh(), {.what = "gpu 0.1 nvlink gpu 3", .lanes_lost = 4}),
              "'gpu 0.1 nvlink gpu 3': 4 lanes lost of 4; a link that is gone is left out of the build");
    EXPECT_NE(refused(regular(), {.what = "nic 0.0"}), "accepted");
    EXPECT_NE(refused(regular(), {.what = "nic 0.0", .factor = 2}), "accepted");
    EXPECT_NE(refused(regular(), {.what = "nic 0.0", .factor = 0.5, .bytes_per_s = 1e9}), "accepted");
}

}  // namespace
}  // namespace fabricast::test
