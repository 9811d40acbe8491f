#include "validate/ingest/health.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace fabricast {
namespace {

constexpr std::int64_t kLarge = 1 << 20;  ///< bandwidth region
constexpr double kFallen = 0.88;
constexpr double kSpike = 1.5;
constexpr double kFirst = 2.0;
constexpr double kApart = 1.25;

std::string size_text(std::int64_t bytes) {
    static constexpr std::array<std::string_view, 4> kUnits = {"B", "KiB", "MiB", "GiB"};
    std::size_t unit = 0;
    double value = static_cast<double>(bytes);
    while (value >= 1024 && unit + 1 < kUnits.size()) {
        value /= 1024;
        ++unit;
    }
    return fmt::format("{:.4g} {}", value, kUnits[unit]);
}

std::vector<const NcclPoint*> sized_points(const NcclRun& run) {
    std::vector<const NcclPoint*> points;
    for (const NcclPoint& point : run.points) {
        if (point.bytes > 0) {
            points.push_back(&point);
        }
    }
    return points;
}

double best_busbw(const NcclPoint& point) {
    double best = 0;
    for (const NcclHalf* half : halves_of(point)) {
        best = std::max(best, half->busbw.value);
    }
    return best;
}

void falling(const std::vector<const NcclPoint*>& points, std::vector<LogFinding>& findings) {
    const NcclPoint* peak = nullptr;
    for (const NcclPoint* point : points) {
        if (point->bytes >= kLarge && (peak == nullptr || best_busbw(*point) > best_busbw(*peak))) {
            peak = point;
        }
    }
    if (peak == nullptr) {
        return;
    }
    const NcclPoint& last = *points.back();
    const double share = best_busbw(last) / best_busbw(*peak);
    if (last.bytes > peak->bytes && share < kFallen) {
        findings.push_back(
            {LogFindingKind::falling_bandwidth, last.bytes,
             fmt::format("busbw falls from {:.4g} GB/s at {} to {:.4g} GB/s ({:.0f} %) at {}", best_busbw(*peak),
                         size_text(peak->bytes), best_busbw(last), 100 * share, size_text(last.bytes))});
    }
}

void spikes(const std::vector<const NcclPoint*>& points, bool in_place, std::vector<LogFinding>& findings) {
    const auto time = [&](std::size_t i) {
        return in_place ? points[i]->in_place->time_us.value : points[i]->out_of_place.time_us.value;
    };
    for (std::size_t i = 1; i + 1 < points.size(); ++i) {
        const bool adjacent = points[i + 1]->bytes > points[i]->bytes && points[i]->bytes > points[i - 1]->bytes;
        if (adjacent && time(i) > kSpike * time(i + 1) && time(i) > time(i - 1)) {
            findings.push_back(
                {LogFindingKind::spike, points[i]->bytes,
                 fmt::format("{} takes {:.4g} us {}, more than {} with {:.4g} us", size_text(points[i]->bytes), time(i),
                             in_place ? "in place" : "out of place", size_text(points[i + 1]->bytes), time(i + 1))});
        }
    }
}

void first_iteration(const std::vector<const NcclPoint*>& points, std::vector<LogFinding>& findings) {
    const NcclPoint& first = *points.front();
    const double time = first.out_of_place.time_us.value;
    double settled = first.in_place ? first.in_place->time_us.value : time;
    if (points.size() > 1) {
        settled = std::min(settled, points[1]->out_of_place.time_us.value);
    }
    if (first.bytes < kLarge && time > kFirst * settled) {
        findings.push_back({LogFindingKind::first_iteration, first.bytes,
                            fmt::format("the first row, {}, takes {:.4g} us where {:.4g} us follow: warm-up",
                                        size_text(first.bytes), time, settled)});
    }
}

void halves_apart(const std::vector<const NcclPoint*>& points, std::vector<LogFinding>& findings) {
    for (const NcclPoint* point : points) {
        if (point->bytes < kLarge || !point->in_place) {
            continue;
        }
        const double out = point->out_of_place.time_us.value, in = point->in_place->time_us.value;
        if (std::max(out, in) > kApart * std::min(out, in)) {
            findings.push_back({LogFindingKind::halves_apart, point->bytes,
                                fmt::format("{} takes {:.4g} us out of place and {:.4g} us in place",
                                            size_text(point->bytes), out, in)});
        }
    }
}

}  // namespace

std::string_view name_of(LogFindingKind kind) {
    static constexpr std::array<std::string_view, 4> kNames = {"falling bandwidth", "spike", "first iteration",
                                                               "halves apart"};
    return kNames.at(static_cast<std::size_t>(kind));
}

std::vector<LogFinding> log_findings(const NcclRun& run) {
    std::vector<LogFinding> findings;
    const std::vector<const NcclPoint*> points = sized_points(run);
    if (points.empty()) {
        return findings;
    }
    falling(points, findings);
    spikes(points, false, findings);
    if (std::all_of(points.begin(), points.end(), [](const NcclPoint* point) { return point->in_place.has_value(); })) {
        spikes(points, true, findings);
    }
    first_iteration(points, findings);
    halves_apart(points, findings);
    return findings;
}

}  // namespace fabricast
