// The longest path through passes against what is known in closed form.
#include "sim/plan/pass_path.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace fabricast::plan {
namespace {

/// Equal stages of chunks that take f forward and b backward.
PassTimes equal_stages(std::size_t stages, std::size_t chunks, double f, double b, double message) {
    PassTimes t;
    t.chunks.assign(stages, std::vector<PassTimes::Chunk>(chunks, {f, b, f, b}));
    t.start.assign(stages, 0);
    t.whole.assign(stages, 0);
    t.message_down.assign(stages, message);
    t.message_up.assign(stages, message);
    return t;
}

double length(const PassLists& lists, const PassTimes& times) {
    const PassPath path = longest_path(lists, times);
    return *std::max_element(path.end.begin(), path.end.end());
}

TEST(PassPath, BubblesAreThoseOfTheFormula) {
    for (const std::int64_t p : {1, 2, 4, 8}) {
        for (const std::int64_t m : {8, 16, 64}) {
            const auto stages = static_cast<std::size_t>(p);
            const double f = 1, b = 2, whole = static_cast<double>(m + p - 1) * (f + b);
            for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b}) {
                const PassLists lists(schedule, p, 1, m, false, true);
                EXPECT_NEAR(length(lists, equal_stages(stages, 1, f, b, 0)), whole, 1e-9) << p << " " << m;
            }
            for (const std::int64_t v : {2, 4}) {
                if (p == 1)
                    continue;
                // chunks are 1 / v of a stage: (m + (p - 1) / v) (f + b)
                const double chunk = static_cast<double>(v);
                const PassLists lists(Schedule::interleaved, p, v, m, true, true);
                EXPECT_NEAR(length(lists, equal_stages(stages, static_cast<std::size_t>(v), f / chunk, b / chunk, 0)),
                            (static_cast<double>(m) + static_cast<double>(p - 1) / chunk) * (f + b),
                            m == p ? whole : 1e-9)
                    << p << " " << m << " " << v;
            }
        }
    }
}

TEST(PassPath, MessagesLengthenTheFillAndBlockingOnesEveryPass) {
    const std::int64_t p = 4, m = 16;
    const double f = 1, b = 2, message = 0.25;
    const PassLists lists(Schedule::one_f_one_b, p, 1, m, false, true);
    const double without = length(lists, equal_stages(4, 1, f, b, 0)),
                 with = length(lists, equal_stages(4, 1, f, b, message));
    // at least down and up the pipeline once, at most after and before each pass of a stage
    EXPECT_GE(with, without + 2 * static_cast<double>(p - 1) * message - 1e-9);
    EXPECT_GE(with, static_cast<double>(m) * (f + b + 2 * message) - 2 * message)
        << "an inner stage exchanges twice a micro-batch";
    EXPECT_LE(with, without + 2 * static_cast<double>(m + p) * message);
}

TEST(PassPath, TheSlowestStageSetsTheRate) {
    const std::int64_t p = 4, m = 64;
    const PassLists lists(Schedule::one_f_one_b, p, 1, m, false, true);
    PassTimes times = equal_stages(4, 1, 1, 2, 0);
    times.chunks[2][0] = {1.5, 3, 1.5, 3};
    EXPECT_GE(length(lists, times), static_cast<double>(m) * 4.5 + 3 + 3);
    EXPECT_LE(length(lists, times), static_cast<double>(m + p - 1) * 4.5);
}

TEST(PassPath, PassesBesideAPostedReceiveTakeLonger) {
    const std::int64_t p = 2, v = 2, m = 8;
    const PassLists lists(Schedule::interleaved, p, v, m, true, true);
    PassTimes times = equal_stages(2, 2, 1, 2, 0);
    const double alone = length(lists, times);
    for (auto& stage : times.chunks) {
        for (PassTimes::Chunk& chunk : stage)
            chunk.forward_beside = 1.1, chunk.backward_beside = 2.2;
    }
    const double beside = length(lists, times);
    EXPECT_GT(beside, 1.09 * alone);
    EXPECT_LT(beside, 1.1 * alone) << "the last pass of a stage has no receive beside it";
    std::size_t free = 0;
    for (const PassLists::Step* step = lists.begin(0); step != lists.end(0); ++step)
        free += step->beside ? 0 : 1;
    EXPECT_GE(free, 1u);
    EXPECT_LE(free, 2u);
}

TEST(PassPath, GathersHoldTheFirstPassAndTheLastBackwardIsKnown) {
    const PassLists lists(Schedule::one_f_one_b, 2, 1, 4, false, true);
    PassTimes times = equal_stages(2, 1, 1, 2, 0);
    const PassPath free = longest_path(lists, times);
    ASSERT_EQ(free.last_backward.size(), 1u);
    EXPECT_NEAR(free.last_backward[0], free.end[0] - 2, 1e-12);
    times.whole[0] = 5;
    const PassPath held = longest_path(lists, times);
    EXPECT_NEAR(held.end[0], free.end[0] + 4, 1e-12) << "the first pass ends at 5 instead of 1";
}

}  // namespace
}  // namespace fabricast::plan
