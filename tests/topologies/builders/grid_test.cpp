// Dimension grids: counts, arithmetic routes against coordinates, refusals.
#include "topologies/builders/grid.hpp"

#include <gtest/gtest.h>

#include "tests/topologies/builders/cluster_probe.hpp"

namespace fabricast::test {
namespace {

using Kind = GridAxis::Kind;

TEST(Grid, OneDimensionIsOneServer) {
    const Cluster ring = build_grid({.axes = {{Kind::ring, 8, 50e9, 0.5e-6}}});
    EXPECT_EQ(ring.node_count(), 1u);
    EXPECT_EQ(ring.nics_per_node(), 0u);
    EXPECT_EQ(ring.links().size(), 16u);
    EXPECT_EQ(ring.path_type(GpuId{0}, GpuId{1}), PathType::nvl);
    EXPECT_EQ(ring.path_type(GpuId{0}, GpuId{4}), PathType::nvb);
    for (std::uint32_t to = 1; to < 8; ++to) {
        EXPECT_EQ(route(ring, 0, to).size(), std::min(to, 8 - to)) << to;
        EXPECT_TRUE(is_symmetric(ring, 0, to));
    }
    const Cluster full = build_grid({.axes = {{Kind::full, 4, 50e9, 0}}});
    EXPECT_EQ(full.links().size(), 12u);
    const Cluster switched = build_grid({.axes = {{Kind::switched, 16, 50e9, 0.5e-6}}});
    EXPECT_TRUE(switched.has_nvswitch());
    EXPECT_EQ(switched.latency(route(switched, 3, 9)), 1'000'000);
    EXPECT_EQ(build_grid({.axes = {{Kind::ring, 2, 50e9, 0}}}).links().size(), 2u);
}

TEST(Grid, OuterDimensionsRouteByCoordinates) {
    // 4 GPUs a server (full), 5 along a ring, 3 along a switched dimension.
    const Cluster cluster = build_grid(
        {.axes = {{Kind::full, 4, 200e9, 0.1e-6}, {Kind::ring, 5, 50e9, 1e-6}, {Kind::switched, 3, 25e9, 2e-6}}});
    EXPECT_EQ(cluster.gpu_count(), 60u);
    EXPECT_EQ(cluster.gpus_per_node(), 4u);
    EXPECT_TRUE(cluster.rails_apart());
    const auto at = [](std::uint32_t x, std::uint32_t y, std::uint32_t z) { return x + 4 * y + 20 * z; };
    EXPECT_EQ(route_names(cluster, at(0, 0, 0), at(2, 2, 1)),
              (Names{"node 0 gpu 0 nvlink to gpu 2", "node 0 gpu 2 pcie up", "node 0 nic 2 up",
                     "dimension 1 gpu 2 to 6", "dimension 1 gpu 6 to 10", "port of gpu 10 to dimension 2 switch 10",
                     "dimension 2 switch 10 to port of gpu 30", "node 7 nic 2 down", "node 7 gpu 2 pcie down"}));
    for (std::uint32_t to = 0; to < 60; ++to) {
        const std::uint32_t x = to % 4, y = to / 4 % 5, z = to / 20;
        const std::size_t hops = std::min(y, 5 - y) + (z > 0 ? 2 : 0);
        EXPECT_EQ(route(cluster, 0, to).size(), (x > 0 ? 1 : 0) + (hops > 0 ? 4 + hops : 0)) << to;
        EXPECT_EQ(cluster.latency(route(cluster, 0, to)), cluster.latency(route(cluster, to, 0))) << to;
    }
    EXPECT_EQ(cluster.path_type(GpuId{0}, GpuId{4}), PathType::net);
}

TEST(Grid, EveryGpuAServer) {
    const Cluster torus =
        build_grid({.axes = {{Kind::ring, 4, 50e9, 0}, {Kind::ring, 4, 50e9, 0}}, .inner_dimensions = 0});
    EXPECT_EQ(torus.node_count(), 16u);
    EXPECT_EQ(route(torus, 0, 10).size(), 4u + 2 + 2);
    EXPECT_EQ(route_names(torus, 5, 4)[2], "dimension 0 gpu 5 to 4");
    EXPECT_EQ(route_names(torus, 4, 7)[2], "dimension 0 gpu 4 to 7");
}

TEST(Grid, LargeGridIsBuiltAndRouted) {
    const Cluster cluster =
        build_grid({.axes = {{Kind::switched, 8, 300e9, 0}, {Kind::ring, 32, 50e9, 0}, {Kind::switched, 64, 50e9, 0}}});
    EXPECT_EQ(cluster.gpu_count(), 16'384u);
    EXPECT_EQ(route(cluster, 0, 16'383).size(), 2u + 4 + 1 + 2);
}

TEST(Grid, Refusals) {
    EXPECT_EQ(refusal([] { build_grid({}); }), "axes 0: a grid needs at least one");
    EXPECT_EQ(refusal([] { build_grid({.axes = {{Kind::ring, 1, 1e9, 0}}}); }), "axis 0 count 1: 2 or more");
    EXPECT_EQ(refusal([] {
                  build_grid({.axes = {{Kind::ring, 4, 0, 0}}});
              }),
              "bytes_per_s 0: must be above 0 for every axis");
    EXPECT_EQ(refusal([] {
                  build_grid({.axes = {{Kind::ring, 4, 1e9, 0}, {Kind::switched, 4, 1e9, 0}}, .inner_dimensions = 2});
              }),
              "axis 1: a switched axis inside a server stands alone; set inner_dimensions to 1 or 0");
    EXPECT_EQ(refusal([] {
                  build_grid({.axes = {{Kind::full, 5000, 1e9, 0}}});
              }),
              "inner_dimensions 1: 5000 GPUs a server, at most 4096");
}

}  // namespace
}  // namespace fabricast::test
