// Constants from measured step times. The quick suite takes a part of the published rows.
#include "validate/fit/fit_steps.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "sim/observed/ingest_error.hpp"
#include "validate/fit/least_squares.hpp"

namespace fabricast {
namespace {

const std::string kRuns = std::string(FABRICAST_SOURCE_DIR) + "/tests/validate/ingest/data/published_runs.csv";

std::vector<PublishedRun> rows(const std::vector<std::string>& ids) {
    std::vector<PublishedRun> all = read_published_runs(kRuns), out;
    for (const std::string& id : ids) {
        const auto at = std::find_if(all.begin(), all.end(), [&](const PublishedRun& r) { return r.id == id; });
        if (at != all.end())
            out.push_back(*at);
    }
    EXPECT_EQ(out.size(), ids.size());
    return out;
}

// A site that declares three of its jobs: a small batch, a large one, and a long sequence with other parallelism. The
// defaults stand at 1.8 % on the others already: the fit may not spoil that, and is kept for what it gains on its own jobs.
TEST(FitSteps, ThreeDeclaredJobsTeachOthers) {
    const StepFit fit =
        fit_steps(step_cases(rows({"simumax_b200-001", "simumax_b200-017", "simumax_b200-037"}), kRuns), {}, 2);
    ASSERT_EQ(fit.parts.size(), 1u);
    EXPECT_TRUE(fit.parts[0].kept) << fit.parts[0].reason;
    EXPECT_LT(fit.parts[0].fitted_median, 0.025);  // defaults 3.3 %
    EXPECT_LT(fit.parts[0].cross_median, fit.parts[0].default_median);
    auto calibration = std::make_shared<Calibration>();
    calibration->file = "b200.yaml";
    calibration->gpus = fit.gpus;
    calibration->software = fit.software;
    const std::vector<StepCase> others = step_cases(
        rows({"simumax_b200-003", "simumax_b200-011", "simumax_b200-016", "simumax_b200-027", "simumax_b200-038"}),
        kRuns);
    const std::vector<double> times = forecast_cases(others, calibration, 2);
    double sum = 0;
    for (std::size_t i = 0; i < others.size(); ++i)
        sum += std::abs(times[i] / others[i].step_s - 1);
    EXPECT_LT(sum / static_cast<double>(others.size()), 0.025);
    ASSERT_FALSE(fit.fits.empty());
    EXPECT_EQ(fit.fits[0].gpus, (std::vector<std::int64_t>{8, 8}));
}

TEST(FitSteps, AJobAboveThePeakIsRefusedAndADoubtedOneNamed) {
    std::vector<StepCase> cases = step_cases(rows({"vtrain1n-001"}), kRuns);
    const double measured = cases[0].step_s;  // MFU 17 %
    cases[0].step_s = measured / 5;
    const StepFit doubted = fit_steps(cases, {}, 1);
    ASSERT_EQ(doubted.warnings.size(), 1u);
    EXPECT_NE(doubted.warnings[0].find("the figure is suspicious"), std::string::npos) << doubted.warnings[0];
    cases[0].step_s = measured / 8;
    try {
        fit_steps(cases, {}, 1);
        FAIL() << "accepted";
    } catch (const IngestError& error) {
        EXPECT_NE(std::string(error.what()).find("no GPU can be above its peak"), std::string::npos) << error.what();
    }
}

TEST(FitSteps, WhatIsNoScenarioIsTold) {
    const StepFit fit =
        fit_steps({{"steps.json: a", "a", "cluster: {nodes: 1}\n", "cluster: {nodes: 1}\n", 1.0}}, {}, 1);
    ASSERT_EQ(fit.warnings.size(), 1u);
    EXPECT_NE(fit.warnings[0].find("it is left out"), std::string::npos);
    EXPECT_TRUE(fit.parts.empty());
}

}  // namespace
}  // namespace fabricast
