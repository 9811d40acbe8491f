// Pipeline bubbles of equal stages with communication that costs next to nothing, against closed forms: the idle share
// of the pipeline is (p - 1) / (m v + p - 1) with v chunks a stage; v = 1 for GPipe and 1F1B.
#include <gtest/gtest.h>

#include "support.hpp"

namespace fabricast {
namespace {

using test::Forecast;

std::string scenario_of(int p, int v, int m, const std::string& schedule, bool overlap) {
    // Stages are deep and the vocabulary small, so head and embedding weigh nothing; CUDA graphs keep the CPU out.
    return fmt::format(
        "cluster:\n"
        "  nodes: 1\n"
        "  node: {{preset: hgx-h100, gpus: {}, nics: {}, nvlink: 100000 GB/s, nvlink_latency: 0 us, gpu_memory: 4000 "
        "GiB}}\n"
        "model: {{layers: 192, hidden: 4096, heads: 32, ffn: 14336, vocab: 128}}\n"
        "training:\n"
        "  sequence: 4096 tokens\n"
        "  global_batch: {} sequences\n"
        "  layout: {{pp: {}, vpp: {}}}\n"
        "  schedule: {}\n"
        "  software: {{preset: megatron-core-2024, cuda_graphs: true, p2p_overlap: {}}}\n",
        p, p, m, p, v, schedule, overlap);
}

void expect_bubble(int p, int v, int m, const std::string& schedule, bool overlap) {
    SCOPED_TRACE(fmt::format("{} p {} v {} m {} overlap {}", schedule, p, v, m, overlap));
    const Forecast run = test::run_text(scenario_of(p, v, m, schedule, overlap));
    ASSERT_EQ(run.result.failure, "");
    test::expect_exact_accounts(run);
    const double pipeline = 1 - run.account(Account::optimizer);
    const double bubble = run.account(Account::bubble) + run.account(Account::straggler);
    const double expected = (p - 1.0) / (m * v + p - 1.0);
    EXPECT_NEAR(bubble / pipeline, expected, 0.01 * expected);
}

TEST(Bubble, OneFOneB) {
    for (const int p : {2, 4, 8}) {
        for (const int m : {1, 4, 16})
            expect_bubble(p, 1, m, "1f1b", false);
    }
}

TEST(Bubble, Gpipe) {
    for (const int p : {2, 4, 8}) {
        for (const int m : {1, 4, 16})
            expect_bubble(p, 1, m, "gpipe", false);
    }
}

TEST(Bubble, InterleavingDividesIt) {
    for (const bool overlap : {false, true}) {
        expect_bubble(2, 2, 8, "interleaved", overlap);
        expect_bubble(4, 2, 8, "interleaved", overlap);
        expect_bubble(4, 3, 16, "interleaved", overlap);
        expect_bubble(8, 3, 8, "interleaved", overlap);
        expect_bubble(4, 6, 12, "interleaved", overlap);
    }
}

}  // namespace
}  // namespace fabricast
