// The campaign of a scenario, as data for reports.
#pragma once

#include <string>
#include <vector>

#include "sim/campaign/campaign.hpp"
#include "sim/campaign/economics.hpp"
#include "sim/campaign/interval_table.hpp"
#include "sim/step/result.hpp"

namespace fabricast::campaign {

struct CampaignReport {
    CampaignSpec spec;
    CampaignResult result;
    IntervalTable intervals;
    Prices prices;
    double checkpoint_bytes = 0;
    struct ConditionRow {
        std::string what;  ///< "healthy", "network adapter at half rate + congestion by neighbours"
        std::uint32_t phase = 0;
        Nanoseconds step = 0;
    };
    std::vector<ConditionRow> conditions;  ///< that occurred, by phase

    Economics of(const ReplicaResult& replica) const { return economics(spec.fleet, prices, replica); }
};

/// The numbers of a campaign from a scenario and its step. Throws ScenarioError for a time-out shorter than a step.
CampaignSpec campaign_spec(const Scenario& scenario, const Result& result, StepTimes& steps);

/// Who watches a campaign from the start, and may have its replicas run otherwise (sim/monitor).
class Watcher {
public:
    virtual ~Watcher() = default;
    /// Before anything runs; `steps` outlives the run.
    virtual void begins(const CampaignSpec& spec, StepTimes& steps) = 0;
    virtual void step_seen(const Condition& condition, const Scenario& scenario, const Result& result) = 0;
    /// From many threads.
    virtual ReplicaResult run(const CampaignSpec& spec, StepTimes& steps, std::uint32_t index, bool record) = 0;
    virtual void ended(const CampaignReport& report, StepTimes& steps) = 0;
};

struct CampaignOptions {
    bool memo = true;  ///< steps under a condition are simulated once; false: each time they are asked for, the same
    bool intervals = true;  ///< other checkpoint intervals as well
    Watcher* watcher = nullptr;
};

/// Runs the campaign of a scenario that has one and whose step ran; result.campaign holds it then. A run that most lives
/// never finish becomes the result's failure. `scenario` is that of the result. Steps under conditions run folded.
void add_campaign(const Scenario& scenario, Result& result, CampaignOptions options = {});

}  // namespace fabricast::campaign
