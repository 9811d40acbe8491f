// Alarms held against what was wrong.
//
// An alarm that names the part of a degradation belongs to that; any other to what its metric shows and was there when it
// rose, or up to `grace` (hold, window, two samples) before. Where several things make a step longer, to the one that
// makes it longest. Congestion is nothing to a rule of peers: all of them have it. Alarms of a threshold on the value itself
// that a healthy job of the first phase passes belong to nothing; of other rules and phases this is not asked. An alarm that
// belongs to nothing is false. A truth is caught by a rule when an alarm of it belongs to it, that is, one that rose: a second
// truth while the alarm of a first one stands, or within its `keep`, counts as missed. The delay is the time from the truth's
// begin to the first of its alarms, below 0 where memory told of a leak before steps did. `out_of_sight`: missed, and the
// metric could not show it.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "sim/monitor/truth.hpp"
#include "sim/monitor/watch.hpp"

namespace fabricast::monitor {

inline constexpr double kNoDelay = -std::numeric_limits<double>::infinity();  ///< nothing was caught

/// The lower one of two in the middle; kNoDelay of none. Puts `delays` into another order.
double median_delay(std::vector<double>& delays);

struct RuleOutcome {
    monitors::Rule rule;
    std::uint32_t alarms = 0, caught = 0, missed = 0, out_of_sight = 0, false_alarms = 0;
    double median_delay_s = kNoDelay;
    double standing = 0;  ///< share of the time that an alarm stood
    Nanoseconds first_warning = campaign::kNever, first_critical = campaign::kNever;
};

struct TruthOutcome {
    Truth truth;
    std::string what;
    struct Catch {
        std::uint32_t rule = 0;
        double delay_s = 0;
    };
    std::vector<Catch> caught_by;  ///< in order of rules
};

struct MonitorReport {
    Nanoseconds interval = 0, wall = 0;
    std::uint32_t replica = 0;
    std::int64_t samples = 0;
    std::uint32_t actions = 0;  ///< restarts that rules asked for
    bool gave_up = false;       ///< they asked for so many that nobody listened any more
    std::vector<RuleOutcome> rules;
    std::vector<TruthOutcome> truths;
    std::vector<Alarm> alarms;
    struct Throttle {
        Nanoseconds time = 0;
        double celsius = 0;
    };
    std::vector<Throttle> throttles;  ///< when rules cut the power of the hot GPU, and what they hold it at
    // to read the series again
    campaign::CampaignSpec spec;
    Fleet fleet;
    std::shared_ptr<const Pictures> pictures;
    std::uint64_t seed = 0;
};

/// Fills rules and truths of `report`, whose alarms, spec, fleet, pictures and interval are there.
void judge(const std::vector<monitors::Rule>& rules, const campaign::ReplicaResult& replica, MonitorReport& report);

}  // namespace fabricast::monitor
