// What was wrong with a replica and when: the truth that rules are judged against.
//
// One entry for each fault that struck the job (until it ran again; what breaks meanwhile is an entry of its own, but shows
// only in what the driver tells of it), replica that left (until it is back), silent corruption (until it is found) and its
// end (until the job ran again), degradation (until mended), episode of congestion, flap, loss that is not a number, training
// begun anew, save that the watchdog took for a hang (each until the job ran again), and start of the job under a leak (from
// the end of its free time until the next start).
#pragma once

#include <string>
#include <vector>

#include "sim/campaign/campaign_report.hpp"
#include "sim/monitor/fleet.hpp"

namespace fabricast::monitor {

struct Truth {
    enum class Kind : std::uint8_t {
        stop,
        departure,  ///< of a replica; the others go on
        undone,     ///< silent corruption was found: the job goes back
        degradation,
        congestion,
        flap,
        leak,
        poisoned,
        from_zero,
        false_alarm
    };
    Kind kind = Kind::stop;
    std::uint32_t which = 0;  ///< component or degradation
    Nanoseconds begin = 0, end = 0;
    Nanoseconds ahead = 0;      ///< so long before `begin` it was there, and steps were as ever
    bool while_down = false;    ///< a stop of a job that stands already
    std::uint32_t replica = 0;  ///< of a departure
};

/// In order of time.
std::vector<Truth> truths_of(const campaign::CampaignSpec& spec, const campaign::ReplicaResult& replica);

/// "network adapter at half rate".
std::string truth_text(const campaign::CampaignSpec& spec, const Truth& truth);

/// Does the metric read otherwise while this is so? `part`: of a metric of peers, the part of a degradation the question is
/// about, or -1 for the parts that are well.
bool moves(const campaign::CampaignSpec& spec, const Truth& truth, Metric metric, int part);

/// A metric that follows the time of the step, whatever makes it long.
bool follows_step(Metric metric);

}  // namespace fabricast::monitor
