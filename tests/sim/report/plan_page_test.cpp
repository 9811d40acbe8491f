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
        {"cut_by_lower_bound", 3},
        {"removed", {{{"rule", "gpus"}, {"means", "too many GPUs"}, {"layouts", 90}, {"example", "tp 3"}}}}};
    plan["ranking"] = {row(5, "tp 2, dp 32", 20, 2e6, true), row(9, "tp 4, dp 16", 22, 2.2e6, true)};
    plan["front"] = {row(5, "tp 2, dp 32", 20, 2e6, true)};
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
          "--set 'training.global_batch=512 sequences'"})
        EXPECT_NE(page.find(part), std::string::npos) << part;
    EXPECT_EQ(page.find("http"), std::string::npos);
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
