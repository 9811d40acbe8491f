// Pipeline schedules: what is done once, what meets what, what is held, what folds.
#include <algorithm>
#include <deque>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/parallel/schedule.hpp"

namespace fabricast {
namespace {

using Kind = ScheduleStep::Kind;
using Steps = std::vector<ScheduleStep>;

struct Case {
    Schedule schedule;
    std::int64_t p, v, m;

    std::string name() const {
        constexpr std::string_view kNames[] = {"gpipe", "1f1b", "interleaved"};
        return fmt::format("{} p {} v {} m {}", kNames[static_cast<std::size_t>(schedule)], p, v, m);
    }
    Steps stage(std::int64_t s, bool overlap) const { return schedule_steps(schedule, s, p, v, m, overlap); }
    /// Chunks of all stages in the order a micro-batch passes them: stage s of chunk c is number c p + s.
    std::int64_t virtual_stages() const { return p * v; }
};

std::vector<Case> cases() {
    std::vector<Case> out;
    for (std::int64_t p = 1; p <= 6; ++p) {
        for (const std::int64_t m : {1, 2, 3, 5, 8, 13}) {
            out.push_back({Schedule::gpipe, p, 1, m});
            out.push_back({Schedule::one_f_one_b, p, 1, m});
        }
        if (p == 1)
            continue;  // interleaving needs neighbours
        for (std::int64_t v = 1; v <= 3; ++v) {
            for (const std::int64_t rounds : {1, 2, 3, 5})
                out.push_back({Schedule::interleaved, p, v, rounds * p});
        }
    }
    return out;
}

/// One piece of work: which chunk of the whole model, which micro-batch of it.
using Work = std::pair<std::int64_t, std::int64_t>;

/// The forwards (or backwards) of a stage in order; the n-th time of a chunk is micro-batch n.
std::vector<Work> work_of(const Case& c, const Steps& steps, std::int64_t s, Kind kind) {
    std::vector<std::int64_t> next(static_cast<std::size_t>(c.v), 0);
    std::vector<Work> out;
    for (const ScheduleStep& step : steps) {
        if (step.kind == kind)
            out.emplace_back(step.chunk * c.p + s, next[static_cast<std::size_t>(step.chunk)]++);
    }
    return out;
}

TEST(Schedule, EveryChunkRunsEveryMicroBatchOnceForwardBeforeBackward) {
    for (const Case& c : cases()) {
        for (std::int64_t s = 0; s < c.p; ++s) {
            for (const bool overlap : {false, true}) {
                SCOPED_TRACE(fmt::format("{} stage {} overlap {}", c.name(), s, overlap));
                const Steps steps = c.stage(s, overlap);
                std::vector<std::int64_t> forwards(static_cast<std::size_t>(c.v), 0), backwards = forwards;
                for (const ScheduleStep& step : steps) {
                    ASSERT_TRUE(step.chunk >= 0 && step.chunk < c.v);
                    const auto chunk = static_cast<std::size_t>(step.chunk);
                    if (step.kind == Kind::forward) {
                        EXPECT_EQ(step.first, forwards[chunk] == 0);
                        EXPECT_FALSE(step.last);
                        ++forwards[chunk];
                    } else if (step.kind == Kind::backward) {
                        ++backwards[chunk];
                        EXPECT_EQ(step.last, backwards[chunk] == c.m);
                        EXPECT_FALSE(step.first);
                        ASSERT_LE(backwards[chunk], forwards[chunk]);
                    }
                }
                EXPECT_EQ(forwards, std::vector<std::int64_t>(static_cast<std::size_t>(c.v), c.m));
                EXPECT_EQ(backwards, forwards);
            }
        }
    }
}

/// All messages of one direction over the edge from stage s: what the sender produced, what the receiver needs, both
/// in the order of their streams.
void expect_messages_meet(const Case& c, std::int64_t s, bool backward) {
    const Kind kind = backward ? Kind::backward : Kind::forward;
    const std::int64_t step = backward ? -1 : 1;
    const std::int64_t t = (s + step + c.p) % c.p;
    const std::int64_t end = backward ? 0 : c.virtual_stages() - 1;    // its output goes nowhere
    const std::int64_t begin = backward ? c.virtual_stages() - 1 : 0;  // its input comes from nowhere
    std::vector<Work> sent, needed;
    for (const Work& w : work_of(c, c.stage(s, false), s, kind)) {
        if (w.first != end)
            sent.emplace_back(w.first + step, w.second);
    }
    for (const Work& w : work_of(c, c.stage(t, false), t, kind)) {
        if (w.first != begin)
            needed.push_back(w);
    }
    EXPECT_EQ(sent, needed) << c.name() << ' ' << s << " -> " << t << (backward ? " gradients" : " activations");
}

TEST(Schedule, SendsOfAStageMeetTheReceivesOfTheNextInOrder) {
    for (const Case& c : cases()) {
        if (c.p == 1)
            continue;
        for (std::int64_t s = 0; s < c.p; ++s) {
            expect_messages_meet(c, s, false);
            expect_messages_meet(c, s, true);
        }
    }
}

TEST(Schedule, WorkWithoutANeighbourNeitherWaitsNorSends) {
    for (const Case& c : cases()) {
        if (c.p == 1)
            continue;
        for (std::int64_t s = 0; s < c.p; ++s) {
            for (const ScheduleStep& step : c.stage(s, true)) {
                const std::int64_t at = step.chunk * c.p + s;
                const bool first = at == 0, last = at == c.virtual_stages() - 1;
                EXPECT_EQ(step.receives_forward, step.kind == Kind::forward && !first) << c.name();
                EXPECT_EQ(step.sends_forward, step.kind == Kind::forward && !last) << c.name();
                EXPECT_EQ(step.receives_backward, step.kind == Kind::backward && !last) << c.name();
                EXPECT_EQ(step.sends_backward, step.kind == Kind::backward && !first) << c.name();
            }
        }
    }
}

/// Runs the blocking lists of all stages under rendezvous: an exchange ends when each of its halves met its partner.
/// Also checks that nothing is sent before it was computed nor used before it was received.
class Rendezvous {
public:
    explicit Rendezvous(const Case& c) : c_(c), stages_(static_cast<std::size_t>(c.p)) {
        for (std::int64_t s = 0; s < c.p; ++s)
            stages_[static_cast<std::size_t>(s)].steps = c.stage(s, false);
    }
    bool run() {
        bool moved = true;
        while (moved) {
            moved = false;
            for (std::int64_t s = 0; s < c_.p; ++s) {
                while (advance(s))
                    moved = true;
            }
        }
        return std::all_of(stages_.begin(), stages_.end(), [](const Stage& s) { return s.at == s.steps.size(); });
    }

private:
    struct Side {
        std::int64_t sends_posted = 0, receives_posted = 0, sent = 0, received = 0, produced = 0, used = 0;
    };
    struct Stage {
        Steps steps;
        std::size_t at = 0;
        bool posted = false;
        Side forward, backward;
    };
    Stage& stage(std::int64_t s) { return stages_[static_cast<std::size_t>((s + c_.p) % c_.p)]; }

