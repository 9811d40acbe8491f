#include "validate/score/nccl_score.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace fabricast {
namespace {

constexpr std::int64_t kLarge = 1 << 20, kSmall = 64 * 1024;
constexpr double kSeveralBound = 0.10, kSingleBound = 0.15;

CurveScore score_curve(const RunCase& run, const NetworkConstants& constants, const LaunchCost& launch,
                       bool class_known) {
    CurveScore out;
    out.file = run.file;
    out.line = run.run.line;
    out.ranks = run.run.ranks;
    out.collective = collective_name(run.kind);
    out.platform = run.platform.name();
    out.group = run.platform.group();
    out.label = run.label;
    out.constants = constants;
    const Predictor predictor(run.platform, constants, run.settings);
    const double factor = busbw_factor(run.run.collective, run.run.ranks).value_or(1);
    std::vector<Compared> compared;
    for (const NcclPoint& point : curve(run.run)) {
        const double measured = point.out_of_place.time_us.value;
        if (point.bytes <= 0 || measured <= 0) {
            continue;
        }
        const auto p = predictor.predict(run.kind, point.bytes);
        const double expected = launch.with(p.time_us, run.gpus_per_thread, p.channels);
        const double bus_bytes = static_cast<double>(point.bytes) * factor * 1e-3;  // GB/s for a time in us
        const Compared at{point.bytes, measured, expected, bus_bytes / measured, bus_bytes / expected};
        out.points.push_back({at, expected / measured - 1, p.algorithm, p.protocol, p.channels});
        out.measured_peak = std::max(out.measured_peak, at.measured_busbw);
        out.predicted_peak = std::max(out.predicted_peak, at.expected_busbw);
        compared.push_back(at);
    }
    if (compared.empty()) {
        return out;
    }
    out.peak_error = out.predicted_peak / out.measured_peak - 1;
    std::vector<const ScoredPoint*> all;
    for (const ScoredPoint& point : out.points) {
        all.push_back(&point);
    }
    out.errors = summarise(all);
    out.verdict = judge_health(run, compared, constants.efficiency);
    if (!class_known && out.verdict.health == Health::sick && out.verdict.cause != Cause::sockets_fallback &&
        out.verdict.cause != Cause::no_gpudirect) {
        out.verdict.health = Health::unclear;
        out.verdict.cause = Cause::none;
        out.verdict.sentence +=
            fmt::format("; no other log of class {} says what is usual there", run.platform.expected);
    }
    out.counted = run.label == Label::healthy || (run.label == Label::none && out.verdict.health == Health::healthy);
    return out;
}

void tally_peaks(NcclScore& score) {
    std::map<std::pair<std::string, std::string>, std::vector<double>> errors;
    std::map<std::string, std::set<std::string>> logs;
    for (const CurveScore& one : score.curves) {
        if (one.counted && one.points.back().at.bytes >= kLarge) {
            errors[{one.group, one.collective}].push_back(std::abs(one.peak_error));
            logs[one.group].insert(one.file);
        }
    }
    for (const auto& [key, values] : errors) {
        const bool several = logs[key.first].size() > 1;
        PeakTally& tally = several ? score.several : score.single;
        ++tally.platforms;
        tally.within += median(values) <= (several ? kSeveralBound : kSingleBound) ? 1 : 0;
    }
}

}  // namespace

double percentile(std::vector<double> values, double p) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(p * static_cast<double>(values.size() - 1))];
}

ErrorSummary summarise(const std::vector<const ScoredPoint*>& points) {
    std::vector<double> large, small;
    for (const ScoredPoint* point : points) {
        if (point->at.bytes >= kLarge) {
            large.push_back(std::abs(point->error));
        } else if (point->at.bytes < kSmall) {
            small.push_back(std::abs(point->error));
        }
    }
    ErrorSummary out;
    out.large_points = large.size();
    out.small_points = small.size();
    if (!large.empty()) {
        out.large_median = percentile(large, 0.5);
        out.large_p90 = percentile(large, 0.9);
    }
    if (!small.empty()) {
        out.small_median = percentile(small, 0.5);
    }
    return out;
}

NcclScore score_nccl(const RunCases& cases, bool leave_one_out) {
    NcclScore score;
    score.leave_one_out = leave_one_out;
    score.refused = cases.refused;
    std::optional<NetworkFit> fit;
    if (leave_one_out) {
        fit.emplace(cases.cases);
    }
    for (const RunCase& run : cases.cases) {
        NetworkConstants constants;
        const LaunchCost launch = fit ? fit->launch(run.file) : kLaunch;
        bool known = true;
        if (run.platform.nodes > 1) {
            constants = fit ? fit->constants(run, run.platform.expected, run.file)
                            : catalogue_constants(run.platform.expected, run.platform.gpu);
            known = !fit || fit->knows(run);
        }
        CurveScore one = score_curve(run, with_collisions(constants, run.kind, run.platform), launch, known);
        if (!one.points.empty()) {
            score.curves.push_back(std::move(one));
        }
    }
    std::vector<const ScoredPoint*> counted;
    for (const CurveScore& one : score.curves) {
        for (const ScoredPoint& point : one.points) {
            if (one.counted) {
                counted.push_back(&point);
            }
        }
    }
    score.total = summarise(counted);
    tally_peaks(score);
    return score;
}

}  // namespace fabricast
