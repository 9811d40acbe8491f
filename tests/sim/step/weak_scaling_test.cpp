// What a step gains in length where GPUs and batch grow together. Measured steps in seconds: NVIDIA/dgxc-benchmarking (README of
// the model at the tag) and InternLM/InternEvo doc/en/train_performance.md, the rows of published_runs.csv.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support.hpp"

namespace fabricast {
namespace {

using test::Forecast;

struct Ladder {
    const char* name;
    std::int64_t small, large;  ///< GPUs
    double measured_small, measured_large;
    double points;  ///< that forecast and measurement may differ by, of growth in per cent
    std::string model;
    std::string layout;          ///< without dp
    std::int64_t ranks_a_model;  ///< tp pp cp
    std::int64_t sequences;      ///< a GPU
    std::int64_t micro_batch, length;
    const char* precision;
    const char* software;
};

Forecast run(const Ladder& l, std::int64_t gpus) {
    return test::run_text(fmt::format(
        "cluster: {{nodes: {}, node: {{preset: hgx-h100, nic: 400 Gb/s}}}}\nmodel: {}\n"
        "training: {{sequence: {}, global_batch: {} sequences, micro_batch: {}, precision: {}, layout: {{{}, "
        "dp: {}}}, recompute: none, overlap: {{grad_reduce: true, param_gather: true}}, software: {}}}\n"
        "comm: {{env: {{NCCL_NVLS_ENABLE: 0}}}}\n",
        gpus / 8, l.model, l.length, gpus * l.sequences, l.micro_batch, l.precision, l.layout, gpus / l.ranks_a_model,
        l.software));
}

/// No formula of the number of GPUs stands behind this: the slowest GPU of more GPUs is slower, and rings get longer.
TEST(WeakScaling, StepsGrowAsMeasuredOnDgxCloud) {
#ifndef NDEBUG
    GTEST_SKIP() << "millions of events: Release only";
#endif
    const std::string nemotron =
        "{name: nemotron-4-15b, family: llama, gated: false, rms_norm: false, layers: 32, hidden: 6144, heads: 48, "
        "kv_heads: 8, ffn: 24576, vocab: 256000}";
    const std::string llama = "llama3.1-8b";
    const std::string tp4 = "tp: 4, sp: true, zero: 1", tp2 = "tp: 2, sp: true, zero: 1", cp2 = "cp: 2, zero: 1";
    const std::vector<Ladder> ladders = {
        {"Nemotron-4 15B bf16, 25.02", 64, 2048, 2.845, 2.887, 2, nemotron, tp4, 4, 4, 4, 4096, "bf16", "nemo-2024"},
        {"Nemotron-4 15B fp8, 25.02", 64, 2048, 2.048, 2.120, 2.5, nemotron, tp4, 4, 4, 4, 4096, "fp8", "nemo-2024"},
        {"Nemotron-4 15B bf16, 25.04", 64, 1024, 2.67, 2.74, 2, nemotron, tp2, 2, 4, 2, 4096, "bf16", "nemo-2025"},
        {"Nemotron-4 15B fp8, 25.04", 64, 1024, 1.98, 2.03, 2, nemotron, tp2, 2, 4, 2, 4096, "fp8", "nemo-2025"},
        {"Llama-3 8B bf16, 25.02", 8, 128, 12.78, 13.16, 2, llama, cp2, 2, 16, 1, 8192, "bf16", "nemo-2024"},
        {"Llama-3 8B fp8, 25.04", 8, 128, 9.33, 9.54, 2, llama, cp2, 2, 16, 1, 8192, "fp8", "nemo-2025"},
    };
    for (const Ladder& l : ladders) {
        const double measured = 100 * (l.measured_large / l.measured_small - 1);
        const double growth = 100 * (run(l, l.large).seconds() / run(l, l.small).seconds() - 1);
        fmt::print("{}: {} to {} GPUs {:+.1f} % (measured {:+.1f} %)\n", l.name, l.small, l.large, growth, measured);
        EXPECT_NEAR(growth, measured, l.points) << l.name;
        EXPECT_GT(growth, 0.5) << l.name;
    }
}

/// 7B on A100 nodes with four 100 Gb/s adapters: ZeRO-1 over all ranks deals whole tensors to owners that broadcast them one
/// after the other, and a broadcast passes every rank; over the eight of a node it does not.
TEST(WeakScaling, OwnersBroadcastOverASlowFabric) {
    const auto step = [](std::int64_t gpus, std::int64_t group) {
        return test::run_file("scenarios/acceptance/internevo-7b-1024.yaml",
                              {fmt::format("cluster.nodes={}", gpus / 8), fmt::format("training.layout.dp={}", gpus),
                               fmt::format("training.global_batch={} sequences", gpus * 8),
                               fmt::format("training.layout.shard_group={}", group)})
            .seconds();
    };
    for (const auto& [gpus, measured] :
         std::vector<std::pair<std::int64_t, double>>{{8, 4.0335}, {64, 4.4401}, {256, 5.1056}, {1024, 7.2144}}) {
        const double seconds = step(gpus, 0);
        fmt::print("InternEvo, ZeRO-1 over {} GPUs: {:.2f} s (measured {:.2f})\n", gpus, seconds, measured);
        EXPECT_NEAR(seconds / measured, 1, 0.10) << gpus;
    }
    const double global = step(1024, 0), node = step(1024, 8);
    fmt::print("InternEvo, 1024 GPUs: {:.0f} and {:.0f} tokens/s/GPU (measured 2271 and 3625), {:.3f} (0.626)\n",
               16384 / global, 16384 / node, node / global);
    EXPECT_NEAR(node / 4.5197, 1, 0.10);
    EXPECT_NEAR(node / global, 2271.0 / 3625.0, 0.10);
}

}  // namespace
}  // namespace fabricast
