// The lower bound is below every run of six spaces that are simulated whole, and cutting by it leaves the ten best.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/plan/bound.hpp"
#include "tests/sim/plan/small_spaces.hpp"

namespace fabricast::plan {
namespace {

struct Whole : testing::TestWithParam<const std::string*> {};

TEST_P(Whole, BoundIsBelowEveryRunAndTheBestAreNeverCut) {
#ifndef NDEBUG
    GTEST_SKIP() << "spaces simulated whole: Release only";
#endif
    PlanRequest request = request_of(*GetParam());
    request.search.prune = false;
    const PlanResult all = make_plan(request);
    ASSERT_GE(all.rows().size(), 40u) << all.name;
    double sum = 0;
    for (const PlanRow& row : all.rows()) {
        EXPECT_LE(row.bound_s, row.evaluation.step_s()) << row.index;
        EXPECT_GT(row.bound_s, 0.2 * row.evaluation.step_s()) << row.index;
        sum += row.bound_s / row.evaluation.step_s();
    }
    EXPECT_GT(sum / static_cast<double>(all.rows().size()), 0.78) << "a bound that cuts something";
    request.search.prune = true;
    const PlanResult cut = make_plan(request);
    EXPECT_GT(cut.found.cut, 0u);
    EXPECT_EQ(cut.rows().size() + cut.found.cut, all.rows().size());
    ASSERT_GE(cut.ranking.size(), 10u);
    for (std::size_t i = 0; i < 10; ++i) {
        const PlanRow &a = all.rows()[all.ranking[i]], &b = cut.rows()[cut.ranking[i]];
        EXPECT_EQ(a.index, b.index) << i;
        EXPECT_EQ(a.evaluation.step.ps, b.evaluation.step.ps) << i;
    }
}

// Every stack overlaps, gathers and reduces in its own way.
struct Stacks : testing::TestWithParam<const char*> {};

TEST_P(Stacks, BoundIsBelowEveryRun) {
#ifndef NDEBUG
    GTEST_SKIP() << "spaces simulated whole: Release only";
#endif
    PlanRequest request = request_of(kStack);
    request.source.overrides = {std::string("training.software.preset=") + GetParam()};
    request.search.prune = false;
    const PlanResult all = make_plan(request);
    ASSERT_GE(all.rows().size(), 30u) << GetParam();
    for (const PlanRow& row : all.rows()) {
        EXPECT_LE(row.bound_s, row.evaluation.step_s()) << GetParam() << " " << row.index;
        EXPECT_GT(row.bound_s, 0.2 * row.evaluation.step_s()) << GetParam() << " " << row.index;
    }
}

INSTANTIATE_TEST_SUITE_P(Software, Stacks,
                         testing::Values("megatron-2022", "megatron-core-2024", "nemo-2023-autocast", "nemo-2025",
                                         "mlperf-2025", "maxtext-2024", "torch-fsdp-compile", "torchtitan-2024",
                                         "nanotron-2024", "llm-foundry-2023", "internevo-2023",
                                         "megatron-deepspeed-2023"));

TEST(BoundAssumptions, AreSaidWithTheirFigures) {
    const std::vector<std::string> said = bound_assumptions();
    ASSERT_EQ(said.size(), 1u);
    EXPECT_NE(said[0].find(fmt::format("{:.1f} %", kNearlyTied * 100)), std::string::npos) << said[0];
    EXPECT_NE(said[0].find(fmt::format("{:.0f} %", kNearBusiest * 100)), std::string::npos) << said[0];
}

INSTANTIATE_TEST_SUITE_P(Spaces, Whole, testing::Values(&kDense, &kExperts, &kLong, &kSharded, &kNarrow, &kBeside),
                         [](const auto& one) { return one.param->substr(6, one.param->find('\n') - 6); });

}  // namespace
}  // namespace fabricast::plan
