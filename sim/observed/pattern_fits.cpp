#include "sim/observed/pattern_fits.hpp"

#include <algorithm>
#include <cmath>

#include "models/compute/math.hpp"
#include "sim/observed/change_points.hpp"

namespace fabricast {
namespace {

constexpr std::size_t kAround = 21;  // rows of the running median that spikes stand out of
constexpr double kClip = 4;          // sigma; beyond it a row is no more evidence for a level
constexpr double kDay = 86400;
constexpr double kManySpikes = 3.5;  // sigma, where there are several: one normal value in 4300 is above
constexpr std::size_t kFewestSpikes = 4;

double median_of(std::span<const double> y, std::size_t begin, std::size_t end) {
    return robust::median(
        {y.begin() + static_cast<std::ptrdiff_t>(begin), y.begin() + static_cast<std::ptrdiff_t>(end)});
}

/// y with spikes and holes cut to kClip sigma from their neighbourhood.
std::vector<double> clipped(const Rows& rows) {
    std::vector<double> out = robust::running_median(rows.y, kAround);
    const double most = kClip * rows.noise.sigma;
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] += std::clamp(rows.y[i] - out[i], -most, most);
    return out;
}

/// The one change that fits best, however little.
std::vector<Segment> best_split(std::span<const double> x) {
    const std::size_t n = x.size();
    double all = 0;
    for (const double value : x)
        all += value - x[0];
    double before = 0, most = -1;
    std::size_t at = 0;
    for (std::size_t i = 1; i + kShortestSegment <= n; ++i) {
        before += x[i - 1] - x[0];
        if (i < kShortestSegment)
            continue;
        const auto a = static_cast<double>(i), b = static_cast<double>(n - i);
        const double between = before * before / a + (all - before) * (all - before) / b;
        if (between > most) {
            most = between;
            at = i;
        }
    }
    if (at == 0)
        return {};
    return {{0, at, median_of(x, 0, at)}, {at, n, median_of(x, at, n)}};
}

/// Level changes as events that begin and end: a fall ends the event whose size it has.
std::vector<Pattern> events_of(const std::vector<Segment>& segments, std::size_t n, double sigma) {
    struct Open {
        std::size_t begin;
        double size;
    };
    std::vector<Open> open;
    std::vector<Pattern> out;
    const auto close = [&](std::size_t which, std::size_t end, bool ends) {
        Pattern p;
        p.begin = open[which].begin;
        p.end = end;
        p.ends = ends;
        p.size = open[which].size;
        out.push_back(std::move(p));
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
    };
    // The lowest level that lasts: of segments that together hold a tenth of the rows.
    std::vector<Segment> sorted = segments;
    std::sort(sorted.begin(), sorted.end(), [](const Segment& a, const Segment& b) { return a.level < b.level; });
    double base = sorted.front().level;
    std::size_t held = 0;
    for (const Segment& s : sorted) {
        held += s.end - s.begin;
        base = s.level;
        if (held * 10 >= n)
            break;
    }
    if (segments.front().level > base + 1.5 * sigma / std::sqrt(static_cast<double>(segments.front().end)))
        open.push_back({0, segments.front().level - base});
    double level = std::max(segments.front().level, base);
    for (std::size_t i = 1; i < segments.size(); ++i) {
        const double step = std::max(segments[i].level, base) - level;
        level += step;
        if (step > 0) {
            open.push_back({segments[i].begin, step});
        } else if (step < 0 && !open.empty()) {
            std::size_t which = open.size() - 1;
            for (std::size_t o = open.size(); o-- > 0;)
                if (std::abs(open[o].size + step) < std::abs(open[which].size + step) - 1e-9)
                    which = o;
            const double left = open[which].size + step;
            // A fall to the base ends everything; one of half an event only makes it smaller.
            if (level <= base + 1e-12) {
                while (!open.empty())
                    close(open.size() - 1, segments[i].begin, true);
            } else if (left < 0.5 * open[which].size) {
                close(which, segments[i].begin, true);
            } else {
                const Open rest = {segments[i].begin, left};
                close(which, segments[i].begin, true);
                open.push_back(rest);
            }
        }
    }
    while (!open.empty())
        close(open.size() - 1, n, false);
    return out;
}

/// Events of one size become one pattern of bursts, where at least two of them end.
std::vector<Pattern> with_bursts(std::vector<Pattern> events, double sigma) {
    std::vector<Pattern> out;
    std::sort(events.begin(), events.end(), [](const Pattern& a, const Pattern& b) { return a.begin < b.begin; });
    std::vector<bool> used(events.size(), false);
    for (std::size_t i = 0; i < events.size(); ++i) {
        if (used[i])
            continue;
        Pattern p = events[i];
        p.bursts = {{p.begin, p.end}};
        double rows = static_cast<double>(p.end - p.begin), sum = p.size * rows;
        for (std::size_t j = i + 1; j < events.size() && events[i].ends; ++j) {
            const Pattern& other = events[j];
            const double error =
                sigma / std::sqrt(static_cast<double>(std::min(p.end - p.begin, other.end - other.begin)));
            if (used[j] || other.begin < p.bursts.back().second ||
                std::abs(other.size - events[i].size) > 0.3 * events[i].size + 3 * error)
                continue;
            used[j] = true;
            p.bursts.emplace_back(other.begin, other.end);
            const auto length = static_cast<double>(other.end - other.begin);
            sum += other.size * length;
            rows += length;
            p.ends = other.ends;
        }
        p.size = sum / rows;
        p.end = p.bursts.back().second;
        p.error = sigma / std::sqrt(rows);
        out.push_back(std::move(p));
    }
    return out;
}

}  // namespace

