// What is to be seen in a series of step times, without any idea of why: levels, ramps, waves, what repeats, spikes, noise.
//
//   y = ln(step time) of a row = base + sum of patterns + noise, sigma and rho of robust.hpp
//   gain of a pattern, nats = worth x sum over rows of (loss without - loss with) - 1/2 ln n per parameter,
//   loss = min(r^2 / (2 sigma^2), kMostLoss): a wild row weighs no more than that (Bayes' information criterion)
//
//   level      from a row to another, or to the end, y is higher (change_points.hpp)
//   ramp       the step grows by a constant a second from a time on: base x (1 + slope x (t - begin)); may begin anew with
//              every start of the job
//   wave       a sine of one day
//   periodic   rows repeat after `period`: one raised row of each, or a profile
//   spikes     single rows above kSpike sigma, without a period
//   noise      sigma above kUsualNoise
//
// Greedy: what gains most is taken off the series, then the rest is looked at again, until nothing gains kFound. What other
// families would have gained in its place is kept beside it. Rows of warm-up (up to 10 of each start) are left out; long
// series are taken in groups of rows.
//
// kUsualNoise: steps of jobs in production have a 90th percentile of 1.06 of their mean (arXiv:2505.05713), 0.06 / 1.28.
// Not seen: patterns shorter than 5 rows that are no spikes; two waves; what lasts all the time, which only a forecast shows.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/observed/robust.hpp"
#include "sim/observed/step_series.hpp"

namespace fabricast {

inline constexpr double kUsualNoise = 0.047;  ///< standard deviation of ln(step time)
inline constexpr double kFound = 6;           ///< nats
inline constexpr double kSpike = 6;           ///< sigma
inline constexpr double kMostLoss = 24;       ///< nats

enum class PatternKind : std::uint8_t { level, ramp, wave, periodic, spikes, noise };
std::string_view pattern_name(PatternKind kind);

struct Pattern {
    PatternKind kind = PatternKind::level;
    double gain = 0;                 ///< nats
    std::size_t begin = 0, end = 0;  ///< rows of the picture
    bool ends = false;               ///< before the series does
    /// level: ln(after / before); ramp: slope, share of the base a second; wave: amplitude of y; periodic: of the raised rows;
    /// spikes: median of y; noise: sigma
    double size = 0;
    double error = 0;                                         ///< standard error of size
    double period = 0;                                        ///< periodic: rows; wave: s
    double phase = 0;                                         ///< wave: time of the maximum, s
    std::size_t raised = 0;                                   ///< periodic: rows of a period that are raised
    std::vector<std::pair<std::size_t, std::size_t>> bursts;  ///< level: each, where there are several alike
    std::vector<std::size_t> rows;                            ///< spikes
    bool grows = false;                                       ///< spikes: more in the later half
    bool resets = false;                                      ///< ramp: begins anew with every start
    std::vector<double> adds;                                 ///< to y, by row
};

struct Finding {
    Pattern pattern;
    std::vector<Pattern> others;  ///< what other families would have gained here, one each
};

struct Picture {
    std::vector<std::size_t> row;  ///< of the series; first of the group
    std::size_t group = 1;         ///< rows of the series that make one here
    std::vector<double> y, time_s;
    std::vector<std::size_t> attempts;  ///< first rows of starts
    robust::Noise noise;
    double base = 0;             ///< of y, without the patterns
    double skew = 0;             ///< of what is left, by quantiles: (p90 + p10 - 2 p50) / (p90 - p10)
    std::vector<double> rest;    ///< y - base - patterns
    std::vector<Finding> found;  ///< in the order in which they were taken off
    std::size_t warm_up = 0;     ///< rows left out

    std::size_t size() const { return y.size(); }
};

inline constexpr std::size_t kFewestRows = 20;

/// Throws IngestError for a series of fewer than kFewestRows; `file` is for its text.
Picture look_at(const StepSeries& series, const std::string& file);

}  // namespace fabricast
