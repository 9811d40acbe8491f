#include "models/faults/distributions.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "models/compute/math.hpp"
#include "models/compute/spread.hpp"

namespace fabricast::faults {

double log_gamma(double x) {
    assert(x > 0 && "Gamma is taken at positive numbers only");
    double below = 0;
    for (; x < 8; x += 1)
        below += math::log(x);
    const double i = 1 / x, i2 = i * i;
    const double series = i * (1.0 / 12 - i2 * (1.0 / 360 - i2 * (1.0 / 1260 - i2 * (1.0 / 1680 - i2 / 1188))));
    constexpr double kHalfLog2Pi = 0.91893853320467274178;
    return (x - 0.5) * math::log(x) - x + kHalfLog2Pi + series - below;
}

double Distribution::at(double u) const {
    switch (kind) {
        case Kind::constant: return scale;
        case Kind::exponential: return -scale * math::log(1 - u);
        case Kind::weibull: return scale * math::pow(-math::log(1 - u), 1 / shape);
        case Kind::log_normal: return scale * math::exp(shape * normal_quantile(u));
        case Kind::uniform: return scale + (shape - scale) * u;
    }
    return 0;
}

double Distribution::mean() const {
    switch (kind) {
        case Kind::constant:
        case Kind::exponential: return scale;
        case Kind::weibull: return scale * math::exp(log_gamma(1 + 1 / shape));
        case Kind::log_normal: return scale * math::exp(shape * shape / 2);
        case Kind::uniform: return (scale + shape) / 2;
    }
    return 0;
}

// The quantile grows with u, so the share above x is found by halving; 50 halvings leave 1e-15.
double Distribution::above(double x) const {
    if (kind == Kind::constant)
        return scale > x ? 1 : 0;
    double low = 0, high = 1;
    for (int i = 0; i < 50; ++i) {
        const double middle = (low + high) / 2;
        (at(middle) > x ? high : low) = middle;
    }
    return 1 - (low + high) / 2;
}

Distribution constant(double value) { return {Distribution::Kind::constant, value, 0}; }
Distribution exponential(double mean) { return {Distribution::Kind::exponential, mean, 0}; }
Distribution weibull(double mean, double shape) {
    return {Distribution::Kind::weibull, mean / math::exp(log_gamma(1 + 1 / shape)), shape};
}
Distribution log_normal(double median, double sigma) { return {Distribution::Kind::log_normal, median, sigma}; }
Distribution log_normal_of_mean(double median, double mean) {
    if (mean <= median)
        return constant(median);
    return log_normal(median, std::sqrt(2 * math::log(mean / median)));
}
Distribution uniform(double low, double high) { return {Distribution::Kind::uniform, low, high}; }

double RateDecay::passed(double t) const { return t + (factor - 1) * decay * (1 - math::exp(-t / decay)); }

// passed() is monotone, with t between hazard_time - (factor - 1) decay and hazard_time / factor (factor >= 1).
double RateDecay::when(double hazard_time) const {
    if (factor == 1)
        return hazard_time;
    double low = std::max(0.0, hazard_time - (factor - 1) * decay), high = hazard_time;
    if (factor < 1)
        high = hazard_time + (1 - factor) * decay;
    for (int i = 0; i < 60; ++i) {
        const double middle = (low + high) / 2;
        (passed(middle) > hazard_time ? high : low) = middle;
    }
    return (low + high) / 2;
}

}  // namespace fabricast::faults
