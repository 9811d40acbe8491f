#include "sim/diagnose/evidence.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/compute/math.hpp"
#include "models/compute/spread.hpp"

namespace fabricast {
namespace {

using faults::Part;
using faults::Signature;

constexpr double kLeastError =
    0.005;  // of a simulated ln ratio: timing of messages that the step simulator does not follow
constexpr int kSimulated = 3, kBetween = 80;
constexpr double kDay = 86400;
constexpr double kNever = 1e-6;  // expected number of what cannot begin there
constexpr double kMostDays = 5;  // a fault that lasts longer is mended by then
constexpr double kPermanentDays = 5;
constexpr double kWithStart = 0.2;         // share of slow parts that come in with a restart, with other nodes
constexpr std::size_t kFewestOfEpoch = 4;  // spikes of a slow epoch
constexpr double kWithoutRuns = 2;         // nats
constexpr double kComesBack = 0.02;        // where nothing is said
constexpr double kLn2Pi = 1.8378770664093453;
constexpr std::int64_t kMostRanks = 64;  // that are simulated one by one over many steps

double ln_normal(double x, double mean, double sd) {
    const double z = (x - mean) / sd;
    return -z * z / 2 - math::log(sd) - kLn2Pi / 2;
}

/// Of ln(seconds of a stop), 95 % between low and high.
double ln_stop(double seconds, double low, double high) {
    const double sd = math::log(high / low) / (2 * 1.959964);
    return seconds > 0 ? ln_normal(math::log(seconds), math::log(low * high) / 2, sd) : -50;
}

/// Mean over shares of a range of N(seen; size(share), error); the best share.
struct Averaged {
    double fit = -50, best_share = 0, best_size = 0;
};
Averaged average(const std::vector<double>& sizes, double seen, double error, double relative) {
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

/// A wandering loader is on one rank that reads; where it goes next is not asked here.
std::string simulated_as(const Signature& what, const std::string& fault) {
    return what.name == "wandering" ? "rank 0 loader" + fault.substr(fault.rfind(' ')) : fault;
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

std::string significant(double value) { return fmt::format("{:.3g}", value); }

}  // namespace

EvidenceMaker::EvidenceMaker(const Scenario& scenario, FaultSteps& steps, const Picture& picture,
                             const StepSeries& series, double spread, double base_s)
    : s_(scenario),
      steps_(steps),
      picture_(picture),
      series_(series),
      part_error_(kPartError * spread),
      base_s_(base_s),
      days_((picture.time_s.back() - picture.time_s.front()) / kDay),
      links_(static_cast<double>(scenario.nodes) * scenario.node.nics) {}

double EvidenceMaker::excess_s(const Pattern& p) const {
    return base_s_ * (math::exp(p.size) - 1) * static_cast<double>(series_.every) * static_cast<double>(picture_.group);
}

bool EvidenceMaker::begins_inside(const Pattern& p) const {
    return p.begin > std::max<std::size_t>(3, picture_.size() / 50);
}

bool EvidenceMaker::begins_with_start(const Pattern& p) const {
    for (std::size_t a = 1; a < picture_.attempts.size(); ++a)
        if (p.begin + 3 >= picture_.attempts[a] && p.begin <= picture_.attempts[a] + 3)
            return true;
    return false;
}

double EvidenceMaker::prior_at_start(const Signature& what) const {
    const double lasts = what.permanent ? kPermanentDays : std::min(what.lasts.mean() / kDay, kMostDays);
    const double expected = what.rate_per_day(s_.nodes, links_) * lasts + what.at_start;
    return 1 - math::exp(-expected);
}

double EvidenceMaker::prior(const Signature& what, const Pattern& p) const {
    const double rate = what.rate_per_day(s_.nodes, links_) * days_;
    if (!begins_inside(p))
        return prior_at_start(what) + rate;
    if (begins_with_start(p)) {
        const double comes_in = what.rate_per_day(s_.nodes, links_) * kMostDays;
        return what.at_start + rate + comes_in * (what.onset == Signature::Onset::any ? kWithStart : 1 - kWithStart);
    }
    if (what.onset == Signature::Onset::start || rate == 0)
        return kNever;
    return rate * (what.onset == Signature::Onset::either ? 0.5 : 1);
}

double EvidenceMaker::something_else(const Pattern& p) const {
    // Any size up to a factor of three, any length.
    double fit = -math::log(1.1);
    if (p.kind == PatternKind::noise || p.kind == PatternKind::wave || p.kind == PatternKind::ramp)
        fit -= 2;
    return fit - 1;
}

double EvidenceMaker::lasting(const Signature& what, const Pattern& p) const {
    double sum = 0;
    std::vector<std::pair<std::size_t, std::size_t>> bursts = p.bursts;
    if (bursts.empty())
        bursts.emplace_back(p.begin, p.end);
    for (std::size_t b = 0; b < bursts.size(); ++b) {
        const auto [begin, end] = bursts[b];
        const double length = std::max(picture_.time_s[end - 1] - picture_.time_s[begin > 0 ? begin - 1 : 0], base_s_);
        const bool ended = end < picture_.size();
        double share = 1;
        if (what.permanent)
            share = ended ? 0.01 : 1;
        else
            share = ended ? what.lasts.above(length / 1.5) - what.lasts.above(length * 1.5) : what.lasts.above(length);
        sum += math::log(std::max(share, 1e-3));
        if (b > 0)
            sum += math::log(what.repeats > 0 ? what.repeats : kComesBack);
    }
    return sum;
}

/// Whether begins and ends lie where epochs do, ln against anywhere.
double EvidenceMaker::at_epochs(const Pattern& p) const {
    std::vector<double> edges;
    const auto add = [&](std::size_t row) {
        if (row > 0 && row < picture_.size())
            edges.push_back(static_cast<double>(series_.step[picture_.row[row]] - series_.step[0]));
    };
    if (p.bursts.empty()) {
        add(p.begin);
        add(p.end);
    }
    for (const auto& [begin, end] : p.bursts) {
        add(begin);
        add(end);
    }
    if (edges.empty())
        return -2;
    const double tolerance = std::max(3.0, steps_of(2));
    const auto near = [&](double epoch) {
        std::size_t hits = 0;
        for (const double edge : edges) {
            const double turns = std::round(edge / epoch);
            hits += turns > 0 && std::abs(edge - turns * epoch) <= tolerance ? 1u : 0u;
        }
        return hits;
    };
    if (s_.data.samples > 0) {
        const double epoch = static_cast<double>(s_.data.samples) / static_cast<double>(s_.training.global_batch);
        const double chance = std::min(1.0, 2 * tolerance / epoch);
        const std::size_t hits = near(epoch);
        return static_cast<double>(hits) * math::log(1 / chance) +
               static_cast<double>(edges.size() - hits) * math::log(0.1);
    }
    // Epochs of unknown length: one that all edges share.
    if (edges.size() < 3)
        return -1;
    double best = -3;
    for (std::size_t parts = 1; parts <= 12; ++parts) {
        const double epoch = edges.back() / static_cast<double>(parts);
        if (epoch < 8 * tolerance)
            break;
        if (near(epoch) == edges.size())
            best = std::max(best, static_cast<double>(edges.size() - 1) * math::log(epoch / (2 * tolerance)) -
                                      math::log(static_cast<double>(12)));
    }
    return std::min(best, 6.0);
}

bool EvidenceMaker::makes_levels(const Signature& what) const {
    return !what.inject.empty() && what.high > 0 && what.part != Part::host && what.name != "sequence" &&
           what.name != "leak" && (what.name != "stage" || s_.training.layout.pp > 1);
}

/// What stands for the fault in the simulator: links of one adapter that keep as much are one simulation.
std::string EvidenceMaker::level_text(const Signature& what, double severity) const {
    if (what.part == Part::network && what.name != "congestion")
        return steps_.placed("nic {nic} rate {}", fmt::format("{:.4g}", severity));
    if (what.name == "clock")
        return steps_.placed("gpu {gpu} slow {}", fmt::format("{:.4g}", severity));
    return steps_.placed(what.inject, fmt::format("{:.4g}", severity));
}

void EvidenceMaker::prepare_levels() {
    std::vector<std::string> all;
    for (const Signature& what : faults::signatures()) {
        if (!makes_levels(what) || what.part == Part::data)
            continue;
        for (int i = 0; i < (what.high > what.low ? kSimulated : 1); ++i)
            all.push_back(level_text(what, what.severity(static_cast<double>(i) / (kSimulated - 1))));
    }
    steps_.prepare(all);
}

std::optional<Evidence> EvidenceMaker::level(const Signature& what, double seen, double error, double more_error) {
    Evidence out;
    if (what.name == "work") {
        out.fit = -math::log(math::log(what.high / what.low));
        out.severity = fmt::format("{} times the work", significant(math::exp(seen)));
        return out;
    }
    if (!makes_levels(what))
        return std::nullopt;
    const bool is_clock = what.name == "clock";
    const auto text = [&](double severity) { return level_text(what, severity); };
    const auto size_of = [&](double severity) -> std::optional<double> {
        if (what.part == Part::data) {
            // Runs of as many steps as a rank has workers, several of them.
            const std::int64_t runs = std::max<std::int64_t>(steps_.workers(), 1);
            const std::vector<double>& series =
                steps_.series(text(severity), runs * std::max<std::int64_t>(4, 16 / runs));
            if (series.empty())
                return std::nullopt;
            double sum = 0;
            for (const double ratio : series)
                sum += ratio / static_cast<double>(series.size());
            return math::log(std::max(sum, 1e-3));
        }
        const std::optional<double> step = steps_.step_s(text(severity));
        return step ? std::optional<double>(math::log(*step / steps_.healthy_s())) : std::nullopt;
    };
    std::vector<double> sizes;
    for (int i = 0; i < (what.high > what.low ? kSimulated : 1); ++i) {
        const std::optional<double> size = size_of(what.severity(static_cast<double>(i) / (kSimulated - 1)));
        if (!size)
            return std::nullopt;
        sizes.push_back(*size);
    }
    const Averaged a = average(sizes, seen, std::sqrt(error * error + more_error * more_error), part_error_);
    const double severity = what.severity(a.best_share);
    out.fit = a.fit;
    out.inject = text(severity);
    out.predicted = a.best_size;
    if (what.name == "collision")
        out.inject = steps_.placed(what.inject, "");
    if (is_clock) {
        if (steps_.nominal_mhz() > 0)
            out.inject = steps_.placed(what.inject, fmt::format("{:.0f}", steps_.nominal_mhz() / severity));
        out.slower = severity;
        out.severity = steps_.nominal_mhz() > 0
                           ? fmt::format("{:.0f} of {:.0f} MHz", steps_.nominal_mhz() / severity, steps_.nominal_mhz())
                           : fmt::format("{} times as long", significant(severity));
    } else if (what.name == "loss") {
        const double lost = steps_.loss_that_keeps(severity);
        out.severity = fmt::format("{:.2g} of the packets", lost);
        out.inject = steps_.placed(what.inject, fmt::format("{:.3g}", lost));
        out.keeps = severity;
    } else if (what.name == "nvlink_lane") {
        out.severity = "1 lane";
        if (s_.gpu.nvlink_nominal_bytes_per_s > 0)
            out.keeps = 1 - 25e9 / s_.gpu.nvlink_nominal_bytes_per_s;
    } else if (what.part == Part::network) {
        out.keeps = what.name == "congestion" ? 1 / severity : severity;
        out.severity = what.name == "congestion" ? fmt::format("{} times as slow", significant(severity))
                                                 : fmt::format("{} of its rate", significant(severity));
    } else {
        out.slower = what.part == Part::compute ? severity : 0;
        out.severity = fmt::format("{} times as long", significant(severity));
    }
    return out;
}

std::optional<Evidence> EvidenceMaker::from_start(const Signature& what, double offset, double bias) {
    if (what.name == "congestion" || what.name == "work" || what.name == "noon_heat")
        return std::nullopt;
    if (what.name == "sequence" || what.name == "garbage_apart") {
        // The mean over steps; the range of sizes is that of the field.
        Evidence out;
        const std::vector<double> sizes =
            what.name == "sequence" ? std::vector<double>{0.03, 0.5} : std::vector<double>{0.01, 0.15};
        const Averaged a = average(sizes, offset, bias, part_error_);
        out.fit = a.fit - 1;  // their steps scatter, which is not seen here
        return out;
    }
    return level(what, offset, 0, bias);
}

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
    const Averaged a = average(sizes, p.size, p.error, part_error_);
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
        const Averaged a = average(sizes, p.size, p.error, 0.25);
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

std::optional<Evidence> EvidenceMaker::of(const Signature& what, const Pattern& p) {
    switch (p.kind) {
        case PatternKind::level: {
            std::optional<Evidence> out = level(what, p.size, p.error, 0);
            if (out) {
                out->fit += lasting(what, p);
                if (what.name == "wandering")
                    out->fit += at_epochs(p);
                // Workers that starve keep step with each other: a level without runs is the rarer picture.
                if (what.part == Part::data && steps_.workers() > 1)
                    out->fit -= kWithoutRuns;
                // A collision goes when the job starts anew, and only then.
                if (what.name == "collision" && p.end < picture_.size()) {
                    Pattern end = p;
                    end.begin = p.end;
                    out->fit += begins_with_start(end) ? 2 : -3;
                }
            }
            return out;
        }
        case PatternKind::ramp: return ramp(what, p);
        case PatternKind::wave: return wave(what, p);
        case PatternKind::noise: return spread(what, p);
        case PatternKind::periodic:
        case PatternKind::spikes: {
            if (what.name == "storage" || what.name == "wandering") {
                std::optional<Evidence> out = starving(what, p);
                if (out && what.name == "wandering")
                    out->fit += at_epochs(p);
                return out;
            }
            if (what.stop_low_s > 0)
                return stops(what, p);
            return std::nullopt;
        }
    }
    return std::nullopt;
}

}  // namespace fabricast
