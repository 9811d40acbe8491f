// Who updates what under ZeRO.
#include "models/parallel/stage_update.hpp"

#include <gtest/gtest.h>

#include "models/parallel/compiler.hpp"
#include "models/parallel/memory.hpp"
#include "tests/models/parallel/jobs.hpp"

namespace fabricast {
namespace {

TEST(StageUpdate, WholeMatricesGoToTheLeastLoaded) {
    const std::vector<MatrixCount> all = {{8, 8, 3}, {16, 8, 2}};
    EXPECT_EQ(most_loaded(all, 1), all);
    // 128 128 64 64 64 on two ranks: 128 + 64 + 64 and 128 + 64.
    const std::vector<MatrixCount> two = {{16, 8, 1}, {8, 8, 2}};
    EXPECT_EQ(most_loaded(all, 2), two);
    // More ranks than matrices: the largest alone.
    const std::vector<MatrixCount> many = {{16, 8, 1}};
    EXPECT_EQ(most_loaded(all, 64), many);
}

TEST(StageUpdate, AddsUpToTheStage) {
    test::Job job;
    job.model = *find_architecture("llama3.1-8b");
    job.plan.layout.dp = 8;
    const StageParameters parameters = stage_parameters(job.model, job.plan.layout, 0);
    for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::adafactor, OptimizerKind::muon}) {
        job.plan.optimizer.kind = kind;
        job.plan.layout.zero = 0;
        EXPECT_EQ(stage_update(job.model, job.plan, 0, parameters).total(), parameters.total());
        job.plan.layout.zero = 1;
        const double share = static_cast<double>(stage_update(job.model, job.plan, 0, parameters).total()) /
                             (static_cast<double>(parameters.total()) / 8);
        EXPECT_GE(share, 1 - 1e-9);
        EXPECT_LT(share, 1.02);  // 224 matrices over 8 ranks
    }
}

// Moonlight (arXiv:2502.16982): one moment instead of two, half of AdamW's moments where matrices are nearly everything.
TEST(StageUpdate, MemoryOfOptimizers) {
    test::Machine machine(1);
    test::Job job;
    job.model = *find_architecture("llama3.1-8b");
    job.plan.layout.dp = 8;
    job.plan.layout.zero = 1;
    job.plan.sequence = 1024;
    job.plan.global_batch = 8;
    job.software = *find_software("torch-fsdp");
    const auto optimizer = [&](const Optimizer& o) {
        job.plan.optimizer = o;
        const auto stages = stage_memory(job.model, job.plan, job.software, machine.compute());
        return static_cast<double>(stages[0].memory.parts[static_cast<std::size_t>(MemoryCause::optimizer)]);
    };
    const double parameters = 8.03e9 / 8;
    EXPECT_NEAR(optimizer({}) / parameters, 12, 0.01);
    EXPECT_NEAR(optimizer({.kind = OptimizerKind::adam_8bit}) / parameters, 6.03, 0.01);
    EXPECT_NEAR(optimizer({.kind = OptimizerKind::sgd_momentum, .master = StateType::none}) / parameters, 4, 0.01);
    const double embeddings = 2 * 128256.0 * 4096 / 8;
    EXPECT_NEAR(optimizer({.kind = OptimizerKind::muon}), 8 * (parameters - embeddings) + 12 * embeddings,
                0.02 * 8 * parameters);
}

// 14 bytes a parameter of a checkpoint with Adam's state: BLOOM 176B, 2.3 TB.
TEST(StageUpdate, CheckpointsOfTheWholeModel) {
    TrainingPlan plan;
    const Architecture& a = *find_architecture("gpt3-175b");
    const auto parameters = static_cast<double>(count_parameters(a, padded_vocab(a, 1)).total());
    EXPECT_NEAR(static_cast<double>(checkpoint_bytes(a, plan)) / (14 * parameters), 1, 1e-9);
    plan.layout = {.tp = 8, .pp = 8, .dp = 2, .zero = 1};
    EXPECT_NEAR(static_cast<double>(checkpoint_bytes(a, plan)) / (14 * parameters), 1, 1e-9);
    plan.optimizer.kind = OptimizerKind::adam_8bit;
    EXPECT_NEAR(static_cast<double>(checkpoint_bytes(a, plan)) / (8 * parameters), 1, 0.01);
}

}  // namespace
}  // namespace fabricast
