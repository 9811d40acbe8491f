// Constants from measured step times. The quick suite takes a part of the published rows.
#include "validate/fit/fit_steps.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "validate/fit/least_squares.hpp"
#include "validate/ingest/ingest_error.hpp"

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

// A site that declares three of its jobs: the first of a dense model, one that spreads experts, one of another model.
TEST(FitSteps, ThreeDeclaredJobsTeachOthers) {
    const StepFit fit =
        fit_steps(step_cases(rows({"simumax_b200-001", "simumax_b200-006", "simumax_b200-037"}), kRuns), {}, 2);
    ASSERT_EQ(fit.parts.size(), 2u);
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
    EXPECT_LT(sum / static_cast<double>(others.size()), 0.05);
    ASSERT_FALSE(fit.fits.empty());
    EXPECT_EQ(fit.fits[0].gpus, (std::vector<std::int64_t>{8, 8}));
}

TEST(FitSteps, AJobAboveThePeakIsRefusedAndADoubtedOneNamed) {
    std::vector<StepCase> cases = step_cases(rows({"vtrain1n-001"}), kRuns);
    cases[0].step_s /= 4;
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
