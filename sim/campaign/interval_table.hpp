// Goodput (ETTR) against the checkpoint interval, around the best one: by formula and by the campaign itself.
//
//   by formula   exact_ettr (models/faults/checkpoint_interval.hpp) at intervals best x 2^k, for restarts of a half to four
//                times the mean one of the job: exponential failures, nothing else
//   simulated    the first `lives` replicas of the campaign with that interval and nothing else changed (the same luck in
//                each row, so rows differ by the interval alone): bursts, waits for nodes, writes beside the steps, all
//   best         overhead = wall / kept - 1 = a / tau + b tau + c (stalls, replay, the rest), least squares over the simulated
//                rows within a factor of 4 of the middle; tau = sqrt(a / b). Where that has no minimum: the best row. Fewer
//                than kFewStops stops in all lives say nothing: then it is the middle
//   stalls       the best interval and its ETTR if a save stopped the job for a sixteenth to sixteen times as long
//
// The formula knows nothing of copies in memory (mode memory): there the simulated column alone holds.
// The middle is the formula's best interval, or the write beside the steps where that is longer: shorter ones wait for it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/campaign/campaign.hpp"

namespace fabricast::campaign {

struct IntervalTable {
    std::uint32_t lives = 0;
    std::vector<double> restarts;  ///< s, columns of the formula; the second is the job's own
    struct Row {
        double interval = 0;  ///< s
        std::int64_t every_steps = 0;
        bool as_it_is = false;
        std::vector<double> formula;  ///< ETTR, by restart
        double simulated = 0;         ///< mean ETTR of the lives
        double gain = 0, error = 0;   ///< against the interval as it is, life by life: mean and its standard error
    };
    std::vector<Row> rows;   ///< by interval; empty without saves, failures or a stall
    double best = 0;         ///< s, by simulation; 0: no rows
    bool few_stops = false;  ///< so that best is the formula's
    struct Stall {
        double save = 0, best = 0;    ///< s
        std::vector<double> formula;  ///< ETTR at `best`, by restart
    };
    std::vector<Stall> stalls;
};

inline constexpr std::uint32_t kTableLives = 40;  ///< at most
inline constexpr std::uint32_t kFewStops = 30;

/// Runs rows x lives replicas in parallel, each by `run` as in run_campaign; the same on any number of threads.
IntervalTable interval_table(const CampaignSpec& spec, StepTimes& steps, const IntervalAdvice& advice,
                             const RunOne& run = run_replica);

/// Where a / x + b x + c, fitted to the points by least squares, is least; 0 where it is not convex. At least 3 points, x > 0.
double least_of_fit(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace fabricast::campaign
