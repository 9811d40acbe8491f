#include "sim/report/expectation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/report/campaign_view.hpp"
#include "sim/report/monitor_view.hpp"

namespace fabricast {

const std::vector<std::string_view>& figure_names() {
    static const std::vector<std::string_view> names = [] {
        std::vector<std::string_view> all = {"time_s",
                                             "step_time_s",
                                             "tokens_per_s",
                                             "tokens_per_s_per_gpu",
                                             "model_tflops_per_gpu",
                                             "peak_tflops",
                                             "mfu",
                                             "hfu",
                                             "mfu_causal",
                                             "hfu_causal",
                                             "mfu_whole",
                                             "hfu_whole",
                                             "exposed_comm_fraction",
                                             "bubble_fraction",
                                             "ps",
                                             "steps_simulated",
                                             "days",
                                             "gpu_hours",
                                             "cost",
                                             "memory_gib",
                                             "failed_at_s",
                                             "epochs_done",
                                             "job_s",
                                             "longest_step_s",
                                             "reporting_ranks",
                                             "samples_missed",
                                             "ettr",
                                             "campaign_days",
                                             "campaign_tokens",
                                             "campaign_gpu_hours",
                                             "campaign_cost",
                                             "stops",
                                             "mttf_h",
                                             "best_interval_s",
                                             "best_to_young",
                                             "best_to_daly",
                                             "lost_h",
                                             "stop_detection_s",
                                             "stop_restart_s",
                                             "stop_lost_s",
                                             "warnings",
                                             "criticals",
                                             "first_warning_d",
                                             "first_critical_d"};
        const auto& more = report::monitor_figure_names();
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }();
    return names;
}

namespace {

std::optional<double> job_figure(const Result& result, std::string_view name) {
    if (!result.job)
        return std::nullopt;
    const JobResult& job = *result.job;
    if (name == "failed_at_s" && !result.failure.empty())
        return seconds(job.end);
    if (name == "job_s" && result.failure.empty())
        return seconds(job.end);
    if (name == "epochs_done")
        return static_cast<double>(std::count_if(job.epochs.begin(), job.epochs.end(),
                                                 [](const JobResult::Epoch& epoch) { return epoch.complete; }));
    if (name == "longest_step_s")
        return seconds(job.longest_step);
    if (name == "reporting_ranks")
        return static_cast<double>(job.reporting.size());
    if (name == "samples_missed" && !job.epochs.empty())
        return job.missed;
    return std::nullopt;
}

/// A hang is met by the time-out that ends it.
bool is_outcome(const std::string& word, const std::string& expected) {
    return word == expected || (expected == "hang" && word == "time-out");
}

/// Hours that were lost, what a stop takes, alerts of the step time: means of the lives; first alerts of those that had one.
std::optional<double> stop_figure(const campaign::CampaignReport& weeks, std::string_view name) {
    const auto mean = [&](auto figure) {
        return weeks.result.of([&](const campaign::ReplicaResult& r) { return static_cast<double>(figure(r)); }).mean;
    };
    const auto first_d = [&](auto time) -> std::optional<double> {
        std::vector<double> days;
        for (const campaign::ReplicaResult& r : weeks.result.replicas)
            if (time(r) < campaign::kNever)
                days.push_back(campaign::seconds_of(time(r)) / 86400);
        std::sort(days.begin(), days.end());
        return days.empty() ? std::nullopt : std::optional(days[(days.size() - 1) / 2]);
    };
    if (name == "lost_h")
        return mean([](const auto& r) {
                   return campaign::seconds_of(r.spent[static_cast<std::size_t>(campaign::Spent::lost)]);
               }) /
               3600;
    if (name == "warnings")
        return mean([](const auto& r) { return r.warnings; });
    if (name == "criticals")
        return mean([](const auto& r) { return r.criticals; });
    if (name == "first_warning_d")
        return first_d([](const auto& r) { return r.first_warning; });
    if (name == "first_critical_d")
        return first_d([](const auto& r) { return r.first_critical; });
    const report::StopTimes stop = report::stop_times(weeks);
    if (stop.stops <= 0)
        return std::nullopt;
    if (name == "stop_detection_s")
        return stop.detection_s;
    if (name == "stop_restart_s")
        return stop.restart_s;
    if (name == "stop_lost_s")
        return stop.lost_s;
    return std::nullopt;
}

/// What the campaign says about other checkpoint intervals.
std::optional<double> interval_figure(const campaign::CampaignReport& report, std::string_view name) {
    const campaign::IntervalAdvice& advice = report.result.advice;
    const campaign::IntervalTable& table = report.intervals;
    if (name == "mttf_h" && advice.given.mttf > 0)
        return advice.given.mttf / 3600;
    if (table.best <= 0)
        return std::nullopt;
    if (name == "best_interval_s")
        return table.best;
    if (name == "best_to_young")
        return table.best / advice.young;
    if (name == "best_to_daly")
        return table.best / advice.daly;
    return std::nullopt;
}

/// Median of the replicas; of stops the mean, which a rate is.
std::optional<double> campaign_figure(const Result& result, std::string_view name) {
    if (!result.campaign || result.campaign->result.replicas.empty())
        return std::nullopt;
    if (const std::optional<double> of_interval = interval_figure(*result.campaign, name))
        return of_interval;
    if (const std::optional<double> of_stop = stop_figure(*result.campaign, name))
        return of_stop;
    const std::string_view key = name.starts_with("campaign_") ? name.substr(9) : name;
    if (key == name && name != "ettr" && name != "stops")
        return std::nullopt;
    const bool priced = result.scenario->price_per_gpu_hour > 0;
    for (const report::CampaignFigure& f : report::campaign_figures(*result.campaign, priced))
        if (f.key == key)
            return key == "stops" ? f.value.mean : f.value.p50;
    return std::nullopt;
}

}  // namespace

std::optional<double> figure(const Result& result, std::string_view name) {
    if (const std::optional<double> value = campaign_figure(result, name))
        return value;
    if (const std::optional<double> value = report::monitor_figure(result, name))
        return value;
    if (name == "memory_gib") {
        if (result.memory.empty())
            return std::nullopt;
        std::int64_t heaviest = 0;
        for (const StageMemory& stage : result.memory)
            heaviest = std::max(heaviest, stage.total_bytes);
        return static_cast<double>(heaviest) / static_cast<double>(std::int64_t{1} << 30);
    }
    if (const std::optional<double> of_job = job_figure(result, name))
        return of_job;
    if (result.step.ps <= 0)
        return std::nullopt;
    const Headline h = headline(result);
    if (name == "time_s" || name == "step_time_s")
        return h.step_s;
    if (name == "tokens_per_s")
        return h.tokens_per_s;
    if (name == "tokens_per_s_per_gpu")
        return h.tokens_per_s_per_gpu;
    if (name == "model_tflops_per_gpu")
        return h.model_tflops_per_gpu;
    if (name == "peak_tflops")
        return h.peak_tflops;
    if (name == "mfu")
        return h.mfu;
    if (name == "hfu")
        return h.hfu;
    if (name == "mfu_causal")
        return h.mfu_causal;
    if (name == "hfu_causal")
        return h.hfu_causal;
    if (name == "mfu_whole")
        return h.mfu_whole;
    if (name == "hfu_whole")
        return h.hfu_whole;
    if (name == "exposed_comm_fraction")
        return h.exposed_comm_fraction;
    if (name == "bubble_fraction")
        return h.bubble_fraction;
    if (name == "ps")
        return static_cast<double>(result.step.ps);
    if (name == "steps_simulated")
        return static_cast<double>(result.step.steps_simulated);
    if (name == "days" && h.days > 0)
        return h.days;
    if (name == "gpu_hours" && h.gpu_hours > 0)
        return h.gpu_hours;
    if (name == "cost" && h.cost > 0)
        return h.cost;
    return std::nullopt;
}

std::vector<ExpectationOutcome> check_expectations(const Result& result) {
    std::vector<ExpectationOutcome> outcomes;
    if (const std::string& word = result.scenario->expect_outcome; !word.empty()) {
        ExpectationOutcome outcome;
        outcome.what = "outcome";
        outcome.expected_word = word;
        outcome.word = outcome_word(result);
        outcome.met = is_outcome(outcome.word, word);
        outcomes.push_back(outcome);
    }
    for (const Scenario::Expectation& expected : result.scenario->expect) {
        ExpectationOutcome outcome;
        outcome.what = expected.what;
        outcome.low = expected.low;
        outcome.high = expected.high;
        outcome.value = figure(result, expected.what);
        outcome.met = outcome.value && *outcome.value >= outcome.low && *outcome.value <= outcome.high;
        outcomes.push_back(outcome);
    }
    return outcomes;
}

std::string outcome_word(const Result& result) {
    if (result.failure.empty())
        return "ok";
    std::string word = result.verdict;
    std::replace(word.begin(), word.end(), ' ', '_');
    return word;
}

bool failed_unexpectedly(const Result& result) {
    return !result.failure.empty() && !is_outcome(outcome_word(result), result.scenario->expect_outcome);
}

std::string describe(const ExpectationOutcome& outcome) {
    if (!outcome.expected_word.empty()) {
        return outcome.met ? fmt::format("outcome {}", outcome.word)
                           : fmt::format("outcome {}, expected {}", outcome.word, outcome.expected_word);
    }
    const std::string interval = fmt::format("[{:.6g}, {:.6g}]", outcome.low, outcome.high);
    if (!outcome.value) {
        const std::vector<std::string_view>& names = figure_names();
        const bool known = std::find(names.begin(), names.end(), outcome.what) != names.end();
        return known ? fmt::format("{} has no value in this forecast, expected {}", outcome.what, interval)
                     : fmt::format("{} is no figure of a forecast; known are {}", outcome.what, fmt::join(names, ", "));
    }
    const char* relation = outcome.met ? "in" : *outcome.value < outcome.low ? "is below" : "is above";
    return fmt::format("{} {:.6g} {} {}", outcome.what, *outcome.value, relation, interval);
}

}  // namespace fabricast
