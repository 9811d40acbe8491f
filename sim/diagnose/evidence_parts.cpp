#include "sim/diagnose/evidence_parts.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/compute/math.hpp"

namespace fabricast {
namespace {

constexpr double kLn2Pi = 1.8378770664093453;
constexpr int kBetween = 80;  // points of a mean over severities

}  // namespace

double ln_normal(double x, double mean, double sd) {
    const double z = (x - mean) / sd;
    return -z * z / 2 - math::log(sd) - kLn2Pi / 2;
}

Averaged average_fit(const std::vector<double>& sizes, double seen, double error, double relative) {
    Averaged out;
    double sum = 0, best = -1e300;
    const int points = sizes.size() > 1 ? kBetween : 0;
    for (int i = 0; i <= points; ++i) {
        const double share = points > 0 ? static_cast<double>(i) / points : 0;
        const double place = share * static_cast<double>(sizes.size() - 1);
        const auto low = static_cast<std::size_t>(place);
        const std::size_t high = std::min(low + 1, sizes.size() - 1);
        const double size = sizes[low] + (place - static_cast<double>(low)) * (sizes[high] - sizes[low]);
        const double sd = std::sqrt(error * error + relative * relative * size * size + kLeastError * kLeastError);
        const double each = ln_normal(seen, size, sd);
        sum += math::exp(std::max(each, -600.0)) / (points + 1);
        if (-std::abs(seen - size) > best) {
            best = -std::abs(seen - size);
            out.best_share = share;
            out.best_size = size;
        }
    }
    out.fit = sum > 0 ? math::log(sum) : -600;
    return out;
}

std::string simulated_as(const faults::Signature& what, const std::string& fault) {
    return what.name == "wandering" ? "rank 0 loader" + fault.substr(fault.rfind(' ')) : fault;
}

std::string significant(double value) { return fmt::format("{:.3g}", value); }

}  // namespace fabricast
