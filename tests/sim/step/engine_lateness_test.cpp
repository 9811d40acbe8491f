// Jitter of kernels: a member that is expected late, and one that is drawn late.
#include <cmath>

#include <gtest/gtest.h>

#include "models/compute/spread.hpp"
#include "tests/sim/engine/run_well.hpp"

namespace fabricast::engine {
namespace {

/// Two groups of 8 ranks that compute for `work` and meet, `meetings` times a step; the last is `late`.
ProgramBuilder two_eights(Picoseconds work, Picoseconds late, int meetings, std::int64_t steps) {
    ProgramBuilder b;
    const std::uint32_t demand = b.demand({b.link(50e9)});
    const std::uint32_t call = b.call(0, 1'000'000, 2 * kUs, 1'000'000);
    b.begin("t");
    b.step(steps);
    b.repeat(meetings);
    b.compute(work);
    b.collective(0, call, Account::comm_gradient);
    b.last_operation().late = late;
    b.end();
    b.end_step();
    std::vector<std::uint32_t> members;
    for (std::uint32_t rank = 0; rank < 16; ++rank) {
        b.rank(0);
        members.push_back(rank);
    }
    b.group("dp 0", members, {demand});
    return b;
}

TEST(EngineLateness, TheLastIsWaitedForByAll) {
    const EngineResult result = run_well(two_eights(100 * kUs, 5 * kUs, 3, 4));
    EXPECT_EQ(result.period, 3 * (100 + 5 + 2 + 20) * kUs);
    for (std::uint32_t rank = 0; rank < 16; ++rank) {
        EXPECT_EQ(account(result, rank, Account::straggler), 3 * 5 * kUs);
        EXPECT_EQ(account(result, rank, Account::comm_gradient), 3 * 22 * kUs);
    }
}

TEST(EngineLateness, IsTheSameWithoutReplays) {
    const ProgramBuilder b = two_eights(100 * kUs, 7 * kUs, 40, 3);
    const EngineResult replayed = run_well(b), whole = run_well(b, {.fold_time = false});
    EXPECT_EQ(replayed.period, whole.period);
    EXPECT_EQ(replayed.accounts, whole.accounts);
    EXPECT_EQ(replayed.fingerprint, whole.fingerprint);
}

// What is expected is the mean of what is drawn: sigma sqrt(T) E max(z_1, z_2), within 4 standard errors.
TEST(EngineLateness, DrawsHaveTheExpectedMean) {
    constexpr int kMeetings = 3000;
    constexpr double kWork = 1e-3;
    EngineOptions options;
    options.fold_time = false;
    options.noise = {static_cast<std::uint32_t>(std::llround(kKernelJitter * 1e6)), kJitterGpus, 1, &kernel_noise};
    const EngineResult result = run_well(two_eights(1000 * kUs, 0, kMeetings, 1), options);
    const double sigma = kKernelJitter * std::sqrt(kWork);
    const double late = static_cast<double>(result.end) * 1e-12 / kMeetings - kWork - 22e-6;
    EXPECT_NEAR(late, sigma * mean_maximum(2), 4 * 0.826 * sigma / std::sqrt(kMeetings));
    options.noise.seed = 2;
    EXPECT_NE(two_eights(1000 * kUs, 0, kMeetings, 1).run(options).end, result.end);
}

TEST(EngineLateness, OnlyACollectiveInLineMayExpectIt) {
    ProgramBuilder b = two_eights(100 * kUs, 0, 1, 1);
    b.program.templates.back().operations.front().late = 1;
    EXPECT_TRUE(has(program::validate(b.program), "expects a late member"));
}

}  // namespace
}  // namespace fabricast::engine
