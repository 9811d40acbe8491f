// The timeline of a step tells the same story as its accounts.
#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "sim/step/record_timeline.hpp"
#include "tests/sim/step/support.hpp"

namespace fabricast {
namespace {

Scenario scenario_of(const std::string& file, const test::Overrides& overrides = {}) {
    return load_scenario(std::string(FABRICAST_SOURCE_DIR) + "/scenarios/" + file, overrides);
}

// Two nodes, four stages, tensor and data parallel.
const test::Overrides kSmall = {"cluster.nodes=2",       "training.layout.tp=2",   "training.layout.pp=4",
                                "training.layout.dp=2",  "training.schedule=1f1b", "training.global_batch=16 sequences",
                                "training.layout.zero=1"};

bool is_compute(std::size_t account) { return account <= static_cast<std::size_t>(Account::interference); }

TEST(Timeline, StatesCoverTheStepAndAgreeWithTheAccounts) {
    const Scenario scenario = scenario_of("quickstart.yaml", kSmall);
    const Result result = forecast(scenario);
    ASSERT_GT(result.step.ps, 0) << result.failure;
    const StepTimeline timeline = record_timeline(scenario, true, {});
    ASSERT_EQ(timeline.lanes.size(), timeline.classes) << "every class has a lane";

    __int128 computing = 0, moving = 0, whole = 0;
    std::int64_t ranks = 0;
    for (const StepTimeline::Lane& lane : timeline.lanes) {
        ranks += lane.copies;
        whole += static_cast<__int128>(lane.end - lane.begin) * lane.copies;
    }
    EXPECT_EQ(ranks, result.step.ranks);
    std::vector<Picoseconds> reached(timeline.lanes.size());
    for (std::size_t n = 0; n < timeline.lanes.size(); ++n)
        reached[n] = timeline.lanes[n].begin;
    for (const StepTimeline::State& state : timeline.states) {
        EXPECT_EQ(state.begin, reached[state.lane]) << "a gap";
        EXPECT_GT(state.end, state.begin);
        reached[state.lane] = state.end;
        const __int128 time = static_cast<__int128>(state.end - state.begin) * timeline.lanes[state.lane].copies;
        computing += state.state == LaneState::computing ? time : 0;
        moving += state.state == LaneState::moving ? time : 0;
    }
    for (std::size_t n = 0; n < timeline.lanes.size(); ++n)
        EXPECT_EQ(reached[n], timeline.lanes[n].end);

    __int128 compute = 0, exposed = 0;
    for (std::size_t a = 0; a < kAccountCount; ++a) {
        if (is_compute(a))
            compute += result.step.accounts[a];
        else if (a <= static_cast<std::size_t>(Account::contention))
            exposed += result.step.accounts[a];
    }
    const __int128 straggler = result.step.accounts[static_cast<std::size_t>(Account::straggler)];
    EXPECT_TRUE(whole == static_cast<__int128>(result.step.ps) * result.step.ranks);
    EXPECT_TRUE(computing >= compute && computing <= compute + straggler) << "slow GPUs' time is a straggler's";
    // A batch of messages counts as one, which shifts a little between moving and waiting.
    EXPECT_NEAR(static_cast<double>(moving) / static_cast<double>(whole),
                static_cast<double>(exposed) / static_cast<double>(whole), 0.005);
}

TEST(Timeline, ArrowsJoinEverySendToItsReceive) {
    const Scenario scenario = scenario_of("quickstart.yaml", kSmall);
    const StepTimeline timeline = record_timeline(scenario, true, {});
    ASSERT_FALSE(timeline.flows.empty());
    std::map<int, int> by_stage;
    for (const StepTimeline::Flow& flow : timeline.flows) {
        const StepTimeline::Slice& from = timeline.slices[flow.from];
        const StepTimeline::Slice& to = timeline.slices[flow.to];
        EXPECT_EQ(from.kind, program::OpKind::p2p_batch);
        EXPECT_EQ(to.kind, program::OpKind::p2p_batch);
        EXPECT_LE(from.issued, to.finished) << "a message cannot arrive before it is sent";
        EXPECT_EQ(std::abs(timeline.lanes[from.lane].stage - timeline.lanes[to.lane].stage), 1);
        ++by_stage[timeline.lanes[from.lane].stage];
    }
    // 8 micro-batches: each stage sends them on, and their gradients back; every class of a stage has its own arrows.
    std::map<int, int> lanes;
    for (const StepTimeline::Lane& lane : timeline.lanes)
        ++lanes[lane.stage];
    EXPECT_EQ(by_stage[0], 8 * lanes[0]);
    EXPECT_EQ(by_stage[1], 16 * lanes[1]);
    EXPECT_EQ(by_stage[3], 8 * lanes[3]);
}

TEST(Timeline, RanksOfAClassShowTheSameTimes) {
    const Scenario scenario = scenario_of("quickstart.yaml", kSmall);
    const StepTimeline folded = record_timeline(scenario, true, {.all = true, .ranks = {}});
    const StepTimeline whole = record_timeline(scenario, false, {.all = true, .ranks = {}});
    ASSERT_EQ(folded.lanes.size(), 16u);
    ASSERT_EQ(folded.slices.size(), whole.slices.size());
    for (std::size_t i = 0; i < folded.slices.size(); ++i) {
        EXPECT_EQ(folded.slices[i].issued, whole.slices[i].issued);
        EXPECT_EQ(folded.slices[i].started, whole.slices[i].started);
        EXPECT_EQ(folded.slices[i].finished, whole.slices[i].finished);
    }
    EXPECT_EQ(folded.flows.size(), whole.flows.size());
    ASSERT_EQ(folded.links.size(), whole.links.size());
    for (std::size_t i = 0; i < folded.links.size(); ++i)
        EXPECT_DOUBLE_EQ(folded.links[i].mean, whole.links[i].mean) << folded.links[i].name;
}

TEST(Timeline, MemoryStaysBelowTheVerdictAndLinksBelowCapacity) {
    const Scenario scenario = scenario_of("quickstart.yaml", kSmall);
    const Result result = forecast(scenario);
    const StepTimeline timeline = record_timeline(scenario, true, {});
    std::map<std::uint32_t, std::map<MemoryCause, Bytes>> held;
    for (const StepTimeline::Memory& memory : timeline.memory) {
        EXPECT_GE(memory.bytes, 0) << memory_cause_name(memory.cause);
        held[memory.lane][memory.cause] = memory.bytes;
        Bytes sum = 0;
        for (const auto& [cause, bytes] : held[memory.lane])
            sum += bytes;
        const int stage = timeline.lanes[memory.lane].stage;
        EXPECT_LE(sum, result.memory[static_cast<std::size_t>(stage)].total_bytes);
    }
    ASSERT_FALSE(timeline.links.empty());
    for (const StepTimeline::Link& link : timeline.links) {
        EXPECT_GT(link.mean, 0) << link.name;
        EXPECT_LE(link.mean, 1) << link.name;
        for (const StepTimeline::Link::Sample& sample : link.samples)
            EXPECT_LE(sample.use, 1.001) << link.name;
    }
}

TEST(Timeline, LanesBeginWithTheFirstClassOfEveryStage) {
    // Three stages of 20 ranks, all different.
    std::vector<std::uint32_t> class_of(60);
    std::vector<int> stage_of(60);
    for (std::uint32_t rank = 0; rank < 60; ++rank) {
        class_of[rank] = rank;
        stage_of[rank] = static_cast<int>(rank / 20);
    }
    const auto lanes = timeline_lanes({}, class_of, stage_of);
    EXPECT_EQ(lanes.size(), TimelineRequest::kMostLanes);
    EXPECT_EQ(std::count_if(lanes.begin(), lanes.end(), [](std::uint32_t rank) { return rank >= 40; }), 5);
    EXPECT_EQ(timeline_lanes({.ranks = {5, 3, 5}}, class_of, stage_of), (std::vector<std::uint32_t>{3, 5}));
    EXPECT_EQ(timeline_lanes({.all = true, .ranks = {}}, class_of, stage_of).size(), 60u);
}

}  // namespace
}  // namespace fabricast
