// Messages: rendezvous, order on a channel, contention, unmatched and unequal ones.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/engine/run_well.hpp"

namespace fabricast::engine {
namespace {

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

}  // namespace
}  // namespace fabricast::engine
