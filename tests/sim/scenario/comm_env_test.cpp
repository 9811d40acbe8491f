#include "sim/scenario/comm_env.hpp"

#include "tests/sim/scenario/helpers.hpp"

namespace fabricast::test {
namespace {

struct Outcome {
    CommSettings settings;
    std::vector<std::string> notes;
    bool ok = true;
};

Outcome run(std::vector<std::pair<std::string, std::string>> env, const std::string& library = "nccl 2.28") {
    Outcome out;
    out.settings.library = library;
    std::vector<EnvEntry> entries;
    for (auto& [name, value] : env)
        entries.push_back({name, value, {"t.yaml", 1, 1}});
    Diagnostics diagnostics;
    apply_comm_env(entries, {.sms = 132, .nvlink = true, .nvls = true, .network = true}, out.settings, out.notes,
                   diagnostics);
    out.ok = diagnostics.ok();
    return out;
}

TEST(CommEnv, Selections) {
    EXPECT_EQ(run({{"NCCL_ALGO", "Ring"}}).settings.algorithms, std::vector<Algorithm>{Algorithm::ring});
    EXPECT_EQ(run({{"NCCL_ALGO", "ring,tree"}}).settings.algorithms,
              (std::vector<Algorithm>{Algorithm::tree, Algorithm::ring}));
    EXPECT_EQ(run({{"NCCL_ALGO", "^NVLS,NVLSTree"}}).settings.algorithms.size(), 5u);
    EXPECT_EQ(run({{"NCCL_PROTO", "^LL128"}}).settings.protocols,
              (std::vector<Protocol>{Protocol::ll, Protocol::simple}));
    EXPECT_FALSE(run({{"NCCL_ALGO", "allreduce:tre"}}).ok);
    EXPECT_FALSE(run({{"NCCL_ALGO", "Bogus"}}).ok);
    EXPECT_FALSE(run({{"NCCL_NVLS_ENABLE", "0"}}).settings.nvls_enabled);
    EXPECT_TRUE(run({{"NCCL_NVLS_ENABLE", "2"}}).settings.nvls_enabled);
}

// The syntax of NCCL 2.24 and later.
TEST(CommEnv, SelectionsByFunction) {
    using Algorithms = std::vector<Algorithm>;
    using Protocols = std::vector<Protocol>;
    const CommSettings pair = run({{"NCCL_ALGO", "allreduce:tree;allgather:ring"}}).settings;
    EXPECT_EQ(pair.algorithms_for(Collective::all_reduce), Algorithms{Algorithm::tree});
    EXPECT_EQ(pair.algorithms_for(Collective::all_gather), Algorithms{Algorithm::ring});
    EXPECT_TRUE(pair.algorithms_for(Collective::broadcast).empty());  // everything

    const CommSettings first = run({{"NCCL_ALGO", "Ring,Tree;AllReduce:Tree,NVLS"}}).settings;
    EXPECT_EQ(first.algorithms_for(Collective::all_reduce), (Algorithms{Algorithm::tree, Algorithm::nvls}));
    EXPECT_EQ(first.algorithms_for(Collective::broadcast), (Algorithms{Algorithm::tree, Algorithm::ring}));

    // `^` takes from what the function has: the list for all, if one came first.
    const CommSettings less = run({{"NCCL_PROTO", "LL,Simple;allreduce:^LL;broadcast:^Simple"}}).settings;
    EXPECT_EQ(less.protocols_for(Collective::all_reduce), Protocols{Protocol::simple});
    EXPECT_EQ(less.protocols_for(Collective::broadcast), Protocols{Protocol::ll});
    EXPECT_EQ(less.protocols_for(Collective::all_gather), (Protocols{Protocol::ll, Protocol::simple}));
    EXPECT_EQ(run({{"NCCL_PROTO", "reducescatter:^LL128"}}).settings.protocols_for(Collective::reduce_scatter),
              (Protocols{Protocol::ll, Protocol::simple}));

    EXPECT_FALSE(run({{"NCCL_ALGO", "alreduce:tree"}}).ok);
    EXPECT_FALSE(run({{"NCCL_ALGO", "alltoall:ring"}}).ok);  // not tuned
    EXPECT_FALSE(run({{"NCCL_ALGO", "allreduce:tree;ring"}}).ok);
    EXPECT_FALSE(run({{"NCCL_PROTO", "LL;allreduce:^LL"}}).ok);
    EXPECT_FALSE(run({{"NCCL_PROTO", "allreduce:LL64"}}).ok);
    EXPECT_FALSE(run({{"NCCL_ALGO", "allreduce:"}}).ok);
}

TEST(CommEnv, Channels) {
    const Outcome many = run({{"NCCL_MIN_NCHANNELS", "128"}});
    EXPECT_EQ(many.settings.min_channels, 64);
    EXPECT_TRUE(any_contains(many.notes, "clamped to 64"));
    EXPECT_TRUE(any_contains(many.notes, "132 SMs"));
    EXPECT_TRUE(any_contains(many.notes, "deprecated since 2.17"));
    EXPECT_EQ(run({{"NCCL_MIN_NCHANNELS", "128"}}, "nccl 2.20").settings.min_channels, 32);
    EXPECT_EQ(run({{"NCCL_MAX_CTAS", "16"}, {"NCCL_MAX_NCHANNELS", "8"}}).settings.max_channels, 16);
    const Outcome crossed = run({{"NCCL_MAX_CTAS", "4"}, {"NCCL_MIN_CTAS", "8"}});
    EXPECT_EQ(crossed.settings.min_channels, 4);
    EXPECT_TRUE(any_contains(crossed.notes, "which wins"));
}

TEST(CommEnv, TheReportedSettings) {
    const Outcome out = run({{"NCCL_ALGO", "Ring"},
                             {"NCCL_NET_GDR_LEVEL", "2"},
                             {"NCCL_P2P_LEVEL", "NVL"},
                             {"NCCL_NSOCKS_PERTHREAD", "4"},
                             {"NCCL_SOCKET_NTHREADS", "2"},
                             {"NCCL_IB_SL", "5"},
                             {"NCCL_IB_TIMEOUT", "22"},
                             {"NCCL_IB_RETRY_CNT", "12"}});
    EXPECT_TRUE(out.ok);
    EXPECT_TRUE(any_contains(out.notes, "NCCL_NET_GDR_LEVEL=2: no effect: PXB is the default"));
    EXPECT_TRUE(any_contains(out.notes, "NCCL_P2P_LEVEL=NVL: no effect"));
    EXPECT_TRUE(any_contains(out.notes, "NCCL_NSOCKS_PERTHREAD=4: no effect: only the TCP transport"));
    EXPECT_TRUE(any_contains(out.notes, "NCCL_SOCKET_NTHREADS=2: no effect: only the TCP transport"));
    EXPECT_TRUE(any_contains(out.notes, "NCCL_IB_SL=5"));
    EXPECT_TRUE(any_contains(out.notes, "4.096 us x 2^22 = 17.2 s an attempt, 120 to 137 s"));
    EXPECT_TRUE(any_contains(out.notes,
                             "NCCL_IB_RETRY_CNT=12: out of range 0 to 7 (a 3-bit field): refused, or cut to 4, fewer"));
}

TEST(CommEnv, Strangers) {
    EXPECT_TRUE(any_contains(run({{"NCCL_IB_TIMEOUTS", "22"}}).notes, "did you mean `NCCL_IB_TIMEOUT`?"));
    EXPECT_TRUE(any_contains(run({{"IB_TIMEOUT", "22"}}).notes, "did you mean `NCCL_IB_TIMEOUT`?"));
    EXPECT_TRUE(any_contains(run({{"HCCL_EXEC_TIMEOUT", "1800"}}).notes, "Ascend"));
    EXPECT_TRUE(any_contains(run({{"TORCH_NCCL_BLOCKING_WAIT", "1"}}).notes, "watchdog"));
    EXPECT_TRUE(any_contains(run({{"OMP_NUM_THREADS", "8"}}).notes, "not a variable of the communication library"));
    EXPECT_TRUE(any_contains(run({{"NCCL_IB_SL", "16"}}).notes, "out of range 0 to 15"));
    EXPECT_TRUE(any_contains(run({{"NCCL_IB_QPS_PER_CONNECTION", "1"}}).notes, "this is the default"));
    EXPECT_TRUE(any_contains(run({{"NCCL_SOCKET_NTHREADS", "16"}, {"NCCL_NSOCKS_PERTHREAD", "16"}}).notes,
                             "above the limit of 64"));
}

TEST(CommEnv, Versions) {
    EXPECT_EQ(nccl_version("nccl 2.28"), 228);
    EXPECT_EQ(nccl_version("NCCL 2.28.9"), 228);
    EXPECT_EQ(nccl_version("nccl"), 0);
    EXPECT_EQ(nccl_version("rccl 2.20"), 0);
}

}  // namespace
}  // namespace fabricast::test
