// What repeats: periods by folding, all of them tried, over the whole series or where it is restless.
#include <algorithm>
#include <cmath>
#include <utility>

#include "models/compute/math.hpp"
#include "sim/observed/pattern_fits.hpp"

namespace fabricast {
namespace {

constexpr std::size_t kAroundPeriod = 51;  // rows of the running median that raised rows stand out of
constexpr std::size_t kMostPeriod = 512;   // rows
constexpr double kRaised = 0.3;            // of the highest phase of a period

/// The longest stretch in which neighbouring rows differ far more than noise does; nothing when it is all or none.
std::optional<std::pair<std::size_t, std::size_t>> restless(const Rows& rows) {
    const std::size_t n = rows.y.size();
    constexpr std::size_t kLeast = 24, kGap = 40;
    std::vector<std::size_t> jumps;
    for (std::size_t i = 1; i < n; ++i)
        if (std::abs(rows.y[i] - rows.y[i - 1]) > 5 * rows.noise.sigma)
            jumps.push_back(i);
    std::size_t best_begin = 0, best_end = 0, begin = 0, count = 0;
    for (std::size_t j = 0; j < jumps.size(); ++j) {
        if (j == 0 || jumps[j] - jumps[j - 1] > kGap) {
            begin = jumps[j];
            count = 0;
        }
        ++count;
        if (jumps[j] + 1 - begin > best_end - best_begin && count >= 8) {
            best_begin = begin > 0 ? begin - 1 : 0;
            best_end = jumps[j] + 1;
        }
    }
    if (best_end - best_begin < kLeast || (best_end - best_begin) * 20 > n * 19)
        return std::nullopt;
    return std::pair(best_begin, best_end);
}

std::optional<Pattern> periodic_between(const Rows& rows, std::size_t begin, std::size_t end) {
    const std::size_t n = end - begin;
    const bool window = n < rows.y.size();
    const double sigma = rows.noise.sigma;
    constexpr double kMost = 7;  // sigma, as much as kMostLoss nats
    std::vector<double> around;  // what rows would be without the pattern
    if (window) {
        std::vector<double> outside(rows.y.begin(), rows.y.begin() + static_cast<std::ptrdiff_t>(begin));
        outside.insert(outside.end(), rows.y.begin() + static_cast<std::ptrdiff_t>(end), rows.y.end());
        around.assign(rows.y.size(), robust::median(std::move(outside)));
    } else {
        around = robust::running_median(rows.y, kAroundPeriod);
    }
    std::vector<double> r;
    double mean = 0;
    for (std::size_t i = begin; i < end; ++i) {
        r.push_back(std::clamp((rows.y[i] - around[i]) / sigma, -kMost, kMost));
        mean += r.back() / static_cast<double>(n);
    }
    struct Found {
        std::size_t period = 0;
        double gain = 0;
        bool profile = false;
    } best;
    const std::size_t longest = std::min(n / 3, kMostPeriod);
    const double tries = math::log(static_cast<double>(std::max<std::size_t>(longest, 2)));
    for (std::size_t period = 2; period <= longest; ++period) {
        std::vector<double> sum(period, 0), count(period, 0);
        for (std::size_t i = 0; i < n; ++i) {
            sum[i % period] += r[i] - mean;
            count[i % period] += 1;
        }
        double all = 0, one = 0;
        for (std::size_t phase = 0; phase < period; ++phase) {
            const double part = sum[phase] * sum[phase] / count[phase] / 2;
            all += part;
            // One phase against all others: the others' mean moves down with it.
            if (sum[phase] > 0)
                one = std::max(one, part * static_cast<double>(n) / (static_cast<double>(n) - count[phase]));
        }
        const double single = rows.noise.worth() * one - rows.cost(2) - tries;
        const double profile = rows.noise.worth() * all - rows.cost(static_cast<double>(period)) - tries;
        for (const bool is_profile : {false, true}) {
            const double gain = is_profile ? profile : single;
            if (gain > best.gain * (best.gain > 0 ? 1.02 : 1))
                best = {period, gain, is_profile};
        }
    }
    if (best.period == 0 || best.gain <= 0)
        return std::nullopt;
    std::vector<std::vector<double>> phases(best.period);
    for (std::size_t i = begin; i < end; ++i)
        phases[(i - begin) % best.period].push_back(rows.y[i] - around[i]);
    std::vector<double> profile;
    for (std::vector<double>& values : phases)
        profile.push_back(robust::median(values));
    Pattern p;
    p.kind = PatternKind::periodic;
    p.begin = begin;
    p.end = end;
    p.ends = end < rows.y.size();
    p.period = static_cast<double>(best.period);
    p.error = sigma / std::sqrt(static_cast<double>(n / best.period));
    // Raised phases stand clear of the noise and of the low ones.
    const double low = window ? 0 : robust::quantile(profile, best.period > 3 ? 0.25 : 0);
    const double high = *std::max_element(profile.begin(), profile.end()) - low;
    const double limit = std::max(kRaised * high, std::min(4 * p.error, 0.5 * high));
    std::vector<double> raised;
    for (double& value : profile) {
        value -= low;
        if (value > limit)
            raised.push_back(value);
        else if (!best.profile)
            value = 0;
    }
    p.raised = raised.size();
    p.size = raised.empty() ? high : robust::median(raised);
    p.adds.assign(rows.y.size(), 0);
    for (std::size_t i = begin; i < end; ++i) {
        p.adds[i] = profile[(i - begin) % best.period];
        if (p.adds[i] > limit)
            p.rows.push_back(i);
    }
    std::vector<double> without;
    for (std::size_t i = 0; i < rows.y.size(); ++i)
        without.push_back(rows.y[i] - p.adds[i]);
    const double base = robust::median(std::move(without));
    std::vector<double> fitted;
    for (const double add : p.adds)
        fitted.push_back(base + add);
    p.gain = rows.gain(fitted, (best.profile ? static_cast<double>(best.period) : 3) + (window ? 2 : 0)) - tries;
    return p;
}

}  // namespace

std::optional<Pattern> fit_periodic(const Rows& rows) {
    std::optional<Pattern> best = periodic_between(rows, 0, rows.y.size());
    if (const auto stretch = restless(rows)) {
        std::optional<Pattern> some = periodic_between(rows, stretch->first, stretch->second);
        if (some && (!best || some->gain > best->gain))
            best = std::move(some);
    }
    return best;
}

}  // namespace fabricast
