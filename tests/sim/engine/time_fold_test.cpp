// Folding in time: with and without it the same to the last picosecond, and where nothing may be replayed nothing is.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/sim/engine/run_well.hpp"

namespace fabricast::engine {
namespace {

void expect_equal(const program::Program& program, const EngineResult& folded, const EngineResult& whole) {
    EXPECT_EQ(folded.outcome, whole.outcome);
    EXPECT_EQ(folded.message, whole.message);
    EXPECT_EQ(folded.end, whole.end);
    EXPECT_EQ(folded.period, whole.period);
    EXPECT_EQ(folded.window_begin, whole.window_begin);
    EXPECT_EQ(folded.window_end, whole.window_end);
    EXPECT_EQ(folded.periodic, whole.periodic);
    EXPECT_EQ(folded.steps, whole.steps);
    EXPECT_EQ(folded.fingerprint, whole.fingerprint);
    EXPECT_EQ(folded.accounts, whole.accounts);
    EXPECT_EQ(folded.path_begin, whole.path_begin);
    EXPECT_EQ(folded.path_end, whole.path_end);
    ASSERT_EQ(folded.path.size(), whole.path.size());
    for (std::size_t i = 0; i < whole.path.size(); ++i) {
        EXPECT_EQ(folded.path[i].operation, whole.path[i].operation);
        EXPECT_EQ(folded.path[i].stream, whole.path[i].stream);
        EXPECT_EQ(folded.path[i].started, whole.path[i].started);
        EXPECT_EQ(folded.path[i].finished, whole.path[i].finished);
        EXPECT_EQ(folded.path[i].cause, whole.path[i].cause);
    }
    const auto a = critical_path(program, folded.path, folded.path_begin, folded.path_end);
    const auto b = critical_path(program, whole.path, whole.path_begin, whole.path_end);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
        EXPECT_EQ(a[i].time, b[i].time);
}

/// The result with replays, compared with the one without.
EngineResult run_both(const ProgramBuilder& b, EngineOptions options = {}) {
    EXPECT_EQ(program::validate(b.program), "");
    options.track_path = true;
    const EngineResult folded = b.run(options);
    options.fold_time = false;
    const EngineResult whole = b.run(options);
    EXPECT_EQ(whole.replays, 0u);
    EXPECT_EQ(whole.outcome, Outcome::done) << whole.message;
    expect_equal(b.program, folded, whole);
    return folded;
}

/// Two ranks that compute and meet, `rounds` times in a step, over a link of their own.
struct Couple {
    ProgramBuilder b;
    std::uint32_t call = 0, cost = 0;

