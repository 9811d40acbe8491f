// exp, log and pow from + - * /, comparisons and bit patterns only.
//
// The C library's versions differ between processors (FMA or not) and releases; these give the same bits
// everywhere, as long as the compiler neither contracts nor reorders (-ffp-contract=off, no fast-math).
//
//   log x = e ln2 + 2 (s + s^3/3 + s^5/5 ...), s = (m-1)/(m+1), x = m 2^e, m in [1/sqrt2, sqrt2)
//   exp x = 2^k (1 + r + r^2/2! ...), k = round(x / ln2), r = x - k ln2 with ln2 in two parts
//   pow(x, y) = exp(y log x)
//
// Relative error: log and exp below 1e-15 (log: absolute below 1e-16 close to 1); pow below
// 4e-16 (1 + |y log x|), so below 1e-14 while the result lies within 1e-10 .. 1e10.
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>

namespace fabricast::math {

inline constexpr double kLn2High = 6.93147180369123816490e-01;  ///< upper 32 bits, so that k * kLn2High is exact
inline constexpr double kLn2Low = 1.90821492927058770002e-10;
inline constexpr double kSqrt2 = 1.41421356237309504880;

/// Natural logarithm of a finite x > 0.
inline double log(double x) {
    assert(x > 0 && "log of a number that is not positive");
    constexpr std::uint64_t kMantissa = (std::uint64_t{1} << 52) - 1;
    std::int64_t exponent = 0;
    if (x < 0x1p-1022) {  // subnormal
        x *= 0x1p54;
        exponent = -54;
    }
    const auto bits = std::bit_cast<std::uint64_t>(x);
    exponent += static_cast<std::int64_t>(bits >> 52) - 1023;
    double m = std::bit_cast<double>((bits & kMantissa) | (std::uint64_t{1023} << 52));
    if (m >= kSqrt2) {
        m *= 0.5;
        ++exponent;
    }
    const double f = m - 1;  // exact
    const double s = f / (2 + f);
    const double z = s * s;
    double series = 0;  // z/3 + z^2/5 + ... ; |z| < 0.0295
    for (int n = 25; n >= 3; n -= 2)
        series = z * (1.0 / n + series);
    // 2s(1 + series) = f - s (f - 2 series): f is exact, so the rounding of s enters only the small part.
    const double e = static_cast<double>(exponent);
    return e * kLn2High + (f - (s * (f - 2 * series) - e * kLn2Low));
}

/// e^x. Underflows to 0 below -745.2, overflows to infinity above 709.79.
inline double exp(double x) {
    constexpr double kInverseLn2 = 1.44269504088896338700;
    if (x > 709.79)
        return std::bit_cast<double>(std::uint64_t{0x7FF} << 52);
    if (x < -745.2)
        return 0;
    const double scaled = x * kInverseLn2;
    const auto k = static_cast<std::int64_t>(scaled + (scaled < 0 ? -0.5 : 0.5));
    const double kd = static_cast<double>(k);
    const double r = (x - kd * kLn2High) - kd * kLn2Low;  // |r| <= 0.35
    double tail = 0;                                      // r^2/2! + r^3/3! + ...
    for (int n = 15; n >= 2; --n)
        tail = r / n * (1 + tail);
    const double value = 1 + r * (1 + tail);
    const auto power_of_two = [](std::int64_t e) {
        return std::bit_cast<double>(static_cast<std::uint64_t>(e + 1023) << 52);
    };
    const std::int64_t half = k / 2;  // two factors, so that subnormal and near-maximal results come out right
    return value * power_of_two(half) * power_of_two(k - half);
}

/// x^y for finite x > 0.
inline double pow(double x, double y) { return exp(y * log(x)); }

}  // namespace fabricast::math