    bool advance(std::int64_t s) {
        Stage& me = stage(s);
        if (me.at == me.steps.size())
            return false;
        const ScheduleStep& step = me.steps[me.at];
        if (step.kind != Kind::exchange) {
            const bool is_forward = step.kind == Kind::forward;
            Side& side = is_forward ? me.forward : me.backward;
            const std::int64_t at = step.chunk * c_.p + s;
            if (at != (is_forward ? 0 : c_.virtual_stages() - 1)) {
                EXPECT_LT(side.used, side.received) << c_.name() << ": used before it came";
                ++side.used;
            }
            if (at != (is_forward ? c_.virtual_stages() - 1 : 0))
                ++side.produced;
            ++me.at;
            return true;
        }
        if (!me.posted) {
            me.posted = true;
            if (step.sends_forward) {
                ++me.forward.sends_posted;
                EXPECT_LE(me.forward.sends_posted, me.forward.produced) << c_.name() << ": sent before computed";
            }
            if (step.sends_backward) {
                ++me.backward.sends_posted;
                EXPECT_LE(me.backward.sends_posted, me.backward.produced) << c_.name() << ": sent before computed";
            }
            me.forward.receives_posted += step.receives_forward;
            me.backward.receives_posted += step.receives_backward;
            return true;
        }
        const bool done =
            (!step.sends_forward || stage(s + 1).forward.receives_posted >= me.forward.sends_posted) &&
            (!step.receives_forward || stage(s - 1).forward.sends_posted >= me.forward.receives_posted) &&
            (!step.sends_backward || stage(s - 1).backward.receives_posted >= me.backward.sends_posted) &&
            (!step.receives_backward || stage(s + 1).backward.sends_posted >= me.backward.receives_posted);
        if (!done)
            return false;
        me.forward.received += step.receives_forward;
        me.backward.received += step.receives_backward;
        me.posted = false;
        ++me.at;
        return true;
    }

