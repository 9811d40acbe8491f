// Views of what monitors saw, made by hand.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "models/monitors/shipped_rules.hpp"
#include "sample_result.hpp"
#include "sim/report/expectation.hpp"
#include "sim/report/monitor_series.hpp"
#include "sim/report/monitor_view.hpp"
#include "sim/report/result_views.hpp"
#include "sim/report/views.hpp"

namespace fabricast::testing {
namespace {

using namespace monitor;
using campaign::kDay;
using campaign::kMinute;
using campaign::kSecond;

/// A life of ten minutes in which one port fell to half its rate.
void add_monitors(Result& result) {
    auto seen = std::make_shared<MonitorReport>();
    auto pictures = std::make_shared<Pictures>(1, campaign::kMaxKinds);
    pictures->set({0, 0},
                  {.step_s = 2, .tokens = 1e6, .mfu = 0.4, .hfu = 0.4, .in_collectives_s = 0.5, .net_rings = 16});
    seen->pictures = pictures;
    seen->interval = kMinute;
    seen->wall = 10 * kMinute;
    seen->samples = 10;
    seen->replica = 3;
    seen->fleet.port_bits_per_s = 400e9;
    seen->spec.phases = {{1 << 20, 0, 1e6}};
    seen->rules.push_back({.rule = monitors::default_rules()[8],
                           .alarms = 1,
                           .caught = 1,
                           .median_delay_s = 42,
                           .standing = 0.5,
                           .first_warning = 5 * kMinute});
    seen->rules.push_back(
        {.rule = monitors::case_a_rules()[3], .alarms = 2, .missed = 1, .false_alarms = 2, .standing = 1});
    seen->rules.push_back({.rule = monitors::default_rules()[0], .missed = 1});
    seen->truths.push_back({{Truth::Kind::degradation, 0, 4 * kMinute + 18 * kSecond, 10 * kMinute},
                            "network adapter at half rate",
                            {{0, 42}}});
    seen->alarms.push_back({.rule = 0, .begin = 5 * kMinute, .part = 1});
    result.monitors = seen;
    auto report = std::make_shared<campaign::CampaignReport>();
    campaign::Stretch s;
    s.end = 10 * kMinute;
    s.step = 2 * kSecond;
    s.limit = 1 << 20;
    report->result.shown.stretches = {s};
    report->result.shown.wall = s.end;
    result.campaign = report;
}

TEST(MonitorViews, TextTellsWhoCaughtWhatAndWhoCries) {
    const Scenario scenario = sample_scenario();
    Result result = sample_result(scenario);
    EXPECT_EQ(report::monitor_text(result, false, false), "");
    add_monitors(result);
    const std::string text = report::monitor_text(result, false, false);
    for (const char* part : {"Monitors: life 3, 10 samples of 60 s, 1 thing went wrong", "port_rate", "42 s",
                             "case-a: ib_traffic", "silent: step_time", "network adapter at half rate"})
        EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        EXPECT_LE(line.size(), 100u) << line;
    EXPECT_EQ(text.find("held the hot GPU"), std::string::npos);
    auto throttled = std::make_shared<MonitorReport>(*result.monitors);
    throttled->throttles = {{campaign::kDay / 2, 80}};
    result.monitors = throttled;
    const std::string held = report::monitor_text(result, false, false);
    EXPECT_NE(
        held.find("Rules held the hot GPU at 80 C from day 0.50 on; what that takes from its clock is not counted."),
        std::string::npos)
        << held;
    const std::string full = report::monitor_text(result, true, false);
    EXPECT_NE(full.find("a port negotiates its rate exactly"), std::string::npos);
    EXPECT_NE(full.find("port_rate < 0.95 x peers, critical < 0.75 x peers"), std::string::npos);
}

TEST(MonitorViews, ThePageTellsThemToo) {
    const Scenario scenario = sample_scenario();
    Result result = sample_result(scenario);
    EXPECT_EQ(html_report(result_json(result)).find("id=monitor"), std::string::npos);
    add_monitors(result);
    result.campaign = nullptr;
    const std::string page = html_report(result_json(result));
    for (const char* part : {"id=monitor", "What monitors would have told", "network adapter at half rate", "Silent:"})
        EXPECT_NE(page.find(part), std::string::npos) << part;
    EXPECT_EQ(page.find("held the hot GPU"), std::string::npos);
    auto throttled = std::make_shared<MonitorReport>(*result.monitors);
    throttled->throttles = {{campaign::kDay / 2, 80}};
    result.monitors = throttled;
    EXPECT_EQ(nlohmann::json::parse(result_json(result))["monitor"]["throttles"][0]["celsius"], 80);
    EXPECT_NE(html_report(result_json(result)).find("Rules held the hot GPU at 80 C from day 0.50 on"),
              std::string::npos);
}

TEST(MonitorViews, FiguresCanBeExpected) {
    const Scenario scenario = sample_scenario();
    Result result = sample_result(scenario);
    EXPECT_FALSE(figure(result, "monitor_false_alarms"));
    add_monitors(result);
    EXPECT_EQ(figure(result, "monitor_false_alarms"), 0);
    EXPECT_EQ(figure(result, "case_a_false_alarms"), 2);
    EXPECT_EQ(figure(result, "monitor_caught"), 1);
    EXPECT_EQ(figure(result, "case_a_caught"), 0);
    EXPECT_FALSE(figure(result, "monitor_warning_d"));
    EXPECT_EQ(figure(result, "monitor_restarts"), 0);
    for (const std::string_view name : report::monitor_figure_names())
        EXPECT_NE(std::find(figure_names().begin(), figure_names().end(), name), figure_names().end()) << name;
}

TEST(MonitorViews, SeriesAsCsvAndOpenMetrics) {
    const Scenario scenario = sample_scenario();
    Result result = sample_result(scenario);
    add_monitors(result);
    const std::string csv = series_for("x.csv", result);
    std::istringstream lines(csv);
    std::string head, first;
    std::getline(lines, head);
    std::getline(lines, first);
    EXPECT_EQ(head.substr(0, 24), "time_s,step_time,mfu,tok");
    EXPECT_EQ(std::count(head.begin(), head.end(), ','), std::count(first.begin(), first.end(), ','));
    EXPECT_NE(head.find("port_rate,port_rate_lowest"), std::string::npos);
    EXPECT_EQ(first.substr(0, 3), "60,");
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 11);
    EXPECT_EQ(csv, series_for("x.csv", result));
    const std::string prom = series_for("x.prom", result);
    EXPECT_NE(prom.find("# TYPE fabricast_port_rate gauge"), std::string::npos);
    EXPECT_NE(prom.find("} 400 60\n"), std::string::npos);
    EXPECT_TRUE(prom.ends_with("# EOF\n"));
}

}  // namespace
}  // namespace fabricast::testing
