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

TEST(PlanViews, NothingLeftIsSaid) {
    PlanRequest request = request_of(kDense);
    request.where = {"tp > 8"};
    const std::string text = plan_text(make_plan(request), false);
    EXPECT_NE(text.find("no layout that can run meets `tp > 8`"), std::string::npos) << text;
}

}  // namespace
}  // namespace fabricast::plan
