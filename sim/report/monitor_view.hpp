// What monitors saw, as rows: the figures all views of it share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/monitor/judge.hpp"
#include "sim/step/result.hpp"

namespace fabricast::report {

/// Things of one kind that were wrong with the life, and who saw them.
struct TruthRow {
    std::string what;
    std::uint32_t count = 0, caught = 0;        ///< by a rule that is not quoted from the field report
    std::string first_rule;                     ///< that caught most of them, soonest on a tie; empty: none
    double median_delay_s = monitor::kNoDelay;  ///< until the first rule had it
};
std::vector<TruthRow> truth_rows(const monitor::MonitorReport& report);

/// "step_time", or "case-a: step_time" where it is none of ours.
std::string rule_name(const monitors::Rule& rule);

/// monitor_false_alarms, monitor_caught (both without the rules of the field report), case_a_false_alarms, case_a_caught,
/// monitor_warning_d, monitor_critical_d (first alarm of the rules that hold step_time against the base), monitor_restarts.
std::optional<double> monitor_figure(const Result& result, std::string_view name);
const std::vector<std::string_view>& monitor_figure_names();

/// Empty without monitors. `full`: rules that were silent, too, and each alarm.
std::string monitor_text(const Result& result, bool full, bool color, bool unicode = true);

}  // namespace fabricast::report
