#include "sim/diagnose/evidence.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/compute/math.hpp"
#include "sim/diagnose/evidence_parts.hpp"

namespace fabricast {
namespace {

using faults::Part;
using faults::Signature;

constexpr double kDay = 86400;
constexpr double kNever = 1e-6;  // expected number of what cannot begin there
constexpr double kMostDays = 5;  // a fault that lasts longer is mended by then
constexpr double kPermanentDays = 5;
constexpr double kWithStart = 0.2;   // share of slow parts that come in with a restart, with other nodes
constexpr double kWithoutRuns = 2;   // nats
constexpr double kComesBack = 0.02;  // where nothing is said

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
    const Averaged a = average_fit(sizes, seen, std::sqrt(error * error + more_error * more_error), part_error_);
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
        const Averaged a = average_fit(sizes, offset, bias, part_error_);
        out.fit = a.fit - 1;  // their steps scatter, which is not seen here
        return out;
    }
    return level(what, offset, 0, bias);
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
