#include "sim/observed/robust.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace fabricast::robust {
namespace {

constexpr double kNormal = 1.4826;        // standard deviation of normal values / mad
constexpr std::size_t kMostLags = 32;     // a pattern of so many rows does not count as noise
constexpr double kClearlyLess = 0.75;     // a longer lag must spread so much less
constexpr std::size_t kMostPoints = 512;  // of a slope

double spread_of_lag(std::span<const double> x, std::size_t lag) {
    std::vector<double> differences;
    for (std::size_t i = lag; i < x.size(); ++i)
        differences.push_back(x[i] - x[i - lag]);
    return mad(differences);
}

/// Mean square of differences, none of them counted above three of their mads: steadier than the mad.
double clipped_square(std::span<const double> x, std::size_t lag) {
    std::vector<double> differences;
    for (std::size_t i = lag; i < x.size(); ++i)
        differences.push_back(x[i] - x[i - lag]);
    const double most = 3 * mad(differences);
    double sum = 0;
    for (const double d : differences)
        sum += std::min(d * d, most * most);
    return sum / static_cast<double>(differences.size());
}

}  // namespace

double quantile(std::vector<double> values, double q) {
    assert(!values.empty() && "a quantile of nothing");
    std::sort(values.begin(), values.end());
    const double at = q * static_cast<double>(values.size() - 1);
    const auto low = static_cast<std::size_t>(at);
    const std::size_t high = std::min(low + 1, values.size() - 1);
    return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

double median(std::vector<double> values) {
    assert(!values.empty() && "the median of nothing");
    const std::size_t n = values.size();
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(n / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (n % 2 == 1)
        return *middle;
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double mad(const std::vector<double>& values) {
    const double middle = median(values);
    std::vector<double> away;
    for (const double value : values)
        away.push_back(std::abs(value - middle));
    return kNormal * median(std::move(away));
}

Noise noise(std::span<const double> x) {
    assert(x.size() >= 8 && "noise of too few values");
    Noise out;
    const double first = spread_of_lag(x, 1);
    double least = first;
    for (std::size_t lag = 2; lag <= std::min(kMostLags, x.size() / 8); ++lag) {
        const double spread = spread_of_lag(x, lag);
        if (spread < kClearlyLess * first && spread < 0.97 * least) {
            least = spread;
            out.lag = lag;
        }
    }
    if (out.lag == 1 && first > 0 && spread_of_lag(x, 2) > 0) {
        out.rho = std::clamp(clipped_square(x, 2) / clipped_square(x, 1) - 1, 0.0, 0.9);
        // Independent values scatter around 0 too, by about 1.5 / sqrt n: what is within three of these is none.
        if (out.rho < 4.5 / std::sqrt(static_cast<double>(x.size())))
            out.rho = 0;
    }
    out.sigma = least / std::sqrt(2 * (1 - out.rho));
    return out;
}

std::vector<double> running_median(std::span<const double> x, std::size_t width) {
    std::vector<double> out, window;
    const std::size_t half = width / 2;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t begin = i > half ? i - half : 0, end = std::min(x.size(), i + half + 1);
        window.assign(x.begin() + static_cast<std::ptrdiff_t>(begin), x.begin() + static_cast<std::ptrdiff_t>(end));
        out.push_back(median(std::move(window)));
        window = {};
    }
    return out;
}

double theil_sen(std::span<const double> x, std::span<const double> y) {
    const std::size_t stride = std::max<std::size_t>(1, x.size() / kMostPoints);
    std::vector<double> slopes;
    for (std::size_t i = 0; i < x.size(); i += stride)
        for (std::size_t j = i + stride; j < x.size(); j += stride)
            if (x[j] > x[i])
                slopes.push_back((y[j] - y[i]) / (x[j] - x[i]));
    return slopes.empty() ? 0 : median(std::move(slopes));
}

}  // namespace fabricast::robust
