#include "sim/observed/picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "models/compute/math.hpp"
#include "sim/observed/ingest_error.hpp"
#include "sim/observed/pattern_fits.hpp"

namespace fabricast {
namespace {

constexpr std::size_t kMostRows = 6000;  // more are taken in groups
constexpr std::size_t kMostWarmUp = 10;  // rows of a start
constexpr std::size_t kMostRounds = 6;
constexpr double kLeastNoise = 1e-4;    // of logged digits
constexpr double kTypicalNoise = 0.02;  // of healthy steps, and its spread: half of them within a factor of 1.6
constexpr double kNoiseSpread = 0.7;    // of ln sigma

/// First rows of a start that are slower than what follows.
std::size_t warm_up_rows(const StepSeries& s, std::size_t begin, std::size_t end) {
    if (end - begin < kFewestRows)
        return end - begin > 1 ? 1 : 0;
    std::vector<double> later;
    for (std::size_t i = begin + kMostWarmUp; i < std::min(end, begin + 5 * kMostWarmUp); ++i)
        later.push_back(math::log(s.step_s[i]));
    const double limit = robust::median(later) + 3 * std::max(robust::mad(later), kLeastNoise);
    std::size_t rows = 1;
    while (rows < kMostWarmUp && math::log(s.step_s[begin + rows]) > limit)
        ++rows;
    return rows < kMostWarmUp ? rows : 1;  // a slow beginning that goes on is no warm-up
}

void take_rows(const StepSeries& s, Picture& out) {
    std::vector<std::size_t> kept;
    std::vector<bool> starts;
    for (std::size_t a = 0; a < s.attempts.size(); ++a) {
        const std::size_t begin = s.attempts[a], end = a + 1 < s.attempts.size() ? s.attempts[a + 1] : s.size();
        const std::size_t skip = warm_up_rows(s, begin, end);
        out.warm_up += skip;
        for (std::size_t i = begin + skip; i < end; ++i) {
            kept.push_back(i);
            starts.push_back(i == begin + skip);
        }
    }
    out.group = (kept.size() + kMostRows - 1) / kMostRows;
    for (std::size_t i = 0; i < kept.size();) {
        double sum = 0;
        std::size_t count = 0;
        const std::size_t first = i;
        do {
            sum += s.step_s[kept[i]];
            ++count;
            ++i;
        } while (i < kept.size() && count < out.group && !starts[i]);
        if (starts[first])
            out.attempts.push_back(out.y.size());
        out.row.push_back(kept[first]);
        out.time_s.push_back(s.time_s[kept[i - 1]]);
        out.y.push_back(math::log(sum / static_cast<double>(count)));
    }
}

/// The best of each family, best first.
std::vector<Pattern> families(const Rows& rows, std::vector<Pattern>& levels) {
    std::vector<Pattern> out;
    levels = fit_levels(rows);
    if (!levels.empty()) {
        const auto most = std::max_element(levels.begin(), levels.end(), [](const Pattern& a, const Pattern& b) {
            const auto weight = [](const Pattern& p) {
                double sum = 0;
                for (const double add : p.adds)
                    sum += add;
                return sum;
            };
            return weight(a) < weight(b);
        });
        out.push_back(*most);
    }
    for (auto fit : {fit_ramp, fit_wave, fit_periodic, fit_spikes})
        if (std::optional<Pattern> p = fit(rows))
            out.push_back(*std::move(p));
    std::stable_sort(out.begin(), out.end(), [](const Pattern& a, const Pattern& b) { return a.gain > b.gain; });
    return out;
}

void join_spikes(Pattern& into, const Pattern& more, double sigma) {
    into.gain += more.gain;
    std::vector<double> sizes;
    into.rows.clear();
    for (std::size_t i = 0; i < into.adds.size(); ++i) {
        into.adds[i] += more.adds[i];
        if (into.adds[i] > 0) {
            into.rows.push_back(i);
            sizes.push_back(into.adds[i]);
        }
    }
    into.begin = into.rows.front();
    into.end = into.rows.back() + 1;
    into.size = robust::median(sizes);
    into.error = std::max(robust::mad(sizes), sigma) / std::sqrt(static_cast<double>(sizes.size()));
    const auto late =
        std::count_if(into.rows.begin(), into.rows.end(), [&](std::size_t row) { return row >= into.adds.size() / 2; });
    const auto count = static_cast<double>(into.rows.size());
    into.grows = 2 * static_cast<double>(late) - count > 3 * std::sqrt(count);
}

}  // namespace

std::string_view pattern_name(PatternKind kind) {
    constexpr std::array<std::string_view, 6> kNames = {"level", "ramp", "wave", "periodic", "spikes", "noise"};
    return kNames[static_cast<std::size_t>(kind)];
}

Picture look_at(const StepSeries& series, const std::string& file) {
    Picture out;
    take_rows(series, out);
    if (out.size() < kFewestRows) {
        throw IngestError(
            file, 0,
            fmt::format("{} measured iterations behind the warm-up; {} and more are needed{}", out.size(), kFewestRows,
                        series.failure.empty() ? "" : "; the job failed: " + series.failure));
    }
    out.noise = robust::noise(out.y);
    out.noise.sigma = std::max(out.noise.sigma, kLeastNoise);
    std::vector<double> left = out.y;
    for (std::size_t round = 0; round < kMostRounds; ++round) {
        const Rows rows = {left, out.time_s, out.attempts, out.noise};
        std::vector<Pattern> levels;
        std::vector<Pattern> all = families(rows, levels);
        if (all.empty() || all.front().gain < kFound)
            break;
        // Levels are taken off together, each a finding of its own.
        std::vector<Pattern> taken;
        if (all.front().kind == PatternKind::level)
            taken = levels;
        else
            taken = {all.front()};
        for (Pattern& p : taken) {
            for (std::size_t i = 0; i < left.size(); ++i)
                left[i] -= p.adds[i];
            // Spikes that stood in the way of others: one pattern.
            const auto before = std::find_if(out.found.begin(), out.found.end(),
                                             [](const Finding& f) { return f.pattern.kind == PatternKind::spikes; });
            if (p.kind == PatternKind::spikes && before != out.found.end()) {
                join_spikes(before->pattern, p, out.noise.sigma);
                continue;
            }
            Finding finding;
            finding.pattern = std::move(p);
            for (std::size_t other = 1; other < all.size(); ++other)
                finding.others.push_back(all[other]);
            out.found.push_back(std::move(finding));
        }
        if (taken.empty())
            break;
    }
    out.base = robust::median(left);
    for (double& value : left)
        value -= out.base;
    out.rest = std::move(left);
    const double p10 = robust::quantile(out.rest, .1), p90 = robust::quantile(out.rest, .9);
    out.skew = p90 > p10 ? (p90 + p10) / (p90 - p10) : 0;
    if (out.noise.sigma > kUsualNoise) {
        Finding finding;
        Pattern& p = finding.pattern;
        p.kind = PatternKind::noise;
        p.end = out.size();
        p.size = out.noise.sigma;
        p.error = out.noise.sigma / std::sqrt(2 * static_cast<double>(out.size()) * out.noise.worth());
        const double z = math::log(p.size / kTypicalNoise) / kNoiseSpread;
        p.gain = z * z / 2;
        p.adds.assign(out.size(), 0);
        out.found.push_back(std::move(finding));
    }
    return out;
}

}  // namespace fabricast
