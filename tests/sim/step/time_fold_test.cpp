// Folding in time on whole forecasts (sim/engine/passage.hpp): the same result, far fewer events.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/step/explain.hpp"
#include "support.hpp"

namespace fabricast {
namespace {

namespace fs = std::filesystem;

void expect_equal(const Result& folded, const Result& whole) {
    EXPECT_EQ(folded.verdict, whole.verdict);
    EXPECT_EQ(folded.failure, whole.failure);
    EXPECT_EQ(folded.step.ps, whole.step.ps);
    EXPECT_EQ(folded.fingerprint, whole.fingerprint);
    EXPECT_TRUE(folded.step.accounts == whole.step.accounts);
    EXPECT_TRUE(folded.step.by_stage == whole.step.by_stage);
    EXPECT_EQ(folded.step.periodic, whole.step.periodic);
    EXPECT_EQ(folded.step.steps_simulated, whole.step.steps_simulated);
    EXPECT_EQ(folded.ranks_simulated, whole.ranks_simulated);
    ASSERT_EQ(folded.waiting.has_value(), whole.waiting.has_value());
    if (whole.waiting) {
        EXPECT_TRUE(folded.waiting->bubble_imbalance == whole.waiting->bubble_imbalance);
        EXPECT_TRUE(folded.waiting->straggler_imbalance == whole.waiting->straggler_imbalance);
    }
    ASSERT_EQ(folded.critical_path.size(), whole.critical_path.size());
    for (std::size_t i = 0; i < whole.critical_path.size(); ++i) {
        EXPECT_EQ(folded.critical_path[i].what, whole.critical_path[i].what);
        EXPECT_EQ(folded.critical_path[i].ps, whole.critical_path[i].ps);
    }
}

/// Events with replays over events without; rehearsals without an heir may cost a little.
double share_of_events(const Scenario& scenario, bool fold) {
    const Result folded = forecast(scenario, {.split_waiting = true, .fold = fold});
    const Result whole = forecast(scenario, {.split_waiting = true, .fold = fold, .fold_time = false});
    expect_equal(folded, whole);
    EXPECT_LE(folded.events, whole.events + whole.events / 50 + 50);
    return static_cast<double>(folded.events) / static_cast<double>(std::max<std::uint64_t>(whole.events, 1));
}

TEST(TimeFold, EqualOnEveryShippedScenario) {
#ifndef NDEBUG
    GTEST_SKIP() << "slow with sanitizers; tests/determinism/run.sh compares the builds";
#endif
    const std::string root = FABRICAST_SOURCE_DIR;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root + "/scenarios")) {
        const std::string file = entry.path().filename().string();
        if (entry.path().extension() != ".yaml" || file.starts_with("base-"))
            continue;
        SCOPED_TRACE(file);
        share_of_events(load_scenario(entry.path().string(), {}), true);
    }
}

/// 405B-like on H100: TP8 PP16, 16 micro-batches a replica (tests/benchmarks/step_bench.cpp).
Scenario large_model(const char* cluster) {
    return parse_scenario(
        fmt::format("name: step\n"
                    "cluster: {{nodes: 128, node: hgx-h100, fabric: {{kind: rail-fat-tree}}, {}}}\n"
                    "model: {{layers: 126, hidden: 16384, heads: 128, kv_heads: 8, ffn: 53248, vocab: 128256}}\n"
                    "training:\n"
                    "  sequence: 8192 tokens\n"
                    "  global_batch: 128 sequences\n"
                    "  layout: {{tp: 8, pp: 16, dp: 8, zero: 1, stage_layers: [7,8,8,8,8,8,8,8,8,8,8,8,8,8,8,7]}}\n"
                    "  schedule: 1f1b\n"
                    "  recompute: full\n  software: megatron-core-2024\n",
                    cluster),
        "test.yaml", {});
}

TEST(TimeFold, PassesOfAPipelineAreReplayed) {
    // 16 classes of ranks: one island a stage, which rehearses for itself
    EXPECT_LE(share_of_events(large_model("gpu_spread: 0"), true), 0.28);
    EXPECT_LE(share_of_events(large_model("gpu_spread: 0.02, degraded: nic 5.2 at 0.5"), true), 0.18);
}

TEST(TimeFold, EveryRankOfCaseA) {
#ifndef NDEBUG
    GTEST_SKIP() << "slow with sanitizers";
#endif
    const std::string path = std::string(FABRICAST_SOURCE_DIR) + "/scenarios/case-a/h800-1024-tp8-pp2-dp64.yaml";
    EXPECT_LE(share_of_events(load_scenario(path, {}), false), 0.15);
}

// Ceilings are re-runs: each is folded like the run.
TEST(TimeFold, CeilingsAreTheSame) {
#ifndef NDEBUG
    GTEST_SKIP() << "whole scenarios many times over: Release only";
#endif
    const Scenario scenario =
        load_scenario(std::string(FABRICAST_SOURCE_DIR) + "/scenarios/acceptance/a1-llama-70b-128.yaml", {});
    const Explanation folded = explain(scenario, {});
    const Explanation whole = explain(scenario, {.fold_time = false});
    ASSERT_EQ(folded.ceilings.size(), whole.ceilings.size());
    for (std::size_t i = 0; i < whole.ceilings.size(); ++i)
        EXPECT_EQ(folded.ceilings[i].rerun_ps, whole.ceilings[i].rerun_ps) << whole.ceilings[i].key;
    EXPECT_LE(folded.events * 4, whole.events);
}

}  // namespace
}  // namespace fabricast
