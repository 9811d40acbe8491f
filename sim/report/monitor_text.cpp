// What monitors saw, on a terminal.
#include <fmt/format.h>

#include <algorithm>

#include "sim/report/campaign_view.hpp"
#include "sim/report/monitor_view.hpp"
#include "sim/report/sections.hpp"

namespace fabricast::report {
namespace {

using namespace monitor;

std::string delay_text(double s) {
    if (s == monitor::kNoDelay)
        return "-";
    return s < 0 ? fmt::format("{} before", span_text(-s)) : span_text(s);
}

void print_rules(Page& page, const MonitorReport& report, bool full) {
    Table table("lrrrrrrr");
    table.row({"rule", "alarms", "caught", "missed", "blind to", "delay", "false", "standing"});
    std::string silent;
    for (const RuleOutcome& out : report.rules) {
        if (out.alarms == 0 && !full) {
            silent += (silent.empty() ? "" : ", ") + rule_name(out.rule);
            continue;
        }
        table.row({clean(rule_name(out.rule)), fmt::format("{}", out.alarms), fmt::format("{}", out.caught),
                   fmt::format("{}", out.missed - out.out_of_sight), fmt::format("{}", out.out_of_sight),
                   delay_text(out.median_delay_s), fmt::format("{}", out.false_alarms),
                   out.standing > 0 && out.standing < 0.0005 ? "<0.1 %" : fmt::format("{:.1f} %", out.standing * 100)});
    }
    table.print(page);
    if (!silent.empty())
        for (const std::string& line : wrap("silent: " + silent, kScreenColumns - 2))
            page.add("  ").add(clean(line), Paint::dim).end();
}

void print_truths(Page& page, const MonitorReport& report) {
    const std::vector<TruthRow> rows = truth_rows(report);
    if (rows.empty()) {
        page.add("  Nothing was wrong with this life.", Paint::dim).end();
        return;
    }
    page.blank();
    Table table("lrrrl");
    table.row({"what was wrong", "times", "caught", "delay", "by, mostly"});
    for (const TruthRow& row : rows)
        table.row({clean(row.what), fmt::format("{}", row.count), fmt::format("{}", row.caught),
                   delay_text(row.median_delay_s), clean(row.first_rule)});
    table.print(page);
}

void print_wordings(Page& page, const MonitorReport& report) {
    page.heading("Rules of the monitors");
    for (const RuleOutcome& out : report.rules) {
        page.add(fmt::format("  {}", clean(rule_name(out.rule))), Paint::bold)
            .add(fmt::format("  {}; {}", monitors::rule_text(out.rule), monitors::action_name(out.rule.action)))
            .end();
        for (const std::string& line : wrap(out.rule.reason, kScreenColumns - 6))
            page.add("      ").add(line, Paint::dim).end();
    }
    page.heading("Alarms");
    constexpr std::size_t kMost = 200;
    for (std::size_t i = 0; i < std::min(kMost, report.alarms.size()); ++i) {
        const Alarm& alarm = report.alarms[i];
        const double lasted = campaign::seconds_of(std::min(alarm.end, report.wall) - alarm.begin);
        page.add(fmt::format("  day {:7.3f}  {}{}, for {}", campaign::seconds_of(alarm.begin) / 86400,
                             clean(rule_name(report.rules[alarm.rule].rule)),
                             alarm.critical < campaign::kNever ? ", critical" : "", span_text(lasted)))
            .end();
    }
    if (report.alarms.size() > kMost)
        page.add(fmt::format("  {} more", report.alarms.size() - kMost), Paint::dim).end();
}

}  // namespace

std::string monitor_text(const Result& result, bool full, bool color, bool unicode) {
    if (!result.monitors)
        return {};
    const MonitorReport& report = *result.monitors;
    Page page(color, unicode, kScreenColumns);
    const std::size_t wrong = report.truths.size();
    page.heading(fmt::format("Monitors: life {}, {} samples of {}, {} thing{} went wrong", report.replica,
                             report.samples, span_text(campaign::seconds_of(report.interval)), wrong,
                             wrong == 1 ? "" : "s"));
    print_rules(page, report, full);
    print_truths(page, report);
    if (report.actions > 0)
        page.add(fmt::format("  Rules restarted the job {}{}.",
                             report.actions == 1 ? std::string("once") : fmt::format("{} times", report.actions),
                             report.gave_up ? "; then nobody listened any more" : ""),
                 report.gave_up ? Paint::bad : Paint::plain)
            .end();
    if (!report.throttles.empty())
        page.add(fmt::format(
                     "  Rules held the hot GPU at {:.4g} C from day {:.2f} on; what that takes from its clock is "
                     "not counted.",
                     report.throttles.back().celsius, campaign::seconds_of(report.throttles.front().time) / 86400))
            .end();
    if (full)
        print_wordings(page, report);
    return page.text();
}

}  // namespace fabricast::report
