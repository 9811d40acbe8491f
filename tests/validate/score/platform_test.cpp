#include "validate/score/platform.hpp"

#include <gtest/gtest.h>

namespace fabricast {
namespace {

NcclRun run_of(int ranks, const std::string& device, const std::string& file = "x.txt") {
    NcclRun run;
    run.file = file;
    run.ranks = ranks;
    if (!device.empty()) {
        run.devices.push_back({.rank = 0, .host = "host-01", .index = 0, .bus_id = "", .name = device});
    }
    return run;
}

Platform found(const NcclRun& run, const std::string& hardware, const std::string& network, int nodes) {
    return find_platform(run, {.preset = "", .hardware = hardware, .network = network, .nodes = nodes, .gpus = {}});
}

TEST(Platform, WordsOfAnIndex) {
    const Platform p5 = found(run_of(16, ""), "2x p5.48xlarge", "EFA 32x100G", 2);
    EXPECT_EQ(p5.node.name, "aws-p5");
    EXPECT_EQ(p5.expected, "efa");
    EXPECT_EQ(p5.node.nics, 8u);
    EXPECT_DOUBLE_EQ(p5.node.nic_bits_per_s, 400e9);
    EXPECT_TRUE(p5.rate_told);
    const Platform dgx = found(run_of(16, "NVIDIA A100-SXM4-40GB"), "2x DGX A100", "IB 8x HDR 200G (SR-IOV VF)", 2);
    EXPECT_EQ(dgx.expected, "ib");
    EXPECT_DOUBLE_EQ(dgx.node.nic_bits_per_s, 200e9);
    EXPECT_EQ(found(run_of(16, ""), "2x p4de.24xlarge (8x A100 80GB)", "EFA 4x100G", 2).expected, "efa_gen1");
}

TEST(Platform, SocketsAreToldButNotExpected) {
    const Platform polaris =
        found(run_of(8, "NVIDIA A100-SXM4-40GB"), "Polaris: 4x A100", "sockets over Slingshot (default, no plugin)", 2);
    EXPECT_EQ(polaris.told, "sockets");
    EXPECT_EQ(polaris.expected, "slingshot_ofi");
    EXPECT_EQ(polaris.node.nics, 2u);
}

TEST(Platform, PartOfANode) {
    const Platform part = found(run_of(20, "NVIDIA H100 80GB HBM3"), "10 nodes, 2 of 8 H100 each", "IB 8x400G?", 10);
    EXPECT_EQ(part.node.gpus, 2u);
    EXPECT_EQ(part.node.nics, 2u);
    EXPECT_EQ(part.board_gpus, 8u);
    const Platform one = preset_platform("aws-p3dn", 2, 1);
    EXPECT_EQ(one.node.nics, 1u);
}

TEST(Platform, UntoldRateIsTheBoards) {
    const Platform pair = found(run_of(2, "NVIDIA H100 80GB HBM3"), "H100 SXM", "IB, slower fabric?", 2);
    EXPECT_FALSE(pair.rate_told);
    EXPECT_DOUBLE_EQ(pair.node.nic_bits_per_s, 400e9);
}

TEST(Platform, Refusals) {
    EXPECT_THROW(found(run_of(8, ""), "", "", 1), PlatformError);
    EXPECT_THROW(found(run_of(7, "NVIDIA H100"), "", "", 2), PlatformError);
    EXPECT_THROW(preset_platform("no-such-node", 1, 8), PlatformError);
    EXPECT_THROW(preset_platform("hgx-h100", 1, 9), PlatformError);
}

TEST(Platform, RackWideNvlinkIsOneNode) {
    const Platform rack = found(run_of(72, "NVIDIA Graphics Device"), "GB200 NVL72, one rack", "MNNVL NVLink5", 18);
    EXPECT_EQ(rack.nodes, 1u);
    EXPECT_EQ(rack.node.gpus, 72u);
}

}  // namespace
}  // namespace fabricast