double Rows::loss(std::span<const double> fitted) const {
    double sum = 0;
    const double scale = 1 / (2 * noise.sigma * noise.sigma);
    for (std::size_t i = 0; i < y.size(); ++i)
        sum += std::min((y[i] - fitted[i]) * (y[i] - fitted[i]) * scale, kMostLoss);
    return sum;
}

double Rows::gain(std::span<const double> fitted, double parameters) const {
    const std::vector<double> nothing(y.size(), robust::median({y.begin(), y.end()}));
    return noise.worth() * (loss(nothing) - loss(fitted)) - cost(parameters);
}

double Rows::cost(double parameters) const { return parameters * 0.5 * math::log(static_cast<double>(y.size())); }

std::vector<Pattern> fit_levels(const Rows& rows) {
    const std::size_t n = rows.y.size();
    const std::vector<double> clip = clipped(rows);
    std::vector<Segment> segments = level_segments(clip, rows.noise.sigma, rows.noise.worth());
    if (segments.size() < 2)
        segments = best_split(clip);
    if (segments.size() < 2)
        return {};
    std::vector<double> fitted(n);
    for (const Segment& s : segments)
        std::fill(fitted.begin() + static_cast<std::ptrdiff_t>(s.begin),
                  fitted.begin() + static_cast<std::ptrdiff_t>(s.end), s.level);
    const double gain = rows.gain(fitted, 3 * static_cast<double>(segments.size() - 1));
    std::vector<Pattern> out = with_bursts(events_of(segments, n, rows.noise.sigma), rows.noise.sigma);
    for (Pattern& p : out) {
        p.kind = PatternKind::level;
        p.gain = gain;
        p.adds.assign(n, 0);
        for (const auto& [begin, end] : p.bursts)
            std::fill(p.adds.begin() + static_cast<std::ptrdiff_t>(begin),
                      p.adds.begin() + static_cast<std::ptrdiff_t>(end), p.size);
    }
    return out;
}

