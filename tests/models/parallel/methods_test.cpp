// Offload and compression in the program of a stage.
#include <gtest/gtest.h>

#include <map>

#include "models/parallel/memory.hpp"
#include "models/parallel/stage_update.hpp"
#include "tests/models/parallel/jobs.hpp"

namespace fabricast {
namespace {

using test::Job;
using test::Machine;

Job data_parallel(int zero) {
    Job job;
    job.model = test::toy_llama();
    job.plan.layout.dp = 16;
    job.plan.layout.zero = zero;
    job.plan.sequence = 1024;
    job.plan.global_batch = 32;
    job.software = *find_software("torch-fsdp");
    job.plan.offload.host_bytes_per_s = 20e9;
    return job;
}

/// Bytes of a rank's calls of a step by what they are.
std::map<std::string, Bytes> traffic(const CompiledStep& step) {
    std::map<std::string, Bytes> out;
    for (const CallSummary& call : step.calls)
        out[call.info.what] += call.info.bytes * call.calls_per_rank;
    return out;
}

std::map<std::string, Bytes> copies(const CompiledStep& step) {
    std::map<std::string, Bytes> out;
    const program::Program& p = step.program;
    test::each_operation(p.templates[0], [&](const program::Operation& op, std::int64_t times) {
        if (op.kind == program::OpKind::transfer)
            out[p.names[p.labels[op.label].name]] += times * p.transfers[op.payload].bytes;
    });
    return out;
}

Bytes part(const StageSummary& stage, MemoryCause cause) { return stage.memory.parts[static_cast<std::size_t>(cause)]; }

// ZeRO-Offload (arXiv:2101.06840): 2 M bytes on the GPU, 14 M / N on the host, 2 M down and up a step and rank's share.
TEST(Offload, MemoryAndTrafficAsPublished) {
    const Machine machine(2);
    Job job = data_parallel(2);
    job.plan.offload.optimizer = 1;
    job.software = *find_software("deepspeed-2023");
    const auto held = static_cast<double>(stage_parameters(job.model, job.plan.layout, 0).total());
    const CompiledStep step = machine.compile(job.model, job.plan, job.software);
    const StageSummary& stage = step.stages[0];
    EXPECT_EQ(part(stage, MemoryCause::weights), static_cast<Bytes>(2 * held));
    EXPECT_EQ(part(stage, MemoryCause::optimizer), 0);
    EXPECT_NEAR(static_cast<double>(stage.host), 14 * held / 16, 32);
    const auto moved = copies(step);
    const auto micro_batches = static_cast<double>(job.micro_batches());
    EXPECT_NEAR(static_cast<double>(moved.at("gradients to host")), micro_batches * 2 * held / 16, 64);
    EXPECT_NEAR(static_cast<double>(moved.at("weights from host")), 2 * held / 16, 64);
}

TEST(Offload, WeightsComeUpForEveryGather) {
    const Machine machine(2);
    Job job = data_parallel(3);
    job.plan.overlap_param_gather = job.plan.overlap_grad_reduce = true;
    const auto held = static_cast<double>(stage_parameters(job.model, job.plan.layout, 0).total());
    const Bytes before = machine.compile(job.model, job.plan, job.software).stages[0].memory.total;
    job.plan.offload.optimizer = 1;
    job.plan.offload.parameters = true;
    const CompiledStep step = machine.compile(job.model, job.plan, job.software);
    EXPECT_EQ(part(step.stages[0], MemoryCause::weights), 0);
    EXPECT_LT(step.stages[0].memory.total, before);
    const auto moved = copies(step);  // forward and backward of every micro-batch
    EXPECT_NEAR(static_cast<double>(moved.at("weights from host")) / (2 * 2 * 2 * held / 16), 1, 0.01);
    EXPECT_NEAR(static_cast<double>(moved.at("gradients to host")) /
                    (2 * static_cast<double>(job.gradient_bytes()) * held / 16),
                1, 0.01);
}

TEST(Compression, GradientsTakeFewerBytes) {
    const Machine machine(2);
    for (const int zero : {0, 1, 3}) {
        Job job = data_parallel(zero);
        job.software.fp32_reduce = true;
        const LayerMatrices matrices = stage_matrices(job.model, job.plan.layout, 0);
        const auto held = stage_parameters(job.model, job.plan.layout, 0).total();
        const auto in = static_cast<double>(element_count(matrices.dense));
        const double times = zero == 3 ? 2 : 1;  // micro-batches that reduce
        const std::string kind = zero == 0 ? "gradient all-reduce" : "gradient reduce-scatter";
        const auto plain = traffic(machine.compile(job.model, job.plan, job.software));
        EXPECT_NEAR(static_cast<double>(plain.at(kind)), times * 4 * static_cast<double>(held), 64);
        job.plan.compression.gradients = Compression::fp8;
        const auto narrow = traffic(machine.compile(job.model, job.plan, job.software));
        EXPECT_NEAR(static_cast<double>(narrow.at(kind)) / (times * 4 * (static_cast<double>(held) - in)), 1, 0.01);
        EXPECT_NEAR(static_cast<double>(narrow.at("gradient all-to-all (fp8)")) / (times * in * (1 + 4.0 / 1024)), 1,
                    0.001);
        EXPECT_EQ(narrow.contains("gradient all-gather (fp8)"), zero == 0);
        // ZeRO++ qgZ: between servers only what a server has summed.
        job.plan.compression.gradients = Compression::int4;
        job.plan.compression.inside = 8;
        const auto two = traffic(machine.compile(job.model, job.plan, job.software));
        EXPECT_NEAR(static_cast<double>(two.at("gradient all-to-all inside (int4)")) /
                        static_cast<double>(two.at("gradient all-to-all across (int4)")),
                    8, 0.01);
    }
}

TEST(Compression, PowerSgdSendsFactors) {
    const Machine machine(2);
    Job job = data_parallel(0);
    job.plan.compression.gradients = Compression::powersgd;
    job.plan.compression.rank = 4;
    const LayerMatrices m = stage_matrices(job.model, job.plan.layout, 0);
    const auto moved = traffic(machine.compile(job.model, job.plan, job.software));
    EXPECT_NEAR(static_cast<double>(moved.at("gradient all-reduce (powersgd)")) /
                    static_cast<double>(4 * 4 * row_and_column_count(m.dense)),
                1, 0.01);
    const Bytes error = machine.compile(job.model, job.plan, job.software)
                            .stages[0]
                            .memory.parts[static_cast<std::size_t>(MemoryCause::communication)];
    job.plan.compression.gradients = Compression::none;
    const Bytes without = machine.compile(job.model, job.plan, job.software)
                              .stages[0]
                              .memory.parts[static_cast<std::size_t>(MemoryCause::communication)];
    EXPECT_EQ(error - without, 4 * element_count(m.dense));
}

TEST(Compression, ParametersInOneByte) {
    const Machine machine(2);
    for (const int zero : {1, 3}) {
        Job job = data_parallel(zero);
        const auto plain = traffic(machine.compile(job.model, job.plan, job.software));
        job.plan.compression.parameters = Compression::int8;
        const auto narrow = traffic(machine.compile(job.model, job.plan, job.software));
        const auto in = static_cast<double>(element_count(stage_matrices(job.model, job.plan.layout, 0).dense));
        const double gathers = zero == 3 ? 4 : 1;
        EXPECT_NEAR(static_cast<double>(plain.at("parameter all-gather") - narrow.at("parameter all-gather (int8)")) /
                        (gathers * in * (1 - 4.0 / 4096)),
                    1, 0.001);
    }
}

TEST(Compression, TensorParallelTraffic) {
    const Machine machine(2);
    for (const bool sequence_parallel : {false, true}) {
        Job job = data_parallel(1);
        job.plan.layout.tp = 4;
        job.plan.layout.dp = 4;
        job.plan.layout.sequence_parallel = sequence_parallel;
        job.software.tp_hidden_fraction = 0;
        job.plan.compression.tensor_parallel = Compression::fp8;
        const auto moved = traffic(machine.compile(job.model, job.plan, job.software));
        EXPECT_TRUE(moved.contains("tp all-reduce (loss)"));
        EXPECT_FALSE(moved.contains("tp all-gather"));
        EXPECT_FALSE(moved.contains("tp all-reduce"));
        EXPECT_FALSE(moved.contains("tp reduce-scatter"));
        EXPECT_TRUE(moved.contains(sequence_parallel ? "tp reduce-scatter (fp8)" : "tp all-reduce (fp8)"));
    }
}

// Methods that make no sense together are refused with the key they belong to.
TEST(Methods, Rules) {
    const auto field = [](const std::function<void(TrainingPlan&)>& change) {
        Job job = data_parallel(1);
        change(job.plan);
        std::string key;
        const std::string sentence = check_layout(job.model, job.plan, 16, key);
        return sentence.empty() ? std::string() : key;
    };
    EXPECT_EQ(field([](TrainingPlan&) {}), "");
    EXPECT_EQ(field([](TrainingPlan& p) { p.compression.parameters = Compression::powersgd; }),
              "comm.compression.parameters");
    EXPECT_EQ(field([](TrainingPlan& p) { p.compression.gradients = Compression::one_bit_adam; }),
              "comm.compression.gradients");
    EXPECT_EQ(field([](TrainingPlan& p) { p.compression.tensor_parallel = Compression::fp8; }),
              "comm.compression.tensor_parallel");
    EXPECT_EQ(field([](TrainingPlan& p) { p.offload.parameters = true; }), "training.offload.parameters");
    EXPECT_EQ(field([](TrainingPlan& p) {
                  p.offload.optimizer = 1;
                  p.optimizer.kind = OptimizerKind::muon;
              }),
              "training.offload.optimizer");
    EXPECT_EQ(field([](TrainingPlan& p) { p.offload.optimizer = 1; }), "");
}

}  // namespace
}  // namespace fabricast
