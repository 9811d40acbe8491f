// Links of one site from its five-collective logs (8, 20 and 80 H100).
#include "validate/fit/fit_curves.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "sim/observed/ingest_error.hpp"
#include "validate/fit/fit_site.hpp"
#include "validate/fit/least_squares.hpp"
#include "validate/fit/measured_curves.hpp"
#include "validate/fit/score_site.hpp"

namespace fabricast {
namespace {

const std::string kLogs = std::string(FABRICAST_SOURCE_DIR) + "/tests/validate/ingest/data/nccl_tests/";
const std::vector<std::string> kSite = {kLogs + "8xh100-sxm_five-collectives_double.txt",
                                        kLogs + "20xh100-sxm_10nodes-2gpu_ib_five-collectives_double.txt",
                                        kLogs + "80xh100-sxm_10nodes-8gpu_ib_five-collectives_double.txt"};

/// Every second size, for speed.
void halve(MeasurementFile& logs) {
    for (MeasuredCurve& curve : logs.curves) {
        std::vector<MeasuredCurve::Point> half;
        for (std::size_t i = 0; i < curve.points.size(); i += 2)
            half.push_back(curve.points[i]);
        curve.points = std::move(half);
    }
}

// The catalogue's constants explain this site as well as its own curves do: a collective left out is predicted within 7 %,
// but not better than by the defaults, so nothing is taken over.
TEST(FitCurves, ASiteThatTheDefaultsExplainKeepsThem) {
#ifndef NDEBUG
    GTEST_SKIP() << "a fit or many draws: Release only; the same code runs in the tests beside it";
#endif
    MeasurementFile logs = measurement_of_logs(kSite, {});
    EXPECT_EQ(logs.curves.size(), 15u);
    halve(logs);
    const CurveFit fit = fit_curves(cases_of(logs, {}));
    ASSERT_EQ(fit.parts.size(), 2u);
    std::vector<double> cross;
    for (const PartFit& part : fit.parts) {
        EXPECT_TRUE(part.crossed);
        EXPECT_LE(part.fitted_median, part.default_median) << part.what;
        EXPECT_LT(part.cross_median, 0.07) << part.what;
        for (const FittedPoint& p : part.points)
            cross.push_back(p.cross_error);
        RecordProperty(part.what + " left out", std::to_string(part.cross_median));
        RecordProperty(part.what + " defaults", std::to_string(part.default_median));
    }
    EXPECT_EQ(cross.size(), 65u);  // 75 without the pairs over ten nodes, whose flows collide
    EXPECT_LT(median_error(cross), 0.07);
    EXPECT_EQ(fit.parts[1].what, "networks ib");
    EXPECT_LT(fit.parts[1].fitted_median, 0.05);  // defaults 5.5 %
    EXPECT_FALSE(fit.parts[1].kept);
    EXPECT_NE(fit.parts[1].reason.find("explains less than the defaults"), std::string::npos) << fit.parts[1].reason;
    EXPECT_TRUE(fit.networks.empty());
    EXPECT_TRUE(fit.gpus.empty());
}

// One collective: judged by its own points, there is nothing to leave out.
TEST(FitCurves, ALinkOffTheDefaultsIsFitted) {
    MeasurementFile logs = measurement_of_logs({kLogs + "16xa100-sxm_dgxa100-ib_allreduce_sophia.txt"}, {});
    halve(logs);
    const CurveFit fit = fit_curves(cases_of(logs, {}));
    ASSERT_EQ(fit.parts.size(), 1u);
    EXPECT_TRUE(fit.parts[0].kept) << fit.parts[0].reason;
    EXPECT_FALSE(fit.parts[0].crossed);
    EXPECT_LT(fit.parts[0].fitted_median, 0.8 * fit.parts[0].default_median);
    ASSERT_EQ(fit.networks.size(), 1u);
    EXPECT_EQ(fit.networks[0].first, "ib");
    EXPECT_EQ(fit.networks[0].second[0].first, "efficiency");
    EXPECT_NEAR(fit.networks[0].second[0].second, 0.91, 0.03);
}

TEST(FitCurves, TheFileReadsBackAndScoresAsFitted) {
    const std::vector<std::string> one = {kLogs + "8xh100-sxm_allreduce_dgxc.txt"};
    SiteOptions options;
    options.jobs = 1;
    options.name = "site";
    const SiteFit fit = fit_site(one, options);
    ASSERT_EQ(fit.calibration.gpus.size(), 1u);
    EXPECT_EQ(fit.calibration.gpus[0].second[0].first, "nvlink_achieved");
    const Calibration read = parse_calibration(calibration_yaml(fit.calibration), "site.yaml");
    const SiteScore score = score_site(one, read, {});
    ASSERT_EQ(score.parts.size(), 1u);
    ASSERT_EQ(fit.parts.size(), 1u);
    EXPECT_LT(fit.parts[0].fitted_median, fit.parts[0].default_median);
    // corrections of the collective come on top of the link's constants
    EXPECT_LT(score.parts[0].part.fitted_median, fit.parts[0].fitted_median + 1e-3) << score.parts[0].part.what;
}

std::string refusal(const std::vector<std::string>& files, const PlatformHint& hint = {}) {
    try {
        cases_of(measurement_of_logs(files, hint), hint);
    } catch (const IngestError& error) {
        return error.what();
    }
    return {};
}

TEST(FitCurves, RefusesFailedLogsAndMixedMachines) {
    EXPECT_NE(refusal({kLogs + "16xh100-sxm_pairwise-failed_remote-process-exited.txt"}).find("no usable run"),
              std::string::npos);
    EXPECT_NE(refusal({kSite[0], kLogs + "16xa100-sxm_dgxa100-ib_allgather_sophia.txt"}).find("mixed machines"),
              std::string::npos);
}

TEST(FitCurves, ATimeThatNoLinkAllowsIsRefused) {
    MeasurementFile logs = measurement_of_logs({kSite[0]}, {});
    for (MeasuredCurve::Point& point : logs.curves[1].points)
        point.out_of_place_us /= 4;
    try {
        cases_of(logs, {});
        FAIL() << "accepted";
    } catch (const IngestError& error) {
        EXPECT_NE(std::string(error.what()).find("no link can be above its peak"), std::string::npos) << error.what();
    }
}

TEST(PartFit, ThatExplainsLessIsRefused) {
    PartFit part;
    part.what = "networks ib";
    for (int i = 0; i < 9; ++i)
        part.points.push_back({"p", i % 2 == 0 ? "a" : "b", 0.02, 0.01, 0.06, false});
    part.crossed = true;
    settle(part);
    EXPECT_FALSE(part.kept);
    EXPECT_NE(part.reason.find("explains less than the defaults"), std::string::npos);
    part.kept = true;
    for (FittedPoint& p : part.points)
        p.cross_error = 0.015;
    settle(part);
    EXPECT_TRUE(part.kept);
}

}  // namespace
}  // namespace fabricast
