// Views made from the text of result.json.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include "sample_result.hpp"
#include "sim/report/embedded_text.hpp"
#include "sim/report/result_views.hpp"
#include "sim/report/timeline_views.hpp"

namespace fabricast {
namespace {

using testing::failed_result;
using testing::sample_result;
using testing::sample_scenario;

std::string sample_json() {
    static const Scenario scenario = sample_scenario();
    return result_json(sample_result(scenario));
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Two lanes of two states each.
StepTimeline small_timeline() {
    StepTimeline t;
    t.end = 2'000'000'000;
    t.classes = 2;
    t.names = {"layers"};
    t.lanes = {{.rank = 0, .copies = 512, .place = "pp 0", .streams = {{}}, .end = t.end},
               {.rank = 512, .copies = 512, .node = 64, .stage = 1, .place = "pp 1", .streams = {{}}, .end = t.end}};
    for (std::uint32_t lane = 0; lane < 2; ++lane) {
        t.states.push_back({.lane = lane,
                            .state = LaneState::computing,
                            .phase = program::Phase::forward,
                            .micro_batch = 0,
                            .begin = 0,
                            .end = 1'500'000'000});
        t.states.push_back({.lane = lane, .state = LaneState::waiting_message, .begin = 1'500'000'000, .end = t.end});
    }
    t.links = {{.lane = 0,
                .name = "node 0 gpu 0 nvlink up",
                .place = "NVLink inside the node",
                .capacity = 1 << 20,
                .mean = 0.25,
                .samples = {}}};
    return t;
}

TEST(HtmlReport, NeedsNothingFromOutside) {
    const std::string page = html_report(with_timeline(sample_json(), small_timeline()));
    const std::size_t script = page.find("<script>");
    const std::string own = page.substr(0, script);  // behind it comes ECharts, which names addresses of XML spaces
    for (const char* outside : {"http://", "https://", "@import", "<link rel=stylesheet", " src="})
        EXPECT_FALSE(has(own, outside)) << outside;
    EXPECT_FALSE(has(page, "<script src"));
    EXPECT_LT(page.size(), 2'500'000u);
}

TEST(HtmlReport, HasASectionForWhatTheResultHolds) {
    const std::string page = html_report(with_timeline(sample_json(), small_timeline()));
    for (const char* id :
         {"waterfall", "stages", "timeline", "memory", "communication", "links", "assumptions", "reproduce"})
        EXPECT_TRUE(has(page, std::string("<section id=") + id)) << id;
    EXPECT_TRUE(has(page, "00c0ffee12345678"));
    EXPECT_TRUE(has(page, "case-a-after"));
    const std::string without = html_report(sample_json());
    for (const char* id : {"timeline", "links", "measured"})
        EXPECT_FALSE(has(without, std::string("<section id=") + id)) << id;
    EXPECT_FALSE(has(without, "<script")) << "nothing to zoom, no script";
}

TEST(HtmlReport, ZoomsWhereEChartsIsBuiltIn) {
    const std::string page = html_report(with_timeline(sample_json(), small_timeline()));
    EXPECT_TRUE(has(page, "<svg")) << "the still picture needs no script";
    EXPECT_EQ(has(page, "id=timeline-data"), !report::embedded_text("echarts.min.js").empty());
}

TEST(HtmlReport, AFailedJobHasNoStep) {
    const Scenario scenario = sample_scenario();
    const std::string page = html_report(result_json(failed_result(scenario)));
    EXPECT_TRUE(has(page, "class=bad"));
    EXPECT_FALSE(has(page, "<section id=waterfall"));
    EXPECT_TRUE(has(page, "<section id=reproduce"));
}

TEST(HtmlReport, TextOfTheUserCannotBecomeMarkup) {
    Scenario scenario = sample_scenario();
    scenario.name = "</title><script>alert(1)</script>";
    StepTimeline timeline = small_timeline();
    timeline.lanes[0].place = "</script><b>";
    const std::string page = html_report(with_timeline(result_json(sample_result(scenario)), timeline));
    EXPECT_FALSE(has(page, "<script>alert"));
    EXPECT_FALSE(has(page, "</script><b>"));
}

TEST(ResultViews, OtherTextsAreRefused) {
    for (const char* text :
         {"", "[1]", "{\"program\": \"other\"}", "{\"program\": \"fabricast\", \"schema_version\": 2}"}) {
        EXPECT_THROW(html_report(text), std::invalid_argument) << text;
        EXPECT_THROW(csv_report(text), std::invalid_argument) << text;
    }
}

TEST(CsvReport, PathsLeadToTheFiguresOfTheResult) {
    const std::string csv = csv_report(sample_json());
    EXPECT_TRUE(csv.starts_with("key,value\n"));
    for (const char* line : {"\nstep.ps,2019876543211\n", "\nscenario.layout.tp,8\n", "\nverdict,fits\n",
                             "\nengine.fingerprint,00c0ffee12345678\n"})
        EXPECT_TRUE(has(csv, line)) << line;
    EXPECT_TRUE(has(csv, "\nstep.waterfall.gemm_ideal.fraction,0.44"));
    EXPECT_TRUE(has(csv, "\nstep.stages.1.waterfall.bubble.rank_ps,"));
    EXPECT_TRUE(has(csv, "\nmemory.1.parts.logits,1073741824\n"));
    // One value a key.
    std::set<std::string> keys;
    for (std::size_t at = 0; at < csv.size();) {
        const std::size_t end = csv.find('\n', at);
        EXPECT_TRUE(keys.insert(csv.substr(at, csv.find(',', at) - at)).second) << csv.substr(at, end - at);
        at = end + 1;
    }
}

TEST(PrometheusReport, EveryLineIsACommentOrASample) {
    const std::string text = prometheus_report(sample_json());
    const std::regex sample(R"(fabricast_[a-z_]+\{scenario="case-a-after"(,[a-z]+="[a-z_0-9]+")*\} [-+0-9.e]+)");
    const std::regex comment(R"(# (HELP fabricast_[a-z_]+ .+|TYPE fabricast_[a-z_]+ gauge))");
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.find('\n', at);
        ASSERT_NE(end, std::string::npos);
        const std::string line = text.substr(at, end - at);
        EXPECT_TRUE(std::regex_match(line, sample) || std::regex_match(line, comment)) << line;
        at = end + 1;
    }
    EXPECT_TRUE(has(text, "fabricast_step_share_ratio{scenario=\"case-a-after\",account=\"bubble\"}"));
    EXPECT_TRUE(has(text, "stage=\"1\",cause=\"logits\"} 1073741824"));
}

TEST(MarkdownReport, TablesHaveAsManyCellsAsHeads) {
    const std::string text = markdown_report(sample_json());
    EXPECT_TRUE(text.starts_with("# case-a-after\n"));
    std::size_t columns = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.find('\n', at);
        const std::string line = text.substr(at, end - at);
        const auto bars = static_cast<std::size_t>(std::count(line.begin(), line.end(), '|'));
        if (!line.starts_with("|"))
            columns = 0;
        else if (columns == 0)
            columns = bars;
        else
            EXPECT_EQ(bars, columns) << line;
        at = end + 1;
    }
    EXPECT_TRUE(has(text, "| pipeline bubble |"));
}

}  // namespace
}  // namespace fabricast
