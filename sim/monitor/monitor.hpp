// The monitors of a campaign: rules that watch one replica and are judged, rules that act and change all of them.
//
// A rule that asks for a restart has it at the next sample at which one helps (Sample::restarts), if its alarm still stands:
// the replica is run again with somebody who saves and restarts it at that instant (campaign::ScheduledFault::Kind::restart),
// and its samples go on from there; draws are counted, so what came before stays. A job that hangs is ended then, before its
// time-out. One that is on its way back has no need of it.
// After kMostActions in one replica nobody listens any more, and the report says so.
#pragma once

#include "sim/monitor/judge.hpp"
#include "sim/monitor/walk.hpp"

namespace fabricast::monitor {

inline constexpr std::uint32_t kMostActions = 200;

/// campaign::add_campaign, watched where the scenario has monitors; result.monitors holds what they saw of the replica shown.
void add_campaign(const Scenario& scenario, Result& result, campaign::CampaignOptions options = {});

/// For campaigns made by hand: how one replica runs under rules that act. `actions`, `gave_up` may be null.
campaign::ReplicaResult run_under(const std::vector<monitors::Rule>& rules, const Fleet& fleet,
                                  const Pictures& pictures, const campaign::CampaignSpec& spec,
                                  campaign::StepTimes& steps, std::uint32_t index, Nanoseconds interval,
                                  std::uint32_t* actions, bool* gave_up);

/// All samples of a replica that has run, and the verdict on each rule.
MonitorReport watch_replica(const std::vector<monitors::Rule>& rules, const Fleet& fleet,
                            std::shared_ptr<const Pictures> pictures, const campaign::CampaignSpec& spec,
                            const campaign::ReplicaResult& replica, std::uint32_t index, Nanoseconds interval);

/// The samples of a report once more, one by one; the GPU that a rule throttles included.
class Series {
public:
    Series(const MonitorReport& report, const campaign::ReplicaResult& replica);
    bool next(Sample& sample);
    /// Of a metric of peers the part at the bad end, odd ones included; otherwise the value itself.
    double worst(const Sample& sample, Metric metric);

private:
    const MonitorReport& report_;
    Walk walk_;
    std::size_t throttle_ = 0;
};

}  // namespace fabricast::monitor
