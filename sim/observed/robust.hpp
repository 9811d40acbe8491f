// Statistics that a few wild values do not move: medians, noise from differences, slopes from pairs.
//
//   mad          median |x - median|; 1.4826 mad is the standard deviation of normal values
//   noise        sigma^2 (1 - rho^k) = var(x[t+k] - x[t]) / 2 with var from the mad of the differences: levels and slopes drop
//                out. Of the lags k that whose differences spread least counts, so that what repeats itself drops out too.
//   rho          of neighbours, for noise that is first-order autoregressive: var(lag 2) / var(lag 1) = 1 + rho
//   theil_sen    median of the slopes of all pairs (of at most 512 points, evenly taken): breaks down at 29 % wild values
//
// Sources: Hampel 1974 (mad); Sen 1968 (slope).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace fabricast::robust {

double quantile(std::vector<double> values, double q);  ///< linear between neighbours; values not empty
double median(std::vector<double> values);
double mad(const std::vector<double>& values);  ///< times 1.4826

struct Noise {
    double sigma = 0;  ///< standard deviation of one value
    double rho = 0;    ///< correlation of neighbours, 0 .. 0.9
    std::size_t lag = 1;
    /// Independent values that n correlated ones are worth, as a share: (1 - rho) / (1 + rho).
    double worth() const { return (1 - rho) / (1 + rho); }
};
/// At least 8 values.
Noise noise(std::span<const double> values);

/// Median of the window of `width` values around each; shorter at the ends.
std::vector<double> running_median(std::span<const double> values, std::size_t width);

/// x goes up.
double theil_sen(std::span<const double> x, std::span<const double> y);

}  // namespace fabricast::robust
