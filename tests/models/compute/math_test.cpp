#include "models/compute/math.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace fabricast {
namespace {

double relative(double ours, double reference) { return std::fabs(ours - reference) / std::fabs(reference); }

TEST(Math, LogAgreesWithLibm) {
    double worst = 0;
    for (double x = 1e-300; x < 1e300; x *= 1.0137)
        if (std::fabs(std::log(x)) > 1e-3)
            worst = std::max(worst, relative(math::log(x), std::log(x)));
    for (double x = 0.5; x < 2; x += 1e-4)
        EXPECT_NEAR(math::log(x), std::log(x), 2e-16 * (1 + std::fabs(std::log(x))));
    EXPECT_LT(worst, 1e-15);
    EXPECT_EQ(math::log(1), 0);
    EXPECT_LT(relative(math::log(5e-324), std::log(5e-324)), 1e-15);  // subnormal
    EXPECT_LT(relative(math::log(1 + 1e-9), std::log(1 + 1e-9)), 1e-14);
}

TEST(Math, ExpAgreesWithLibm) {
    double worst = 0;
    for (double x = -708; x < 709.7; x += 0.0137)
        worst = std::max(worst, relative(math::exp(x), std::exp(x)));
    EXPECT_LT(worst, 1e-15);
    EXPECT_EQ(math::exp(0), 1);
    EXPECT_EQ(math::exp(-800), 0);
    EXPECT_EQ(math::exp(800), std::numeric_limits<double>::infinity());
    EXPECT_NEAR(math::exp(-740) / std::exp(-740.0), 1, 0.2);  // subnormal: few bits left
}

TEST(Math, PowAgreesWithLibm) {
    double worst = 0;
    for (double x = 1e-6; x < 1e6; x *= 1.11)
        for (double y = -5; y <= 5; y += 0.37)
            if (std::fabs(y * std::log(x)) < 23)
                worst = std::max(worst, relative(math::pow(x, y), std::pow(x, y)));
    EXPECT_LT(worst, 1e-14);
    EXPECT_EQ(math::pow(7, 0), 1);
    EXPECT_EQ(math::pow(1, 5), 1);
}

TEST(Math, MonotoneOnFineGrid) {
    for (double x = -3; x < 3; x += 1e-5)
        ASSERT_LE(math::exp(x), math::exp(x + 1e-5));
    for (double x = 0.3; x < 3; x += 1e-5)
        ASSERT_LE(math::log(x), math::log(x + 1e-5));
}

}  // namespace
}  // namespace fabricast
