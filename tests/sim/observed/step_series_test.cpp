// Logs of runs as rows: what is read, and the sentence for what cannot be.
#include "sim/observed/step_series.hpp"

#include <cmath>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/observed/ingest_error.hpp"

namespace fabricast {
namespace {

std::string megatron(int i, double ms, int second, const std::string& more = "") {
    return fmt::format(
        " [2024-05-01 12:{:02}:{:02}] iteration {:>8}/     500 | consumed samples: {:>12} | elapsed time per iteration "
        "(ms): {:.1f} | learning rate: 1.5E-04 | global batch size:   512 |{}\n",
        second / 60, second % 60, i, i * 512, ms, more);
}
std::string refusal(const std::string& text, const std::string& file = "a.csv") {
    try {
        parse_step_series(text, file);
    } catch (const IngestError& error) {
        return error.what();
    }
    return "";
}

TEST(StepSeries, MegatronWithClockIntervalAndRestart) {
    std::string text = "using world size: 64\n";
    for (int i = 1; i <= 6; ++i)
        text += megatron(10 * i, 2000, 20 * i);
    text += "using world size: 64\n";
    for (int i = 5; i <= 9; ++i)
        text += megatron(10 * i, 2100, 150 + 20 * i);
    const StepSeries s = parse_step_series(text, "train.log");
    EXPECT_EQ(s.size(), 11u);
    EXPECT_EQ(s.every, 10);
    EXPECT_EQ(s.attempts, (std::vector<std::size_t>{0, 6}));
    EXPECT_TRUE(s.has_clock);
    EXPECT_DOUBLE_EQ(s.time_s[1], 20);
    EXPECT_DOUBLE_EQ(s.day_s, 12 * 3600 + 20);
    EXPECT_EQ(s.global_batch, 512);
}

TEST(StepSeries, StepsThatGoBackAreRefusedWithTheWayOut) {
    const std::string log = megatron(10, 2000, 1) + megatron(20, 2000, 2) + megatron(15, 2000, 3);
    EXPECT_NE(refusal(log, "train.log").find("train.log:3: step 15 follows step 20: steps must go up"),
              std::string::npos);
    EXPECT_NE(refusal("step,step_s\n5,1\n5,1\n").find("a.csv:3: step 5 follows step 5"), std::string::npos);
    const StepSeries s = parse_step_series("step,step_s,attempt\n5,1,0\n6,1,0\n5,1,1\n", "a.csv");
    EXPECT_EQ(s.attempts, (std::vector<std::size_t>{0, 2}));
}

TEST(StepSeries, FailedIterationsAreLeftOut) {
    const std::string skipped = " number of skipped iterations:   1 | number of nan iterations:   0 |";
    const StepSeries s = parse_step_series(megatron(1, 900, 1, skipped) + megatron(2, 500, 2), "train.log");
    EXPECT_EQ(s.size(), 1u);
    EXPECT_EQ(s.failed, 1);
    EXPECT_NE(refusal(megatron(1, 900, 1, skipped) + megatron(2, 900, 2, skipped), "train.log")
                  .find("all 2 iterations were skipped"),
              std::string::npos);
    EXPECT_NE(refusal("step,step_s\n1,\n2,nan\n").find("all 2 rows failed"), std::string::npos);
}

TEST(StepSeries, WhatCannotBeRead) {
    EXPECT_NE(refusal("").find("is empty"), std::string::npos);
    EXPECT_NE(refusal("", "train.log").find("is empty"), std::string::npos);
    EXPECT_NE(refusal("step,step_s\n").find("no row"), std::string::npos);
    EXPECT_NE(refusal("step,loss\n1,2\n").find("no column of step times"), std::string::npos);
    EXPECT_NE(refusal("step,step_s\n1,0\n").find("takes no time"), std::string::npos);
    EXPECT_NE(refusal("step,step_s\nx,1\n").find("'x'"), std::string::npos);
    EXPECT_NE(refusal("hello\n", "train.log").find("is this a log of Megatron?"), std::string::npos);
}

TEST(StepSeries, ColumnsUnitsAndTimes) {
    const StepSeries s = parse_step_series(
        "iteration,step_time_ms,timestamp,data_wait_ms,MFU,note\n1,500,2024-05-01 "
        "23:59:59,20,0.4,a\n2,510,2024-05-02T00:00:00.5,,0.41,b\n",
        "run.CSV");
    EXPECT_DOUBLE_EQ(s.step_s[0], 0.5);
    EXPECT_NEAR(s.time_s[1], 1.5, 1e-9);
    ASSERT_NE(s.metric("data_wait"), nullptr);
    EXPECT_DOUBLE_EQ(s.metric("data_wait")->values[0], 0.02);
    EXPECT_TRUE(std::isnan(s.metric("data_wait")->values[1]));
    EXPECT_NE(s.metric("mfu"), nullptr);
    EXPECT_EQ(s.metric("note"), nullptr);
    // Without a column of step times, from the clock.
    const StepSeries clock = parse_step_series("step,time\n10,100\n20,120\n30,141\n", "a.csv");
    EXPECT_DOUBLE_EQ(clock.step_s[1], 2);
    EXPECT_DOUBLE_EQ(clock.step_s[2], 2.1);
}

}  // namespace
}  // namespace fabricast
