// Which calls a step's reductions, gathers and fp8 scales are: as Megatron-Core and NeMo cut them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "models/parallel/placement.hpp"
#include "tests/models/parallel/jobs.hpp"

namespace fabricast {
namespace {

using test::Job;
using test::Machine;

Job interleaved(const char* software) {
    Job job;
    job.model = test::toy_llama();
    job.model.layers = 8;
    Layout& l = job.plan.layout;
    l.pp = 2;
    l.vpp = 2;
    l.dp = 8;
    l.zero = 1;
    l.schedule = Schedule::interleaved;
    job.plan.sequence = 1024;
    job.plan.global_batch = 32;
    job.plan.overlap_grad_reduce = job.plan.overlap_param_gather = true;
    job.software = *find_software(software);
    return job;
}

/// Calls of one step of a stage by what they are.
std::map<std::string, std::int64_t> calls(const CompiledStep& step, std::size_t stage) {
    std::map<std::string, std::int64_t> out;
    const program::Program& p = step.program;
    test::each_operation(p.templates[stage], [&](const program::Operation& op, std::int64_t times) {
        if (op.kind == program::OpKind::collective)
            out[p.names[p.labels[op.label].name]] += times;
    });
    return out;
}

TEST(Buckets, OnlyTheChunkThatGoesBackwardLastIsCut) {
    const Machine machine(2);
    Job job = interleaved("nemo1-2024");
    job.software.bucket_parameters = 100'000;  // less than a layer
    const CompiledStep step = machine.compile(job.model, job.plan, job.software);
    const auto first = calls(step, 0), last = calls(step, 1);
    EXPECT_GT(first.at("gradient reduce-scatter"), 4);
    EXPECT_LT(std::abs(first.at("gradient reduce-scatter") - first.at("parameter all-gather")), 4);
    EXPECT_EQ(last.at("parameter all-gather"), 2);         // one a chunk
    EXPECT_EQ(last.at("gradient reduce-scatter"), 2 + 1);  // and the head, whose weight gradients wait
    job.plan.bucket_bytes = 200'000;                       // said for every chunk
    EXPECT_GT(calls(machine.compile(job.model, job.plan, job.software), 1).at("gradient reduce-scatter"), 6);
}

TEST(Buckets, GatheredBesideTheUpdateNoChunkIsCut) {
    const Machine machine(2);
    Job job = interleaved("nemo-2024");
    job.software.bucket_parameters = 100'000;
    const CompiledStep step = machine.compile(job.model, job.plan, job.software);
    EXPECT_EQ(calls(step, 0).at("parameter all-gather"), 2);
    EXPECT_EQ(calls(step, 0).at("gradient reduce-scatter"), 2);
    // the first chunk is on its way before the update of the second
    const program::Template& t = step.program.templates[0];
    std::string order;
    for (const program::Operation& op : t.operations) {
        const std::string& name = step.program.names[step.program.labels[op.label].name];
        if (name == "optimizer")
            order += 'u';
        if (name == "parameter all-gather")
            order += 'g';
    }
    EXPECT_EQ(order, "ugug");
}

// Behind every forward and backward of every chunk, over all ranks of the stage or of its replica.
TEST(Fp8Scales, EveryPassOfAChunkAgreesOnThem) {
    const Machine machine(2);
    Job job = interleaved("nemo-2024");
    const char* const name = "fp8 scaling all-reduce";
    EXPECT_FALSE(calls(machine.compile(job.model, job.plan, job.software), 0).contains(name));
    job.plan.precision = Precision::fp8;
    const CompiledStep step = machine.compile(job.model, job.plan, job.software);
    const std::int64_t passes = 2 * job.plan.layout.vpp * job.plan.micro_batches();
    for (std::size_t stage = 0; stage < 2; ++stage)
        EXPECT_EQ(calls(step, stage).at(name), passes);
    const program::Rank& rank = step.program.ranks[3];
    EXPECT_EQ(step.program.groups[rank.groups[static_cast<std::size_t>(Slot::scaling)]].members.size(), 8u);

    job.software.fp8_largest = LargestValues::replica;  // tp 1, cp 1: nobody to agree with
    EXPECT_FALSE(calls(machine.compile(job.model, job.plan, job.software), 0).contains(name));
    job.plan.layout.tp = 2;
    job.plan.layout.dp = 4;
    const CompiledStep pairs = machine.compile(job.model, job.plan, job.software);
    EXPECT_EQ(calls(pairs, 1).at(name), 2 * job.plan.layout.vpp * job.plan.micro_batches());
    const std::uint32_t group = pairs.program.ranks[3].groups[static_cast<std::size_t>(Slot::scaling)];
    EXPECT_EQ(pairs.program.groups[group].members.size(), 2u);
}

}  // namespace
}  // namespace fabricast
