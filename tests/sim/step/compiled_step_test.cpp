// Compiled steps run to the end: drawn layouts on toy models, and one GPU against the sum of its kernels.
#include <cstdint>
#include <numeric>

#include <gtest/gtest.h>

#include "models/transformer/software.hpp"
#include "sim/engine/engine.hpp"
#include "tests/models/parallel/jobs.hpp"

namespace fabricast {
namespace {

using test::Job;

#ifdef NDEBUG
constexpr std::uint64_t kDraws = 300;
#else
constexpr std::uint64_t kDraws = 60;
#endif

TEST(CompiledStep, DrawnJobsRunToAPeriodAndAccountForEveryPicosecond) {
    const test::Machine machine(2);
    for (std::uint64_t n = 0; n < kDraws; ++n) {
        const Job job = test::draw_job(n);
        SCOPED_TRACE(fmt::format("draw {}: {}", n, job.name()));
        const CompiledStep step = machine.compile(job.model, job.plan, job.software, 6);
        const engine::EngineResult run = engine::Engine(step.program, machine.cluster().links().capacity).run();
        ASSERT_EQ(run.outcome, engine::Outcome::done) << run.message;
        EXPECT_TRUE(run.periodic) << run.steps << " steps";
        EXPECT_GT(run.period, 0);
        __int128 sum = 0;
        for (const auto& rank : run.accounts) {
            for (const Picoseconds part : rank) {
                EXPECT_GE(part, 0);
                sum += part;
            }
        }
        EXPECT_TRUE(sum == static_cast<__int128>(run.period) * 16);
        if (HasFailure())
            return;
    }
}

TEST(CompiledStep, DrawnPipelinesOfEveryScheduleRunToAPeriod) {
    const test::Machine machine(2);
    for (std::uint64_t n = 0; n < kDraws / 2; ++n) {
        const Job job = test::draw_pipeline_job(n);
        SCOPED_TRACE(fmt::format("draw {}: {}", n, job.name()));
        const CompiledStep step = machine.compile(job.model, job.plan, job.software, 6);
        const engine::EngineResult run = engine::Engine(step.program, machine.cluster().links().capacity).run();
        ASSERT_EQ(run.outcome, engine::Outcome::done) << run.message;
        // Without a barrier between steps offsets may take long to repeat; the step is as long by then.
        const Schedule schedule = job.plan.layout.schedule;
        if (!run.periodic && (schedule == Schedule::zb_h2 || schedule == Schedule::zb_v)) {
            const CompiledStep more = machine.compile(job.model, job.plan, job.software, 40);
            const engine::EngineResult longer = engine::Engine(more.program, machine.cluster().links().capacity).run();
            ASSERT_EQ(longer.outcome, engine::Outcome::done) << longer.message;
            EXPECT_NEAR(static_cast<double>(run.period) / static_cast<double>(longer.period), 1, 0.02);
        } else {
            EXPECT_TRUE(run.periodic) << run.steps << " steps";
        }
        if (HasFailure())
            return;
    }
}

// Pairs of DualPipe hide dispatch and combine of one half behind the work of the other.
TEST(CompiledStep, PairsHideTheTrafficOfExperts) {
    const test::Machine machine(2);
    Job job;
    job.model = test::toy_llama();
    job.model.hidden = 4096;
    job.model.heads = job.model.kv_heads = 32;
    job.model.head_dim = 128;
    job.model.moe = {.experts = 16, .top_k = 2, .ffn = 2048};
    job.software = *find_software("megatron-core-2024");
    job.software.attention = "cudnn";
    TrainingPlan& plan = job.plan;
    plan.layout.pp = 2;
    plan.layout.dp = plan.layout.ep = 8;
    plan.sequence = 4096;
    plan.global_batch = 8 * 16;
    double exposed[2];
    for (const bool pairs : {false, true}) {
        plan.layout.schedule = pairs ? Schedule::dual_pipe : Schedule::one_f_one_b;
        std::string field;
        ASSERT_EQ(check_layout(job.model, plan, 16, field), "");
        const CompiledStep step = machine.compile(job.model, plan, job.software, 6);
        const engine::EngineResult run = engine::Engine(step.program, machine.cluster().links().capacity).run();
        ASSERT_EQ(run.outcome, engine::Outcome::done) << run.message;
        __int128 traffic = 0;
        for (const auto& rank : run.accounts)
            traffic += rank[static_cast<std::size_t>(Account::comm_ep)];
        exposed[pairs] = static_cast<double>(traffic) / static_cast<double>(run.period) / 16;
    }
    EXPECT_GT(exposed[false], 0.02);
    EXPECT_LT(exposed[true], 0.35 * exposed[false]);
    fmt::print("exposed expert traffic: {:.3f} of the step with 1F1B, {:.3f} with DualPipe\n", exposed[0], exposed[1]);
}

TEST(CompiledStep, WatchingChangesNothing) {
    const test::Machine machine(2);
    for (std::uint64_t n = 0; n < kDraws / 10; ++n) {
        const Job job = test::draw_job(n);
        SCOPED_TRACE(fmt::format("draw {}: {}", n, job.name()));
        const CompiledStep step = machine.compile(job.model, job.plan, job.software, 6);
        const auto run = [&](bool watched) {
            engine::EngineOptions options;
            options.record_timeline = watched;
            options.fold_time = false;  // nothing is replayed where all is recorded
            return engine::Engine(step.program, machine.cluster().links().capacity, options).run();
        };
        const engine::EngineResult plain = run(false), watched = run(true);
        EXPECT_TRUE(plain.timeline.empty());
        EXPECT_FALSE(watched.timeline.empty());
        EXPECT_EQ(plain.fingerprint, watched.fingerprint);
        EXPECT_EQ(plain.period, watched.period);
        EXPECT_EQ(plain.events, watched.events);
        EXPECT_TRUE(plain.accounts == watched.accounts);
    }
}

double seconds_of(const std::vector<Kernel>& kernels, const ComputeModel& compute) {
    return std::accumulate(kernels.begin(), kernels.end(), 0.0,
                           [&](double sum, const Kernel& k) { return sum + compute.time(k).total_s; });
}

TEST(CompiledStep, OneGpuTakesTheSumOfItsKernels) {
    const test::Machine machine(1, 1);
    const ComputeModel& compute = machine.compute();
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        for (const bool gpt : {true, false}) {
            Job job;
            job.model = gpt ? test::toy_gpt() : test::toy_llama();
            job.software = *find_software(gpt ? "megatron-2022" : "torch-fsdp");
            job.software.cuda_graphs = true;  // the GPU never waits for the CPU
            job.software.recompute_stops_early = job.software.recompute_keeps_qkv = false;
            job.plan.sequence = 1000;
            job.plan.micro_batch = 2;
            job.plan.global_batch = 6;
            job.plan.recompute = recompute;
            Shard shard;
            shard.micro_batch = 2;
            shard.sequence = 1000;

            double forward = 0, backward = 0;
            for (int i = 0; i < static_cast<int>(Piece::count); ++i) {
                const auto piece = static_cast<Piece>(i);
                forward += seconds_of(forward_kernels(job.model, shard, job.software, piece), compute);
                backward += seconds_of(backward_data_kernels(job.model, shard, job.software, piece), compute) +
                            seconds_of(backward_weight_kernels(job.model, shard, job.software, piece), compute);
            }
            const double again = recompute == Recompute::full ? forward
                                 : recompute == Recompute::selective
                                     ? seconds_of(attention_core_forward(job.model, shard, job.software), compute)
                                     : 0;
            const double ends = seconds_of(embedding_forward(job.model, shard, job.software), compute) +
                                seconds_of(embedding_backward(job.model, shard, job.software), compute) +
                                seconds_of(head_forward(job.model, shard, job.software), compute) +
                                seconds_of(head_backward(job.model, shard, job.software), compute);
            const std::int64_t p = stage_parameters(job.model, job.plan.layout, 0).total();
            Updated all;
            all.elements = p;
            const Bytes gradient = job.software.fp32_reduce ? 4 : 2;
            const double optimizer = seconds_of(
                optimizer_kernels(job.plan.optimizer, job.plan.precision, all, gradient, job.plan.clip_gradients),
                compute);
            const double expected =
                3 * (static_cast<double>(job.model.layers) * (forward + backward + again) + ends) + optimizer;

            const CompiledStep step = machine.compile(job.model, job.plan, job.software, 6);
            const engine::EngineResult run = engine::Engine(step.program, machine.cluster().links().capacity).run();
            ASSERT_EQ(run.outcome, engine::Outcome::done) << run.message;
            EXPECT_NEAR(seconds(run.period) / expected, 1, 1e-8) << job.name();
        }
    }
}

}  // namespace
}  // namespace fabricast
