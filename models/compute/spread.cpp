#include "models/compute/spread.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "models/compute/math.hpp"
#include "models/program/mix.hpp"

namespace fabricast {
namespace {

constexpr double kMeanMaximumOf8 = 1.4236;
constexpr std::uint64_t kPurpose = 0x5370726561640001ull;  // keep these streams apart from other draws of the seed
constexpr std::uint64_t kNoisePurpose = 0x4a69747465720001ull;

double unit_interval(std::uint64_t word) { return (static_cast<double>(word >> 11) + 0.5) * 0x1p-53; }

// The quantile of the maximum of n is that of one draw at v^(1/n); mean over midpoints of equal steps in v of what is above.
double mean_maximum_above(double floor, std::int64_t n) {
    constexpr int kSteps = 4096;
    double sum = 0;
    for (int i = 0; i < kSteps; ++i) {
        const double p = math::exp(math::log((i + 0.5) / kSteps) / static_cast<double>(n));
        sum += std::max(0.0, normal_quantile(p) - floor);
    }
    return sum / kSteps;
}

}  // namespace

// Rational approximation in three pieces (P. J. Acklam's coefficients).
double normal_quantile(double p) {
    constexpr double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                            1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
    constexpr double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                            6.680131188771972e+01, -1.328068155288572e+01};
    constexpr double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                            -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
    constexpr double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00, 3.754408661907416e+00};
    constexpr double low = 0.02425;
    if (p < low || p > 1 - low) {
        const double q = std::sqrt(-2 * math::log(p < low ? p : 1 - p));
        const double x = (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
                         ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
        return p < low ? x : -x;
    }
    const double q = p - 0.5, r = q * q;
    return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
           (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
}

double mean_maximum(std::int64_t n) {
    constexpr double kFar = 9;  // nothing is below
    if (n <= 1)
        return 0;
    static thread_local std::map<std::int64_t, double> known;
    const auto [at, fresh] = known.try_emplace(n, 0);
    if (fresh)
        at->second = mean_maximum_above(-kFar, n) - kFar;
    return at->second;
}

std::uint32_t expected_slowest(double sigma, std::int64_t gpus) {
    struct Answer {
        double sigma = -1;
        std::int64_t gpus = 0;
        std::uint32_t slowness = 0;
    };
    static thread_local Answer last;  // a plan asks for one cluster thousands of times
    if (last.sigma != sigma || last.gpus != gpus) {
        const double beyond = sigma > 0 ? sigma * mean_maximum_above(kMeanMaximumOf8, gpus) : 0;
        last = {sigma, gpus, static_cast<std::uint32_t>(65536 + std::llround(65536 * beyond))};
    }
    return last.slowness;
}

double kernel_noise(std::uint64_t seed, std::uint32_t eight, std::uint64_t count) {
    return normal_quantile(unit_interval(mix(mix(mix(seed + kNoisePurpose) + eight) + count)));
}

std::uint32_t gpu_slowness(double sigma, std::uint64_t seed, std::uint32_t gpu) {
    const std::uint64_t word = mix(mix(mix(seed + kPurpose) + gpu) + kPurpose);
    const double beyond = std::max(0.0, normal_quantile(unit_interval(word)) - kMeanMaximumOf8);
    return static_cast<std::uint32_t>(65536 + std::llround(65536 * sigma * beyond));
}

}  // namespace fabricast
