// Views of a campaign made by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sample_result.hpp"
#include "sim/report/campaign_view.hpp"
#include "sim/report/comparison.hpp"
#include "sim/report/course.hpp"
#include "sim/report/expectation.hpp"
#include "sim/report/result_views.hpp"
#include "sim/report/text.hpp"

namespace fabricast::testing {
namespace {

using namespace campaign;

std::shared_ptr<CampaignReport> sample_campaign() {
    auto report = std::make_shared<CampaignReport>();
    CampaignSpec& spec = report->spec;
    spec.fleet.nodes = 128;
    spec.fleet.spares = 6;
    spec.fleet.components = faults::FaultCatalogue::builtin().components();
    spec.conditions.degradations = {{faults::FaultCatalogue::builtin().degradations()[1], false}};
    spec.checkpoint = {.mode = SaveMode::async,
                       .every_steps = 1800,
                       .block = kSecond / 4,
                       .write = 20 * kSecond,
                       .load = 20 * kSecond};
    spec.replicas = 10;
    for (int i = 0; i < 10; ++i) {
        ReplicaResult r;
        r.wall = (40 + i) * kDay;
        r.spent[static_cast<std::size_t>(Spent::steps)] = 38 * kDay;
        r.spent[static_cast<std::size_t>(Spent::lost)] = i * kDay;
        r.spent[static_cast<std::size_t>(Spent::restart)] = 2 * kDay;
        r.stops = static_cast<std::uint32_t>(20 + i);
        r.recovered = 10;  // the others: silent, or of replicas that come back by themselves
        r.recovering = 10 * kHour;
        r.lost_to_faults = 20 * kHour;
        r.spent[static_cast<std::size_t>(Spent::detection)] = 5 * kHour;
        r.stops_by.assign(spec.fleet.components.size(), 1);
        r.lost_by.assign(spec.fleet.components.size(), 0);
        r.lost_by[1] = (i + 1) * kDay;
        r.tokens = 2.7e12;
        r.slow = kDay / 10;
        report->result.replicas.push_back(r);
    }
    ReplicaResult& shown = report->result.shown = report->result.replicas[4];
    for (int i = 0; i < 12; ++i)
        shown.incidents.push_back(
            {i * kDay, i % 2 ? Incident::Kind::recovered : Incident::Kind::fault, 29, 1, 15 * kMinute, 412});
    shown.incidents.push_back({13 * kDay, Incident::Kind::degraded, UINT32_MAX, 0, 0, 0});
    // 5000 steps in 5 days, 400 of them lost, 40 000 in the end
    Stretch before, after;
    before.end = after.begin = 5 * kDay;
    before.step = before.end / 5000;
    after.end = 44 * kDay;
    after.step = (after.end - after.begin) / (40000 - 4600);
    before.limit = after.limit = 1 << 20;
    after.progress.run(0, kNever, after.step, 4600);
    shown.stretches = {before, after};
    report->conditions = {{"healthy", 0, 2 * kSecond}, {"network adapter at half rate", 0, 2 * kSecond + kSecond / 10}};
    report->prices = {1.9, 700};
    report->checkpoint_bytes = 1.0e12;
    report->result.advice = {{20, 178200, 600}, 3600, 2670, 2655, 2660, 0.97, 0.975};
    return report;
}

TEST(CampaignViews, TextHasTheFiguresAndFits) {
    const Scenario scenario = sample_scenario();
    Result result = sample_result(scenario);
    EXPECT_EQ(campaign_text(result, false, false), "");
    result.campaign = sample_campaign();
    const std::string text = campaign_text(result, false, false);
    std::istringstream lines(text);
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count)
        EXPECT_LE(report::width(line), 100u) << line;
    EXPECT_LE(count, 35u);
    for (const char* part :
         {"10 lives, 128 + 6 nodes", "44.00", "steps done and lost", "async, every 60 min (1800 steps)",
          "fault: GPU memory, node 29", "back after 15 min, 412 steps lost", "5 more; see --full"})
        EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    const std::string full = campaign_text(result, true, false);
    EXPECT_NE(full.find("slower: network adapter at half rate"), std::string::npos);
    EXPECT_NE(full.find("+5.0 %"), std::string::npos);
    EXPECT_EQ(campaign_text(result, true, false, false).find("█"), std::string::npos);
}

TEST(CampaignViews, JsonAndExpectations) {
    Scenario scenario = sample_scenario();
    scenario.expect = {{"campaign_days", 43, 45, ""}, {"ettr", 0.5, 0.6, ""}, {"stops", 24, 25, ""}};
    Result result = sample_result(scenario);
    result.campaign = sample_campaign();
    const auto json = nlohmann::json::parse(result_json(result))["campaign"];
    EXPECT_EQ(json["days"]["p10"], 40);
    EXPECT_EQ(json["days"]["p90"], 48);
    EXPECT_EQ(json["stops"]["mean"], 24.5);
    EXPECT_NEAR(json["cost"]["p50"].get<double>(), 44 * 24 * 134 * 8 * 1.9, 1);
    // of the days lost only what those faults threw away
    EXPECT_EQ(json["stop"]["detection_s"], 1800);
    EXPECT_EQ(json["stop"]["restart_s"], 1800);
    EXPECT_EQ(json["stop"]["lost_s"], 7200);
    EXPECT_EQ(json["shown"]["asked_for"], false);
    EXPECT_EQ(json["shown"]["incidents"].size(), 13u);
    EXPECT_EQ(json["shown"]["incidents"][12]["node"], nullptr);
    EXPECT_EQ(json["conditions"][1]["step_s"], 2.1);
    const auto outcomes = check_expectations(result);
    ASSERT_EQ(outcomes.size(), 3u);
    EXPECT_TRUE(outcomes[0].met);
    EXPECT_FALSE(outcomes[1].met);
    EXPECT_TRUE(outcomes[2].met);
    result.campaign = nullptr;
    EXPECT_TRUE(nlohmann::json::parse(result_json(result))["campaign"].is_null());
    EXPECT_FALSE(figure(result, "ettr"));
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(CampaignViews, PageCountsFailures) {
    const Scenario scenario = sample_scenario();
    Result result = sample_result(scenario);
    EXPECT_TRUE(has(html_report(result_json(result)), "no failures counted"));
    EXPECT_FALSE(has(html_report(result_json(result)), "<section id=campaign"));
    EXPECT_FALSE(has(html_report(result_json(result)), " lives, "));
    result.campaign = sample_campaign();
    const std::string page = html_report(result_json(result));
    EXPECT_FALSE(has(page, "no failures counted"));
    for (const char* part :
         {"<section id=campaign", "44.0 days", "median of 10 lives, 40.0 to 48.0 in 80 %", "if nothing broke",
          "Life 0, the one of median goodput", "class=s-course", "class=s-reference", "class=\"s-fault\"",
          "class=s-median", "goodput", "GPU memory", "network adapter at half rate",
          "Best interval 44.3 min by formula", "fault: GPU memory, node 29"})
        EXPECT_TRUE(has(page, part)) << part;
    EXPECT_FALSE(has(page, ">tokens kept<")) << "all lives keep as many";
    const std::string text = markdown_report(result_json(result));
    EXPECT_TRUE(has(text, "| days | 40.0 | 44.0 | 48.0 |")) << text;
    EXPECT_TRUE(has(text, "| GPU memory | 1.00 | 12.36 % |")) << text;
    EXPECT_TRUE(
        has(prometheus_report(result_json(result)), "campaign_days{scenario=\"case-a-after\",quantile=\"0.90\"} 48"));
    EXPECT_FALSE(has(csv_report(result_json(result)), "shown.course"));
}

// What stops the job is what struck at the begin of the recovery, not silent corruption that was noted days before.
TEST(CampaignViews, PageNamesTheFaultOfAStop) {
    Scenario scenario = sample_scenario();
    scenario.run.shown = 4;
    Result result = sample_result(scenario);
    const auto report = sample_campaign();
    using Kind = Incident::Kind;
    report->result.shown.incidents = {{kDay, Kind::fault, 7, 2},  // silent
                                      {2 * kDay, Kind::fault, 29, 1},
                                      {2 * kDay + 15 * kMinute, Kind::recovered, 29, 1, 15 * kMinute, 412},
                                      {3 * kDay, Kind::silent_found, 7, 2},
                                      {4 * kDay, Kind::from_zero, UINT32_MAX, 0}};
    report->intervals.lives = 10;
    report->intervals.restarts = {600};
    report->intervals.rows = {{3600, 1800, true, {0.97}, 0.97, 0, 0}};
    report->intervals.best = 1800;
    result.campaign = report;
    const std::string page = html_report(result_json(result));
    const std::string rows = page.substr(page.find("what stopped it"), 600);
    EXPECT_TRUE(has(rows, "GPU memory, node 29")) << rows;
    EXPECT_FALSE(has(rows, "node 7")) << rows;
    EXPECT_TRUE(has(page, "day 4.00: all that was trained is thrown away"));
    EXPECT_TRUE(has(page, "Best interval 30 min by simulation, 44.3 min by formula"));
    EXPECT_FALSE(has(page, "the one of median goodput")) << "it was asked for";
}

TEST(CampaignViews, OldResultsWithoutLivesStillMakeAPage) {
    const Scenario scenario = sample_scenario();
    Result result = sample_result(scenario);
    result.campaign = sample_campaign();
    auto json = nlohmann::ordered_json::parse(result_json(result));
    json["campaign"].erase("lives");
    json["campaign"]["shown"].erase("course");
    const std::string page = html_report(json.dump());
    EXPECT_TRUE(has(page, "<section id=campaign"));
    EXPECT_FALSE(has(page, "class=s-course"));
    EXPECT_FALSE(has(page, "class=s-median"));
}

TEST(CampaignViews, ThinnedCourseStaysNear) {
    std::vector<CourseMark> course = {{0, 0}};
    for (int i = 1; i <= 1000; ++i) {
        course.push_back({i * kHour, i * 900 + (i * 37) % 11});
        if (i % 200 == 0)
            course.push_back({i * kHour, i * 900 - 5000});
    }
    const auto thin = report::thinned(course, 900);
    EXPECT_LT(thin.size(), 60u);
    std::size_t at = 0;
    for (const CourseMark& mark : course) {
        while (at + 1 < thin.size() && thin[at + 1].time < mark.time)
            ++at;
        double nearest = 1e18;  // of the line through the points on both sides, or of a fall at this time
        for (std::size_t i = at; i + 1 < thin.size() && thin[i].time <= mark.time; ++i) {
            if (thin[i + 1].time == thin[i].time)
                nearest = std::min<double>(nearest, std::abs(static_cast<double>(thin[i + 1].steps - mark.steps)));
            else
                nearest = std::min(nearest, std::abs(static_cast<double>(thin[i].steps - mark.steps) +
                                                     static_cast<double>(thin[i + 1].steps - thin[i].steps) *
                                                         static_cast<double>(mark.time - thin[i].time) /
                                                         static_cast<double>(thin[i + 1].time - thin[i].time)));
        }
        EXPECT_LE(nearest, 900 + 1) << mark.time / kHour;
    }
    EXPECT_EQ(report::thinned({{0, 0}, {5, 5}}, 1).size(), 2u);
}

TEST(CampaignViews, ComparisonSetsRunsSideBySide) {
    const Scenario scenario = sample_scenario();
    Result a = sample_result(scenario), b = sample_result(scenario);
    a.campaign = b.campaign = sample_campaign();
    const std::string text = comparison_text(compare(a, b, {}), false);
    EXPECT_NE(text.find("Runs with faults"), std::string::npos);
    EXPECT_NE(text.find("44 (40 to 48)"), std::string::npos) << text;
    const std::string page = html_report(comparison_json(compare(a, b, {})));
    for (const char* part : {"<section id=campaign", "A days", "B days", "A restart", "B restart"})
        EXPECT_TRUE(has(page, part)) << part;
    EXPECT_FALSE(has(page, "no failures counted"));
}

TEST(CampaignViews, SpansAreInTheirUnit) {
    EXPECT_EQ(report::span_text(0.25), "0.25 s");
    EXPECT_EQ(report::span_text(852), "14.2 min");
    EXPECT_EQ(report::span_text(4 * 3600), "4 h");
    EXPECT_EQ(report::span_text(45 * 86400), "45 d");
}

}  // namespace
}  // namespace fabricast::testing
