// Jumps of Progress against the same rules walked step by step.
#include "sim/campaign/progress.hpp"

#include <gtest/gtest.h>

#include <random>

namespace fabricast::campaign {
namespace {

CheckpointSpec saves(std::int64_t every, Nanoseconds block, Nanoseconds write = 0) {
    CheckpointSpec c;
    c.mode = SaveMode::sync;
    c.every_steps = every;
    c.block = block;
    c.write = write;
    return c;
}

TEST(Progress, CountsStepsSavesAndEvaluations) {
    EventsSpec events;
    events.evaluate_every = 20;
    events.evaluation = 7;
    Progress p(saves(10, 5), events);
    // 25 steps of 100, saves after 10 and 20, an evaluation after 20.
    EXPECT_EQ(p.run(0, 25 * 100 + 10 + 7, 100, 1000), 2517);
    EXPECT_EQ(p.steps(), 25);
    EXPECT_EQ(p.kept(), 2500);
    EXPECT_EQ(p.saving(), 10);
    EXPECT_EQ(p.evaluating(), 7);
    EXPECT_EQ(p.saves(), 2);
    EXPECT_EQ(p.saved_step(2517), 20);
    EXPECT_EQ(p.run(2517, 50, 100, 1000), 50);
    EXPECT_EQ(p.to_boundary(), 50);
    p.back_to_save(2567);
    EXPECT_EQ(p.steps(), 20);
    EXPECT_EQ(p.kept(), 2000);
    EXPECT_EQ(p.lost(), 550);
}

TEST(Progress, StopsAtTheLimitBeforeItsPause) {
    Progress p(saves(10, 5), {});
    EXPECT_EQ(p.run(0, 1 << 30, 100, 10), 1000);
    EXPECT_EQ(p.steps(), 10);
    EXPECT_EQ(p.saves(), 0);
    EXPECT_EQ(p.run(1000, 1 << 30, 200, 12), 405);  // the pause, then the new speed
    EXPECT_EQ(p.saves(), 1);
}

TEST(Progress, StepInFlightKeepsItsSpeed) {
    Progress p({}, {});
    p.run(0, 150, 100, 100);
    EXPECT_EQ(p.run(150, 150, 200, 100), 150);  // 50 of the old step, then 100 of a new one of 200
    EXPECT_EQ(p.steps(), 2);
    EXPECT_EQ(p.to_boundary(), 100);
    p.drop_step();
    EXPECT_EQ(p.lost(), 100);
    EXPECT_EQ(p.kept(), 200);
}

TEST(Progress, AsynchronousSaveCountsWhenWritten) {
    Progress p(saves(10, 5, 300), {});
    p.run(0, 1005, 100, 1000);
    EXPECT_EQ(p.saved_step(1005), 0);
    EXPECT_EQ(p.saved_step(1304), 0);
    EXPECT_EQ(p.saved_step(1305), 10);
    // Writing takes longer than ten steps: every save but the first waits.
    Progress slow(saves(10, 5, 3000), {});
    slow.run(0, 1000 + 2005 + 1000 + 2005, 100, 1000);
    EXPECT_EQ(slow.steps(), 20);
    EXPECT_EQ(slow.saving(), 2 * 2005);
}

TEST(Progress, MemoryCopiesLoseLess) {
    CheckpointSpec c = saves(100, 5);
    c.mode = SaveMode::memory;
    c.memory_every_steps = 10;
    c.memory_block = 1;
    Progress p(c, {});
    p.run(0, 100 * 100 + 9 + 6 + 37 * 100 + 3 + 10, 100, 1 << 20);
    EXPECT_EQ(p.steps(), 137);
    EXPECT_EQ(p.copied_step(), 130);
    EXPECT_EQ(p.saved_step(14000), 100);
    Progress q = p;
    p.back_to_copy();
    EXPECT_EQ(p.steps(), 130);
    EXPECT_EQ(p.kept(), 13000);
    EXPECT_EQ(p.lost(), 710);
    q.back_to_save(14000);
    EXPECT_EQ(q.steps(), 100);
    EXPECT_EQ(q.lost(), 3710);
    q.back_to_save(14000, 55);  // older than the save: nothing before it
    EXPECT_EQ(q.steps(), 0);
    EXPECT_EQ(q.kept() + q.lost(), 13710);
}

/// The rules of the header, one step at a time.
struct Walker {
    CheckpointSpec c;
    EventsSpec e;
    std::int64_t steps = 0, durable = 0, pending = 0;
    Nanoseconds now = 0, pending_counts = 0, kept = 0, saving = 0, evaluating = 0, kept_durable = 0, kept_pending = 0;

    void run_to(Nanoseconds end, Nanoseconds step) {
        while (true) {
            const Nanoseconds save = c.block + std::max<Nanoseconds>(0, c.write - c.every_steps * step);
            if (steps > 0 && steps % c.every_steps == 0 && steps != paused) {
                if (now + save > end) {
                    saving += end - now;
                    partial = end - now;
                    return;
                }
                now += save;
                saving += save;
                durable = pending;
                kept_durable = kept_pending;
                pending = steps;
                kept_pending = kept;
                pending_counts = now + c.write;
            }
            if (steps > 0 && e.evaluate_every > 0 && steps % e.evaluate_every == 0 && steps != paused) {
                if (now + e.evaluation > end) {
                    evaluating += end - now;
                    return;
                }
                now += e.evaluation;
                evaluating += e.evaluation;
            }
            paused = steps;
            if (now + step > end) {
                kept += end - now;
                return;
            }
            now += step;
            kept += step;
            ++steps;
        }
    }
    std::int64_t paused = -1;
    Nanoseconds partial = 0;
};

TEST(Progress, AgreesWithAWalkStepByStep) {
    std::mt19937_64 random(5);
    const auto below = [&](std::int64_t n) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
    };
    for (int round = 0; round < 2000; ++round) {
        const CheckpointSpec c = saves(1 + below(20), below(50), below(2) == 0 ? 0 : below(3000));
        EventsSpec e;
        e.evaluate_every = below(30);
        e.evaluation = below(70);
        const Nanoseconds step = 1 + below(100), end = below(20000);
        Walker walker{.c = c, .e = e};
        walker.run_to(end, step);
        Progress p(c, e);
        // In several pieces: the result must not depend on where the job was looked at.
        Nanoseconds now = 0;
        while (now < end)
            now += p.run(now, std::min(end - now, 1 + below(7000)), step, 1 << 30);
        ASSERT_EQ(p.steps(), walker.steps) << round;
        ASSERT_EQ(p.kept(), walker.kept) << round;
        ASSERT_EQ(p.saving(), walker.saving) << round;
        ASSERT_EQ(p.evaluating(), walker.evaluating) << round;
        ASSERT_EQ(p.kept() + p.saving() + p.evaluating(), end);
        const bool counts = walker.pending_counts <= end;
        ASSERT_EQ(p.saved_step(end), counts ? walker.pending : walker.durable) << round;
        p.back_to_save(end);
        ASSERT_EQ(p.kept(), counts ? walker.kept_pending : walker.kept_durable) << round;
        ASSERT_EQ(p.kept() + p.lost(), walker.kept);
    }
}

}  // namespace
}  // namespace fabricast::campaign
