// The executor: rendezvous, accounts, period, diagnosis, timeline.
#include "sim/engine/engine.hpp"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "tests/sim/engine/program_builder.hpp"

namespace fabricast::engine {
namespace {

using program::OpKind;
using test::account;
using test::account_sum;
using test::kMicrosecond;
using test::ProgramBuilder;
using test::receives;
using test::sends;

constexpr Picoseconds kUs = kMicrosecond;

// A run that ended well; every rank's accounts sum to the period.
EngineResult run_well(const ProgramBuilder& b, EngineOptions options = {}) {
    EXPECT_EQ(program::validate(b.program), "");
    EngineResult result = b.run(options);
    EXPECT_EQ(result.outcome, Outcome::done) << result.message;
    const Picoseconds span = result.steps > 0 ? result.period : result.end;
    for (std::uint32_t rank = 0; rank < b.program.ranks.size(); ++rank) {
        EXPECT_EQ(account_sum(result, rank), span) << "rank " << rank;
        for (const Picoseconds part : result.accounts[rank])
            EXPECT_GE(part, 0) << "rank " << rank;
    }
    return result;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// ---- point to point ------------------------------------------------------------------------------------------------

TEST(EnginePointToPoint, PingPong) {
    ProgramBuilder b;
    const std::uint32_t to_1 = b.route(b.demand({b.link(50e9)}), 3 * kUs);
    const std::uint32_t to_0 = b.route(b.demand({b.link(25e9)}), 3 * kUs);
    b.begin("first");
    b.compute(10 * kUs);
    b.batch(0, {sends(0, 1'000'000)});
    b.batch(0, {receives(0, 1'000'000)});
    b.begin("second");
    b.batch(0, {receives(0, 1'000'000)});
    b.compute(5 * kUs);
    b.batch(0, {sends(0, 1'000'000)});
    b.rank(0);
    b.rank(1);
    b.peer(0, 1, to_1);
    b.peer(1, 0, to_0);
    const EngineResult result = run_well(b);
    EXPECT_EQ(result.end, (10 + 3 + 20 + 5 + 3 + 40) * kUs);
    EXPECT_EQ(account(result, 0, Account::gemm_ideal), 10 * kUs);
    EXPECT_EQ(account(result, 0, Account::comm_pp), 66 * kUs);
    EXPECT_EQ(account(result, 0, Account::bubble), 5 * kUs);
    EXPECT_EQ(account(result, 1, Account::bubble), 10 * kUs);
}

TEST(EnginePointToPoint, OneGibibyteAtNicRate) {
    ProgramBuilder b;
    const std::uint32_t route = b.route(b.demand({b.link(200e9), b.link(50e9), b.link(50e9), b.link(200e9)}), 5 * kUs);
    b.begin("source");
    b.batch(0, {sends(0, Bytes{1} << 30)});
    b.begin("target");
    b.batch(0, {receives(0, Bytes{1} << 30)});
    b.rank(0);
    b.rank(1);
    b.peer(0, 1, route);
    b.peer(1, 0, program::kNone);
    EXPECT_EQ(run_well(b).end, 5 * kUs + 21'474'836'480);  // 2^30 / 50e9 s
}

TEST(EnginePointToPoint, MessagesOfAChannelMeetInOrderAndChannelsAreApart) {
    ProgramBuilder b;
    const std::uint32_t route = b.route(b.demand({b.link(1e9)}), 0);
    b.begin("source", 2);
    b.batch(0, {sends(0, 1000)});
    b.batch(0, {sends(0, 2000)});
    b.batch(1, {sends(1, 3000)});
    b.begin("target", 2);
    b.batch(0, {receives(0, 1000)});
    b.batch(0, {receives(0, 2000)});
    b.batch(1, {receives(1, 3000)});
    b.rank(0);
    b.rank(1);
    b.peer(0, 1, route, 7);
    b.peer(0, 1, route, 8);
    b.peer(1, 0, program::kNone, 7);
    b.peer(1, 0, program::kNone, 8);
    EXPECT_EQ(run_well(b).end, 6 * kUs);  // one link, 6000 bytes, always busy
}

TEST(EnginePointToPoint, ContentionIsTimeBeyondTheUncontended) {
    ProgramBuilder b;
    const std::uint32_t route = b.route(b.demand({b.link(50e9)}), kUs);
    b.begin("source");
    b.batch(0, {sends(0, 1'000'000)});
    b.begin("target");
    b.batch(0, {receives(0, 1'000'000)});
    for (const std::uint32_t tmpl : {0u, 0u, 1u, 1u})
        b.rank(tmpl);
    b.peer(0, 2, route);
    b.peer(1, 3, route);
    b.peer(2, 0, program::kNone);
    b.peer(3, 1, program::kNone);
    const EngineResult result = run_well(b);
    EXPECT_EQ(result.end, 41 * kUs);
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
        EXPECT_EQ(account(result, rank, Account::comm_pp), 21 * kUs);
        EXPECT_EQ(account(result, rank, Account::contention), 20 * kUs);
    }
}

TEST(EnginePointToPoint, ABatchThatSharesALinkWithItselfIsChargedOnce) {
    ProgramBuilder b;
    const std::uint32_t route = b.route(b.demand({b.link(50e9)}), 0);  // one link for both directions
    b.begin("peer");
    b.batch(0, {sends(0, 1'000'000), receives(0, 1'000'000)});
    b.rank(0);
    b.rank(0);
    b.peer(0, 1, route);
    b.peer(1, 0, route);
    const EngineResult result = run_well(b);
    EXPECT_EQ(result.end, 40 * kUs);
    EXPECT_EQ(account(result, 0, Account::contention), 20 * kUs);
}

TEST(EnginePointToPoint, EmptyBatchesAndZeroByteTransfersPass) {
    ProgramBuilder b;
    b.begin("t", 2);
    b.batch(0, {});
    b.program.transfers = {{0, 0}, {0, 50'000}};
    b.operation(OpKind::transfer, 1, 0, b.label("empty save", Account::checkpoint));
    b.operation(OpKind::transfer, 1, 1, b.label("save", Account::checkpoint));
    b.rank(0).transfer_routes = {b.route(b.demand({b.link(50e9)}), kUs)};
    const EngineResult result = run_well(b);
    EXPECT_EQ(result.end, 3 * kUs);  // latency; latency and 1 us of data
    EXPECT_EQ(account(result, 0, Account::checkpoint), 3 * kUs);
}

TEST(EnginePointToPoint, UnmatchedSendIsADeadlockThatNamesThePeer) {
    ProgramBuilder b;
    const std::uint32_t route = b.route(b.demand({b.link(50e9)}), 0);
    b.begin("source");
    b.batch(0, {sends(0, 8)}, {}, "send activations");
    b.begin("target");
    b.compute(kUs);
    b.rank(0);
    b.rank(1);
    b.peer(0, 1, route);
    const EngineResult result = b.run();
    EXPECT_EQ(result.outcome, Outcome::deadlock);
    EXPECT_TRUE(has(result.message, "rank 0 in send activations")) << result.message;
    EXPECT_TRUE(has(result.message, "waits for rank 1 to receive")) << result.message;
}

TEST(EnginePointToPoint, UnequalSizesAreAMismatch) {
    ProgramBuilder b;
    const std::uint32_t route = b.route(b.demand({b.link(50e9)}), 0);
    b.begin("source");
    b.batch(0, {sends(0, 8)}, {}, "send it");
    b.begin("target");
    b.batch(0, {receives(0, 16)}, {}, "receive it");
    b.rank(0);
    b.rank(1);
    b.peer(0, 1, route);
    b.peer(1, 0, program::kNone);
    const EngineResult result = b.run();
    EXPECT_EQ(result.outcome, Outcome::mismatch);
    for (const char* part : {"8 bytes sent by rank 0 in send it", "16 expected by rank 1 in receive it"}) {
        EXPECT_TRUE(has(result.message, part)) << result.message;
    }
}

// Steady state of 1F1B between two stages: both send first when unbatched.
EngineResult exchange(bool batched) {
    ProgramBuilder b;
    const std::uint32_t route = b.route(b.demand({b.link(50e9)}), 0);
    for (const char* stage : {"stage 0", "stage 1"}) {
        b.begin(stage);
        b.compute(kUs);
        if (batched) {
            b.batch(0, {sends(0, 1000), receives(0, 1000)}, {}, "exchange");
        } else {
            b.batch(0, {sends(0, 1000)}, {}, std::string("send of ") + stage);
            b.batch(0, {receives(0, 1000)}, {}, "receive");
        }
    }
    b.rank(0);
    b.rank(1);
    b.peer(0, 1, route);
    b.peer(1, 0, route);
    return batched ? run_well(b) : b.run();
}

TEST(EnginePointToPoint, UnbatchedExchangeDeadlocksUnderRendezvousBatchedDoesNot) {
    EXPECT_EQ(exchange(true).outcome, Outcome::done);
    const EngineResult result = exchange(false);
    EXPECT_EQ(result.outcome, Outcome::deadlock);
    for (const char* part : {"rank 0 in send of stage 0", "rank 1 in send of stage 1", "waits for rank 0 to receive"}) {
        EXPECT_TRUE(has(result.message, part)) << result.message;
    }
}

// ---- collectives ---------------------------------------------------------------------------------------------------

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

// ---- accounts ------------------------------------------------------------------------------------------------------

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

// ---- pipelines -----------------------------------------------------------------------------------------------------

enum class Pipeline { gpipe, one_f_one_b };

// Stage s of p equal stages and m micro-batches; messages of no size.
void pipeline_stage(ProgramBuilder& b, Pipeline kind, int s, int p, int m, Picoseconds forward, Picoseconds backward,
                    std::uint32_t closing) {
    // peer slots: 0 the stage before, 1 the stage after
    b.begin("stage " + std::to_string(s));
    b.step(3);
    const bool first = s == 0, last = s == p - 1;
    const int warm = kind == Pipeline::gpipe ? m : std::min(m, p - s - 1);
    const auto take = [&] {
        if (!first)
            b.batch(0, {receives(0, 0)}, {}, "receive forward");
    };
    const auto give = [&] {
        if (!last)
            b.batch(0, {sends(1, 0)}, {}, "send forward");
    };
    const auto take_back = [&] {
        if (!last)
            b.batch(0, {receives(1, 0)}, {}, "receive backward");
    };
    const auto give_back = [&] {
        if (!first)
            b.batch(0, {sends(0, 0)}, {}, "send backward");
    };
    for (int i = 0; i < warm; ++i) {
        take();
        b.compute(forward, {}, "forward");
        give();
    }
    const int steady = m - warm;
    if (steady > 0)
        take();
    for (int i = 0; i < steady; ++i) {
        b.compute(forward, {}, "forward");
        if (!last)
            b.batch(0, {sends(1, 0), receives(1, 0)}, {}, "send forward, receive backward");
        b.compute(backward, {}, "backward");
        if (i + 1 < steady) {
            if (!first)
                b.batch(0, {sends(0, 0), receives(0, 0)}, {}, "send backward, receive forward");
        } else {
            give_back();
        }
    }
    for (int i = 0; i < warm; ++i) {
        take_back();
        b.compute(backward, {}, "backward");
        give_back();
    }
    if (closing != program::kNone)
        b.collective(0, closing, Account::comm_other, {}, "close");
    b.end_step();
}

ProgramBuilder pipeline(Pipeline kind, int p, int m, Picoseconds forward, Picoseconds backward, bool global_close) {
    ProgramBuilder b;
    const std::uint32_t route = b.route(b.demand({b.link(50e9)}), 0);
    const std::uint32_t closing = global_close ? b.call(0, 8, 0, 0) : program::kNone;
    for (int s = 0; s < p; ++s)
        pipeline_stage(b, kind, s, p, m, forward, backward, closing);
    std::vector<std::uint32_t> members;
    for (int s = 0; s < p; ++s) {
        const auto rank = static_cast<std::uint32_t>(s);
        b.rank(rank);
        b.peer(rank, rank == 0 ? 0 : rank - 1, rank == 0 ? program::kNone : route);
        b.peer(rank, s == p - 1 ? rank : rank + 1, s == p - 1 ? program::kNone : route);
        members.push_back(rank);
    }
    if (global_close)
        b.group("world", members);
    return b;
}

TEST(EnginePipeline, OneForwardOneBackwardAndGPipeTakeExactlyTheirFormula) {
    for (const Pipeline kind : {Pipeline::one_f_one_b, Pipeline::gpipe}) {
        for (const int p : {1, 2, 4, 8}) {
            for (const int m : {1, 3, 8, 20}) {
                const Picoseconds forward = 7 * kUs, backward = 13 * kUs;
                const EngineResult result = run_well(pipeline(kind, p, m, forward, backward, true));
                SCOPED_TRACE("p " + std::to_string(p) + " m " + std::to_string(m));
                EXPECT_EQ(result.steps, 1u);
                EXPECT_EQ(result.period, (m + p - 1) * (forward + backward));
                Picoseconds waiting = 0;
                for (int rank = 0; rank < p; ++rank) {
                    const auto r = static_cast<std::uint32_t>(rank);
                    EXPECT_EQ(account(result, r, Account::gemm_ideal), m * (forward + backward));
                    EXPECT_EQ(account(result, r, Account::bubble) + account(result, r, Account::straggler),
                              (p - 1) * (forward + backward));
                    waiting += account(result, r, Account::bubble) + account(result, r, Account::straggler);
                }
                // bubble fraction (p - 1) / (m + p - 1)
                EXPECT_EQ(waiting * (m + p - 1), result.period * p * (p - 1));
            }
        }
    }
}

TEST(EnginePipeline, WithoutAClosingCollectiveOffsetsSettle) {
    const EngineResult result = run_well(pipeline(Pipeline::one_f_one_b, 4, 8, 7 * kUs, 13 * kUs, false));
    EXPECT_TRUE(result.periodic);
    EXPECT_GE(result.steps, 2u);
    EXPECT_LE(result.period, (8 + 3) * 20 * kUs);  // steps overlap at the boundary
    EXPECT_GE(result.period, 8 * 20 * kUs);
}

// ---- the period ----------------------------------------------------------------------------------------------------

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

// ---- timeline and fingerprint --------------------------------------------------------------------------------------

TEST(EngineTimeline, CausesChainAndTheCriticalPathSumsToThePeriod) {
    const ProgramBuilder b = pipeline(Pipeline::one_f_one_b, 4, 6, 7 * kUs, 13 * kUs, true);
    EngineOptions options;
    options.record_timeline = true;
    const EngineResult result = run_well(b, options);
    ASSERT_FALSE(result.timeline.empty());
    for (const Record& record : result.timeline) {
        if (record.finished == record.issued && record.issued == result.end)
            continue;  // next step, cut off
        EXPECT_LE(record.issued, record.started);
        if (record.cause == program::kNone) {
            EXPECT_EQ(record.started, 0);
        } else {
            EXPECT_EQ(result.timeline[record.cause].finished, record.started);
        }
    }
    Picoseconds sum = 0, compute = 0;
    for (const PathPart& part : critical_path(b.program, result.timeline, result.window_begin, result.window_end)) {
        sum += part.time;
        if (part.account == Account::gemm_ideal)
            compute += part.time;
    }
    EXPECT_EQ(sum, result.period);
    EXPECT_EQ(compute, result.period);  // messages cost nothing here
}

TEST(EngineTimeline, ABatchIsCausedByItsLastMessageToEnd) {
    // Rank 0 receives a long message from rank 1 and, later, a short one from rank 2 that ends first.
    ProgramBuilder b;
    const std::uint32_t slow = b.route(b.demand({b.link(1e9)}), 0), fast = b.route(b.demand({b.link(100e9)}), 0);
    b.begin("sink");
    b.batch(0, {receives(0, 100'000), receives(1, 1000)}, {}, "receive both");
    b.begin("long");
    b.compute(2 * kUs, {}, "produce long");
    b.batch(0, {sends(0, 100'000)});
    b.begin("short");
    b.compute(50 * kUs, {}, "produce short");
    b.batch(0, {sends(0, 1000)});
    for (const std::uint32_t tmpl : {0u, 1u, 2u})
        b.rank(tmpl);
    b.peer(0, 1, program::kNone);
    b.peer(0, 2, program::kNone);
    b.peer(1, 0, slow);
    b.peer(2, 0, fast);
    EngineOptions options;
    options.record_timeline = true;
    const EngineResult result = run_well(b, options);
    EXPECT_EQ(result.end, 102 * kUs);
    const Record& batch = result.timeline.front();
    EXPECT_EQ(batch.started, 2 * kUs);
    EXPECT_EQ(result.timeline[batch.cause].rank, 1u);
    Picoseconds sum = 0;
    for (const PathPart& part : critical_path(b.program, result.timeline, 0, result.end)) {
        sum += part.time;
        EXPECT_NE(b.program.names[part.name], "produce short");
    }
    EXPECT_EQ(sum, result.end);
}

ProgramBuilder two_templates(Picoseconds work, bool swapped) {
    ProgramBuilder b;
    const std::uint32_t call = b.call(0, 8, kUs, 0);
    b.begin("a");
    b.compute(work);
    b.collective(0, call);
    b.begin("b");
    b.compute(3 * kUs);
    b.collective(0, call);
    for (std::uint32_t rank = 0; rank < 4; ++rank)
        b.rank((rank % 2) ^ (swapped ? 1u : 0u));
    b.group("all", {0, 1, 2, 3});
    return b;
}

TEST(EngineFingerprint, SameRunsAgreeAndAnyTimeShows) {
    const std::uint64_t base = two_templates(5 * kUs, false).run().fingerprint;
    EXPECT_EQ(two_templates(5 * kUs, false).run().fingerprint, base);
    EXPECT_EQ(two_templates(5 * kUs, true).run().fingerprint, base);
    EXPECT_NE(two_templates(5 * kUs + 1, false).run().fingerprint, base);
    EXPECT_NE(two_templates(2 * kUs, false).run().fingerprint, base);
}

}  // namespace
}  // namespace fabricast::engine