std::optional<Pattern> fit_ramp(const Rows& rows) {
    const std::size_t n = rows.y.size();
    constexpr std::size_t kPlaces = 48, kTurns = 12;
    const double span = rows.time_s.back() - rows.time_s.front();
    if (!(span > 0))
        return std::nullopt;
    std::optional<Pattern> best;
    const std::vector<double> clip = clipped(rows);
    for (const bool resets : {false, true}) {
        if (resets && rows.attempts.size() < 2)
            continue;
        std::vector<double> since;  // s, of the start or of the first row
        std::size_t attempt = 0;
        for (std::size_t i = 0; i < n; ++i) {
            if (attempt + 1 < rows.attempts.size() && rows.attempts[attempt + 1] <= i)
                ++attempt;
            since.push_back(rows.time_s[i] - rows.time_s[resets ? rows.attempts[attempt] : 0]);
        }
        const double longest = *std::max_element(since.begin(), since.end());
        for (std::size_t place = 0; place < kPlaces; ++place) {
            const double begin = longest * 0.95 * static_cast<double>(place) / kPlaces;
            // y = a + ln(1 + s x), x = (since - begin)+ : Gauss-Newton from the slope of all behind the beginning.
            std::vector<double> x;
            for (const double t : since)
                x.push_back(std::max(0.0, t - begin) / longest);
            double a = robust::quantile(clip, 0.25), s = 0;
            for (std::size_t turn = 0; turn < kTurns; ++turn) {
                double saa = 0, sas = 0, sss = 0, ra = 0, rs = 0;
                for (std::size_t i = 0; i < n; ++i) {
                    const double inner = 1 + s * x[i], slope = x[i] / inner, r = clip[i] - a - math::log(inner);
                    saa += 1;
                    sas += slope;
                    sss += slope * slope;
                    ra += r;
                    rs += r * slope;
                }
                const double det = saa * sss - sas * sas;
                if (!(det > 1e-12 * saa * sss))
                    break;
                a += (ra * sss - rs * sas) / det;
                s = std::clamp(s + (rs * saa - ra * sas) / det, -0.5, 1e3);
            }
            if (s <= 0)
                continue;
            std::vector<double> fitted;
            for (const double t : x)
                fitted.push_back(a + math::log(1 + s * t));
            const double gain = rows.gain(fitted, 3 + (resets ? 1 : 0));  // place, slope, and that many were tried
            if (best && gain <= best->gain)
                continue;
            Pattern p;
            p.kind = PatternKind::ramp;
            p.gain = gain;
            p.resets = resets;
            p.begin =
                static_cast<std::size_t>(std::find_if(x.begin(), x.end(), [](double t) { return t > 0; }) - x.begin());
            p.end = n;
            p.size = s / longest;
            for (double& f : fitted)
                f -= a;
            p.adds = std::move(fitted);
            best = std::move(p);
        }
    }
    if (!best)
        return std::nullopt;
    // The slope's error: 0.5 % of fits of pure noise would be steeper than 2.6 of it.
    double squares = 0, mean = 0;
    std::size_t count = 0;
    for (std::size_t i = best->begin; i < n; ++i, ++count)
        mean += rows.time_s[i];
    mean /= static_cast<double>(std::max<std::size_t>(count, 1));
    for (std::size_t i = best->begin; i < n; ++i)
        squares += (rows.time_s[i] - mean) * (rows.time_s[i] - mean);
    best->error = squares > 0 ? rows.noise.sigma / std::sqrt(squares * rows.noise.worth()) : best->size;
    return best;
}

