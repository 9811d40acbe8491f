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
        "  gpu_spread: 0\n"
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

// Stages of 4, 4, 3 and 5 sixteenths of the layers with blocking sends: all stages once, then the slowest m - 1 times.
// That is exact where the slowest stage is the last; a slow stage in front overlaps its warm-up with the others.
TEST(Bubble, UnevenStages) {
    for (const bool slow_end : {true, false}) {
        for (const int m : {4, 7, 16}) {
            SCOPED_TRACE(fmt::format("{} m {}", slow_end, m));
            const Forecast run = test::run_text(
                scenario_of(4, 1, m, "1f1b", false),
                {fmt::format("training.layout.stage_layers=[{}]", slow_end ? "48, 48, 36, 60" : "36, 60, 48, 48")});
            ASSERT_EQ(run.result.failure, "");
            double sum = 0, slowest = 0;
            for (const auto& accounts : run.step().by_stage) {
                double busy = 0;
                for (const Account a :
                     {Account::gemm_ideal, Account::gemm_loss, Account::attention, Account::memory_bound})
                    busy += static_cast<double>(accounts[static_cast<std::size_t>(a)]) / m;
                sum += busy;
                slowest = std::max(slowest, busy);
            }
            const auto step = static_cast<double>(run.step().ps);
            // the pipeline starts when the first stage has its parameters
            const double pipeline =
                step - static_cast<double>(run.step().by_stage[0][static_cast<std::size_t>(Account::optimizer)]);
            if (slow_end) {
                EXPECT_NEAR(pipeline / (sum + (m - 1) * slowest), 1, 0.002);
            } else {
                EXPECT_LE(pipeline, 1.002 * (sum + (m - 1) * slowest));
                EXPECT_GE(pipeline, m * slowest);
            }
        }
    }
}

// Of the 1F1B bubble (p - 1)(F + B + W): ZB-H1 leaves F + B - W, ZB-H2 F + B - 2 W, the V less than that, DualPipe
// (p/2 - 1)(F + 2 B - W) in all, when messages cost nothing. F, B and W from the kernels of a layer.
TEST(Bubble, WeightGradientsFillIt) {
    const Forecast any = test::run_text(scenario_of(2, 1, 2, "1f1b", false));
    const Scenario& s = *any.scenario;
    const ComputeModel compute = build_compute(s);
    Shard shard;
    shard.sequence = s.training.sequence;
    double f = 0, b = 0, w = 0;
    const auto seconds_of = [&](const std::vector<Kernel>& kernels) {
        double sum = 0;
        for (const Kernel& kernel : kernels)
            sum += compute.time(kernel).total_s;
        return sum;
    };
    for (const Piece piece : {Piece::norm_attention, Piece::attention, Piece::residual_attention, Piece::norm_mlp,
                              Piece::mlp, Piece::residual_mlp}) {
        const bool linear = piece == Piece::attention || piece == Piece::mlp;
        f += seconds_of(forward_kernels(s.model, shard, s.software, piece));
        b += seconds_of(backward_data_kernels(s.model, shard, s.software, piece));
        (linear ? w : b) += seconds_of(backward_weight_kernels(s.model, shard, s.software, piece));
    }
    for (const int p : {4, 8}) {
        for (const int m : {2 * p, 4 * p}) {
            SCOPED_TRACE(fmt::format("p {} m {}", p, m));
            const auto bubble = [&](int v, const std::string& schedule) {
                const Forecast run = test::run_text(scenario_of(p, v, m, schedule, false));
                EXPECT_EQ(run.result.failure, "");
                test::expect_exact_accounts(run);
                return (run.account(Account::bubble) + run.account(Account::straggler)) * run.seconds() /
                       (192.0 / p * (p - 1) * (f + b + w));
            };
            const double whole = f + b + w;
            EXPECT_NEAR(bubble(1, "1f1b"), 1, 0.02);
            EXPECT_NEAR(bubble(1, "zb-h1"), (f + b - w) / whole, 0.03);
            EXPECT_NEAR(bubble(1, "zb-h2"), (f + b - 2 * w) / whole, 0.03);
            EXPECT_LE(bubble(2, "zb-v"), (f + b - 2 * w) / whole);
            EXPECT_NEAR(bubble(1, "dual-pipe"), (p / 2 - 1) * (f + 2 * b - w) / ((p - 1) * whole), 0.04);
            fmt::print(
                "p {} m {}: of the 1F1B bubble zb-h1 {:.3f} ({:.3f}) zb-h2 {:.3f} ({:.3f}) zb-v {:.3f} dual-pipe "
                "{:.3f} ({:.3f})\n",
                p, m, bubble(1, "zb-h1"), (f + b - w) / whole, bubble(1, "zb-h2"), (f + b - 2 * w) / whole,
                bubble(2, "zb-v"), bubble(1, "dual-pipe"), (p / 2 - 1) * (f + 2 * b - w) / ((p - 1) * whole));
        }
    }
}

}  // namespace
}  // namespace fabricast
