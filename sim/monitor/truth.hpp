// What was wrong with a replica and when: the truth that rules are judged against.
//
// One entry for each fault that struck a running job (until it ran again; what breaks meanwhile is a part of it), degradation (until mended), episode of congestion, flap,
// loss that is not a number, and start of the job under a leak (from the end of its free time until the next start).
#pragma once

#include <string>
#include <vector>

#include "sim/campaign/campaign_report.hpp"
#include "sim/monitor/fleet.hpp"

namespace fabricast::monitor {

struct Truth {
    enum class Kind : std::uint8_t { stop, degradation, congestion, flap, leak, poisoned };
    Kind kind = Kind::stop;
    std::uint32_t which = 0;  ///< component or degradation
    Nanoseconds begin = 0, end = 0;
    Nanoseconds ahead = 0;    ///< so long before `begin` it was there, and steps were as ever
    bool while_down = false;  ///< a stop of a job that stands already
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