std::optional<Pattern> fit_wave(const Rows& rows) {
    const std::size_t n = rows.y.size();
    constexpr double kShare = 0.75;  // of a day, below which a wave is a ramp
    if (rows.time_s.back() - rows.time_s.front() < kShare * kDay)
        return std::nullopt;
    const std::vector<double> clip = clipped(rows);
    // Sine and cosine of the day's angle by their series; the angle is brought to -pi .. pi.
    const auto sine = [](double turns) {
        const double angle = (turns - std::floor(turns + 0.5)) * 6.283185307179586;
        double term = angle, sum = angle;
        for (int k = 1; k < 14; ++k) {
            term *= -angle * angle / ((2 * k) * (2 * k + 1));
            sum += term;
        }
        return sum;
    };
    double normal[3][4] = {};
    std::vector<double> s(n), c(n);
    for (std::size_t i = 0; i < n; ++i) {
        s[i] = sine(rows.time_s[i] / kDay);
        c[i] = sine(rows.time_s[i] / kDay + 0.25);
        const double row[4] = {1, s[i], c[i], clip[i]};
        for (int a = 0; a < 3; ++a)
            for (int b = 0; b < 4; ++b)
                normal[a][b] += row[a] * row[b];
    }
    for (int a = 0; a < 3; ++a) {  // positive definite: no pivoting
        if (!(normal[a][a] > 1e-9))
            return std::nullopt;
        for (int other = 0; other < 3; ++other) {
            if (other == a)
                continue;
            const double factor = normal[other][a] / normal[a][a];
            for (int b = a; b < 4; ++b)
                normal[other][b] -= factor * normal[a][b];
        }
    }
    const double by_sine = normal[1][3] / normal[1][1], by_cosine = normal[2][3] / normal[2][2],
                 mean = normal[0][3] / normal[0][0];
    Pattern p;
    p.kind = PatternKind::wave;
    p.end = n;
    p.period = kDay;
    p.size = std::sqrt(by_sine * by_sine + by_cosine * by_cosine);
    p.error = rows.noise.sigma * std::sqrt(2 / (static_cast<double>(n) * rows.noise.worth()));
    std::vector<double> fitted;
    double highest = -1;
    for (std::size_t i = 0; i < n; ++i) {
        p.adds.push_back(by_sine * s[i] + by_cosine * c[i]);
        fitted.push_back(mean + p.adds.back());
    }
    for (int minute = 0; minute < 24 * 60; ++minute) {
        const double turns = minute / (24.0 * 60), value = by_sine * sine(turns) + by_cosine * sine(turns + 0.25);
        if (value > highest) {
            highest = value;
            p.phase = turns * kDay;
        }
    }
    p.gain = rows.gain(fitted, 2);
    return p;
}

std::optional<Pattern> fit_spikes(const Rows& rows) {
    const std::size_t n = rows.y.size();
    const std::vector<double> around = robust::running_median(rows.y, kAround);
    const double sigma = rows.noise.sigma;
    std::optional<Pattern> best;
    for (const double threshold : {kSpike, kManySpikes}) {
        Pattern p;
        p.kind = PatternKind::spikes;
        p.adds.assign(n, 0);
        std::vector<double> sizes;
        double gain = 0;
        std::size_t early = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const double above = rows.y[i] - around[i];
            if (above < threshold * sigma)
                continue;
            p.rows.push_back(i);
            sizes.push_back(above);
            p.adds[i] = above;
            gain += std::min(above * above / (2 * sigma * sigma), kMostLoss);
            early += i < n / 2 ? 1 : 0;
        }
        if (p.rows.size() < (threshold < kSpike ? kFewestSpikes : 1))
            continue;
        const auto count = static_cast<double>(p.rows.size());
        p.begin = p.rows.front();
        p.end = p.rows.back() + 1;
        p.size = robust::median(sizes);
        p.error = sizes.size() > 2 ? robust::mad(sizes) / std::sqrt(count) : sigma;
        // Where each is costs ln(n / count) + 1; rate and size two parameters.
        p.gain = gain - count * (math::log(static_cast<double>(n) / count) + 1) - rows.cost(2);
        const double late = count - static_cast<double>(early);
        p.grows = late - static_cast<double>(early) > 3 * std::sqrt(count);
        if (!best || p.gain > best->gain)
            best = std::move(p);
    }
    return best;
}

}  // namespace fabricast
