// Schedules that cut the backward, run on an ideal pipeline (messages take no time): every piece of work once and in
// order, no deadlock, bubbles against closed forms, micro-batches held.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/parallel/placement.hpp"
#include "models/parallel/schedule.hpp"

namespace fabricast {
namespace {

using Kind = ScheduleStep::Kind;

struct Times {
    std::int64_t forward = 1, input = 1, weight = 1;
};

struct Case {
    Schedule schedule;
    std::int64_t p, m;

    std::string name() const {
        constexpr std::string_view kNames[] = {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v", "dual-pipe"};
        return fmt::format("{} p {} m {}", kNames[static_cast<std::size_t>(schedule)], p, m);
    }
    bool two_ways() const { return schedule == Schedule::dual_pipe; }
    std::int64_t chunks() const { return schedule == Schedule::zb_v || two_ways() ? 2 : 1; }
    std::int64_t last() const { return (schedule == Schedule::zb_v ? 2 * p : p) - 1; }
    std::int64_t micro_batches() const { return two_ways() ? m / 2 : m; }  ///< of one chunk
    std::vector<std::vector<ScheduleStep>> stages() const {
        return pipeline_steps(schedule, p, schedule == Schedule::zb_v ? 2 : 1, m, true);
    }
    std::int64_t place(std::int64_t s, std::int64_t chunk) const { return virtual_stage(schedule, p, s, chunk); }
};

std::vector<Case> cases() {
    std::vector<Case> out;
    for (std::int64_t p = 1; p <= 16; ++p) {
        for (const std::int64_t m : {p, p + 1, 2 * p, 3 * p - 1, 5 * p, 8 * p}) {
            out.push_back({Schedule::zb_h1, p, m});
            out.push_back({Schedule::zb_h2, p, m});
            if (p > 1)
                out.push_back({Schedule::zb_v, p, m});
            if (p % 2 == 0 && m % 2 == 0 && m >= 2 * p)
                out.push_back({Schedule::dual_pipe, p, m});
        }
    }
    return out;
}

TEST(ZeroBubble, EveryChunkRunsEveryPassOfEveryMicroBatchOnceInOrder) {
    for (const Case& c : cases()) {
        const auto stages = c.stages();
        for (std::int64_t s = 0; s < c.p; ++s) {
            SCOPED_TRACE(fmt::format("{} stage {}", c.name(), s));
            std::vector<std::array<std::int64_t, 3>> done(static_cast<std::size_t>(c.chunks()));
            for (const ScheduleStep& step : stages[static_cast<std::size_t>(s)]) {
                ASSERT_TRUE(step.chunk >= 0 && step.chunk < c.chunks());
                auto& [forward, input, weight] = done[static_cast<std::size_t>(step.chunk)];
                ASSERT_NE(step.kind, Kind::exchange);
                EXPECT_EQ(step.first, step.kind == Kind::forward && forward == 0);
                forward += step.kind == Kind::forward;
                input += step.kind == Kind::backward || step.kind == Kind::backward_input;
                weight += step.kind == Kind::backward || step.kind == Kind::backward_weight;
                ASSERT_LE(input, forward);
                ASSERT_LE(weight, input);
                const bool whole = step.kind == Kind::backward || step.kind == Kind::backward_weight;
                EXPECT_EQ(step.last, whole && weight == c.micro_batches());
            }
            for (const auto& counts : done)
                EXPECT_EQ(counts,
                          (std::array<std::int64_t, 3>{c.micro_batches(), c.micro_batches(), c.micro_batches()}));
        }
    }
}

/// Messages of a step are what its neighbours in the model need, unless the neighbour is the same stage.
TEST(ZeroBubble, MessagesGoWhereTheChunksSit) {
    for (const Case& c : cases()) {
        const auto stages = c.stages();
        for (std::int64_t s = 0; s < c.p; ++s) {
            for (const ScheduleStep& step : stages[static_cast<std::size_t>(s)]) {
                const std::int64_t at = c.place(s, step.chunk);
                const bool turn = c.schedule == Schedule::zb_v && s == c.p - 1;
                const bool before = at > 0 && !(turn && step.chunk == 1);
                const bool behind = at < c.last() && !(turn && step.chunk == 0);
                const bool forward = step.kind == Kind::forward;
                const bool back = step.kind == Kind::backward || step.kind == Kind::backward_input;
                EXPECT_EQ(step.receives_forward, forward && before) << c.name();
                EXPECT_EQ(step.sends_forward, forward && behind) << c.name();
                EXPECT_EQ(step.receives_backward, back && behind) << c.name();
                EXPECT_EQ(step.sends_backward, back && before) << c.name();
            }
        }
    }
}

/// What an ideal pipeline does with the lists.
struct Timeline {
    bool done = false;
    std::vector<std::int64_t> begin, end, busy;
    std::int64_t longest_span() const {
        std::int64_t span = 0;
        for (std::size_t s = 0; s < end.size(); ++s)
            span = std::max(span, end[s] - begin[s]);
        return span;
    }
    std::int64_t makespan() const { return *std::max_element(end.begin(), end.end()); }
    std::int64_t most_busy() const { return *std::max_element(busy.begin(), busy.end()); }
};

Timeline run(const Case& c, const Times& times) {
    const auto stages = static_cast<std::size_t>(c.p);
    Timeline line;
    line.begin.assign(stages, -1);
    line.end.assign(stages, 0);
    line.busy.assign(stages, 0);
    // (direction, virtual stage, micro-batch) -> when its output is there
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::int64_t> forward, backward;
    const std::vector<std::vector<ScheduleStep>> lists = c.stages();
    std::vector<std::size_t> at(stages, 0);
    std::vector<std::map<std::pair<std::int64_t, bool>, std::int64_t>> counts(stages);
    bool moved = true;
    // A pair starts when the inputs of both are there and hands on both outputs at its end.
    const auto advance = [&](std::size_t s) {
        const std::size_t steps = lists[s][at[s]].paired ? 2 : 1;
        std::int64_t start = line.end[s], length = 0;
        for (std::size_t i = at[s]; i < at[s] + steps; ++i) {
            const ScheduleStep& step = lists[s][i];
            if (step.kind == Kind::backward_weight) {
                length += times.weight;
                continue;
            }
            const bool ahead = step.kind == Kind::forward;
            const std::int64_t q = c.place(static_cast<std::int64_t>(s), step.chunk);
            length += ahead ? times.forward : times.input + (step.kind == Kind::backward ? times.weight : 0);
            if (q == (ahead ? 0 : c.last()))
                continue;
            const auto& from = ahead ? forward : backward;
            const auto input =
                from.find({c.two_ways() ? step.chunk : 0, ahead ? q - 1 : q + 1, counts[s][{step.chunk, ahead}]});
            if (input == from.end())
                return false;
            start = std::max(start, input->second);
        }
        for (const std::size_t stop = at[s] + steps; at[s] < stop; ++at[s]) {
            const ScheduleStep& step = lists[s][at[s]];
            if (step.kind == Kind::backward_weight)
                continue;
            const bool ahead = step.kind == Kind::forward;
            const std::int64_t q = c.place(static_cast<std::int64_t>(s), step.chunk);
            const std::int64_t n = counts[s][{step.chunk, ahead}]++;
            (ahead ? forward : backward)[{c.two_ways() ? step.chunk : 0, q, n}] = start + length;
        }
        if (line.begin[s] < 0)
            line.begin[s] = start;
        line.end[s] = start + length;
        line.busy[s] += length;
        return true;
    };
    while (moved) {
        moved = false;
        for (std::size_t s = 0; s < stages; ++s) {
            while (at[s] < lists[s].size() && advance(s))
                moved = true;
        }
    }
    line.done = true;
    for (std::size_t s = 0; s < stages; ++s)
        line.done = line.done && at[s] == lists[s].size();
    return line;
}

TEST(ZeroBubble, NeverDeadlocks) {
    for (const Case& c : cases())
        EXPECT_TRUE(run(c, {3, 4, 2}).done) << c.name();
}

/// (p - 1)(F + B - W) with B the input gradients, counted with a barrier at the end.
TEST(ZeroBubble, H1LeavesAThirdOfTheBubble) {
    for (std::int64_t p = 1; p <= 16; ++p) {
        for (const std::int64_t m : {p, 2 * p, 5 * p, 8 * p}) {
            const Timeline line = run({Schedule::zb_h1, p, m}, {});
            EXPECT_EQ(line.makespan(), 3 * m + p - 1) << p << ' ' << m;
        }
    }
}

/// Stages start and end one after the other; inside its own window none waits.
TEST(ZeroBubble, H2AndVLeaveNone) {
    for (std::int64_t p = 1; p <= 16; ++p) {
        for (const std::int64_t m : {2 * p, 3 * p + 1, 8 * p}) {
            EXPECT_EQ(run({Schedule::zb_h2, p, m}, {}).longest_span(), 3 * m) << p << ' ' << m;
            if (p > 1) {
                EXPECT_EQ(run({Schedule::zb_v, p, m}, {}).longest_span(), 6 * m) << p << ' ' << m;
            }
        }
    }
}

/// (p - 1)(F + B - W) of ZB-H1, (p - 1)(F + B - 2 W) of ZB-H2 also where passes differ; the V stays below the second.
TEST(ZeroBubble, UnequalPasses) {
    for (const Times& t : {Times{10, 11, 8}, Times{10, 12, 9}, Times{10, 10, 7}, Times{10, 13, 10}}) {
        const std::int64_t work = t.forward + t.input + t.weight;
        for (std::int64_t p = 2; p <= 16; ++p) {
            for (const std::int64_t m : {2 * p, 4 * p}) {
                const std::int64_t h2 = (p - 1) * (t.forward + t.input - 2 * t.weight);
                EXPECT_EQ(run({Schedule::zb_h1, p, m}, t).longest_span() - m * work,
                          (p - 1) * (t.forward + t.input - t.weight))
                    << p << ' ' << m;
                EXPECT_EQ(run({Schedule::zb_h2, p, m}, t).longest_span() - m * work, h2) << p << ' ' << m;
                EXPECT_LE(run({Schedule::zb_v, p, m}, t).longest_span() - 2 * m * work, 2 * h2) << p << ' ' << m;
            }
        }
    }
}

/// (p/2 - 1)(F&B + B - 3 W), B the whole backward. The ideal pipeline gains nothing from pairs: F&B = F + B.
TEST(ZeroBubble, DualPipe) {
    for (const Times& t : {Times{1, 1, 1}, Times{10, 10, 10}}) {
        for (std::int64_t p = 2; p <= 16; p += 2) {
            for (const std::int64_t m : {2 * p, 4 * p, 8 * p}) {
                const Timeline line = run({Schedule::dual_pipe, p, m}, t);
                const std::int64_t back = t.input + t.weight;
                EXPECT_EQ(line.makespan() - line.most_busy(), (p / 2 - 1) * (t.forward + back + back - 3 * t.weight))
                    << p << ' ' << m;
            }
        }
    }
}

TEST(ZeroBubble, MicroBatchesHeld) {
    for (const Case& c : cases()) {
        std::int64_t most = 0;
        for (const auto& steps : c.stages())
            most = std::max(most, most_in_flight(steps));
        switch (c.schedule) {
            case Schedule::zb_h1: EXPECT_EQ(most, c.p) << c.name(); break;
            case Schedule::zb_h2: EXPECT_EQ(most, std::min(c.m, 2 * c.p - 1)) << c.name(); break;
            case Schedule::zb_v: EXPECT_LE(most, 2 * c.p) << c.name(); break;  // of half the layers each
            case Schedule::dual_pipe: EXPECT_LE(most, c.p + 1) << c.name(); break;
            case Schedule::gpipe:
            case Schedule::one_f_one_b:
            case Schedule::interleaved: FAIL();
        }
    }
}

TEST(ZeroBubble, FoldsAndUnfoldsToItself) {
    for (const Case& c : cases()) {
        const std::int64_t v = c.schedule == Schedule::zb_v ? 2 : 1;
        const auto stages = c.stages();
        for (std::int64_t s = 0; s < c.p; ++s) {
            const std::vector<ScheduleStep>& steps = stages[static_cast<std::size_t>(s)];
            std::vector<ScheduleStep> again;
            std::size_t folded = 0;
            for (const ScheduleBlock& block : fold(steps, c.p, v)) {
                folded += block.steps.size();
                for (std::int64_t i = 0; i < block.count; ++i)
                    again.insert(again.end(), block.steps.begin(), block.steps.end());
            }
            EXPECT_EQ(again, steps) << c.name() << " stage " << s;
            EXPECT_LE(folded, static_cast<std::size_t>(14 * c.p + 40)) << c.name() << " of " << steps.size();
        }
    }
}

}  // namespace
}  // namespace fabricast
