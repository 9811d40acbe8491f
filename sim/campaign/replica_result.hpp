// What one replica of a campaign came to. Times sum exactly: wall = sum of `spent`.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/campaign/campaign_spec.hpp"
#include "sim/campaign/course.hpp"

namespace fabricast::campaign {

std::string_view spent_name(Spent spent);  ///< "false_alarm"
std::string_view spent_text(Spent spent);  ///< "saves that looked like a hang"

enum class Outcome : std::uint8_t { done, horizon, stuck };  ///< stuck: restarts without end and without a new save

struct Incident {
    enum class Kind : std::uint8_t {
        fault,
        recovered,
        degraded,
        mended,
        congested,
        cleared,
        warning,
        critical,
        false_alarm,
        maintenance,
        limit,
        spare_fault,
        replica_left,
        replica_back,
        silent_found,
        none_left,
        poisoned,
        from_zero
    };
    Nanoseconds time = 0;
    Kind kind = Kind::fault;
    std::uint32_t node = 0, which = 0;  ///< which: component or degradation
    Nanoseconds lasted = 0;             ///< recovered: since the fault; steps lost are in `lost`
    std::int64_t lost_steps = 0;
    std::int64_t step = 0;  ///< kept at this moment
};
std::string_view incident_name(Incident::Kind kind);

struct ReplicaResult {
    Outcome outcome = Outcome::done;
    Nanoseconds wall = 0;
    std::array<Nanoseconds, kSpentCount> spent = {};
    std::int64_t steps = 0;  ///< kept
    double tokens = 0;
    std::uint32_t stops = 0;              ///< faults that struck the job, those during a recovery included
    std::vector<std::uint32_t> stops_by;  ///< the same by component
    std::uint32_t spare_faults = 0, recurred = 0, planned_stops = 0, false_alarms = 0, degradations = 0;
    std::uint32_t warnings = 0, criticals = 0;
    Nanoseconds first_warning = kNever, first_critical = kNever;
    std::int64_t saves = 0;
    Nanoseconds slow = 0;  ///< of `steps`: what they took beyond a healthy cluster's
    /// Faults from which all processes came back, hits during a recovery included: no silent corruption, no replica that
    /// comes back by itself, no hit while the job stood as planned. What they took: from the fault to the first new step,
    /// and steps that were thrown away.
    std::uint32_t recovered = 0;
    Nanoseconds recovering = 0, lost_to_faults = 0;
    Nanoseconds longest_run = 0;  ///< between two stops
    /// By component: wall time its stops cost, from the fault until steps go on, steps thrown away included. A fault that
    /// strikes during a recovery is on the account of the first. The rest of the time without kept steps is planned, or
    /// saves, stalls, watchdogs that err.
    std::vector<Nanoseconds> lost_by;
    std::vector<Incident> incidents;  ///< where they were recorded
    std::vector<Stretch> stretches;   ///< likewise; one behind the other, from 0 to `wall`

    double ettr() const;  ///< kept steps / wall
};

}  // namespace fabricast::campaign
