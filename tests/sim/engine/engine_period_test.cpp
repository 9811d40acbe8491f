// When a step repeats.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/engine/run_well.hpp"

namespace fabricast::engine {
namespace {

TEST(EnginePeriod, WorkAcrossTheBoundaryIsInThePeriodNotInTheFirstStep) {
    // The save of a step runs beside the next one: step 1 from idle is shorter than the period.
    ProgramBuilder b;
    b.begin("t", 2);
    b.step(6);
    const std::uint32_t work = b.compute(10 * kUs, {3});  // waits for the save of the step before
    b.operation(OpKind::step_end, 0, 0, b.label("step end", Account::idle));
    b.timed(OpKind::host, 1, 25 * kUs, Account::checkpoint, {work});
    b.end();
    b.rank(0);
    const EngineResult result = run_well(b);
    EXPECT_TRUE(result.periodic);
    EXPECT_GT(result.steps, 1u);
    EXPECT_EQ(result.period, 35 * kUs);
    EXPECT_EQ(account(result, 0, Account::checkpoint), 25 * kUs);
}

TEST(EnginePeriod, AStreamReleasedAtTheBoundaryIsNotQuiet) {
    // The operation on stream 1 is released by the compute that ends the step, at the boundary's instant.
    ProgramBuilder b;
    b.begin("t", 2);
    b.step(6);
    const std::uint32_t work = b.compute(10 * kUs);
    b.timed(OpKind::host, 1, 4 * kUs, Account::checkpoint, {work});
    b.end_step();
    b.rank(0);
    const EngineResult result = run_well(b);
    EXPECT_EQ(result.steps, 2u);
    EXPECT_EQ(result.period, 10 * kUs);
}

TEST(EnginePeriod, TheCpusLeadIsPartOfTheState) {
    // 100 us of GPU and 80 us of CPU work a step: the first step starts with an idle CPU and pays the first launch,
    // later ones do not.
    ProgramBuilder b;
    program::CostClass& cost = b.cost(100 * kUs);
    cost.host = 80 * kUs;
    cost.host_first = 30 * kUs;
    b.begin("t");
    b.step(10);
    b.compute_class(0);
    b.end_step();
    b.rank(0);
    const EngineResult result = run_well(b);
    EXPECT_TRUE(result.periodic);
    EXPECT_EQ(result.period, 100 * kUs);
    EXPECT_EQ(account(result, 0, Account::host_bound), 0);
}

TEST(EnginePeriod, RanksFarApartKeepTheirOwnAccounts) {
    // No synchronisation: one rank is many steps ahead of the other.
    ProgramBuilder b;
    b.begin("quick");
    b.step(20);
    b.compute(kUs);
    b.end_step();
    b.begin("slow");
    b.step(4);
    b.compute(50 * kUs);
    b.end_step();
    b.rank(0);
    b.rank(1);
    const EngineResult result = b.run();
    EXPECT_EQ(result.outcome, Outcome::done);
    EXPECT_FALSE(result.periodic);
    EXPECT_EQ(result.steps, 4u);
    EXPECT_EQ(account(result, 1, Account::gemm_ideal), 50 * kUs);
    EXPECT_EQ(account(result, 0, Account::gemm_ideal), kUs);
    EXPECT_EQ(result.period, 50 * kUs) << "the longest step, so that no rank has more time than the step";
}

TEST(EnginePeriod, AProgramWithoutStepEndsIsChargedWhole) {
    ProgramBuilder b;
    b.begin("t");
    b.compute(3 * kUs);
    b.timed(OpKind::timer, 0, 10 * kUs, Account::data_wait);
    b.rank(0);
    const EngineResult result = run_well(b);
    EXPECT_EQ(result.steps, 0u);
    EXPECT_EQ(result.end, 10 * kUs);
    EXPECT_EQ(account(result, 0, Account::data_wait), 7 * kUs);
}

}  // namespace
}  // namespace fabricast::engine
