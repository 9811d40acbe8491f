// Collectives: rendezvous, closed forms, members that differ or never come.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/engine/run_well.hpp"

namespace fabricast::engine {
namespace {

TEST(EngineCollective, MembersStartWithTheLastAndEndTogether) {
    ProgramBuilder b;
    const std::uint32_t demand = b.demand({b.link(50e9)});
    const std::uint32_t call = b.call(0, 1'000'000, 2 * kUs, 1'000'000);
    for (const int work : {10, 25, 40}) {
        b.begin("r" + std::to_string(work));
        b.compute(work * kUs);
        b.collective(0, call);
    }
    for (const std::uint32_t tmpl : {0u, 1u, 2u})
        b.rank(tmpl);
    b.group("tp 0", {0, 1, 2}, {demand});
    const EngineResult result = run_well(b);
    EXPECT_EQ(result.end, (40 + 2 + 20) * kUs);
    EXPECT_EQ(account(result, 0, Account::straggler), 30 * kUs);
    EXPECT_EQ(account(result, 1, Account::straggler), 15 * kUs);
    for (std::uint32_t rank = 0; rank < 3; ++rank)
        EXPECT_EQ(account(result, rank, Account::comm_tp), 22 * kUs);
}

TEST(EngineCollective, RingAllReduceClosedForm) {
    constexpr Bytes kSize = Bytes{1} << 30;
    ProgramBuilder b;
    b.program.demands.emplace_back();
    for (int gpu = 0; gpu < 8; ++gpu)
        b.program.demands.back().push_back({b.link(50e9), kCoefficientOne});
    const std::uint32_t call = b.call(0, kSize, 7 * kUs, 2 * kSize * 7 / 8);
    b.begin("t");
    b.collective(0, call, Account::comm_gradient);
    std::vector<std::uint32_t> members;
    for (std::uint32_t rank = 0; rank < 8; ++rank) {
        b.rank(0);
        members.push_back(rank);
    }
    b.group("dp 0", members, {0});
    EXPECT_EQ(run_well(b).end, 7 * kUs + 37'580'963'840);
}

TEST(EngineCollective, DifferentCallsOfOneGroupAreAMismatch) {
    ProgramBuilder b;
    const std::uint32_t small = b.call(0, 8, 0, 0), large = b.call(0, 16, 0, 0);
    b.begin("a");
    b.collective(0, small, Account::comm_tp, {}, "all-reduce");
    b.begin("b");
    b.collective(0, large, Account::comm_tp, {}, "all-gather");
    b.rank(0);
    b.rank(1);
    b.group("tp 3", {0, 1});
    const EngineResult result = b.run();
    EXPECT_EQ(result.outcome, Outcome::mismatch);
    for (const char* part : {"tp 3", "rank 0 in all-reduce", "rank 1 in all-gather"})
        EXPECT_TRUE(has(result.message, part)) << result.message;
}

TEST(EngineCollective, AMissingMemberIsNamed) {
    ProgramBuilder b;
    const std::uint32_t call = b.call(0, 8, 0, 0);
    b.begin("calls");
    b.collective(0, call, Account::comm_tp, {}, "all-reduce");
    b.begin("does not");
    b.compute(kUs);
    for (const std::uint32_t tmpl : {0u, 0u, 1u, 0u})
        b.rank(tmpl);
    b.group("tp 0", {0, 1, 2, 3});
    const EngineResult result = b.run();
    EXPECT_EQ(result.outcome, Outcome::deadlock);
    for (const char* part : {"tp 0", "3 of 4", "missing rank 2)", "all-reduce"})
        EXPECT_TRUE(has(result.message, part)) << result.message;
}

TEST(EngineCollective, UnequalStepCountsDeadlockAndNameTheRanks) {
    ProgramBuilder b;
    const std::uint32_t call = b.call(0, 8, kUs, 0);
    b.begin("t");
    b.repeat(1, 0);
    b.compute(kUs);
    b.collective(0, call, Account::comm_gradient, {}, "gradient reduction");
    b.end_step();
    b.rank(0).bindings = {3};
    b.rank(0).bindings = {2};
    b.group("dp 0", {0, 1});
    EngineOptions options;
    options.stop_when_periodic = false;
    const EngineResult result = b.run(options);
    EXPECT_EQ(result.outcome, Outcome::deadlock);
    for (const char* part : {"rank 0 in gradient reduction", "step 2", "missing rank 1)"})
        EXPECT_TRUE(has(result.message, part)) << result.message;
}

TEST(EngineCollective, SlotsOfMembersMayDiffer) {
    // Rank 1 has the shared group in slot 1; who waited is settled in each member's own slot.
    ProgramBuilder b;
    const std::uint32_t of_0 = b.call(0, 8, kUs, 0), alone = b.call(0, 4, kUs, 0), of_1 = b.call(1, 8, kUs, 0);
    b.begin("a");
    b.collective(0, of_0);
    b.begin("b");
    b.collective(0, alone);
    b.compute(5 * kUs);
    b.collective(0, of_1);
    b.rank(0);
    b.rank(1);
    b.group("own", {1});
    b.group("both", {0, 1});
    const EngineResult result = run_well(b);
    EXPECT_EQ(account(result, 0, Account::straggler), 6 * kUs);
}

}  // namespace
}  // namespace fabricast::engine
