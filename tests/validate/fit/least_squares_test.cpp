#include "validate/fit/least_squares.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace fabricast {
namespace {

/// t = latency + bytes / rate, measured without error but where told.
std::vector<double> errors(const std::vector<double>& x, const std::vector<double>& spoiled) {
    std::vector<double> out;
    for (std::size_t i = 0; i < spoiled.size(); ++i) {
        const double bytes = std::pow(4, static_cast<double>(i)), measured = (5 + bytes / 200) * spoiled[i];
        out.push_back(std::log((x[0] + bytes / x[1]) / measured));
    }
    return out;
}

const std::vector<FitParameter> kParameters = {{"latency", 8, 0, 100, 5, 4}, {"rate", 120, 1, 1e4, 5, 0}};

TEST(LeastSquares, FindsWhatMadeTheTimes) {
    const std::vector<double> clean(12, 1);
    const RobustFit fit =
        robust_least_squares(kParameters, [&](const std::vector<double>& x) { return errors(x, clean); });
    EXPECT_NEAR(fit.values[0], 5, .05);
    EXPECT_NEAR(fit.values[1], 200, 2);
    EXPECT_LT(fit.median_error(), 1e-3);
}

TEST(LeastSquares, OutliersHaveNoWeight) {
    std::vector<double> spoiled(12, 1);
    spoiled[3] = 3;
    spoiled[9] = .3;
    const RobustFit fit =
        robust_least_squares(kParameters, [&](const std::vector<double>& x) { return errors(x, spoiled); });
    EXPECT_NEAR(fit.values[0], 5, .3);
    EXPECT_NEAR(fit.values[1], 200, 10);
    for (std::size_t i = 0; i < spoiled.size(); ++i)
        EXPECT_EQ(fit.weights[i] == 0, spoiled[i] != 1) << i;
}

TEST(LeastSquares, FewPointsMoveAConstantNoFurtherThanItsPrior) {
    const std::vector<FitParameter> tight = {{"factor", 1, .1, 10, .05, 0}};
    const RobustFit one = robust_least_squares(
        tight, [](const std::vector<double>& x) { return std::vector<double>{std::log(x[0] / 2)}; });
    EXPECT_LT(one.values[0], 1.3);
    const RobustFit many = robust_least_squares(
        tight, [](const std::vector<double>& x) { return std::vector<double>(2000, std::log(x[0] / 1.2)); });
    EXPECT_NEAR(many.values[0], 1.2, .02);
}

TEST(LeastSquares, KeepsToItsBounds) {
    const std::vector<FitParameter> bound = {{"efficiency", .9, .1, 1, 5, 0}};
    const RobustFit fit = robust_least_squares(
        bound, [](const std::vector<double>& x) { return std::vector<double>(20, std::log(x[0] / 1.4)); });
    EXPECT_DOUBLE_EQ(fit.values[0], 1);
}

}  // namespace
}  // namespace fabricast
