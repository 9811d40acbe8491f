// Search presets: the lines of public logs and what the rules give elsewhere.
#include "models/collectives/search_presets.hpp"

#include <gtest/gtest.h>

namespace fabricast {
namespace {

SearchInput node(GpuGeneration generation, double nvlink, double pcie, double nic, std::uint32_t nodes,
                 std::uint32_t gpus = 8) {
    return {.generation = generation,
            .nvls = generation >= GpuGeneration::hopper,
            .nodes = nodes,
            .gpus = gpus,
            .nics = gpus,
            .nvlink_gb_per_s = nvlink,
            .pcie_gb_per_s = pcie,
            .nic_gb_per_s = nic};
}
SearchInput h100(std::uint32_t nodes, std::uint32_t gpus = 8) {
    return node(GpuGeneration::hopper, 370.8, 48, 50, nodes, gpus);
}
SearchInput a100(std::uint32_t nodes, std::uint32_t gpus = 8) {
    return node(GpuGeneration::ampere, 240, 24, 25, nodes, gpus);
}

void expect_ring(const SearchInput& in, int channels, double speed) {
    const SearchResult result = search_channels(in);
    EXPECT_EQ(result.ring.channels, channels);
    EXPECT_DOUBLE_EQ(result.ring.intra_gb_per_s, speed);
    EXPECT_DOUBLE_EQ(result.ring.inter_gb_per_s, speed);
}

TEST(Search, Rings) {
    expect_ring(a100(1), 12, 20);
    expect_ring(a100(16), 8, 24);
    expect_ring(h100(1), 12, 30);
    expect_ring(h100(2), 8, 48);
    expect_ring(h100(2, 4), 8, 24);                                         // 4 x 48, doubled
    expect_ring(h100(128, 1), 2, 24);                                       // 1 x 48, doubled
    expect_ring(node(GpuGeneration::hopper, 164.8, 48, 50, 1), 8, 20);      // H800: 4 x 40, doubled
    expect_ring(node(GpuGeneration::hopper, 164.8, 48, 50, 4), 8, 22);      // H800 over the network
    expect_ring(node(GpuGeneration::ampere, 160, 24, 25, 4), 8, 20);        // A800
    expect_ring(node(GpuGeneration::blackwell, 721.8, 48, 50, 4), 8, 48);   // B200, 400 Gb/s
    expect_ring(node(GpuGeneration::blackwell, 721.8, 48, 50, 1), 16, 45);  // 8 x 90, doubled
    expect_ring(node(GpuGeneration::ampere, 0, 24, 25, 1), 2, 12);          // PCIe only
}

TEST(Search, Nvls) {
    const SearchResult one = search_channels(h100(1));
    EXPECT_EQ(one.nvls, (SearchGraph{8, 40, 60}));
    EXPECT_EQ(search_channels(h100(4)).nvls, (SearchGraph{8, 40, 48}));
    EXPECT_EQ(search_channels(a100(1)).nvls.channels, 0);
    EXPECT_EQ(search_channels(h100(4, 1)).nvls.channels, 0);
    EXPECT_FALSE(one.plain_tree);
    EXPECT_TRUE(search_channels(h100(4)).plain_tree);
    EXPECT_FALSE(search_channels(a100(4)).plain_tree);
}

TEST(Search, NoChannelSetExceedsNvlinkOrNics) {
    for (const double nvlink : {160.0, 164.8, 240.0, 370.8, 721.8}) {
        for (const double nic : {2.4, 12.5, 25.0, 50.0, 100.0}) {
            for (std::uint32_t gpus = 1; gpus <= 8; ++gpus) {
                for (const auto generation : {GpuGeneration::ampere, GpuGeneration::hopper, GpuGeneration::blackwell}) {
                    const SearchResult r = search_channels(node(generation, nvlink, 96, nic, 4, gpus));
                    const int g = static_cast<int>(gpus);
                    EXPECT_LE(r.ring.channels * r.ring.inter_gb_per_s, g * nic + 1e-6);
                    EXPECT_GT(r.ring.channels, 0);
                    if (gpus > 1) {
                        EXPECT_LE((r.ring.channels - r.ring.channels / g) * r.ring.intra_gb_per_s, nvlink + 1e-6);
                        const SearchResult inside = search_channels(node(generation, nvlink, 96, nic, 1, gpus));
                        EXPECT_LE(inside.ring.channels * inside.ring.intra_gb_per_s, nvlink + 1e-6);
                    }
                }
            }
        }
    }
}

TEST(Search, NodesAgreeOnTheSlowest) {
    const SearchResult a = search_channels(h100(2, 4)), b = search_channels(h100(2, 8));
    const SearchResult both = combine(a, b);
    EXPECT_EQ(both.ring.channels, 8);
    EXPECT_DOUBLE_EQ(both.ring.inter_gb_per_s, 24);
    EXPECT_EQ(both, combine(b, a));
}

}  // namespace
}  // namespace fabricast
