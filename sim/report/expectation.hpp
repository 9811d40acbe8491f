// `expect:` of a scenario held against the forecast: a figure, an inclusive interval, met or not.
//
// A figure is any number of step in result.json (mfu, time_s ...), or days, gpu_hours, cost (of the whole run)
// or memory_gib (heaviest stage); step_time_s is another name of time_s. A figure the result does not have (days
// without run.tokens, mfu of a job that failed) meets nothing. Of a campaign: ettr, campaign_days, campaign_tokens,
// campaign_gpu_hours, campaign_cost (medians), stops (mean), mttf_h, best_interval_s (of checkpoints, by simulation),
// best_to_young, best_to_daly (the same over the formulas), lost_h (steps done and lost), stop_detection_s, stop_restart_s (with
// load and waits for a node), stop_lost_s (of one stop), warnings, criticals (of the step time), first_warning_d,
// first_critical_d. Of a job over epochs or faults: failed_at_s, job_s,
// epochs_done, longest_step_s, reporting_ranks, samples_missed. `outcome` is a word: how the job must end.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/views.hpp"

namespace fabricast {

/// Names that can be expected, in the order of result.json.
const std::vector<std::string_view>& figure_names();

/// Value of a figure; empty when the name is unknown or the result does not have it.
std::optional<double> figure(const Result& result, std::string_view name);

struct ExpectationOutcome {
    std::string what;
    double low = 0, high = 0;
    std::optional<double> value;
    std::string expected_word, word;  ///< of `outcome`, instead of numbers
    bool met = false;
};
std::vector<ExpectationOutcome> check_expectations(const Result& result);

/// "ok", "out_of_memory", "deadlock", "time-out", "hang", "transport_error", "crash".
std::string outcome_word(const Result& result);

/// The job ended other than it should: it failed and the scenario does not expect just that.
bool failed_unexpectedly(const Result& result);

/// "mfu 0.461 in [0.4, 0.52]", "mfu 0.31 is below [0.4, 0.52]", "days: the forecast has no such figure".
std::string describe(const ExpectationOutcome& outcome);

}  // namespace fabricast
