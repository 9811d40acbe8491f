// What a plan computes in short for a layout is what `run` finds for it, layout by layout, with and without shared prices.
#include <gtest/gtest.h>

#include "sim/step/forecast.hpp"
#include "sim/step/price_step.hpp"
#include "tests/sim/plan/small_spaces.hpp"

namespace fabricast::plan {
namespace {

struct Layouts : testing::TestWithParam<const std::string*> {};

TEST_P(Layouts, ShortAndWholeRunsAgreeToThePicosecond) {
#ifndef NDEBUG
    GTEST_SKIP() << "spaces simulated whole: Release only";
#endif
    const PlanRequest request = request_of(*GetParam());
    const Scenario scenario = request.source.load({});
    const auto clusters = plan_clusters(request.source, scenario.plan);
    const PlanSpace space(scenario.plan, clusters);
    std::uint64_t ran = 0, fewer_events = 0, interleaved = 0;
    for (std::uint64_t index = 0; index < space.size(); ++index) {
        const Choice choice = space.at(index);
        std::string rule, why;
        const TrainingPlan plan = space.plan(choice, rule, why);
        if (!rule.empty())
            continue;
        const PlanCluster& cluster = *clusters[choice[0]];
        const Evaluation brief = evaluate(cluster, plan);
        Scenario s = cluster.scenario();
        s.training = plan;
        const Result whole = forecast(s, {.critical_path = false});
        EXPECT_EQ(brief.memory, whole.memory[static_cast<std::size_t>(brief.stage)].total_bytes) << index;
        ASSERT_EQ(brief.fits, whole.step.ps > 0) << index;
        if (!brief.fits)
            continue;
        ++ran;
        interleaved += plan.layout.schedule == Schedule::interleaved;
        fewer_events += brief.events < whole.events;
        EXPECT_EQ(brief.step.ps, whole.step.ps) << index;
        EXPECT_EQ(brief.step.periodic, whole.step.periodic) << index;
        EXPECT_EQ(brief.step.accounts, whole.step.accounts) << index;
        EXPECT_EQ(brief.step.by_stage, whole.step.by_stage) << index;
        EXPECT_EQ(brief.step.model_flops, whole.step.model_flops) << index;
        EXPECT_EQ(brief.step.hardware_flops, whole.step.hardware_flops) << index;
        if (ran % 8 == 0) {  // neither shared prices nor folding show
            ForecastOptions plain;
            plain.fold_time = false;
            const PricedStep alone = price_step(s, cluster.compute(), cluster.cluster(), cluster.comm(), plain);
            EXPECT_EQ(alone.step.ps, whole.step.ps) << index;
            EXPECT_EQ(alone.step.accounts, whole.step.accounts) << index;
        }
    }
    EXPECT_GT(ran, 60u);
    EXPECT_GT(interleaved, 8u);
    EXPECT_GT(fewer_events, 0u) << "steps that end with receives posted are simulated once";
}

INSTANTIATE_TEST_SUITE_P(Spaces, Layouts, testing::Values(&kDense, &kExperts, &kLong),
                         [](const auto& one) { return one.param->substr(6, one.param->find('\n') - 6); });

}  // namespace
}  // namespace fabricast::plan
