// Evidence from patterns other than levels: runs of a starving loader, stops, ramps, waves, scatter.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/compute/math.hpp"
#include "models/compute/spread.hpp"
#include "sim/diagnose/evidence.hpp"
#include "sim/diagnose/evidence_parts.hpp"

namespace fabricast {
namespace {

using faults::Part;
using faults::Signature;

constexpr double kDay = 86400;
constexpr std::int64_t kMostRanks = 64;    // that are simulated one by one over many steps
constexpr std::size_t kFewestOfEpoch = 4;  // spikes of a slow epoch

/// Of ln(seconds of a stop), 95 % between low and high.
double ln_stop(double seconds, double low, double high) {
    const double sd = math::log(high / low) / (2 * 1.959964);
    return seconds > 0 ? ln_normal(math::log(seconds), math::log(low * high) / 2, sd) : -50;
}

/// ln(step) where compute of each of n replicas is log-normal and the step waits for the longest: by quantiles of the maximum.
std::vector<double> longest_of_all(double cv, std::int64_t n, double compute_share) {
    constexpr int kQuantiles = 64;
    const double variance = math::log(1 + cv * cv), sigma = std::sqrt(variance);
    std::vector<double> out;
    for (int i = 0; i < kQuantiles; ++i) {
        const double u = math::pow((i + 0.5) / kQuantiles, 1 / static_cast<double>(n));
        const double length = math::exp(sigma * normal_quantile(u) - variance / 2);
        out.push_back(math::log(1 + compute_share * (length - 1)));
    }
    return out;
}

}  // namespace

/// Runs of steps in which data are there, and one that waits.
std::optional<Evidence> EvidenceMaker::starving(const Signature& what, const Pattern& p) {
    const std::int64_t workers = std::max<std::int64_t>(steps_.workers(), 1);
    const bool right = std::abs(steps_of(p.period) - static_cast<double>(workers)) < 0.5;
    const bool possible = right || (steps_.loader_is_assumed() && steps_of(p.period) <= 16);
    if (p.kind == PatternKind::periodic ? !possible : what.name == "wandering" && p.rows.size() < kFewestOfEpoch)
        return std::nullopt;
    std::vector<double> sizes;
    for (int i = 0; i < kSimulated; ++i) {
        const std::string fault =
            steps_.placed(what.inject, fmt::format("{:.4g}", what.severity(static_cast<double>(i) / (kSimulated - 1))));
        const std::vector<double>& series =
            steps_.series(simulated_as(what, fault), workers * std::max<std::int64_t>(4, 16 / workers));
        if (series.empty())
            return std::nullopt;
        sizes.push_back(math::log(*std::max_element(series.begin(), series.end())));
    }
    const Averaged a = average_fit(sizes, p.size, p.error, part_error_);
    Evidence out;
    const double severity = what.severity(a.best_share);
    out.inject = steps_.placed(what.inject, fmt::format("{:.4g}", severity));
    out.severity = fmt::format("{} times as long", significant(severity));
    out.predicted = a.best_size;
    out.fit = a.fit;
    if (p.kind == PatternKind::periodic) {
        out.fit += right ? 2 : 0;
    } else {
        out.fit -= 3;
    }
    return out;
}

/// What a step takes longer for a stop of a second.
double EvidenceMaker::transmission(bool together) {
    const double stop = 0.2;
    const std::int64_t every = 4;
    const std::string fault = together
                                  ? fmt::format("all garbage {} s every {} synchronised", stop, every)
                                  : steps_.placed(fmt::format("gpu {{gpu}} garbage {} s every {}", stop, every), "");
    const std::vector<double>& series = steps_.series(fault, 4 * every);
    if (series.empty())
        return 1;
    double sum = 0;
    for (const double ratio : series)
        sum += ratio - 1;
    return std::max(sum * steps_.healthy_s() / (4 * stop), 0.05);
}

std::optional<Evidence> EvidenceMaker::stops(const Signature& what, const Pattern& p) {
    const double excess = excess_s(p), steps = steps_of(p.period);
    const bool periodic = p.kind == PatternKind::periodic;
    Evidence out;
    if (what.name == "flap") {
        if (periodic)
            return std::nullopt;
        if (s_.nodes < 2 || links_ < 1)
            return std::nullopt;
        const double outage = std::clamp(excess, what.stop_low_s, what.stop_high_s);
        const std::optional<double> stall = s_.training.layout.world() <= kMostRanks ? steps_.stall_s(outage) : outage;
        if (!stall)
            return std::nullopt;
        // What of the outage the step feels; the adapter's own compute goes on.
        const double felt = std::clamp(*stall / outage, 0.05, 1.0);
        out.fit = ln_stop(excess / felt, what.stop_low_s, what.stop_high_s);
        // More than one: of the same link.
        out.fit += static_cast<double>(p.rows.size() - 1) * math::log(0.3);
        out.severity = fmt::format("{} s", significant(excess / felt));
        const double at = picture_.time_s[p.rows.front()];
        out.inject =
            steps_.placed(what.inject, "") + fmt::format(" at {:.0f} s for {:.1f} s", at, std::max(excess / felt, 0.1));
        out.predicted = math::log(1 + *stall / steps_.healthy_s());
        return out;
    }
    const bool work = what.name == "checkpoint" || what.name == "saves";
    const double felt = work ? 1 : transmission(what.name == "garbage_together");
    out.fit = ln_stop(excess / felt, what.stop_low_s, what.stop_high_s);
    if (!work)
        out.predicted = math::log(1 + excess / base_s_);  // as fitted: a stop of excess / felt
    const double mean_gap =
        periodic ? steps : static_cast<double>(picture_.size()) / static_cast<double>(p.rows.size());
    if (what.name == "garbage_apart") {
        const auto ranks = static_cast<double>(s_.training.layout.world());
        if (periodic) {
            const double expected = steps * (1 - math::pow(1 - 1 / std::max(steps, 2.0), ranks));
            const double raised = static_cast<double>(p.raised);
            out.fit += ln_normal(raised, expected, 1 + std::sqrt(expected)) + (raised > 1.5 ? 2 : 0);
        } else {
            out.fit -= 2;
        }
        out.severity =
            fmt::format("{} s every {:.0f} steps", significant(excess / felt), periodic ? steps : mean_gap * ranks);
        out.inject =
            fmt::format("all garbage {:.3f} s every {:.0f}", excess / felt, periodic ? steps : mean_gap * ranks);
    } else if (what.name == "garbage_together") {
        out.fit += periodic ? (p.raised == 1 ? 0 : -4) : -4;
        out.severity = fmt::format("{} s every {:.0f} steps", significant(excess / felt), mean_gap);
        out.inject = fmt::format("all garbage {:.3f} s every {:.0f} synchronised", excess / felt, mean_gap);
    } else if (what.name == "allocator") {
        if (periodic)
            return std::nullopt;
        out.fit += p.rows.size() < 3 ? -2 : p.grows ? 1.5 : 0;
        const auto ranks = static_cast<double>(s_.training.layout.world());
        out.severity = fmt::format("{} s, one step in {:.0f}", significant(excess / felt), mean_gap);
        out.inject = fmt::format("all allocator {:.3f} s every {:.0f}", excess / felt, mean_gap * ranks);
    } else {  // saves and checkpoints
        const RunPlan::Checkpoint& c = s_.run.checkpoint;
        const double planned = c.every_steps > 0 ? static_cast<double>(c.every_steps)
                               : c.every_s > 0   ? c.every_s / base_s_
                                                 : 0;
        out.fit += periodic ? (p.raised == 1 ? 0 : -3) : p.rows.size() > 2 ? -3 : -1;
        if (periodic && planned > 0)
            out.fit += std::abs(steps - planned) <= std::max(2.0, 0.05 * planned) ? 3 : -1;
        if (p.rows.size() == 1)
            out.fit -= 1;
        out.severity = fmt::format("{} s", significant(excess));
    }
    return out;
}

std::optional<Evidence> EvidenceMaker::ramp(const Signature& what, const Pattern& p) {
    Evidence out;
    const double longest = picture_.time_s.back() - picture_.time_s[std::min(p.begin, picture_.size() - 1)];
    const double total = math::log(1 + p.size * longest);
    if (what.name == "leak") {
        // A loader that needs L of a step of T: the step is max(T, L (1 + r t)), so r = slope T / L, from t = (T / L - 1) / r on.
        const double load = steps_.loader_s() / steps_.healthy_s();
        const double per_hour = p.size * 3600 / std::max(load, 1e-3);
        // The slope of a simulated leak, so steep that it shows within a few steps.
        const double steep = 3600 / steps_.healthy_s() * std::max(0.02, 2 * (1 / std::max(load, 1e-3) - 1) / 40);
        const std::vector<double>& series = steps_.series(steps_.placed(what.inject, fmt::format("{:.4g}", steep)), 48);
        double felt = 1;
        if (series.size() > 24 && series.back() > 1.02) {
            const double later = series.back() - series[series.size() - 13];
            felt = std::clamp(later / (12 * load * steep * steps_.healthy_s() / 3600), 0.2, 2.0);
        }
        const double rate = per_hour / felt;
        const double width = math::log(what.high / what.low);
        const bool possible = rate > what.low / 3 && rate < what.high * 3;
        out.fit = (possible ? -math::log(width) + 2 : -6) + (p.resets ? 2 : 0);
        out.severity = fmt::format("{} an hour", significant(rate));
        out.inject = steps_.placed(what.inject, fmt::format("{:.4g}", rate));
        out.predicted = felt * load * rate;
        return out;
    }
    if (what.name == "noon_heat") {
        if (total > math::log(what.high) + 0.01 || longest > 0.6 * kDay)
            return std::nullopt;
        out.fit = -1;
        return out;
    }
    if (what.name == "allocator") {
        out.fit = -3;
        return out;
    }
    if (what.part == Part::compute || what.part == Part::network || what.name == "storage") {  // heat, load that grows
        if (what.name == "stage" || what.name == "sequence" || (what.part == Part::network && s_.nodes < 2))
            return std::nullopt;
        out.fit = -4.5;
        return out;
    }
    return std::nullopt;
}

std::optional<Evidence> EvidenceMaker::wave(const Signature& what, const Pattern& p) {
    Evidence out;
    double hour = -1;
    if (series_.day_s >= 0) {
        const double at = (series_.day_s + p.phase) / kDay;
        hour = (at - std::floor(at)) * 24;
    }
    const double noon = hour < 0 ? 0 : hour >= 10 && hour <= 19 ? 1 : -1.5;
    if (what.name == "noon_heat") {
        std::optional<Evidence> found = level(what, 2 * p.size, 2 * p.error, 0);
        if (!found)
            return std::nullopt;
        found->fit += noon;
        found->predicted /= 2;
        return found;
    }
    if (what.name == "clock" || what.name == "congestion" || what.name == "storage") {
        if (what.name == "congestion" && s_.nodes < 2)
            return std::nullopt;
        out.fit = -2.5 + (what.name == "clock" ? noon : 0);
        return out;
    }
    return std::nullopt;
}

/// Noise above what steps usually have.
std::optional<Evidence> EvidenceMaker::spread(const Signature& what, const Pattern& p) {
    Evidence out;
    if (what.name == "sequence") {
        const std::int64_t ranks = s_.training.layout.world();
        std::vector<double> sizes;
        for (int i = 0; i < kSimulated; ++i) {
            const double cv = what.severity(static_cast<double>(i) / (kSimulated - 1));
            std::vector<double> logs;
            if (ranks <= kMostRanks) {
                for (const double ratio : steps_.series(steps_.placed(what.inject, fmt::format("{:.4g}", cv)), 48))
                    logs.push_back(math::log(ratio));
            } else {
                logs = longest_of_all(cv, s_.training.layout.dp, steps_.compute_share());
            }
            if (logs.size() < 8)
                return std::nullopt;
            double mean = 0, square = 0;
            for (const double value : logs)
                mean += value / static_cast<double>(logs.size());
            for (const double value : logs)
                square += (value - mean) * (value - mean) / static_cast<double>(logs.size() - 1);
            sizes.push_back(std::sqrt(square));
        }
        const Averaged a = average_fit(sizes, p.size, p.error, 0.25);
        const double cv = what.severity(a.best_share);
        out.fit = a.fit;
        out.severity = fmt::format("coefficient of variation {}", significant(cv));
        out.inject = steps_.placed(what.inject, fmt::format("{:.3g}", cv));
        out.predicted = a.best_size;
        return out;
    }
    if (what.name == "garbage_apart" || what.name == "allocator" || what.name == "loss" || what.name == "congestion" ||
        what.name == "storage" || what.name == "wandering") {
        if (what.part == Part::network && s_.nodes < 2)
            return std::nullopt;
        out.fit = -math::log(1.1) - (what.name == "garbage_apart" || what.name == "loss" ? 1 : 2.5);
        return out;
    }
    return std::nullopt;
}

}  // namespace fabricast
