#include "sim/diagnose/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "models/compute/math.hpp"

namespace fabricast {
namespace {

using faults::Part;
using faults::Signature;

double normal(double x, double mean, double sd) {
    const double z = (x - mean) / sd;
    return math::exp(-z * z / 2) / (sd * 2.5066283);
}

/// Which counters a fault moves.
bool counts(std::string_view column, const Signature& what) {
    const auto has = [&](std::string_view part) { return column.find(part) != std::string_view::npos; };
    if (has("retrans") || has("out_of_sequence"))
        return what.name == "loss";
    if (has("link_downed"))
        return what.name == "flap";
    if (has("xmit_wait") || has("ecn") || has("cnp"))
        return what.name == "congestion" || what.name == "collision";
    return has("pcie_replay") && what.name == "pcie_width";
}

}  // namespace

MetricEvidence::MetricEvidence(const StepSeries& series, const Picture& picture, const Pattern& pattern, double base_s,
                               double gpus)
    : base_s_(base_s), gpus_(gpus) {
    const double most = pattern.adds.empty() ? 0 : *std::max_element(pattern.adds.begin(), pattern.adds.end());
    if (!(most > 0))
        return;
    std::vector<std::size_t> inside, outside;
    double sum = 0;
    for (std::size_t i = 0; i < pattern.adds.size(); ++i) {
        if (pattern.adds[i] > 0.5 * most) {
            inside.push_back(i);
            sum += pattern.adds[i];
        } else if (pattern.adds[i] < 0.15 * most) {
            outside.push_back(i);
        }
    }
    if (inside.size() < 3 || outside.size() < 3)
        return;
    ratio_ = math::exp(sum / static_cast<double>(inside.size()));
    const auto reading = [](std::string_view name) -> std::optional<Reading> {
        const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
        if (has("data_wait") || has("data_time") || has("dataloader"))
            return Reading::data_wait;
        if (has("retrans") || has("out_of_sequence") || has("link_downed") || has("xmit_wait") || has("ecn") ||
            has("cnp") || has("pcie_replay"))
            return Reading::counter;
        if (has("port_rate") || has("link_rate") || has("pcie_width") || has("pcie_gen"))
            return Reading::link;
        if (has("nvlink"))
            return Reading::nvlink;
        if (has("ib_bw") || has("nic_bw") || has("net_bw") || has("busbw"))
            return Reading::network;
        if (has("clock"))
            return Reading::clock;
        if (has("temp"))
            return Reading::temperature;
        if (has("mfu"))
            return Reading::mfu;
        return std::nullopt;
    };
    for (const StepSeries::Metric& metric : series.metrics) {
        const auto what = reading(metric.name);
        if (!what)
            continue;
        const auto values = [&](const std::vector<std::size_t>& rows) {
            std::vector<double> out;
            for (const std::size_t row : rows)
                if (const double value = metric.values[picture.row[row]]; std::isfinite(value))
                    out.push_back(value);
            return out;
        };
        const std::vector<double> in = values(inside), out = values(outside);
        if (in.size() < 3 || out.size() < 3)
            continue;
        // The median of n normal values scatters by 1.25 sigma / sqrt n.
        const double a = robust::mad(in), b = robust::mad(out);
        const double error =
            1.25 * std::sqrt(a * a / static_cast<double>(in.size()) + b * b / static_cast<double>(out.size()));
        Column column = {*what, metric.name, robust::median(in), robust::median(out), error};
        // Counters that add up are read as what they grow by.
        columns_.push_back(std::move(column));
    }
}

double MetricEvidence::one(const Column& c, const Signature& what, double keeps, double slower) const {
    const double change = c.outside != 0 ? c.inside / c.outside : 1;
    const double error = c.outside != 0 ? c.error / std::abs(c.outside) : 1;
    const auto spread = [&](double own) { return std::sqrt(own * own + error * error); };
    const double slow = 1 / ratio_;
    switch (c.reading) {
        case Reading::data_wait: {
            const double step = base_s_ * (ratio_ - 1);
            if (!(step > 0))
                return 0;
            const double share = (c.inside - c.outside) / step, wide = c.error / step;
            const auto at = [&](double mean, double sd) {
                return normal(share, mean, std::sqrt(sd * sd + wide * wide));
            };
            return math::log(what.part == Part::data ? at(0.8, 0.3) + 1e-3 : at(0, 0.12) + 1e-3);
        }
        case Reading::network:
        case Reading::nvlink: {
            const bool own = what.part == (c.reading == Reading::network ? Part::network : Part::nvlink);
            const double sd = spread(0.03);
            if (!own)
                return math::log((normal(change, slow, sd) + normal(change, 1, sd)) / 2 + 1e-3);
            const double left = keeps > 0 ? keeps : 0.7;
            return math::log((normal(change, slow, sd) + normal(change, left, spread(keeps > 0 ? 0.08 : 0.2))) / 2 +
                             1e-3);
        }
        case Reading::link: {
            const bool own =
                c.name.find("pcie") != std::string::npos ? what.name == "pcie_width" : what.name == "nic_half";
            // Mean of all links, or the worst one.
            return math::log((own ? normal(change, 0.5, spread(0.05)) : normal(change, 1, spread(0.01))) + 1e-3);
        }
        case Reading::clock: {
            const double sd = spread(0.01);
            if (what.name != "clock" && what.name != "noon_heat")
                return math::log(normal(change, 1, sd) + 1e-3);
            const double low = slower > 1 ? 1 / slower : 0.9, mean = what.name == "clock" ? 1 - (1 - low) / gpus_ : low;
            return math::log((normal(change, low, spread(0.05)) + normal(change, mean, sd)) / 2 + 1e-3);
        }
        case Reading::temperature: {
            const double moved = c.inside - c.outside, sd = std::sqrt(1 + c.error * c.error);
            const bool hot = what.name == "clock" || what.name == "noon_heat";
            return math::log(hot ? (normal(moved, 0, sd) + normal(moved, 4, 4)) / 2 : normal(moved, 0, sd) + 1e-3);
        }
        case Reading::mfu: {
            const double sd = spread(0.02);
            return math::log(normal(change, what.name == "work" ? 1 : slow, sd) + 1e-3);
        }
        case Reading::counter: {
            const bool grew = c.inside > 1.5 * c.outside + 3 * c.error && c.inside > 0;
            if (counts(c.name, what))
                return grew ? 3 : -1.5;
            if (!grew)
                return 0;
            // Waits and marks follow any slow receiver; nothing but their fault moves counters of errors.
            return c.name.find("xmit_wait") != std::string::npos || c.name.find("ecn") != std::string::npos ||
                           c.name.find("cnp") != std::string::npos
                       ? -1
                       : -kMost;
        }
    }
    return 0;
}

double MetricEvidence::of(const Signature& what, double keeps, double slower) const {
    double sum = 0;
    for (const Column& column : columns_)
        sum += std::clamp(one(column, what, keeps, slower), -kMost, kMost);
    return sum;
}

}  // namespace fabricast
