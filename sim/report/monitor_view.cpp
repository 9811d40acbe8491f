#include "sim/report/monitor_view.hpp"

#include <algorithm>
#include <limits>
#include <map>

namespace fabricast::report {
namespace {

using namespace monitor;

bool quoted(const monitors::Rule& rule) { return rule.set == "case-a"; }

TruthRow row_of(const MonitorReport& report, const std::string& what) {
    TruthRow row;
    row.what = what;
    std::vector<double> delays;
    std::map<std::uint32_t, std::pair<std::uint32_t, double>> rules;  // how many, sum of delays
    for (const TruthOutcome& t : report.truths) {
        if (t.what != what)
            continue;
        ++row.count;
        double soonest = std::numeric_limits<double>::infinity();
        for (const TruthOutcome::Catch& c : t.caught_by) {
            if (quoted(report.rules[c.rule].rule))
                continue;
            soonest = std::min(soonest, c.delay_s);
            auto& [count, sum] = rules[c.rule];
            ++count;
            sum += c.delay_s;
        }
        if (soonest < std::numeric_limits<double>::infinity())
            delays.push_back(soonest);
    }
    row.caught = static_cast<std::uint32_t>(delays.size());
    row.median_delay_s = median_delay(delays);
    const auto best = std::max_element(rules.begin(), rules.end(), [](const auto& a, const auto& b) {
        const auto& [na, sa] = a.second;
        const auto& [nb, sb] = b.second;
        return na != nb ? na < nb : sa > sb;
    });
    if (best != rules.end())
        row.first_rule = rule_name(report.rules[best->first].rule);
    return row;
}

}  // namespace

std::vector<TruthRow> truth_rows(const MonitorReport& report) {
    std::vector<std::string> kinds;
    for (const TruthOutcome& t : report.truths)
        if (std::find(kinds.begin(), kinds.end(), t.what) == kinds.end())
            kinds.push_back(t.what);
    std::vector<TruthRow> rows;
    for (const std::string& what : kinds)
        rows.push_back(row_of(report, what));
    std::stable_sort(rows.begin(), rows.end(), [](const TruthRow& a, const TruthRow& b) { return a.count > b.count; });
    return rows;
}

std::string rule_name(const monitors::Rule& rule) { return quoted(rule) ? "case-a: " + rule.name : rule.name; }

const std::vector<std::string_view>& monitor_figure_names() {
    static const std::vector<std::string_view> names = {
        "monitor_false_alarms", "monitor_caught",     "case_a_false_alarms", "case_a_caught",
        "monitor_warning_d",    "monitor_critical_d", "monitor_restarts"};
    return names;
}

std::optional<double> monitor_figure(const Result& result, std::string_view name) {
    if (!result.monitors)
        return std::nullopt;
    const MonitorReport& report = *result.monitors;
    if (name == "monitor_restarts")
        return report.actions;
    const bool case_a = name.starts_with("case_a");
    double false_alarms = 0, caught = 0;
    Nanoseconds warning = campaign::kNever, critical = campaign::kNever;
    for (const RuleOutcome& out : report.rules) {
        if (out.rule.metric == Metric::step_time && out.rule.of == monitors::Of::base) {
            warning = std::min(warning, out.first_warning);
            critical = std::min(critical, out.first_critical);
        }
        false_alarms += quoted(out.rule) == case_a ? out.false_alarms : 0;
    }
    for (const TruthOutcome& t : report.truths)
        caught += std::any_of(t.caught_by.begin(), t.caught_by.end(), [&](const TruthOutcome::Catch& c) {
            return quoted(report.rules[c.rule].rule) == case_a;
        });
    if (name == "monitor_false_alarms" || name == "case_a_false_alarms")
        return false_alarms;
    if (name == "monitor_caught" || name == "case_a_caught")
        return caught;
    const Nanoseconds first = name == "monitor_warning_d" ? warning : critical;
    if ((name == "monitor_warning_d" || name == "monitor_critical_d") && first < campaign::kNever)
        return campaign::seconds_of(first) / 86400;
    return std::nullopt;
}

}  // namespace fabricast::report
