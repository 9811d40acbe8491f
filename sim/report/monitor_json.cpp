#include "sim/report/monitor_json.hpp"

#include <nlohmann/json.hpp>

#include "sim/report/monitor_view.hpp"

namespace fabricast::report {
namespace {

using namespace monitor;
using nlohmann::ordered_json;

constexpr std::size_t kMostAlarms = 1000;

ordered_json seconds_or_null(Nanoseconds time) {
    return time < campaign::kNever ? ordered_json(campaign::seconds_of(time)) : ordered_json();
}
ordered_json level_or_null(double level) { return level != monitors::kNoLevel ? ordered_json(level) : ordered_json(); }
ordered_json delay_or_null(double s) { return s != monitor::kNoDelay ? ordered_json(s) : ordered_json(); }

ordered_json rule_json(const RuleOutcome& out) {
    const monitors::Rule& r = out.rule;
    return {{"rule", rule_name(r)},
            {"set", r.set},
            {"metric", monitors::info(r.metric).name},
            {"text", monitors::rule_text(r)},
            {"reason", r.reason},
            {"action", monitors::action_name(r.action)},
            {"warning", level_or_null(r.warning)},
            {"critical", level_or_null(r.critical)},
            {"hold_s", r.hold_s},
            {"keep_s", r.keep_s},
            {"window_s", r.window_s},
            {"alarms", out.alarms},
            {"caught", out.caught},
            {"missed", out.missed},
            {"missed_out_of_sight", out.out_of_sight},
            {"median_delay_s", delay_or_null(out.median_delay_s)},
            {"false_alarms", out.false_alarms},
            {"standing_fraction", out.standing},
            {"first_alarm_s", seconds_or_null(out.first_warning)},
            {"first_critical_s", seconds_or_null(out.first_critical)}};
}

}  // namespace

ordered_json monitor_json(const Result& result) {
    if (!result.monitors)
        return {};
    const MonitorReport& report = *result.monitors;
    ordered_json rules = ordered_json::array(), truths = ordered_json::array(), kinds = ordered_json::array(),
                 alarms = ordered_json::array(), throttles = ordered_json::array();
    for (const RuleOutcome& out : report.rules)
        rules.push_back(rule_json(out));
    for (const TruthRow& row : truth_rows(report))
        kinds.push_back({{"what", row.what},
                         {"times", row.count},
                         {"caught", row.caught},
                         {"median_delay_s", delay_or_null(row.median_delay_s)},
                         {"mostly_by", row.first_rule}});
    for (const TruthOutcome& t : report.truths) {
        ordered_json by = ordered_json::array();
        for (const TruthOutcome::Catch& c : t.caught_by)
            by.push_back({{"rule", rule_name(report.rules[c.rule].rule)}, {"delay_s", c.delay_s}});
        truths.push_back({{"what", t.what},
                          {"begin_s", campaign::seconds_of(t.truth.begin)},
                          {"end_s", campaign::seconds_of(t.truth.end)},
                          {"caught_by", std::move(by)}});
    }
    for (std::size_t i = 0; i < std::min(kMostAlarms, report.alarms.size()); ++i) {
        const Alarm& alarm = report.alarms[i];
        alarms.push_back({{"rule", rule_name(report.rules[alarm.rule].rule)},
                          {"begin_s", campaign::seconds_of(alarm.begin)},
                          {"end_s", campaign::seconds_of(std::min(alarm.end, report.wall))},
                          {"critical_s", seconds_or_null(alarm.critical)}});
    }
    for (const MonitorReport::Throttle& t : report.throttles)
        throttles.push_back({{"time_s", campaign::seconds_of(t.time)}, {"celsius", t.celsius}});
    return {{"replica", report.replica},
            {"interval_s", campaign::seconds_of(report.interval)},
            {"samples", report.samples},
            {"restarts", report.actions},
            {"gave_up", report.gave_up},
            {"throttles", std::move(throttles)},
            {"rules", std::move(rules)},
            {"kinds", std::move(kinds)},
            {"truths", std::move(truths)},
            {"alarms_in_all", report.alarms.size()},
            {"alarms", std::move(alarms)},
            {"definitions",
             {{"caught", "things that were wrong of which an alarm of the rule rose after they began"},
              {"missed", "all others; missed_out_of_sight of them cannot show in the rule's metric"},
              {"median_delay_s",
               "from the begin of a thing to its first alarm, of those caught; below 0: told before steps showed it"},
              {"false_alarms", "alarms that belong to nothing that was wrong"},
              {"standing_fraction", "of the wall time with an alarm of the rule"},
              {"throttles",
               "when a rule's action held the hot GPU at a temperature; what lower power takes from its clock and the "
               "step is not counted"},
              {"kinds", "caught by rules other than those quoted from the field report"},
              {"alarms", "the first 1000"}}}};
}

}  // namespace fabricast::report
