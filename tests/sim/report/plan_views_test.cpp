// A plan as text and JSON: the same whatever the threads, with all that the parts promise.
#include "sim/report/plan_views.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/sim/plan/small_spaces.hpp"

namespace fabricast::plan {
namespace {

TEST(PlanViews, ThreadsDoNotShow) {
    PlanRequest request = request_of(kDense);
    request.what_ifs = {"nic 400 -> 200 Gb/s"};
    const PlanResult one = make_plan(request);
    request.search.threads = 2;
    const PlanResult two = make_plan(request);
    EXPECT_EQ(plan_json(two), plan_json(one));
    EXPECT_EQ(plan_text(two, false), plan_text(one, false));
}

TEST(PlanViews, TextHasItsParts) {
    PlanRequest request = request_of(kDense);
    request.source.overrides = {"training.layout={tp: 8, pp: 2, zero: 1}", "run.tokens=50 Gtokens",
                                "run.price=2.50 USD/GPU-h"};
    request.what_ifs = {"nic 400 -> 200 Gb/s"};
    const PlanResult plan = make_plan(request);
    const std::string text = plan_text(plan, false);
    for (const char* part :
         {"Ranked by days", "a tie", "The layout of the scenario", "the single change that helps most",
          "Why the others lost", "What the first hangs on", "What if nic 400 -> 200 Gb/s", "What became of", "USD"})
        EXPECT_NE(text.find(part), std::string::npos) << part << text;
    const nlohmann::json json = nlohmann::json::parse(plan_json(plan));
    EXPECT_EQ(json["schema_version"], 1);
    EXPECT_EQ(json["ranking"].size(), 10u);
    EXPECT_TRUE(json["ranking"][0].contains("step_interval_s"));
    EXPECT_TRUE(json["ranking"][1]["tie_with_first"].is_boolean());
    EXPECT_GT(json["yours"]["helps_most"]["less_time"], 0.0);
    EXPECT_EQ(json["what_ifs"][0]["ranking"].size(), 10u);
    // tokens / (tokens a second) in days, and GPUs times hours times price
    const auto& first = json["ranking"][0];
    EXPECT_NEAR(first["days"].get<double>(), 50e9 / first["tokens_per_s"].get<double>() / 86400, 1e-9);
    EXPECT_NEAR(first["cost"].get<double>(), first["days"].get<double>() * 24 * 16 * 2.5, 1e-6);
}

// A page is made of this JSON: what the text says of a layout that does not fit, and of what meets, is in it.
TEST(PlanViews, JsonSaysWhatTheTextSays) {
    PlanRequest request = request_of(kDense);
    request.source.overrides = {"training.layout={tp: 1, pp: 1, zero: 0}", "cluster.node.gpu_memory=40 GiB",
                                "plan.where=bubble > 0.01"};
    const PlanResult plan = make_plan(request);
    ASSERT_TRUE(plan.yours && !plan.yours->evaluation.fits);
    const nlohmann::json json = nlohmann::json::parse(plan_json(plan));
    EXPECT_EQ(json["space"]["meet"], plan.ranking.size());
    EXPECT_LT(json["space"]["meet"], json["space"]["simulated"]);
    EXPECT_EQ(json["yours"]["stage"], plan.yours->evaluation.stage);
    EXPECT_GT(json["yours"]["memory_gib"], 40.0);
    EXPECT_TRUE(json["currency"].is_null());
    EXPECT_FALSE(json.contains("prices"));
    const std::string text = plan_text(plan, false);
    ASSERT_GT(plan.found.cut, 0u);
    EXPECT_EQ(json["space"]["lower_bound_assumes"].size(), 1u);
    for (const auto& sentence : json["space"]["lower_bound_assumes"])
        EXPECT_NE(text.find(sentence.get<std::string>()), std::string::npos) << text;
    EXPECT_NE(text.find("does not fit: stage"), std::string::npos);
    EXPECT_EQ(json["yours"]["listed"], false) << "zero 0 is not in plan.zero";
    EXPECT_NE(text.find("no single change of it was tried"), std::string::npos) << text;
    request.search.prune = false;
    const PlanResult whole = make_plan(request);
    EXPECT_EQ(plan_text(whole, false).find("assumed of the lower bound"), std::string::npos) << "nothing was cut";
    EXPECT_FALSE(nlohmann::json::parse(plan_json(whole))["space"].contains("lower_bound_assumes"));
}

// The footnote stands under tables that have a tie.
TEST(PlanViews, TiesAreExplainedWhereThereAreSome) {
    PlanRequest request = request_of(kDense);
    const PlanResult plan = make_plan(request);
    EXPECT_NE(plan_text(plan, false).find("a tie: the intervals"), std::string::npos);
    request.source.overrides = {"plan.top=1"};
    EXPECT_EQ(plan_text(make_plan(request), false).find("a tie"), std::string::npos);
}

TEST(PlanViews, NothingLeftIsSaid) {
    PlanRequest request = request_of(kDense);
    request.where = {"tp > 8"};
    const std::string text = plan_text(make_plan(request), false);
    EXPECT_NE(text.find("no layout that can run meets `tp > 8`"), std::string::npos) << text;
}

}  // namespace
}  // namespace fabricast::plan
