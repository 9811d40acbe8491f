// Where the time of a rank goes: interference, host-bound, straggler, bubble.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/engine/run_well.hpp"

namespace fabricast::engine {
namespace {

TEST(EngineAccounts, ConcurrentCommunicationSlowsASegment) {
    ProgramBuilder b;
    const std::uint32_t demand = b.demand({b.link(50e9)});
    const std::uint32_t call = b.call(0, 1'000'000, 0, 1'000'000);  // 20 us
    program::CostClass& cost = b.cost(30 * kUs);
    cost.speed = {65536, 65536, 32768, 65536, 65536};  // half speed while the network is busy
    b.begin("t", 2);
    b.collective(1, call, Account::comm_gradient);
    b.compute_class(0);
    b.rank(0);
    b.rank(0);
    b.group("dp 0", {0, 1}, {demand});
    const EngineResult result = run_well(b);
    EXPECT_EQ(result.end, 40 * kUs);  // 20 us at half speed do 10 us of work
    EXPECT_EQ(account(result, 0, Account::gemm_ideal), 30 * kUs);
    EXPECT_EQ(account(result, 0, Account::interference), 10 * kUs);
    EXPECT_EQ(account(result, 0, Account::comm_gradient), 0);
}

TEST(EngineAccounts, AWaitingKernelSlowsAndOverlapIsFree) {
    ProgramBuilder b;
    const std::uint32_t call = b.call(0, 8, 10 * kUs, 0);
    program::CostClass& cost = b.cost(30 * kUs);
    cost.speed = {65536, 32768, 65536, 65536, 65536};  // half speed while a kernel waits for its members
    b.begin("early", 2);
    b.collective(1, call);
    b.compute_class(0);
    b.begin("late", 2);
    const std::uint32_t work = b.compute(12 * kUs);
    b.collective(1, call, Account::comm_tp, {work});
    b.rank(0);
    b.rank(1);
    b.group("tp 0", {0, 1});
    const EngineResult result = run_well(b);
    EXPECT_EQ(account(result, 0, Account::interference), 6 * kUs);
    EXPECT_EQ(result.end, 36 * kUs);
    EXPECT_EQ(account(result, 1, Account::comm_tp), 10 * kUs);
    EXPECT_EQ(account(result, 1, Account::idle), 14 * kUs);
}

TEST(EngineAccounts, IssueSlowerThanTheGpuIsHostBound) {
    ProgramBuilder b;
    program::CostClass& cost = b.cost(10 * kUs);
    cost.host = 15 * kUs;
    cost.host_first = 2 * kUs;
    cost.tail = kUs;
    b.begin("t");
    b.repeat(4);
    b.compute_class(0);
    b.end();
    b.rank(0);
    const EngineResult result = run_well(b);
    EXPECT_EQ(result.end, (4 * 15 + 1) * kUs);  // the last kernel of the last segment is issued after 60 us
    EXPECT_EQ(account(result, 0, Account::gemm_ideal), 40 * kUs);
    EXPECT_EQ(account(result, 0, Account::host_bound), 21 * kUs);
}

TEST(EngineAccounts, TheCpuRunsAheadUntilItMustWait) {
    ProgramBuilder b;
    program::CostClass& cost = b.cost(100 * kUs);
    cost.host = 10 * kUs;
    cost.host_first = 3 * kUs;
    b.begin("t");
    b.compute_class(0);
    b.compute_class(0);
    b.last_operation().host_sync = true;
    b.compute_class(0);
    b.rank(0);
    const EngineResult result = run_well(b);
    EXPECT_EQ(account(result, 0, Account::host_bound), 6 * kUs);  // the first launch, and the one after the wait
    EXPECT_EQ(result.end, 306 * kUs);
}

TEST(EngineAccounts, SpeedChangesWhileOnlyTheCpuIsWaitedForAreNoInterference) {
    ProgramBuilder b;
    const std::uint32_t call = b.call(0, 8, 10 * kUs, 0);
    program::CostClass& cost = b.cost(5 * kUs);
    cost.host = 20 * kUs;
    cost.speed = {65536, 65536, 32768, 65536, 65536};
    b.begin("t", 2);
    b.timed(OpKind::host, 1, 8 * kUs, Account::idle);
    b.collective(1, call);  // comes at 8 us, the segment's work ended at 5 us, its issue ends at 20 us
    b.compute_class(0);
    b.rank(0);
    b.group("one", {0});
    const EngineResult result = run_well(b);
    EXPECT_EQ(result.end, 20 * kUs);
    EXPECT_EQ(account(result, 0, Account::host_bound), 15 * kUs);
    EXPECT_EQ(account(result, 0, Account::interference), 0);
}

TEST(EngineAccounts, SlownessOfARankIsStraggling) {
    ProgramBuilder b;
    const std::uint32_t call = b.call(0, 8, 0, 0);
    b.begin("t");
    b.compute(100 * kUs);
    b.collective(0, call);
    b.rank(0);
    b.rank(0).slowness = program::kFullSpeed * 5 / 4;
    b.group("tp 0", {0, 1});
    const EngineResult result = run_well(b);
    EXPECT_EQ(result.end, 125 * kUs);
    EXPECT_EQ(account(result, 0, Account::straggler), 25 * kUs);
    EXPECT_EQ(account(result, 1, Account::straggler), 25 * kUs);
    EXPECT_EQ(account(result, 1, Account::gemm_ideal), 100 * kUs);
}

// Ranks 1 and 2 form a group; rank 1 first needs a message that rank 0 sends after `source` us of work, then works 2 us.
EngineResult late_by_a_message(int source, bool swap_members) {
    ProgramBuilder b;
    const std::uint32_t call = b.call(0, 8, 0, 0);
    const std::uint32_t route = b.route(b.demand({b.link(50e9)}), 0);
    b.begin("source");
    b.compute(source * kUs);
    b.batch(0, {sends(0, 0)});
    b.begin("late");
    b.batch(0, {receives(0, 0)});
    b.compute(2 * kUs);
    b.collective(0, call);
    b.begin("early");
    b.compute(kUs);
    b.collective(0, call);
    b.rank(0);
    b.rank(swap_members ? 2 : 1);
    b.rank(swap_members ? 1 : 2);
    const std::uint32_t late = swap_members ? 2 : 1;
    b.peer(0, late, route);
    b.program.ranks[late].peers.push_back({0, 0, program::kNone});
    b.group("pair", {1, 2});
    EngineResult result = run_well(b);
    if (swap_members)
        std::swap(result.accounts[1], result.accounts[2]);
    return result;
}

TEST(EngineAccounts, WaitingForAPeerThatWaitedIsBubbleTheRestStraggler) {
    for (const bool swap : {false, true}) {
        const EngineResult result = late_by_a_message(10, swap);
        EXPECT_EQ(account(result, 1, Account::bubble), 10 * kUs);
        EXPECT_EQ(account(result, 2, Account::bubble), 10 * kUs);  // of the 11 us it waited, the late one waited 10
        EXPECT_EQ(account(result, 2, Account::straggler), 1 * kUs);
    }
}

TEST(EngineAccounts, OldBubblesDoNotExcuseLaterWork) {
    // Both meet once after a bubble; then rank 1 is late by its own work alone.
    ProgramBuilder b;
    const std::uint32_t call = b.call(0, 8, 0, 0);
    const std::uint32_t route = b.route(b.demand({b.link(50e9)}), 0);
    b.begin("source");
    b.compute(50 * kUs);
    b.batch(0, {sends(0, 0)});
    b.begin("late");
    b.batch(0, {receives(0, 0)});
    b.collective(0, call);
    b.collective(0, call);
    b.begin("other");
    b.collective(0, call);
    b.compute(30 * kUs);
    b.collective(0, call);
    for (const std::uint32_t tmpl : {0u, 1u, 2u})
        b.rank(tmpl);
    b.peer(0, 1, route);
    b.program.ranks[1].peers.push_back({0, 0, program::kNone});
    b.group("pair", {1, 2});
    const EngineResult result = run_well(b);
    EXPECT_EQ(account(result, 2, Account::bubble), 50 * kUs);
    EXPECT_EQ(account(result, 1, Account::bubble), 50 * kUs);
    EXPECT_EQ(account(result, 1, Account::straggler), 30 * kUs);
}

}  // namespace
}  // namespace fabricast::engine
