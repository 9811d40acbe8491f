// Sources, changes from outside, patience: by hand.
#include <gtest/gtest.h>

#include "tests/sim/engine/program_builder.hpp"
#include "tests/sim/engine/run_well.hpp"

namespace fabricast::engine {
namespace {

/// `steps` steps of `work` behind a fetch.
ProgramBuilder loader(program::Source source, Picoseconds work, std::int64_t steps) {
    ProgramBuilder b;
    b.program.sources = {std::move(source)};
    b.program.fetches = {{0, false}};
    b.begin("t");
    b.step(steps);
    b.operation(OpKind::fetch, 0, 0, b.label("data", Account::data_wait));
    b.compute(work);
    b.end_step();
    b.rank(0).sources = {0};
    return b;
}

EngineResult run_all(const ProgramBuilder& b, EngineOptions options = {}) {
    options.stop_when_periodic = false;
    options.keep_step_ends = true;
    EXPECT_EQ(program::validate(b.program), "");
    return Engine(b.program, b.capacity, options).run();
}

TEST(EngineSources, MakersFasterThanTheTakerCostTheFirstItemAlone) {
    const EngineResult r = run_all(loader({2, 2, 0, {15 * kUs}}, 10 * kUs, 5));
    EXPECT_EQ(r.step_ends[0], (std::vector<Picoseconds>{25 * kUs, 35 * kUs, 45 * kUs, 55 * kUs, 65 * kUs}));
}

TEST(EngineSources, SlowMakersSetThePace) {
    // Two makers of 50 us give an item every 25 us: ready at 50 50 100 100 150.
    const EngineResult r = run_all(loader({2, 4, 0, {50 * kUs}}, 10 * kUs, 5));
    EXPECT_EQ(r.step_ends[0], (std::vector<Picoseconds>{60 * kUs, 70 * kUs, 110 * kUs, 120 * kUs, 160 * kUs}));
}

TEST(EngineSources, AMakerStopsWhenNobodyTakes) {
    // One maker, one ahead: it begins an item when the one before is taken; item j is ready 8 us behind taking j - 1.
    const EngineResult r = run_all(loader({1, 1, 0, {8 * kUs}}, 5 * kUs, 3));
    EXPECT_EQ(r.step_ends[0], (std::vector<Picoseconds>{13 * kUs, 21 * kUs, 29 * kUs}));
}

TEST(EngineSources, OnDemandCostsAllOfItAndTheLastTimeStays) {
    const EngineResult r = run_all(loader({0, 1, 0, {0, 3 * kUs, 1 * kUs}}, 10 * kUs, 4));
    EXPECT_EQ(r.step_ends[0], (std::vector<Picoseconds>{10 * kUs, 23 * kUs, 34 * kUs, 45 * kUs}));
}

TEST(EngineSources, ARestartThrowsAwayWhatIsMade) {
    ProgramBuilder b = loader({1, 8, 4 * kUs, {6 * kUs}}, 20 * kUs, 1);
    b.program.fetches.push_back({0, true});
    b.repeat(2);
    b.operation(OpKind::fetch, 0, 1, b.label("restart", Account::data_wait));
    b.operation(OpKind::fetch, 0, 0, b.label("data", Account::data_wait));
    b.compute(20 * kUs);
    b.end_step();
    const EngineResult r = run_all(b);
    EXPECT_EQ(r.step_ends[0], (std::vector<Picoseconds>{30 * kUs, 60 * kUs, 90 * kUs}));
}

/// Two ranks compute and all-reduce `bytes` over one link of 1 GB/s.
ProgramBuilder pair_of_ranks(std::int64_t steps, Bytes bytes) {
    ProgramBuilder b;
    const std::uint32_t d = b.demand({b.link(1e9)});
    b.begin("t");
    b.step(steps);
    b.compute(10 * kUs);
    b.collective(0, b.call(0, bytes, 0, bytes), Account::comm_gradient, {}, "gradient all-reduce");
    b.end_step();
    b.rank(0);
    b.rank(0);
    b.group("dp", {0, 1}, {d});
    return b;
}

TEST(EngineChanges, ASlowerRankFromItsNextSegmentOn) {
    EngineOptions o;
    o.changes = {{5 * kUs, Change::Kind::slowness, 1, 2 * program::kFullSpeed, 0}};
    const EngineResult r = run_all(pair_of_ranks(3, 1000), o);
    EXPECT_EQ(r.step_ends[0], (std::vector<Picoseconds>{11 * kUs, 32 * kUs, 53 * kUs}));
}

TEST(EngineChanges, HalfTheLinkInMidFlight) {
    EngineOptions o;  // 10 KB take 10 us from 10 us on; from 15 us on half as fast
    o.changes = {{15 * kUs, Change::Kind::capacity, 0, rate_from_bytes_per_s(5e8), 0}};
    const EngineResult r = run_all(pair_of_ranks(1, 10'000), o);
    EXPECT_EQ(r.step_ends[0], (std::vector<Picoseconds>{25 * kUs}));
}

EngineOptions flap(Picoseconds from, Picoseconds until, Picoseconds patience) {
    EngineOptions o;
    const Rate whole = rate_from_bytes_per_s(1e9);
    o.changes = {{from, Change::Kind::down, 0, whole >> 20, patience}};
    if (until > 0)
        o.changes.push_back({until, Change::Kind::up, 0, whole, 0});
    return o;
}

TEST(EngineChanges, AFlapWithinPatienceIsAStall) {
    const EngineResult r = run_all(pair_of_ranks(2, 10'000), flap(15 * kUs, 45 * kUs, 100 * kUs));
    EXPECT_EQ(r.outcome, Outcome::done);
    EXPECT_NEAR(static_cast<double>(r.step_ends[0][0]), 50e6, 100);  // 20 us, and 30 us down
    EXPECT_EQ(r.step_ends[0][1] - r.step_ends[0][0], 20 * kUs);
}

TEST(EngineChanges, BeyondPatienceTheTransportGivesUp) {
    const EngineResult r = run_all(pair_of_ranks(2, 10'000), flap(15 * kUs, 45 * kUs, 20 * kUs));
    EXPECT_EQ(r.outcome, Outcome::transport);
    EXPECT_EQ(r.failed_at, 35 * kUs);
    ASSERT_EQ(r.waits.size(), 1u);
    EXPECT_EQ(r.waits[0].members, (std::vector<std::uint32_t>{0, 1}));
}

TEST(EngineChanges, TheClockOfTheTransportStartsWithTheFirstUse) {
    const EngineResult r = run_all(pair_of_ranks(2, 10'000), flap(3 * kUs, 0, 20 * kUs));
    EXPECT_EQ(r.outcome, Outcome::transport);
    EXPECT_EQ(r.failed_at, 30 * kUs);
}

TEST(EngineChanges, AFlapThatNobodyMeetsCostsNothing) {
    const EngineResult r = run_all(pair_of_ranks(1, 10'000), flap(1 * kUs, 9 * kUs, 2 * kUs));
    EXPECT_EQ(r.outcome, Outcome::done);
    EXPECT_EQ(r.end, 20 * kUs);
}

TEST(EngineChanges, AHaltedRankLeavesTheOthersWaiting) {
    EngineOptions o;
    o.changes = {{25 * kUs, Change::Kind::halt, 1, 0, 0}};
    const EngineResult r = run_all(pair_of_ranks(3, 10'000), o);
    EXPECT_EQ(r.outcome, Outcome::deadlock);
    ASSERT_EQ(r.waits.size(), 1u);
    EXPECT_EQ(r.waits[0].what, "gradient all-reduce");
    EXPECT_EQ(r.waits[0].missing, (std::vector<std::uint32_t>{1}));
    ASSERT_EQ(r.waits[0].waiting.size(), 1u);
    EXPECT_EQ(r.waits[0].waiting[0].rank, 0u);
    EXPECT_EQ(r.waits[0].waiting[0].step, 1u);
    EXPECT_EQ(r.waits[0].waiting[0].since, 30 * kUs);
}

TEST(EnginePatience, EndsARunWhoseMemberComesTooLate) {
    ProgramBuilder b = pair_of_ranks(2, 1000);
    b.program.sources = {{0, 1, 0, {0}}, {0, 1, 0, {0, 500 * kUs}}};
    b.program.fetches = {{0, false}};
    program::Operation& op = b.program.templates[0].operations[0];  // the compute becomes a fetch
    op.kind = OpKind::fetch;
    op.payload = 0;
    b.program.ranks[0].sources = {0};
    b.program.ranks[1].sources = {1};
    EngineOptions o;
    o.patience = 600 * kUs;
    EXPECT_EQ(run_all(b, o).outcome, Outcome::done);
    o.patience = 300 * kUs;
    const EngineResult r = run_all(b, o);
    EXPECT_EQ(r.outcome, Outcome::overdue);
    EXPECT_EQ(r.failed_at, 1 * kUs + 300 * kUs);
    ASSERT_EQ(r.waits.size(), 1u);
    EXPECT_EQ(r.waits[0].missing, (std::vector<std::uint32_t>{1}));
}

TEST(EngineWindow, AccountsOfSeveralSteps) {
    ProgramBuilder b = loader({0, 1, 0, {0, 0, 1 * kUs, 2 * kUs, 3 * kUs, 0}}, 10 * kUs, 6);
    EngineOptions o;
    o.window_from = 2;
    const EngineResult r = run_all(b, o);
    EXPECT_EQ(r.period, 46 * kUs);
    EXPECT_EQ(r.accounts[0][static_cast<std::size_t>(Account::data_wait)], 6 * kUs);
    EXPECT_EQ(r.accounts[0][static_cast<std::size_t>(Account::gemm_ideal)], 40 * kUs);
}

}  // namespace
}  // namespace fabricast::engine
