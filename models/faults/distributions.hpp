// Distributions of times, drawn by inverse CDF from one uniform number (no unit of their own; callers use seconds).
//
//   exponential   F(x) = 1 - exp(-x / mean)                       cv 1
//   weibull       F(x) = 1 - exp(-(x / scale)^shape)              mean = scale Gamma(1 + 1/shape); shape < 1: infant mortality
//   log_normal    x = median exp(sigma z)                         mean = median exp(sigma^2 / 2): sigma 2.15 is ten medians
//   uniform       low .. high
//   exponentially decaying rate (infant mortality of a young fleet, see RateDecay)
//
// Not modelled: truncation. A log-normal repair with sigma 2 has a tail that outlasts any run, as real ones do.
#pragma once

#include <cstdint>

namespace fabricast::faults {

struct Distribution {
    enum class Kind : std::uint8_t { constant, exponential, weibull, log_normal, uniform };
    Kind kind = Kind::constant;
    double scale = 0;  ///< constant: value; exponential: mean; weibull: scale; log_normal: median; uniform: low
    double shape = 0;  ///< weibull: shape; log_normal: sigma; uniform: high

    /// Quantile at u, 0 < u < 1.
    double at(double u) const;
    double mean() const;
    /// P(X > x).
    double above(double x) const;
};

Distribution constant(double value);
Distribution exponential(double mean);
Distribution weibull(double mean, double shape);  ///< scale chosen so that the mean is `mean`
Distribution log_normal(double median, double sigma);
/// Log-normal of a published median and mean; a mean below the median gives a constant median.
Distribution log_normal_of_mean(double median, double mean);
Distribution uniform(double low, double high);

/// A rate that falls from `factor` times its final value with the fleet's age: r(t) = 1 + (factor - 1) exp(-t / decay).
/// Lives in the unit-rate time of the final fleet: hours of it that pass until t, and back.
struct RateDecay {
    double factor = 1;                      ///< 1: no infant mortality
    double decay = 1;                       ///< same unit as t
    double passed(double t) const;          ///< t + (factor - 1) decay (1 - exp(-t / decay))
    double when(double hazard_time) const;  ///< inverse of passed(); hazard_time >= 0
};

/// ln Gamma(x), x > 0; Stirling's series above 8, recurrence below. Absolute error below 1e-12.
double log_gamma(double x);

}  // namespace fabricast::faults
