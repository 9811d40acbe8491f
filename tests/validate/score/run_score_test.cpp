// Published step times against the forecast: a subset of quick rows of every source, with bounds by source. The whole
// table takes minutes: fabricast-validate score runs tests/validate/ingest/data/published_runs.csv
#include "validate/score/run_score.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <gtest/gtest.h>

#include "sim/report/interval.hpp"
#include "validate/score/run_fit.hpp"

namespace fabricast {
namespace {

constexpr const char* kRows =
    "llmfoundry-003 llmfoundry-028 llmfoundry-048 llmfoundry-068 llmfoundry-086 llmfoundry-104 llmfoundry-122 "
    "llmfoundry-140 llmfoundry-160 llmfoundry-182 korthikanti-001 korthikanti-002 torchtitan-001 torchtitan-008 "
    "torchtitan-012 torchtitan-022 torchtitan-026 torchtitan-030 torchtitan-035 vtrain-002 vtrain-008 vtrain-017 "
    "vtrain-035 vtrain1n-001 vtrain1n-011 vtrain1n-020 vtrain1n-030 vtrain1n-039 vtrain1n-048 simumax_b200-001 "
    "simumax_b200-006 simumax_b200-011 simumax_b200-016 simumax_b200-029 simumax_b200-038 dgxc-001 dgxc-008 dgxc-016 "
    "dgxc-063 dgxc-103 dgxc-138 dgxc-153 dgxc-162 dgxc-181 dgxc-193 ibm_fsdp-001 ibm_fsdp-003 ibm_fsdp-005 "
    "ibm_fsdp-007 internevo-001 internevo-014 internevo-033 internevo-039 kempner_h200-001 kempner_h200-003 "
    "kempner_h200-008 kempner_h200-010 zerobubble-001 zerobubble-010 zerobubble-019 zerobubble-028 zerobubble-037";

const std::vector<PublishedRun>& subset() {
    static const std::vector<PublishedRun> runs = [] {
        auto all = read_published_runs(FABRICAST_SOURCE_DIR "/tests/validate/ingest/data/published_runs.csv");
        std::istringstream words(kRows);
        std::vector<std::string> ids;
        for (std::string id; words >> id;)
            ids.push_back(id);
        std::erase_if(all, [&](const PublishedRun& r) { return std::find(ids.begin(), ids.end(), r.id) == ids.end(); });
        return all;
    }();
    return runs;
}

const RunScore& score() {
    static const RunScore result = score_runs(subset(), 1);
    return result;
}

TEST(RunScore, EverySourceIsWithinItsBound) {
    EXPECT_EQ(score().scored.size(), 62u);
    EXPECT_TRUE(score().skipped.empty());
    const std::pair<const char*, double> bounds[] = {
        {"llmfoundry", 0.07}, {"korthikanti", 0.04},  {"torchtitan", 0.11}, {"vtrain", 0.07},
        {"vtrain1n", 0.12},   {"simumax_b200", 0.15}, {"dgxc", 0.08},       {"ibm_fsdp", 0.15},
        {"internevo", 0.10},  {"kempner_h200", 0.18}, {"zerobubble", 0.08}};
    for (const auto& [source, bound] : bounds) {
        ASSERT_TRUE(score().by_source.contains(source)) << source;
        EXPECT_LT(score().by_source.at(source).mape, bound) << source;
    }
    EXPECT_LT(score().total.mape, 0.085);
    EXPECT_LT(std::abs(score().total.bias), 0.04);
}

// Step times of nanotron's layout sweep: every kind of layout on one or two H100 servers, among them rows bound by the host
// (tp 4 and 8, micro-batch 1).
TEST(RunScore, LayoutSweepOnOneAndTwoServers) {
    const std::string numbers[] = {"0179", "0187", "0178", "0191", "0201", "0208", "0180",
                                   "0213", "0233", "0240", "0256", "0210", "0232", "0211",
                                   "0229", "0296", "0311", "0300", "0408", "0412", "0423"};
    std::vector<PublishedRun> runs;
    for (const PublishedRun& r :
         read_published_runs(FABRICAST_SOURCE_DIR "/tests/validate/ingest/data/nanotron_sweep.csv"))
        for (const std::string& n : numbers)
            if (r.id == "nanotronsweep-" + n)
                runs.push_back(r);
    const RunScore sweep = score_runs(runs, 1);
    EXPECT_EQ(sweep.scored.size(), 21u);
    EXPECT_LT(sweep.total.mape, 0.06);
    EXPECT_LT(sweep.total.p90, 0.12);
}

TEST(RunScore, ThreadsDoNotChangeTheResult) {
    const std::vector<PublishedRun> few(subset().begin(), subset().begin() + 6);
    const RunScore one = score_runs(few, 1), three = score_runs(few, 3);
    ASSERT_EQ(one.scored.size(), three.scored.size());
    for (std::size_t i = 0; i < one.scored.size(); ++i)
        EXPECT_EQ(one.scored[i].predicted_s, three.scored[i].predicted_s);
}

TEST(RunScore, StatisticsAndReports) {
    const ErrorStats s = error_stats({0.1, -0.1, 0.2, -0.4});
    EXPECT_EQ(s.n, 4u);
    EXPECT_NEAR(s.mape, 0.2, 1e-12);
    EXPECT_NEAR(s.bias, -0.05, 1e-12);
    EXPECT_NEAR(s.median, 0.15, 1e-12);
    EXPECT_NEAR(s.p90, 0.34, 1e-12);
    const auto json = run_score_json(score());
    for (const char* key : {"rows", "scored", "skipped", "mape", "median_ape", "p90_ape", "bias", "by_source", "by_gpu",
                            "kendall", "regret"})
        EXPECT_TRUE(json.contains(key)) << key;
    const std::string full = run_score_text(score(), true);
    EXPECT_NE(full.find("rules for what a row leaves blank"), std::string::npos);
    EXPECT_NE(full.find("kempner_h200-008"), std::string::npos);
    EXPECT_NE(residuals_yaml(score()).find("{model: dense, gpu: A100, runs: "), std::string::npos);
}

TEST(RunFit, FactorsMoveWhatTheyName) {
    Scenario s;
    s.gpu.generation = GpuGeneration::hopper;
    s.gpu.name = "H100-SXM-80G";
    s.gpu.gemm.sustained = 0.8;
    s.gpu.memory.fused = 0.7;
    s.gpu.memory.compiled = 0.6;
    apply_factors({{"gemm Hopper", 1.1}, {"gemm A100", 0.5}, {"memory fused", 1.2}}, s);
    EXPECT_NEAR(s.gpu.gemm.sustained, 0.88, 1e-12);
    EXPECT_NEAR(s.gpu.memory.fused, 0.84, 1e-12);
    EXPECT_NEAR(s.gpu.memory.compiled, 0.6, 1e-12);
    apply_factors({{"gemm Hopper", 3}}, s);
    EXPECT_EQ(s.gpu.gemm.sustained, 1);  // never above the burst rate
}

TEST(RunFit, ARefitDoesNotMakeItsOwnRowsWorse) {
    std::vector<PublishedRun> few;
    for (const PublishedRun& run : subset())
        if (run.source_key == "zerobubble" || run.source_key == "internevo")
            few.push_back(run);
    const RunFitter fitter(few, 1);
    const RunFit fit = fitter.fit("");
    EXPECT_LE(fit.linear.mape, fitter.base().total.mape + 1e-9);
    EXPECT_EQ(fit.factors.at("gemm Hopper"), 1);  // no row sees it
    const double left_out = fitter.fit("internevo").factors.at("memory unfused");
    EXPECT_EQ(left_out, 1);  // only internevo is eager here
}

TEST(StepInterval, ComesFromRunsLikeIt) {
    Scenario s;
    s.gpu.name = "A800-SXM-80G";
    const StepInterval dense = step_interval(s, 10);
    EXPECT_EQ(dense.like, "dense runs on A100");
    EXPECT_GT(dense.runs, 100);
    EXPECT_LT(dense.low_s, 10);
    EXPECT_GT(dense.high_s, 10);
    EXPECT_LT(dense.high_s - dense.low_s, 5);
    s.model.moe.experts = 8;
    EXPECT_EQ(step_interval(s, 10).like, "moe runs");
    EXPECT_GT(step_interval(s, 10).high_s - step_interval(s, 10).low_s, dense.high_s - dense.low_s);
    EXPECT_EQ(gpu_family("GB200"), "B200");
    EXPECT_EQ(gpu_family("V100-SXM2-32G"), "other");
}

}  // namespace
}  // namespace fabricast
