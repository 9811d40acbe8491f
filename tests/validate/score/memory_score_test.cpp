#include "validate/score/memory_score.hpp"

#include <functional>

#include <gtest/gtest.h>

#include "validate/score/run_score_rules.hpp"

namespace fabricast {
namespace {

std::vector<PublishedRun> every(std::size_t stride, const std::function<bool(const PublishedRun&)>& wanted) {
    const std::vector<PublishedRun> all =
        read_memory_runs(FABRICAST_SOURCE_DIR "/tests/validate/ingest/data/nanotron_sweep.csv");
    std::vector<PublishedRun> out;
    std::size_t n = 0;
    for (const PublishedRun& run : all) {
        if (wanted(run) && n++ % stride == 0)
            out.push_back(run);
    }
    return out;
}

TEST(MemoryScore, ReadsVerdictsAndPeaks) {
    const auto rows = every(1, [](const PublishedRun&) { return true; });
    ASSERT_EQ(rows.size(), 1490u);
    std::size_t ok = 0;
    for (const PublishedRun& run : rows) {
        ok += run.status == "ok";
        EXPECT_EQ(run.status == "ok", run.step_s > 0) << run.id;
        EXPECT_EQ(run.status == "ok", run.reserved_gib.has_value()) << run.id;
    }
    EXPECT_EQ(ok, 711u);
    const auto noted = read_memory_runs(FABRICAST_SOURCE_DIR "/tests/validate/ingest/data/published_runs.csv");
    EXPECT_EQ(noted.size(), 834u);
    std::vector<double> peaks;
    for (const PublishedRun& run : noted) {
        EXPECT_EQ(run.status, "ok") << run.id;
        if (run.allocated_gib)
            peaks.push_back(*run.allocated_gib);
    }
    ASSERT_EQ(peaks.size(), 43u);
    EXPECT_DOUBLE_EQ(peaks.front(), 66.55);
}

TEST(MemoryScore, StagesAreCutByCost) {
    PublishedRun run;
    run.layers = 28;
    run.hidden = 3072;
    run.ffn = 8192;
    run.vocab = 131072;
    run.pp = 2;
    EXPECT_EQ(nanotron_stages(run), (std::vector<std::int64_t>{16, 12}));
    run.pp = 8;
    EXPECT_EQ(nanotron_stages(run), (std::vector<std::int64_t>{4, 4, 4, 4, 4, 4, 4, 0}));
    run.pp = 1;
    EXPECT_EQ(nanotron_stages(run), (std::vector<std::int64_t>{28}));
}

TEST(MemoryScore, VerdictsOfASampleOfTheSweep) {
    const auto rows = every(23, [](const PublishedRun& r) { return r.pp <= 4; });
    const MemoryScore score = score_memory(rows, 2);
    EXPECT_EQ(score.scored.size(), rows.size());
    EXPECT_EQ(score.verdicts, rows.size());
    EXPECT_GE(static_cast<double>(score.right), 0.95 * static_cast<double>(rows.size()));
    EXPECT_LT(score.reserved.median, 0.07);
    EXPECT_LT(score.reserved.p90, 0.36);
    EXPECT_LT(score.allocated.median, 0.02);
    EXPECT_EQ(score.right + score.false_alarms + score.missed, score.verdicts);
    const auto json = memory_score_json(score);
    EXPECT_EQ(json["verdicts_right"], score.right);
    EXPECT_EQ(json["wrong"].size(), score.verdicts - score.right);
    EXPECT_NE(memory_score_text(score, true).find("verdicts right"), std::string::npos);
}

// All rows of the table ran: SimuMax's records of one B200 node have allocated peaks (dense and expert models, tp, pp, cp,
// ep); whatever of the others is called out of memory is a false alarm.
TEST(MemoryScore, RunsThatRanFit) {
    const auto rows = read_memory_runs(FABRICAST_SOURCE_DIR "/tests/validate/ingest/data/published_runs.csv");
    const MemoryScore score = score_memory(rows, 2);
    EXPECT_GE(score.verdicts, 830u);
    EXPECT_EQ(score.ran, score.verdicts);
    EXPECT_EQ(score.missed, 0u);
    EXPECT_LE(static_cast<double>(score.false_alarms), 0.01 * static_cast<double>(score.ran));
    EXPECT_EQ(score.allocated.n, 43u);
    EXPECT_LT(score.allocated.median, 0.01);
    EXPECT_LT(score.allocated.p90, 0.02);
}

}  // namespace
}  // namespace fabricast
