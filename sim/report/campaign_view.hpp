// A campaign as rows: the figures all views of it share.
#pragma once

#include <string>
#include <vector>

#include "sim/campaign/campaign_report.hpp"

namespace fabricast::report {

struct CampaignFigure {
    std::string key;   ///< "gpu_hours", as in result.json and expect: with campaign_ before it
    std::string text;  ///< "GPU-hours billed"
    campaign::Quantiles value;
};
/// days, ettr, tokens, gpu_hours, cost (with a price), energy_mwh, stops, longest_run_h.
std::vector<CampaignFigure> campaign_figures(const campaign::CampaignReport& report, bool priced);

/// What a fault took that all processes came back from (ReplicaResult::recovered), s, mean over all of them: until it was
/// noticed; from then to the first new step, with load and waits for a node; steps done and lost. `stops`: how many a life,
/// in the mean; 0: the rest is not known.
struct StopTimes {
    double stops = 0, detection_s = 0, restart_s = 0, lost_s = 0;
};
StopTimes stop_times(const campaign::CampaignReport& report);

/// "13 s", "4.2 min", "7.5 h", "3.1 d".
std::string span_text(double seconds);
/// "fault: GPU memory, node 29", "back after 14.2 min, 412 steps lost".
std::string incident_text(const campaign::CampaignSpec& spec, const campaign::Incident& incident);
/// "async, every 1.0 h (1250 steps): 0.3 s stop, 19.6 s until it counts, 19.6 s to load".
std::string checkpoint_text(const campaign::CampaignReport& report);
/// What Young, Daly and the exact formula say; empty without saves or faults.
std::string advice_text(const campaign::IntervalAdvice& advice);

}  // namespace fabricast::report
