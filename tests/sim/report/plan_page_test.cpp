// The page of a plan, from its JSON.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include "sim/report/result_views.hpp"

namespace fabricast {
namespace {

using nlohmann::ordered_json;

ordered_json row(int index, const char* layout, double days, double cost, bool tie) {
    return {{"index", index},         {"layout", layout},
            {"cluster", "64 x H100"}, {"set", {"training.layout.tp=2", "training.global_batch=512 sequences"}},
            {"step_s", 2.0},          {"mfu", 0.45},
            {"tokens_per_s", 1e6},    {"days", days},
            {"gpu_hours", 3e4},       {"cost", cost},
            {"memory_gib", 60.5},     {"step_interval_s", {{"low", 1.8}, {"high", 2.4}}},
            {"tie_with_first", tie}};
}

ordered_json sample() {
    ordered_json plan = {{"schema_version", 1}, {"program", "fabricast"}, {"version", "0"},     {"name", "<plan>"},
                         {"tokens", 1e12},      {"currency", "USD"},      {"ranked_by", "days"}};
    plan["space"] = {
        {"layouts", 100},
        {"looked_at", 100},
        {"simulated", 7},
        {"meet", 4},
        {"lower_bound_assumes", ordered_json::array({"gathers take <long>"})},
        {"cut_by_lower_bound", 3},
        {"removed", {{{"rule", "gpus"}, {"means", "too many GPUs"}, {"layouts", 90}, {"example", "tp 3"}}}}};
    plan["ranking"] = {row(5, "tp 2, dp 32", 20, 2e6, true), row(9, "tp 4, dp 16", 22, 2.2e6, true)};
    plan["front"] = ordered_json::array({row(5, "tp 2, dp 32", 20, 2e6, true)});
    plan["yours"] = {{"layout", "tp 8"},
                     {"cluster", "64 x H100"},
                     {"step_s", 2.5},
                     {"mfu", 0.36},
                     {"days", 25},
                     {"cost", 2.5e6},
                     {"helps_most", {{"change", "tp 8 -> 2"}, {"less_time", 0.2}}}};
    plan["classes"] = {{{"dimension", "tp"},
                        {"value", "8"},
                        {"layouts", 12},
                        {"slower", 0.25},
                        {"best_index", 1},
                        {"cause", {{"account", "comm_tp"}, {"share", 0.11}}}}};
    plan["sensitivity"] = {{{"what", "matrix products"},
                            {"low", "-20 %"},
                            {"step_change_low", 0.18},
                            {"high", "+20 %"},
                            {"step_change_high", -0.09}}};
    plan["what_ifs"] = {
        {{"what_if", "nic 400 -> 200 Gb/s"},
         {"ranking", {{{"index", 9}, {"step_s", 2.2}, {"step_change", 0.1}, {"days", 24}, {"cost", 2.4e6}}}}}};
    return plan;
}

TEST(PlanPage, TellsTheFirstWhyTheRestLostAndHowToRunIt) {
    const std::string page = html_report(sample().dump());
    for (const char* part :
         {"&lt;plan&gt;", "20.0 days", "18.0 to 24.0", "2.00 M USD", "2. tp 4, dp 16", "+10.0 %", "tie", "tp 8 -&gt; 2",
          "too many GPUs", "+25.0 %, most of it tensor-parallel traffic", "matrix products", "nic 400 -&gt; 200 Gb/s",
          "--set 'training.global_batch=512 sequences'", "gathers take &lt;long&gt;"})
        EXPECT_NE(page.find(part), std::string::npos) << part;
    const std::size_t space = page.find("id=space");
    EXPECT_LT(page.rfind(">4<", page.find("simulated, meet all conditions", space)), page.size());
    EXPECT_GT(page.rfind(">4<", page.find("simulated, meet all conditions", space)), space) << "not the 7 simulated";
    EXPECT_EQ(page.find("http"), std::string::npos);
}

TEST(PlanPage, WithoutAPriceGpuHoursAreTheCost) {
    ordered_json plan = sample();
    plan["currency"] = nullptr;
    plan["ranked_by"] = "cost";
    double hours = 3e4;
    for (const char* list : {"ranking", "front"})
        for (ordered_json& row : plan[list]) {
            row["cost"] = nullptr;
            row["gpu_hours"] = hours;
            hours *= 1.2;
        }
    plan["yours"]["cost"] = nullptr;
    plan["yours"]["gpu_hours"] = 4.5e4;
    plan["what_ifs"][0]["ranking"][0]["cost"] = nullptr;
    plan["what_ifs"][0]["ranking"][0]["gpu_hours"] = 4.6e4;
    const std::string page = html_report(plan.dump());
    EXPECT_EQ(page.find("USD"), std::string::npos);
    for (const char* part : {"30.0 k GPU-hours", "+20.0 %", "45.0 k GPU-hours", "46.0 k GPU-hours"})
        EXPECT_NE(page.find(part), std::string::npos) << part;
}

TEST(PlanPage, SaysWhyTheStatedLayoutDoesNotRun) {
    ordered_json plan = sample();
    const auto page = [&](const ordered_json& yours) {
        plan["yours"] = yours;
        return html_report(plan.dump());
    };
    const ordered_json helps = {{"change", "tp 2 -> 8"}, {"less_time", 0.0}};
    const ordered_json full = {{"layout", "tp 2"}, {"cluster", "64 x H100"}, {"fits", false},
                               {"stage", 1},       {"memory_gib", 97.25},    {"helps_most", helps}};
    EXPECT_NE(page(full).find("tp 2 on 64 x H100: does not fit, stage 1 needs 97.2 GiB."), std::string::npos);
    EXPECT_NE(page(full).find("makes it run best: <b>tp 2 -&gt; 8</b>"), std::string::npos);
    EXPECT_EQ(page(full).find("less time"), std::string::npos);
    const ordered_json failed = {{"layout", "tp 2"},       {"cluster", "64 x H100"}, {"fits", true},
                                 {"failure", "a <cycle>"}, {"listed", false},        {"helps_most", nullptr}};
    EXPECT_NE(page(failed).find("no single change of it was tried"), std::string::npos);
    EXPECT_EQ(page(full).find("no single change of it was tried"), std::string::npos);
    EXPECT_NE(page(failed).find("does not run, a &lt;cycle&gt;."), std::string::npos);
}

TEST(PlanPage, SectionsWithoutDataAreAbsentAndAnEmptyPlanSaysWhy) {
    ordered_json plan = sample();
    for (const char* list : {"ranking", "front", "classes", "sensitivity", "what_ifs"})
        plan[list] = ordered_json::array();
    plan.erase("yours");
    plan["nothing_left"] = "no layout fits: 12 do not fit in memory";
    const std::string page = html_report(plan.dump());
    EXPECT_NE(page.find("no layout fits"), std::string::npos);
    for (const char* section : {"id=front", "id=ranking", "id=yours", "id=sensitivity", "id=what_ifs", "id=reproduce"})
        EXPECT_EQ(page.find(section), std::string::npos) << section;
    EXPECT_NE(page.find("id=space"), std::string::npos);
}

}  // namespace
}  // namespace fabricast
