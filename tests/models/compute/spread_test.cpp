#include "models/compute/spread.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <boost/math/distributions/normal.hpp>

namespace fabricast {
namespace {

TEST(Spread, QuantileOfTheNormalDistribution) {
    const boost::math::normal standard;
    for (const double p : {1e-12, 1e-6, 0.001, 0.02, 0.024, 0.1, 0.3, 0.5, 0.7, 0.976, 0.999, 1 - 1e-9})
        EXPECT_NEAR(normal_quantile(p), quantile(standard, p), 3e-9 * std::max(1.0, std::abs(quantile(standard, p))));
}

TEST(Spread, NoneWhereAllAreAlike) {
    for (std::uint32_t gpu = 0; gpu < 1000; ++gpu)
        EXPECT_EQ(gpu_slowness(0, 1, gpu), 65536u);
}

TEST(Spread, OneInThirteenIsSlowerThanTheSlowestOfEight) {
    int slower = 0;
    for (std::uint32_t gpu = 0; gpu < 100'000; ++gpu)
        slower += gpu_slowness(kGpuSpread, 1, gpu) > 65536;
    EXPECT_NEAR(slower / 100'000.0, 0.0773, 0.003);
}

// Tabulated expectations of the largest of n standard normal draws.
TEST(Spread, MeanMaximum) {
    EXPECT_EQ(mean_maximum(1), 0);
    EXPECT_NEAR(mean_maximum(2), 0.5642, 2e-3);
    EXPECT_NEAR(mean_maximum(8), 1.4236, 2e-3);
    EXPECT_NEAR(mean_maximum(100), 2.5076, 3e-3);
    EXPECT_NEAR(mean_maximum(1000), 3.2414, 5e-3);
}

TEST(Spread, KernelNoiseIsStandardAndSharedByEightOnly) {
    double sum = 0, square = 0, product = 0;
    constexpr int kDraws = 100'000;
    for (std::uint64_t i = 0; i < kDraws; ++i) {
        const double z = kernel_noise(1, 3, i);
        sum += z;
        square += z * z;
        product += z * kernel_noise(1, 4, i);
    }
    EXPECT_NEAR(sum / kDraws, 0, 0.015);
    EXPECT_NEAR(square / kDraws, 1, 0.02);
    EXPECT_NEAR(product / kDraws, 0, 0.015);
}

// Mean maximum of n draws: 2.508 (100), 3.241 (1000).
TEST(Spread, TheSlowestGrowsAsTheMaximumDoes) {
    const auto slowest = [](std::uint32_t n) {
        double sum = 0;
        for (std::uint64_t seed = 1; seed <= 200; ++seed) {
            std::uint32_t most = 0;
            for (std::uint32_t gpu = 0; gpu < n; ++gpu)
                most = std::max(most, gpu_slowness(kGpuSpread, seed, gpu));
            sum += most / 65536.0 - 1;
        }
        return sum / 200;
    };
    EXPECT_NEAR(slowest(100), kGpuSpread * (2.508 - 1.4236), 0.0012);
    EXPECT_NEAR(slowest(1000), kGpuSpread * (3.241 - 1.4236), 0.0012);
}

}  // namespace
}  // namespace fabricast
