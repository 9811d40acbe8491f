#include "validate/ingest/nccl_info.hpp"

#include <gtest/gtest.h>

#include "tests/validate/ingest/support.hpp"

namespace fabricast {
namespace {

NcclFacts facts_of(const std::vector<std::string>& messages) {
    NcclFacts facts;
    for (const std::string& message : messages) {
        gather_facts("host-01:11:12 [0] NCCL INFO " + message, facts);
    }
    return facts;
}

TEST(NcclInfo, FindsWhereAMessageBegins) {
    EXPECT_EQ(nccl_message_start("host-01:11:12 [0] NCCL INFO x"), 0u);
    EXPECT_EQ(nccl_message_start("8 2 float sum -1host-01:11:12 [0] NCCL INFO x"), 16u);
    EXPECT_EQ(nccl_message_start("85.7 0.0 host-01:11:12 [0] NCCL INFO x"), 9u);
    EXPECT_EQ(nccl_message_start("host-01:11:12 [0] misc/ibvwrap.cc:252 NCCL WARN Call failed"), 0u);
    EXPECT_EQ(nccl_message_start("2025-06-11 10:00:00 host:1:2 [0] NCCL INFO x"), 20u);
    EXPECT_FALSE(nccl_message_start("# NCCL version 2.18.3").has_value());
}

TEST(NcclInfo, SocketsFallback) {
    const NcclFacts facts = facts_of({"NET/Plugin : No plugin found (libnccl-net.so), using internal implementation",
                                      "NET/IB : No device found.", "NET/Socket : Using [0]eth0:10.0.0.1<0>",
                                      "Using network Socket", "Channel 00/0 : 1[1] -> 8[0] [send] via NET/Socket/0"});
    EXPECT_EQ(facts.network_transport, "socket");
    EXPECT_TRUE(facts.plugin_not_found);
    EXPECT_EQ(facts.gpu_direct, false);
    EXPECT_EQ(facts.lines, 5);
}

TEST(NcclInfo, GpuDirectOnlyWhenEveryConnectionHasIt) {
    const std::string with_it = "Channel 00/0 : 9[1] -> 0[0] [receive] via NET/IB/4/GDRDMA";
    EXPECT_EQ(facts_of({with_it, with_it}).gpu_direct, true);
    EXPECT_EQ(facts_of({with_it, "Channel 00/0 : 9[1] -> 0[0] [receive] via NET/IB/4"}).gpu_direct, false);
    EXPECT_FALSE(facts_of({"Channel 00 : 0[0] -> 1[1] via P2P/CUMEM"}).gpu_direct.has_value());
}

TEST(NcclInfo, ChannelsRingsAndTrees) {
    const NcclFacts facts = facts_of(
        {"Channel 00/24 :    0   7   6   5", "Channel 01/24 :    0   7   6   5",
         "Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1", "Ring 00 : 0 1 2",
         "16 coll channels, 16 collnet channels, 8 nvls channels, 24 p2p channels, 2 p2p channels per peer",
         "NVLS multicast support is not available on dev 0", "Channel 03/0 : 0[0] -> 1[1] via SHM/direct/direct"});
    EXPECT_EQ(facts.ring_lines, 3);
    EXPECT_EQ(facts.tree_lines, 1);
    EXPECT_EQ(facts.coll_channels, 16);
    EXPECT_EQ(facts.nvls_channels, 8);
    EXPECT_EQ(facts.p2p_channels, 24);
    EXPECT_EQ(facts.nvls, false);
    EXPECT_EQ(facts.shm_connections, 1);
}

TEST(NcclInfo, EnvironmentVersionsAndWarnings) {
    NcclFacts facts =
        facts_of({"NCCL_ALGO set by environment to Ring.", "NCCL_IB_HCA set by environment to mlx5_0,mlx5_1"});
    gather_facts("NCCL version 2.23.4+cuda12.6", facts);
    gather_facts("h:1:2 [0] p2p.cc:1 NCCL WARN Cuda failure", facts);
    gather_facts("h:1:3 [1] p2p.cc:1 NCCL WARN Cuda failure", facts);
    EXPECT_EQ(facts.environment.at("NCCL_ALGO"), "Ring");
    EXPECT_EQ(facts.environment.at("NCCL_IB_HCA"), "mlx5_0,mlx5_1");
    EXPECT_EQ(facts.nccl_version, "2.23.4");
    EXPECT_EQ(facts.cuda_version, "12.6");
    EXPECT_EQ(facts.warnings, std::vector<std::string>{"Cuda failure"});
}

TEST(NcclInfo, FactsGoToTheirRun) {
    const std::string socket = "h:1:2 [0] NCCL INFO Using network Socket\n",
                      ib = "h:1:2 [0] NCCL INFO Using network IB\n";
    std::string first = MadeUpLog{}.text(), second = MadeUpLog{}.text();
    first = with(first, "#       size", socket + "#       size");
    second = with(second, "#       size", ib + "#       size");
    const std::vector<NcclRun> runs = parse_nccl_log(first + second, "log.txt");
    ASSERT_EQ(runs.size(), 2u);
    EXPECT_EQ(runs[0].facts.network_transport, "socket");
    EXPECT_EQ(runs[1].facts.network_transport, "ib");
}

}  // namespace
}  // namespace fabricast
