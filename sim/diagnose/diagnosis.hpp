// A run as it was logged against its forecast: what is to be seen in it, and which faults, simulated again, look like that.
//
//   score(fault | finding) = ln prior(fault) + ln p(pattern | fault) + gain of the family of patterns it makes + metrics
//
//   prior      rate x length of the log, or the share of jobs that have it from the start (models/faults/signatures.yaml)
//   pattern    size against what the step simulator gives over the range of severities, averaged over that range; how long it
//              lasted; its period, stops, window
//   gain       picture.hpp: a fault that makes ramps is not out of the race where levels fit better, it is behind by as much
//   metrics    other columns of the log, where there are any: data wait, rates of links, clocks, temperatures, counters
//
// A simulated change of the step is right to a relative kPartError x s, s the spread of published runs around the forecast: a
// step is the sum of about four parts (compute, memory, communication, waiting) and errors of independent parts are twice
// that of their sum. `something else` has kUnknown of all priors (Llama 3 report, causes unknown: 7 of 419) and any size.
//
// The level of the log is compared with the forecast apart from its patterns: what is wrong from the first step on shows only
// there, and s is then the limit of what can be told.
// Not done: two faults at one time are two findings only where their patterns can be told apart.
#pragma once

#include <string>
#include <vector>

#include "models/faults/signatures.hpp"
#include "sim/observed/picture.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/result.hpp"

namespace fabricast {

inline constexpr double kPartError = 2;
inline constexpr double kUnknown = 7.0 / 419;
inline constexpr double kFarOff = 1.5;  ///< a level so far outside the interval belongs to another scenario

struct Cause {
    const faults::Signature* what = nullptr;
    double score = 0;         ///< ln
    double fit = 0;           ///< ln p(pattern and metrics | fault), without the prior
    double probability = 0;   ///< among all causes of the finding and something else
    std::string severity;     ///< "1410 MHz", "1.07 times as long"; empty: it has none
    std::string inject;       ///< what --inject takes to simulate it; empty: nothing does
    double predicted = 0;     ///< size that the simulated fault gives, in the unit of seen; 0: not simulated
    bool by_metrics = false;  ///< other columns spoke for or against it
};

struct Explained {
    Pattern pattern;
    bool against_forecast = false;  ///< the level of the whole log; pattern has a size only
    double seen = 0;            ///< level, periodic, spikes, wave, offset: ln ratio; ramp: share an hour; noise: sigma
    double excess_s = 0;        ///< of a raised step
    std::vector<Cause> causes;  ///< best first
    double something_else = 0;  ///< probability
    bool alike = false;         ///< the first two differ by their rates alone, not by what is seen
};

struct Diagnosis {
    double forecast_s = 0, low_s = 0, high_s = 0;  ///< the interval of 80 % of runs like it
    std::string like;                              ///< "dense runs on A100"
    std::int64_t rows = 0, every = 1, failed = 0;
    double median_s = 0, p10_s = 0, p90_s = 0, base_s = 0;
    double inside = 0;  ///< share of steps in the interval
    double noise = 0;   ///< sigma of ln(step time)
    bool other_scenario = false;
    bool nothing_found = true;
    double offset = 0;                  ///< ln(base_s / forecast_s)
    std::vector<Explained> findings;    ///< in the order of what they cost
    std::vector<Explained> from_start;  ///< 0 or 1: not found, but what it would be
    std::vector<std::string> notes;
    std::string failure;                   ///< of the log
    struct Stretch {                       ///< an eighth of the log
        std::int64_t first = 0, last = 0;  ///< steps
        double median_s = 0, p10_s = 0, p90_s = 0, inside = 0;
    };
    std::vector<Stretch> stretches;
    std::vector<std::int64_t> step;  ///< last step of each row of the picture
    std::int64_t gpus = 0;
    Picture picture;
    std::uint64_t events = 0;
    std::int64_t simulated = 0;  ///< steps and conditions
};

/// Interval and its sentence come from sim/report. healthy: forecast(scenario), which did not fail.
struct ForecastInterval {
    double low_s = 0, high_s = 0;
    std::string like;
};

/// Throws IngestError for a series that is too short.
Diagnosis diagnose(const Scenario& scenario, const Result& healthy, const ForecastInterval& interval,
                   const StepSeries& series, const std::string& file);

/// The same with simulated steps that are kept from log to log of one scenario.
class FaultSteps;
Diagnosis diagnose(const Scenario& scenario, const Result& healthy, const ForecastInterval& interval,
                   const StepSeries& series, const std::string& file, FaultSteps& steps);

}  // namespace fabricast
