#include "sim/campaign/interval_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <oneapi/tbb/parallel_for.h>

namespace fabricast::campaign {
namespace {

constexpr double kFactors[] = {0.125, 0.25, 0.5, 1, 2, 4, 8};
constexpr double kRestarts[] = {0.5, 1, 2, 4};
constexpr double kStalls[] = {0.0625, 0.25, 1, 4, 16};
constexpr double kFitted = 4.01;  ///< rows within this factor of the middle

std::vector<double> by_restart(faults::CheckpointCase given, const std::vector<double>& restarts, double interval) {
    std::vector<double> ettr;
    for (const double restart : restarts) {
        given.restart = restart;
        ettr.push_back(faults::exact_ettr(given, interval));
    }
    return ettr;
}

/// Intervals in steps: powers of two around `middle`, and the one of the job.
std::vector<std::int64_t> intervals(double middle, double shortest, double step, std::int64_t own) {
    std::vector<std::int64_t> all = {own};
    for (const double factor : kFactors) {
        const double every = middle * factor;
        if (every >= shortest)
            all.push_back(std::max<std::int64_t>(1, std::llround(every / step)));
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

struct Lives {
    std::vector<double> ettr;
    std::uint64_t stops = 0;
};

/// The first `lives` replicas with another interval.
Lives simulate(CampaignSpec spec, StepTimes& steps, const RunOne& run, std::uint32_t lives, std::int64_t every_steps) {
    spec.checkpoint.every_steps = every_steps;
    Lives out;
    out.ettr.resize(lives);
    std::vector<std::uint32_t> stops(lives);
    oneapi::tbb::parallel_for(std::uint32_t{0}, lives, [&](std::uint32_t i) {
        const ReplicaResult r = run(spec, steps, i, false);
        out.ettr[i] = r.ettr();
        stops[i] = r.stops;
    });
    for (const std::uint32_t n : stops)
        out.stops += n;
    return out;
}

void fill(IntervalTable::Row& row, const std::vector<double>& ettr, const std::vector<double>& own) {
    const auto lives = static_cast<double>(ettr.size());
    for (std::size_t i = 0; i < ettr.size(); ++i) {
        row.simulated += ettr[i] / lives;
        row.gain += (ettr[i] - own[i]) / lives;
    }
    double squares = 0;
    for (std::size_t i = 0; i < ettr.size(); ++i) {
        const double off = ettr[i] - own[i] - row.gain;
        squares += off * off;
    }
    row.error = lives > 1 ? std::sqrt(squares / (lives - 1) / lives) : 0;
}

double best_row(const std::vector<IntervalTable::Row>& rows) {
    return std::max_element(rows.begin(), rows.end(),
                            [](const auto& a, const auto& b) { return a.simulated < b.simulated; })
        ->interval;
}

}  // namespace

// Normal equations for a, b, c by Cramer's rule, in x over its geometric middle so that the columns are alike.
double least_of_fit(const std::vector<double>& x, const std::vector<double>& y) {
    const double scale = std::sqrt(x.front() * x.back());
    std::array<std::array<double, 3>, 3> m = {};
    std::array<double, 3> right = {};
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::array<double, 3> column = {scale / x[i], x[i] / scale, 1};
        for (std::size_t r = 0; r < 3; ++r) {
            right[r] += column[r] * y[i];
            for (std::size_t c = 0; c < 3; ++c)
                m[r][c] += column[r] * column[c];
        }
    }
    const auto determinant = [](const std::array<std::array<double, 3>, 3>& a) {
        return a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) - a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
               a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
    };
    const auto replaced = [&](std::size_t column) {
        auto a = m;
        for (std::size_t r = 0; r < 3; ++r)
            a[r][column] = right[r];
        return determinant(a);
    };
    const double whole = determinant(m);
    if (!(whole > 0))
        return 0;
    const double a = replaced(0) / whole, b = replaced(1) / whole;
    return a > 0 && b > 0 ? scale * std::sqrt(a / b) : 0;
}

IntervalTable interval_table(const CampaignSpec& spec, StepTimes& steps, const IntervalAdvice& advice,
                             const RunOne& run) {
    IntervalTable table;
    if (advice.best <= 0)
        return table;
    table.lives = std::min(spec.replicas, kTableLives);
    for (const double factor : kRestarts)
        table.restarts.push_back(factor * advice.given.restart);
    const double step = seconds_of(steps.step({spec.phases.front().key, 0}));
    const double shortest = seconds_of(spec.checkpoint.write), middle = std::max(advice.best, shortest);
    const Lives own = simulate(spec, steps, run, table.lives, spec.checkpoint.every_steps);
    std::vector<double> x, y;
    for (const std::int64_t every : intervals(middle, shortest, step, spec.checkpoint.every_steps)) {
        IntervalTable::Row& row = table.rows.emplace_back();
        row.every_steps = every;
        row.interval = static_cast<double>(every) * step;
        row.as_it_is = every == spec.checkpoint.every_steps;
        row.formula = by_restart(advice.given, table.restarts, row.interval);
        fill(row, row.as_it_is ? own.ettr : simulate(spec, steps, run, table.lives, every).ettr, own.ettr);
        if (row.interval > middle / kFitted && row.interval < middle * kFitted && row.simulated > 0) {
            x.push_back(row.interval);
            y.push_back(1 / row.simulated - 1);
        }
    }
    table.few_stops = own.stops < kFewStops;
    if (table.few_stops)
        table.best = middle;
    else if (x.size() > 3)
        table.best = least_of_fit(x, y);
    // A fit that leaves its points says no more than that the best is at their edge.
    if (!table.few_stops && (table.best <= 0 || table.best < x.front() || table.best > x.back()))
        table.best = best_row(table.rows);
    for (const double factor : kStalls) {
        faults::CheckpointCase given = advice.given;
        given.save *= factor;
        const double best = faults::best_interval(given);
        table.stalls.push_back({given.save, best, by_restart(given, table.restarts, best)});
    }
    return table;
}

}  // namespace fabricast::campaign
