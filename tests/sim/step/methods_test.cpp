// Optimizers, offload, packed sequences and compressed traffic in whole steps.
#include <gtest/gtest.h>

#include "models/parallel/stage_update.hpp"
#include "sim/step/explain.hpp"
#include "support.hpp"
#include "tests/models/parallel/jobs.hpp"

namespace fabricast::test {
namespace {

const std::string kDense =
    "cluster: {nodes: 4, node: hgx-h100, gpu_spread: 0}\n"
    "model: llama3.1-8b\n"
    "training:\n"
    "  sequence: 8192 tokens\n"
    "  global_batch: 64 sequences\n"
    "  recompute: selective\n"
    "  layout: {dp: 32, zero: 2}\n"
    "  overlap: {grad_reduce: true, param_gather: true}\n"
    "run: {tokens: 1 Ttokens, price: 2 USD/GPU-h}\n";

const CommRow* row(const Result& result, const std::string& what) {
    for (const CommRow& one : result.communication)
        if (one.what == what)
            return &one;
    return nullptr;
}

std::int64_t memory(const Forecast& run, MemoryCause cause) {
    return run.result.memory[0].parts[static_cast<std::size_t>(cause)];
}

// Muon: less memory, Newton-Schulz in the optimizer account; Moonlight reports 1-3 % of a step (arXiv:2502.16982).
TEST(Methods, MuonCostsAFewPercent) {
    const Forecast adam = run_text(kDense), muon = run_text(kDense, {"training.optimizer=muon"});
    EXPECT_LT(memory(muon, MemoryCause::optimizer), 0.75 * static_cast<double>(memory(adam, MemoryCause::optimizer)));
    const double more = muon.account(Account::optimizer) - adam.account(Account::optimizer);
    EXPECT_GT(more, 0.005);
    EXPECT_LT(more, 0.03);
    EXPECT_GT(muon.seconds(), adam.seconds());
    EXPECT_LT(muon.seconds(), 1.04 * adam.seconds());
}

TEST(Methods, NarrowStateIsUpdatedSooner) {
    const Forecast adam = run_text(kDense), narrow = run_text(kDense, {"training.optimizer=adam-8bit"}),
                   sgd = run_text(kDense, {"training.optimizer={kind: sgd, master: none}"});
    EXPECT_LT(narrow.account(Account::optimizer), adam.account(Account::optimizer));
    EXPECT_LT(sgd.account(Account::optimizer), narrow.account(Account::optimizer));
    EXPECT_EQ(memory(sgd, MemoryCause::optimizer), 0);
}

// Host bandwidth bounds the step: nothing of the update is lost, whatever overlaps.
TEST(Methods, AStepHoldsTheUpdateOnTheHost) {
    const Machine machine(2);
    for (const int zero : {0, 1, 2, 3}) {
        for (const bool overlap : {false, true}) {
            Job job;
            job.model = toy_llama();
            job.plan.layout.dp = 16;
            job.plan.layout.zero = zero;
            job.plan.sequence = 1024;
            job.plan.global_batch = 32;
            job.software = *find_software("torch-fsdp");
            job.software.cuda_graphs = true;  // else launches run ahead while the GPU waits
            job.plan.offload.host_bytes_per_s = 1e9;
            job.plan.offload.overlap = overlap;
            const auto run = [&] {
                const CompiledStep step = machine.compile(job.model, job.plan, job.software, 6);
                const engine::EngineResult r = engine::Engine(step.program, machine.cluster().links().capacity).run();
                EXPECT_EQ(r.outcome, engine::Outcome::done) << r.message;
                return seconds(r.period);
            };
            const double without = run();
            job.plan.offload.optimizer = 1;
            const Updated own = stage_update(job.model, job.plan, 0, stage_parameters(job.model, job.plan.layout, 0));
            const double bytes = job.software.fp32_reduce ? 30 : 28;
            const double update = bytes * static_cast<double>(own.total()) / 1e9;
            const double offloaded = run();
            EXPECT_GT(offloaded, update) << zero;
            EXPECT_GT(offloaded, 0.9 * without + update) << zero;
            EXPECT_LT(offloaded, 1.15 * (without + update)) << zero;
            job.plan.offload.optimizer = 0.5;
            EXPECT_LT(run(), offloaded) << zero;
        }
    }
}

// Any layout and schedule with any of the methods compiles to a sound program that ends, and memory balances.
TEST(Methods, DrawnJobsRun) {
    const Machine machine(2);
    int run = 0;
    for (std::uint64_t n = 0; n < 80; ++n) {
        Job job = n % 2 == 0 ? draw_job(n) : draw_pipeline_job(n);
        Draw draw(n + 77);
        TrainingPlan& plan = job.plan;
        plan.optimizer.kind = draw.of({OptimizerKind::adam, OptimizerKind::muon, OptimizerKind::adafactor,
                                       OptimizerKind::adam_8bit, OptimizerKind::lion});
        plan.offload.optimizer = draw.of({0.0, 0.5, 1.0});
        plan.offload.parameters = draw.flag();
        plan.offload.overlap = draw.flag();
        plan.offload.host_bytes_per_s = 20e9;
        plan.compression.gradients = draw.of({Compression::none, Compression::fp8, Compression::int4, Compression::bf16,
                                              Compression::one_bit_adam, Compression::powersgd});
        plan.compression.parameters = draw.of({Compression::none, Compression::int8});
        plan.compression.tensor_parallel = draw.of({Compression::none, Compression::fp8});
        plan.document = draw.of<std::int64_t>({0, 100});
        std::string field;
        while (!check_layout(job.model, plan, 16, field).empty()) {  // what does not go together is left out
            if (field == "training.offload.optimizer")
                plan.offload.optimizer = 0;
            else if (field == "training.offload.parameters")
                plan.offload.parameters = false;
            else if (field == "comm.compression.gradients")
                plan.compression.gradients = Compression::none;
            else if (field == "comm.compression.parameters")
                plan.compression.parameters = Compression::none;
            else if (field == "comm.compression.tensor_parallel")
                plan.compression.tensor_parallel = Compression::none;
            else
                FAIL() << field;
        }
        run += plan.offload.active() && plan.compression.gradients != Compression::none;
        const CompiledStep step = machine.compile(job.model, plan, job.software, 3);
        const engine::EngineResult r = engine::Engine(step.program, machine.cluster().links().capacity).run();
        EXPECT_EQ(r.outcome, engine::Outcome::done) << job.name() << r.message;
        for (std::size_t stage = 0; stage < step.stages.size(); ++stage) {
            std::array<Bytes, kMemoryCauseCount> left = {};
            each_operation(step.program.templates[stage], [&](const program::Operation& op, std::int64_t times) {
                for (const program::MemoryChange& change : op.memory)
                    left[static_cast<std::size_t>(change.cause)] += times * change.bytes;
            });
            for (const Bytes bytes : left)
                EXPECT_EQ(bytes, 0) << job.name();
        }
    }
    EXPECT_GT(run, 5);
}

// Qwen3-30B-A3B on 16 H100, Megatron's hybrid optimizer (published by Megatron-Bridge): 1871, 2484, 3187 and 4189 ms with 25,
// 50, 75 and 100 % of the optimizer on the CPU, 3877 with copies beside the update. The share of host memory bandwidth is
// that of the table; its layout is not published, so differences are compared (ours takes 80.0 GiB with 25 %, so the GPU is
// given more).
TEST(Methods, OffloadOfThePublishedTable) {
    const std::string text =
        "cluster: {nodes: 2, node: {preset: hgx-h100, gpu_memory: 84 GiB}, gpu_spread: 0}\n"
        "model: qwen3-30b-a3b\n"
        "training:\n"
        "  sequence: 4096 tokens\n"
        "  global_batch: 16 sequences\n"
        "  layout: {dp: 16, ep: 8, zero: 1}\n";
    const auto step = [&](const std::string& fraction, const std::string& overlap) {
        return run_text(text,
                        {"training.offload={optimizer: cpu, fraction: " + fraction + ", overlap: " + overlap + "}"})
            .seconds();
    };
    const double quarter = step("0.25", "false"), half = step("0.5", "false"), most = step("0.75", "false"),
                 all = step("1", "false"), beside = step("1", "true");
    EXPECT_NEAR((all - quarter) / (4.189 - 1.871), 1, 0.05);
    EXPECT_NEAR((most - quarter) / (3.187 - 1.871), 1, 0.2);
    EXPECT_NEAR((half - quarter) / (2.484 - 1.871), 1, 0.3);
    EXPECT_GT(all - beside, 0.1);
    EXPECT_LT(all - beside, 0.45);
}

const std::string kOneV100 =
    "cluster:\n"
    "  nodes: 1\n"
    "  node: {preset: aws-p3dn, gpus: 1, nics: 1, board: pcie, numa_nodes: 1, pcie_layout: phb}\n"
    "model: {family: gpt, name: gpt, layers: 65, hidden: 4096, heads: 32, vocab: 50257, max_positions: 1024}\n"
    "training:\n"
    "  sequence: 1024 tokens\n"
    "  global_batch: 8 sequences\n"
    "  precision: fp16\n"
    "  recompute: full\n"
    "  layout: {dp: 1, zero: 2}\n"
    "  software: deepspeed-2023\n";

// ZeRO-Offload (arXiv:2101.06840): 13 G parameters train on a V100 of 32 GB, 1.4 G without it.
TEST(Methods, LargestModelsOfZeroOffload) {
    const auto fits = [](int layers, const char* device) {
        const Forecast run =
            run_text(kOneV100, {fmt::format("model.layers={}", layers), fmt::format("training.offload={}", device)});
        return run.result.verdict != "out of memory";
    };
    EXPECT_TRUE(fits(65, "cpu"));   // 13.3 G
    EXPECT_FALSE(fits(85, "cpu"));  // 17.3 G
    EXPECT_TRUE(fits(6, "none"));   // 1.4 G
    EXPECT_FALSE(fits(10, "none"));
}

// Its table 4: CPU-Adam on the two Xeon 8168 of a DGX-2, seconds for 1, 2, 4, 8 and 10 G parameters. The share of memory
// bandwidth is the last row's.
TEST(Methods, UpdatesOnTheCpuAsPublished) {
    const Scenario s = parse_scenario(kOneV100, "test.yaml", {"training.offload=cpu"});
    const double traffic = update_traffic(s.training.optimizer, s.training.precision, 4);
    const std::pair<double, double> rows[] = {{1e9, 0.22}, {2e9, 0.51}, {4e9, 1.03}, {8e9, 2.41}, {10e9, 2.57}};
    for (const auto& [parameters, published] : rows)
        EXPECT_NEAR(parameters * traffic / s.training.offload.host_bytes_per_s / published, 1, 0.2) << parameters;
}

TEST(Methods, HostStateIsCountedAndBounded) {
    const Forecast run = run_text(kDense, {"training.offload=cpu"});
    // 8 ranks x 8.03 G / 32 x (12 of state + 4 of gradients)
    EXPECT_NEAR(static_cast<double>(run.result.host_bytes) / (8.03e9 / 4 * 16), 1, 0.01);
    EXPECT_EQ(memory(run, MemoryCause::optimizer), 0);
    ASSERT_NE(row(run.result, "weights from host"), nullptr);
    EXPECT_EQ(row(run.result, "weights from host")->account, Account::offload);
    EXPECT_GT(run.account(Account::offload), 0.1);
    const Forecast small = run_text(kDense, {"training.offload=cpu", "cluster.node.host_memory=16 GiB"});
    EXPECT_EQ(small.result.verdict, "out of host memory");
    EXPECT_NE(small.result.failure.find("has 16.0 GiB"), std::string::npos) << small.result.failure;
}

TEST(Methods, OffloadNeedsPcie) {
    const std::string grid =
        "cluster:\n"
        "  node: {preset: hgx-h100}\n"
        "  fabric: {kind: grid, dimensions: [{kind: switch, size: 8, bandwidth: 300 GB/s, latency: 1 us}]}\n"
        "model: gpt2\n"
        "training: {sequence: 1024 tokens, global_batch: 8 sequences, layout: {dp: 8}, offload: cpu}\n";
    try {
        run_text(grid);
        ADD_FAILURE() << "accepted";
    } catch (const ScenarioError& error) {
        EXPECT_NE(std::string(error.what()).find("without PCIe links"), std::string::npos) << error.what();
    }
}

TEST(Methods, ExplainNamesTheHost) {
    const Scenario scenario = parse_scenario(kDense, "test.yaml", {"training.offload=cpu"});
    const Explanation e = explain(scenario);
    const auto free =
        std::find_if(e.ceilings.begin(), e.ceilings.end(), [](const Ceiling& c) { return c.key == "free_host"; });
    ASSERT_NE(free, e.ceilings.end());
    EXPECT_LT(static_cast<double>(free->ps), 0.9 * static_cast<double>(e.run.step.ps));
}

TEST(Methods, PackedSequences) {
    const Forecast whole = run_text(kDense),
                   packed = run_text(kDense, {"training.packed={document: 1024, distribution: equal}"});
    EXPECT_EQ(packed.scenario->training.document, 1024);
    EXPECT_LT(packed.seconds(), whole.seconds());
    EXPECT_DOUBLE_EQ(packed.step().attention_flops * 8, whole.step().attention_flops);
    EXPECT_EQ(packed.step().attention_flops_whole, whole.step().attention_flops);
    EXPECT_LT(packed.mfu(), whole.mfu());  // short rows are slower a FLOP
    // One document a sequence is the sequence.
    const Forecast one = run_text(kDense, {"training.packed={document: 8192, distribution: equal}"});
    EXPECT_EQ(one.result.step.ps, whole.result.step.ps);
    // Every exchange of context parallelism computes documents.
    for (const std::string exchange : {"ring", "all_gather", "ulysses"}) {
        const Overrides cut = {"training.layout={dp: 8, cp: 4, zero: 2, cp_exchange: " + exchange + "}"};
        Overrides documents = cut;
        documents.emplace_back("training.packed={document: 1024, distribution: equal}");
        EXPECT_LT(run_text(kDense, documents).account(Account::attention),
                  0.5 * run_text(kDense, cut).account(Account::attention))
            << exchange;
    }
}

TEST(Methods, CompressedTrafficIsNamed) {
    const Forecast plain = run_text(kDense);
    const Forecast run =
        run_text(kDense, {"training.layout={dp: 32, zero: 3}", "comm.compression={gradients: int4, parameters: int8}"});
    ASSERT_NE(row(run.result, "parameter all-gather (int8)"), nullptr);
    ASSERT_NE(row(run.result, "gradient all-to-all inside (int4)"), nullptr);
    const CommRow* across = row(run.result, "gradient all-to-all across (int4)");
    ASSERT_NE(across, nullptr);
    EXPECT_EQ(across->group, "dp across 4");
    EXPECT_EQ(run.result.verdict, "fits");
    EXPECT_EQ(row(plain.result, "parameter all-gather (int8)"), nullptr);
}

// A slow network gains what the bytes say; a fast one pays for the codes.
TEST(Methods, CompressionPaysOnSlowNetworks) {
    const Overrides slow = {"cluster.fabric.nic=10 Gb/s"}, sharded = {"training.layout={dp: 32, zero: 3}"};
    const auto with = [](Overrides a, const Overrides& b) {
        a.insert(a.end(), b.begin(), b.end());
        return a;
    };
    const Overrides narrow = {"comm.compression={gradients: int4, parameters: int8}"};
    const double wide_slow = run_text(kDense, with(slow, sharded)).seconds();
    const double narrow_slow = run_text(kDense, with(with(slow, sharded), narrow)).seconds();
    EXPECT_LT(narrow_slow, 0.75 * wide_slow);
    EXPECT_GT(run_text(kDense, with(sharded, narrow)).seconds(), run_text(kDense, sharded).seconds() * 0.97);
}

TEST(Methods, WarmUpCountsInTheRun) {
    const std::string text =
        "cluster: {nodes: 4, node: hgx-h100, gpu_spread: 0, fabric: {nic: 10 Gb/s}}\n"
        "model: gpt2\n"
        "training: {sequence: 1024 tokens, global_batch: 256 sequences, layout: {dp: 32}}\n"
        "comm: {compression: {gradients: 1-bit-adam, warmup: 0.25}}\n"
        "run: {tokens: 1 Gtokens}\n";
    const Forecast run = run_text(text), before = run_text(text, {"comm.compression=none"});
    EXPECT_LT(run.seconds(), before.seconds());
    EXPECT_EQ(run.result.warmup_ps, before.result.step.ps);
}

}  // namespace
}  // namespace fabricast::test