    explicit Couple(std::int64_t rounds) {
        b.rank(0);
        b.rank(0);
        const std::uint32_t demand = b.demand({b.link(100e9)});
        b.group("couple", {0, 1}, {demand});
        call = b.call(0, 1'000'000, 2 * kUs, 1'000'000);
        b.cost(10 * kUs);
        b.begin("worker", 2);
        b.step(3);
        b.repeat(rounds);
    }
    void layers(int count) {
        std::uint32_t before = program::kNone;
        for (int i = 0; i < count; ++i) {
            const std::vector<std::uint32_t> waits =
                before == program::kNone ? std::vector<std::uint32_t>() : std::vector<std::uint32_t>{before};
            before = b.collective(1, call, Account::comm_tp, {b.compute_class(cost, waits)});
        }
        b.compute_class(cost, {before});
    }
    void finish() {
        b.end();
        b.end_step();
    }
};

TEST(TimeFold, RoundsOfALoopAreReplayed) {
    Couple couple(20);
    couple.layers(10);
    couple.finish();
    const EngineResult result = run_both(couple.b);
    EXPECT_GE(result.replays, 18u) << "all rounds but the first, whose first wait of the loop is another, and one more";
    EngineOptions off;
    off.fold_time = false;
    EXPECT_LT(result.events * 4, couple.b.run(off).events);
    EXPECT_EQ(result.period, 20 * (11 * 10 * kUs + 10 * (2 * kUs + 10 * kUs)));
}

TEST(TimeFold, ASlowRankIsReplayedToo) {
    Couple couple(20);
    couple.layers(10);
    couple.finish();
    couple.b.program.ranks[1].slowness = program::kFullSpeed * 11 / 10;
    const EngineResult result = run_both(couple.b);
    EXPECT_GE(result.replays, 18u);
    EXPECT_GT(account(result, 0, Account::straggler), 0);
}

// The CPU falls behind, round by round, until it is what the GPU waits for.
TEST(TimeFold, ALeadOfTheCpuThatShrinksIsNotReplayedBeyondItsEnd) {
    for (const Picoseconds host : {9 * kUs, 15 * kUs, 21 * kUs, 22 * kUs, 23 * kUs, 40 * kUs}) {
        Couple couple(20);
        couple.layers(10);
        couple.finish();
        program::CostClass& cost = couple.b.program.costs[0];
        cost.host = host;
        cost.host_first = kUs;
        cost.tail = 3 * kUs;
        const EngineResult result = run_both(couple.b);
        EXPECT_GE(result.replays, 10u) << host;
    }
}

// Another stream waits for an operation in the middle of a round, in the last round only.
TEST(TimeFold, AStreamThatWakesCutsThePassage) {
    for (const bool inside : {false, true}) {
        Couple couple(10);
        ProgramBuilder& b = couple.b;
        b.program.templates.back().streams = 3;
        const std::uint32_t before = b.collective(1, couple.call, Account::comm_tp, {b.compute_class(couple.cost)});
        const std::uint32_t middle = b.compute_class(couple.cost, {before});
        const std::uint32_t second = b.collective(1, couple.call, Account::comm_tp, {middle});
        if (inside)
            b.timed(OpKind::timer, 2, 0, Account::comm_other, {middle});
        b.compute_class(couple.cost, {second});
        const std::uint32_t third = b.collective(1, couple.call, Account::comm_tp, {b.compute_class(couple.cost)});
        b.compute_class(couple.cost, {third});
        b.end();
        b.timed(OpKind::host, 2, 7 * kUs, Account::comm_other, {middle});
        b.end_step();
        const EngineResult result = run_both(b);
        EXPECT_GE(result.replays, inside ? 0u : 8u);
    }
}

TEST(TimeFold, SharedLinksAreNotReplayed) {
    Couple couple(6);
    couple.layers(4);
    couple.finish();
    ProgramBuilder& b = couple.b;
    b.rank(1);
    b.rank(1);
    b.group("others", {2, 3}, {0});
    b.begin("others");
    b.step(3);
    b.repeat(6);
    b.compute(17 * kUs);
    b.collective(0, couple.call);
    b.compute(5 * kUs);
    b.collective(0, couple.call);
    b.end();
    b.end_step();
    EXPECT_EQ(run_both(b).replays, 0u);
}

// Pipelines of islands with replicas: segments, calls of two inner groups, messages beside or between them, reductions on
// a stream of their own, slow ranks, CPUs that are late, links of their own or shared.
class RandomIslands {
public:
    explicit RandomIslands(std::uint32_t seed) : random_(seed) {
        const int replicas = number(1, 3), stages = number(1, 3), size = number(1, 4);
        streams_ = 4;
        message_stream_ = static_cast<std::uint8_t>(number(0, 1) * 3);
        tensor_stream_ = static_cast<std::uint8_t>(number(0, 1));
        slow_ = number(0, 2) == 0;
        shared_ = number(0, 3) == 0;
        rounds_ = number(2, 7);
        const auto rank_of = [&](int replica, int stage, int place) {
            return static_cast<std::uint32_t>((replica * stages + stage) * size + place);
        };
        for (int replica = 0; replica < replicas; ++replica) {
            for (int stage = 0; stage < stages; ++stage) {
                for (int place = 0; place < size; ++place) {
                    program::Rank& rank = b.rank(static_cast<std::uint32_t>(stage));
                    if (slow_ && number(0, 3) == 0)
                        rank.slowness += static_cast<std::uint32_t>(number(1, 9000));
                    rank.copies = 1;
                }
            }
        }
        pool_ = b.link(40e9);
        for (int replica = 0; replica < replicas; ++replica) {
            for (int stage = 0; stage < stages; ++stage) {
                std::vector<std::uint32_t> members;
                for (int place = 0; place < size; ++place)
                    members.push_back(rank_of(replica, stage, place));
                const LinkId own = shared_ ? pool_ : b.link(number(0, 3) == 0 ? 80e9 : 100e9);
                b.group("tensor", members, {b.demand({own}), b.demand({own}, 3 * kCoefficientOne)});
                b.group("other tensor", members, {b.demand({own, b.link(50e9)})});
            }
        }
        for (int stage = 0; stage < stages; ++stage) {
            for (int place = 0; place < size; ++place) {
                std::vector<std::uint32_t> members;
                for (int replica = 0; replica < replicas; ++replica)
                    members.push_back(rank_of(replica, stage, place));
                b.group("replicas", members, {b.demand({b.link(20e9)})});
            }
        }
        for (std::uint32_t rank = 0; rank < b.program.ranks.size(); ++rank) {
            const int stage = static_cast<int>(rank) / size % stages;
            const std::uint32_t next = stage + 1 < stages ? rank + static_cast<std::uint32_t>(size) : rank;
            const std::uint32_t before = stage > 0 ? rank - static_cast<std::uint32_t>(size) : rank;
            const std::uint32_t route = b.route(b.demand({shared_ ? pool_ : b.link(25e9)}), number(0, 3) * kUs);
            b.peer(rank, next, route);
            b.peer(rank, before, program::kNone);
        }
        for (int stage = 0; stage < stages; ++stage)
            write_stage(stage, stages);
    }
    ProgramBuilder b;

private:
    int number(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

    std::uint32_t segment(std::vector<std::uint32_t> waits) {
        program::CostClass& cost = b.cost(number(1, 40) * kUs + number(0, 999'999));
        if (number(0, 1) == 0) {
            cost.host = number(1, 45) * kUs;
            cost.host_first = std::min<Picoseconds>(cost.host, 2 * kUs);
            cost.tail = std::min<Picoseconds>(cost.work, kUs);
        }
        for (std::size_t s = 1; s < program::kSpeedStates; ++s)
            cost.speed[s] = static_cast<std::uint32_t>(number(40'000, 65'536));
        return b.compute_class(static_cast<std::uint32_t>(b.program.costs.size() - 1), std::move(waits));
    }

    void work(int layers, bool reduces) {
        std::vector<std::uint32_t> waits;
        const auto next = [&](std::uint8_t stream, std::uint32_t node) {
            if (stream != 0)
                waits.push_back(node);
        };
        if (message_stream_ != 0 && received_ != program::kNone)
            waits.push_back(received_);
        received_ = program::kNone;
        for (int i = 0; i < layers; ++i) {
            const std::uint32_t done = segment(std::move(waits));
            waits.clear();
            if (reduces && number(0, 3) == 0)
                b.collective(2, reduce_, Account::comm_gradient, {done});
            const std::vector<std::uint32_t> after =
                tensor_stream_ != 0 ? std::vector<std::uint32_t>{done} : std::vector<std::uint32_t>();
            const bool beside = tensor_stream_ != 0 && number(0, 2) == 0;
            const std::uint32_t call =
                b.collective(tensor_stream_, number(0, 4) == 0 ? other_ : tensor_, Account::comm_tp, after);
            if (number(0, 12) == 0)
                b.last_operation().host_sync = true;
            if (beside)
                segment({});
            next(tensor_stream_, call);
        }
        last_ = segment(std::move(waits));
    }

    void write_stage(int stage, int stages) {
        tensor_ = b.call(0, 100'000, number(0, 3) * kUs, number(1, 3'000'000), 1);
        if (number(0, 2) == 0)  // a second class of channels on the same links: they slow each other
            b.program.plans.back()[0].activities.push_back({number(1, 900'000), 1, 0, 1});
        other_ = b.call(1, 70'000, number(0, 3) * kUs, number(1, 900'000), 2);
        reduce_ = b.call(2, 50'000, kUs, number(1, 2'000'000), 3);
        b.begin("stage " + std::to_string(stage), streams_);
        b.step(4);
        if (number(0, 1) == 0)
            work(number(1, 3), false);
        const auto before = static_cast<std::uint32_t>(b.program.templates.back().nodes.size());
        b.repeat(rounds_);
        if (stage > 0)
            received_ = b.batch(message_stream_, {receives(1, 300'000)});
        work(number(1, 8), number(0, 4) == 0);
        if (stage + 1 < stages) {
            b.batch(message_stream_, {sends(0, 300'000)},
                    message_stream_ != 0 ? std::vector<std::uint32_t>{last_} : std::vector<std::uint32_t>());
        }
        b.end();
        tie_rounds(before);
        work(number(1, 4), true);
        b.collective(2, reduce_, Account::comm_gradient, {last_});
        b.end_step({static_cast<std::uint32_t>(b.program.templates.back().nodes.size() - 1)});
    }

    // Waits for operations of the round before, and of before the loop.
    void tie_rounds(std::uint32_t loop) {
        program::Template& t = b.program.templates.back();
        const auto end = static_cast<std::uint32_t>(t.nodes.size());
        const auto operation = [&](std::uint32_t node) -> program::Operation& {
            return t.operations[t.nodes[node].operation];
        };
        const auto draw = [&](std::uint32_t low, std::uint32_t high) {
            return low + static_cast<std::uint32_t>(number(0, static_cast<int>(high - low) - 1));
        };
        for (int ties = number(0, 3); ties > 0; --ties) {
            const std::uint32_t to = draw(loop + 1, end);
            const std::uint32_t from = draw(number(0, 1) == 0 ? to : 1, end);
            if (from == loop || (from > loop && from <= to) || operation(from).stream == operation(to).stream)
                continue;
            operation(to).waits.push_back(from);
        }
    }

    std::mt19937 random_;
    std::uint8_t streams_ = 4, message_stream_ = 0, tensor_stream_ = 0;
    bool slow_ = false, shared_ = false;
    int rounds_ = 0;
    std::uint32_t tensor_ = 0, other_ = 0, reduce_ = 0, last_ = 0, received_ = program::kNone;
    LinkId pool_ = {};
};

TEST(TimeFold, EqualOnRandomIslands) {
    std::uint64_t replays = 0, with_replays = 0, folded = 0, whole = 0;
    constexpr std::uint32_t kPrograms = 200;
    for (std::uint32_t seed = 0; seed < kPrograms; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const RandomIslands random(seed);
        EngineOptions options;
        options.stop_when_periodic = seed % 2 == 0;
        const EngineResult result = run_both(random.b, options);
        options.fold_time = false;
        folded += result.events;
        whole += random.b.run(options).events;
        replays += result.replays;
        with_replays += result.replays > 0;
        if (::testing::Test::HasFailure())
            return;
    }
    std::printf("%llu replays in %llu of %u programs, %.3f of the events\n", static_cast<unsigned long long>(replays),
                static_cast<unsigned long long>(with_replays), kPrograms,
                static_cast<double>(folded) / static_cast<double>(whole));
    EXPECT_GE(with_replays, kPrograms / 3);
}

}  // namespace
}  // namespace fabricast::engine
