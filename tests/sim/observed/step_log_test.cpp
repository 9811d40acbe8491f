#include "sim/observed/step_log.hpp"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/observed/ingest_error.hpp"

namespace fabricast {
namespace {

std::string iteration(int i, double ms, int batch = 512) {
    return fmt::format(
        " [2024-05-01 12:00:{:02}] iteration {:>8}/     500 | consumed samples: {:>12} | elapsed time per iteration "
        "(ms): "
        "{:.1f} | throughput per GPU (TFLOP/s/GPU): 401.2 | learning rate: 1.5E-04 | global batch size: {:>5} | lm "
        "loss: "
        "1.2E+01 |\n",
        i % 60, i, i * batch, ms, batch);
}

std::string refusal(const std::string& text, const std::string& file = "train.log") {
    try {
        parse_step_log(text, file);
    } catch (const IngestError& error) {
        return error.what();
    }
    return {};
}

TEST(StepLog, MegatronMedianWithoutWarmUp) {
    std::string text = "using world size: 64\n" + iteration(1, 61000) + iteration(2, 15100);
    for (int i = 3; i <= 20; ++i)
        text += iteration(i, 14900 + i);
    const StepLog log = parse_step_log(text, "train.log");
    EXPECT_EQ(log.iterations, 18);
    EXPECT_NEAR(log.step_s, 14.9115, .002);
    EXPECT_EQ(log.global_batch, 512);
    EXPECT_DOUBLE_EQ(*log.tflops_per_gpu, 401.2);
}

TEST(StepLog, BatchRampUpCountsTheLastSize) {
    std::string text;
    for (int i = 1; i <= 10; ++i)
        text += iteration(i, 2000, 128);
    for (int i = 11; i <= 30; ++i)
        text += iteration(i, 8000, 512);
    EXPECT_NEAR(parse_step_log(text, "train.log").step_s, 8, 1e-9);
}

TEST(StepLog, Tables) {
    EXPECT_NEAR(parse_step_log("iteration,iteration_ms\n1,900\n2,500\n3,501\n4,502\n5,503\n6,504\n", "a.csv").step_s,
                .502, 1e-9);
    EXPECT_NE(refusal("a,b\n1,2\n", "a.csv").find("no column of step times"), std::string::npos);
}

TEST(StepLog, FailedAndShortRunsAreRefused) {
    EXPECT_NE(refusal("hello\n").find("is this a log of Megatron?"), std::string::npos);
    EXPECT_NE(refusal(iteration(1, 1000) + "torch.cuda.OutOfMemoryError: CUDA out of memory.\n")
                  .find("the job failed after 1"),
              std::string::npos);
    EXPECT_NE(refusal("RuntimeError\nTraceback (most recent call last):\n").find("failed before its first iteration"),
              std::string::npos);
    EXPECT_NE(refusal(iteration(1, 1000) + iteration(2, 1000)).find("2 measured iterations"), std::string::npos);
}

}  // namespace
}  // namespace fabricast