    const Case& c_;
    std::vector<Stage> stages_;
};

TEST(Schedule, BlockingExchangesNeverDeadlock) {
    for (const Case& c : cases())
        EXPECT_TRUE(Rendezvous(c).run()) << c.name();
}

TEST(Schedule, ActivationsHeld) {
    for (const Case& c : cases()) {
        for (std::int64_t s = 0; s < c.p; ++s) {
            const std::int64_t held = most_in_flight(c.stage(s, false));
            const std::int64_t all = c.m * c.v;
            switch (c.schedule) {
                case Schedule::gpipe: EXPECT_EQ(held, c.m) << c.name(); break;
                case Schedule::one_f_one_b:
                    EXPECT_EQ(held, std::min(c.m, c.p - s)) << c.name() << " stage " << s;
                    break;
                case Schedule::interleaved:
                    // warm-up and one more; p v (1 + (p - 1) / (p v)) chunks on stage 0, everything when m = p
                    EXPECT_EQ(held, c.m == c.p ? all : std::min(all, 2 * (c.p - s - 1) + (c.v - 1) * c.p + 1))
                        << c.name() << " stage " << s;
                    break;
                case Schedule::zb_h1:
                case Schedule::zb_h2:
                case Schedule::zb_v:
                case Schedule::dual_pipe: FAIL() << "zero_bubble_test.cpp";
            }
            EXPECT_EQ(held, most_in_flight(c.stage(s, true))) << c.name();
        }
    }
}

/// With as many micro-batches as stages old Megatron ran every forward first; then as many activations are held.
TEST(Schedule, ForwardsFirstIsAChoiceOfTheStack) {
    constexpr std::int64_t p = 4, v = 2;
    for (std::int64_t s = 0; s < p; ++s) {
        EXPECT_EQ(most_in_flight(schedule_steps(Schedule::interleaved, s, p, v, p, false, true)), p * v);
        EXPECT_EQ(most_in_flight(schedule_steps(Schedule::interleaved, s, p, v, p, false, false)),
                  std::min(p * v, 2 * (p - s - 1) + (v - 1) * p + 1));
        EXPECT_EQ(schedule_steps(Schedule::interleaved, s, p, v, 2 * p, false, true),
                  schedule_steps(Schedule::interleaved, s, p, v, 2 * p, false, false));
    }
}

TEST(Schedule, OneStageSendsNothing) {
    for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b}) {
        for (const bool overlap : {false, true}) {
            for (const ScheduleStep& step : schedule_steps(schedule, 0, 1, 1, 4, overlap)) {
                EXPECT_NE(step.kind, Kind::exchange);
                EXPECT_FALSE(step.sends_forward || step.receives_forward || step.sends_backward ||
                             step.receives_backward);
            }
        }
    }
}

Steps unfold(const std::vector<ScheduleBlock>& blocks) {
    Steps out;
    for (const ScheduleBlock& block : blocks) {
        for (std::int64_t i = 0; i < block.count; ++i)
            out.insert(out.end(), block.steps.begin(), block.steps.end());
    }
    return out;
}

TEST(Schedule, FoldedListUnfoldsToItself) {
    for (const Case& c : cases()) {
        for (std::int64_t s = 0; s < c.p; ++s) {
            for (const bool overlap : {false, true}) {
                const Steps steps = c.stage(s, overlap);
                EXPECT_EQ(unfold(fold(steps, c.p, c.v)), steps) << c.name() << " stage " << s;
            }
        }
    }
}

TEST(Schedule, FoldedListDoesNotGrowWithMicroBatches) {
    constexpr std::int64_t kMicroBatches = 512 * 3 * 5;  // a multiple of every p here
    for (std::int64_t p = 1; p <= 6; ++p) {
        for (std::int64_t v = 1; v <= 3; ++v) {
            for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved}) {
                if ((v > 1) != (schedule == Schedule::interleaved) || (schedule == Schedule::interleaved && p == 1))
                    continue;
                for (std::int64_t s = 0; s < p; ++s) {
                    for (const bool overlap : {false, true}) {
                        const Steps steps = schedule_steps(schedule, s, p, v, kMicroBatches, overlap);
                        std::size_t folded = 0;
                        for (const ScheduleBlock& block : fold(steps, p, v))
                            folded += block.steps.size();
                        // warm-up and cool-down of at most (v + 1) p pieces with an exchange each, a few rounds of
                        // (forward, backward, exchange) between them for the first and last micro-batch of chunks
                        EXPECT_LE(folded, static_cast<std::size_t>(24 * p * v + 8))
                            << fmt::format("p {} v {} s {} overlap {} of {}", p, v, s, overlap, steps.size());
                    }
                }
            }
        }
    }
}

}  // namespace
}  // namespace fabricast
