// Context, expert and sharded data parallelism: what every rank sends, holds and gives back, against closed forms, on 16 GPUs.
#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "models/parallel/placement.hpp"
#include "models/parallel/ranks.hpp"
#include "sim/engine/engine.hpp"
#include "tests/models/parallel/jobs.hpp"

namespace fabricast {
namespace {

using program::OpKind;
using test::Job;

Architecture toy_moe() {
    Architecture a = test::toy_llama();
    a.name = "toy moe";
    a.moe = {.experts = 8, .top_k = 2, .ffn = 768, .first_dense = 2};
    return a;
}

Job job_of(Architecture model, std::int64_t tp, std::int64_t dp) {
    Job job;
    job.model = std::move(model);
    job.software = *find_software("megatron-core-2024");
    job.software.attention = "cudnn";
    job.plan.layout.tp = tp;
    job.plan.layout.sequence_parallel = tp > 1;
    job.plan.layout.dp = dp;
    job.plan.sequence = 1024;
    job.plan.global_batch = 2 * dp;
    return job;
}

class Parallelisms : public ::testing::Test {
protected:
    /// Compiled, run to its end, and with all memory given back in the step.
    CompiledStep compiled(const Job& job) {
        std::string field;
        EXPECT_EQ(check_layout(job.model, job.plan, 16, field), "") << field;
        CompiledStep step = machine_.compile(job.model, job.plan, job.software);
        const engine::EngineResult run = engine::Engine(step.program, machine_.cluster().links().capacity).run();
        EXPECT_EQ(run.outcome, engine::Outcome::done) << run.message;
        for (const program::Template& t : step.program.templates) {
            std::map<MemoryCause, Bytes> left;
            test::each_operation(t, [&](const program::Operation& op, std::int64_t times) {
                for (const program::MemoryChange& change : op.memory)
                    left[change.cause] += times * change.bytes;
            });
            for (const auto& [cause, bytes] : left)
                EXPECT_EQ(bytes, 0) << t.name << " " << memory_cause_name(cause);
        }
        return step;
    }
    /// Bytes of all calls of a rank of stage 0 on a slot in a step, by collective.
    static std::map<Collective, Bytes> traffic(const CompiledStep& step, Slot slot) {
        std::map<Collective, Bytes> out;
        test::each_operation(step.program.templates[0], [&](const program::Operation& op, std::int64_t times) {
            if (op.kind != OpKind::collective)
                return;
            const program::Call& call = step.program.calls[op.payload];
            if (call.slot == static_cast<std::uint16_t>(slot))
                out[static_cast<Collective>(call.kind)] += times * call.bytes;
        });
        return out;
    }

    const test::Machine machine_{2};
};

// Keys and values of the local tokens travel cp - 1 times forward; backward they and their gradients 2 (cp - 1) times.
TEST_F(Parallelisms, RingAttentionPassesKeysAndValuesOn) {
    for (const std::int64_t cp : {2, 4, 8}) {
        Job job = job_of(test::toy_llama(), 2, 8 / cp);
        job.plan.layout.cp = cp;
        const Bytes key_value = 1024 / cp * 2 * 1 * 64 * 2;  // tokens, K and V, heads of a tp rank, width, 16 bit
        const auto sent = traffic(compiled(job), Slot::context);
        ASSERT_EQ(sent.size(), 1u);
        EXPECT_EQ(sent.at(Collective::send_recv), job.micro_batches() * job.model.layers * 3 * (cp - 1) * key_value);
    }
}

TEST_F(Parallelisms, GatheredContextAndExchangedHeads) {
    Job job = job_of(test::toy_llama(), 1, 4);
    job.plan.layout.cp = 4;
    job.plan.context = ContextExchange::all_gather;
    const std::int64_t passes = job.micro_batches() * job.model.layers;
    const Bytes whole = 1024 * 2 * 2 * 64 * 2;  // keys and values of the sequence
    auto sent = traffic(compiled(job), Slot::context);
    EXPECT_EQ(sent.at(Collective::all_gather), 2 * passes * whole);
    EXPECT_EQ(sent.at(Collective::reduce_scatter), passes * whole);

    job.plan.context = ContextExchange::ulysses;
    sent = traffic(compiled(job), Slot::context);
    const Bytes head = 1024 / 4 * 64 * 2;
    EXPECT_EQ(sent.at(Collective::all_to_all), 2 * passes * ((8 + 2 * 2) * head + 8 * head));
}

// A cut in order makes the last rank work (2 cp - 1) / cp times as much in the core, and all wait for it.
TEST_F(Parallelisms, ContextsCutInOrderAreSlower) {
    for (const ContextExchange exchange : {ContextExchange::ring, ContextExchange::all_gather}) {
        Job job = job_of(test::toy_llama(), 1, 2);
        job.plan.layout.cp = 8;
        job.plan.sequence = 65536;
        job.plan.context = exchange;
        const auto attention = [&] {
            const CompiledStep step = compiled(job);
            Picoseconds sum = 0;
            test::each_operation(step.program.templates[0], [&](const program::Operation& op, std::int64_t times) {
                if (op.kind == OpKind::compute)
                    sum += times * step.program.costs[op.payload].parts[static_cast<std::size_t>(Account::attention)];
            });
            return static_cast<double>(sum);
        };
        const double balanced = attention();
        job.plan.context_balanced = false;
        EXPECT_NEAR(attention() / balanced, 15.0 / 8, 0.25);
    }
}

// Forward and backward each send every copy of a token out and back.
TEST_F(Parallelisms, TokensGoToTheirExpertsAndBack) {
    for (const std::int64_t tp : {1, 2}) {
        Job job = job_of(toy_moe(), tp, 16 / tp);
        job.plan.layout.ep = 4;
        job.plan.layout.etp = 1;
        const Bytes copies = 1024 / tp * 2 * 512 * 2;
        const std::int64_t passes = job.micro_batches() * 6;  // two of the eight layers are dense
        auto sent = traffic(compiled(job), Slot::expert);
        EXPECT_EQ(sent.at(Collective::all_to_all), 4 * passes * copies);

        job.plan.capacity_factor = 1.5;
        sent = traffic(compiled(job), Slot::expert);
        EXPECT_EQ(sent.at(Collective::all_to_all), 4 * passes * copies * 3 / 2);

        job.plan.dispatch = ExpertDispatch::all_gather;
        sent = traffic(compiled(job), Slot::expert);
        EXPECT_EQ(sent.at(Collective::all_gather), 2 * passes * 1024 / tp * 4 * 512 * 2);
        EXPECT_EQ(sent.at(Collective::reduce_scatter), sent.at(Collective::all_gather));
    }
}

TEST_F(Parallelisms, ExpertTensorParallelismGathersAndReduces) {
    Job job = job_of(toy_moe(), 2, 8);
    job.plan.layout.ep = 4;  // etp as tp
    const auto sent = traffic(compiled(job), Slot::expert_tensor);
    const Bytes rows = 1024 * 2 * 512 * 2;  // of both ranks
    EXPECT_EQ(sent.at(Collective::all_gather), job.micro_batches() * 6 * 2 * rows);
    EXPECT_EQ(sent.at(Collective::reduce_scatter), sent.at(Collective::all_gather));
}

// Every layout reduces each parameter once: dense ones over cp dp ranks, experts over tp cp dp / (etp ep).
TEST_F(Parallelisms, GradientsOfExpertsAreReducedApart) {
    struct Case {
        std::int64_t tp, cp, ep, etp;
    };
    for (const Case& c : {Case{1, 1, 8, 1}, {2, 1, 4, 2}, {2, 1, 4, 1}, {1, 2, 8, 1}, {2, 2, 8, 1}, {8, 1, 4, 1}}) {
        Job job = job_of(toy_moe(), c.tp, 16 / (c.tp * c.cp));
        job.plan.layout.cp = c.cp;
        job.plan.layout.ep = c.ep;
        job.plan.layout.etp = c.etp;
        for (const int zero : {0, 1, 3}) {
            job.plan.layout.zero = zero;
            const CompiledStep step = compiled(job);
            const Held held = stage_parameters(job.model, job.plan.layout, 0).sum();
            const std::int64_t times = zero == 3 ? job.micro_batches() : 1;
            const Collective kind = zero == 0 ? Collective::all_reduce : Collective::reduce_scatter;
            const auto dense = traffic(step, Slot::gradient), expert = traffic(step, Slot::expert_gradient);
            const std::int64_t shared = dense_sharding(job.plan.layout).ranks,
                               expert_shared = expert_sharding(job.plan.layout).ranks;
            EXPECT_EQ(shared, 16 / c.tp);
            EXPECT_EQ(expert_shared, 16 / (c.ep * c.etp));
            EXPECT_EQ(dense.empty() ? 0 : dense.at(kind), shared > 1 ? times * held.dense * job.gradient_bytes() : 0);
            EXPECT_EQ(expert.empty() ? 0 : expert.at(kind),
                      expert_shared > 1 ? times * held.expert * job.gradient_bytes() : 0);
        }
    }
}

// Groups of g: gathers and scatters inside, the shard all-reduced across. One rank a group shares nothing.
TEST_F(Parallelisms, ShardingGroupsReduceAcross) {
    for (const std::int64_t group : {1, 2, 8}) {
        for (const bool prefetch : {true, false}) {
            Job job = job_of(test::toy_llama(), 1, 16);
            job.plan.layout.zero = 3;
            job.plan.layout.shard_group = group;
            job.plan.overlap_param_gather = prefetch;
            job.plan.overlap_grad_reduce = prefetch;
            const CompiledStep step = compiled(job);
            const std::int64_t parameters = stage_parameters(job.model, job.plan.layout, 0).total();
            const auto inside = traffic(step, Slot::gradient), across = traffic(step, Slot::replica),
                       gathered = traffic(step, Slot::parameter);
            const Bytes reduced = job.micro_batches() * parameters * job.gradient_bytes();
            if (group == 1) {
                EXPECT_TRUE(inside.empty() && gathered.empty());
            } else {
                EXPECT_EQ(inside.at(Collective::reduce_scatter), reduced);
                EXPECT_EQ(gathered.at(Collective::all_gather), 2 * job.micro_batches() * parameters * 2);
            }
            EXPECT_NEAR(static_cast<double>(across.at(Collective::all_reduce)),
                        static_cast<double>(reduced) / static_cast<double>(group), 100.0 * static_cast<double>(group));
            const Bytes state = step.program.templates[0].base_memory[static_cast<std::size_t>(MemoryCause::optimizer)];
            EXPECT_EQ(state, (12 * parameters + group - 1) / group);
        }
    }
}

// Parameters that stay whole are gathered once and reduced once a step, and cost the memory of both.
TEST_F(Parallelisms, KeptParametersAreGatheredOnceAStep) {
    for (const std::int64_t pp : {1, 2}) {
        Job job = job_of(test::toy_llama(), 1, 16 / pp);
        job.plan.layout.pp = pp;
        job.plan.layout.zero = 3;
        job.plan.global_batch = 4 * job.plan.layout.dp;
        const CompiledStep dropped = compiled(job);
        job.plan.reshard_after_forward = false;
        const CompiledStep kept = compiled(job);
        const std::int64_t parameters = stage_parameters(job.model, job.plan.layout, 0).total();
        EXPECT_EQ(traffic(dropped, Slot::parameter).at(Collective::all_gather), 2 * 4 * 2 * parameters);
        EXPECT_EQ(traffic(kept, Slot::parameter).at(Collective::all_gather), 2 * parameters);
        EXPECT_EQ(traffic(kept, Slot::gradient).at(Collective::reduce_scatter), parameters * job.gradient_bytes());
        EXPECT_GT(kept.stages[0].memory.total - dropped.stages[0].memory.total, parameters);
    }
}

TEST(ExpertGroups, CutEveryStageOnceInEachDimension) {
    for (const char* order : {"tp-cp-ep-dp-pp", "tp-cp-dp-ep-pp", "dp-tp-cp-ep-pp", "tp-pp-cp-ep-dp"}) {
        Layout l;
        l.tp = 2, l.cp = 2, l.dp = 4, l.pp = 2, l.ep = 4, l.etp = 2;
        l.order = order;
        const RankMap map(l);
        EXPECT_EQ(map.expert_data(), 2);
        for (const auto& [dimension, size] : {std::pair{'t', 2}, {'e', 4}, {'d', 2}}) {
            std::multiset<std::uint32_t> seen;
            for (std::uint32_t rank = 0; rank < map.world(); ++rank) {
                const std::vector<std::uint32_t> line = map.expert_line(rank, dimension);
                EXPECT_EQ(line.size(), static_cast<std::size_t>(size));
                EXPECT_NE(std::find(line.begin(), line.end(), rank), line.end()) << order;
                for (const std::uint32_t member : line)
                    EXPECT_EQ(map.at(member).pp, map.at(rank).pp);
                seen.insert(line.begin(), line.end());
            }
            for (std::uint32_t rank = 0; rank < map.world(); ++rank)
                EXPECT_EQ(seen.count(rank), static_cast<std::size_t>(size)) << order;
        }
    }
    // Tensor-parallel neighbours first, then the experts: ranks 0, 2, 4, 6 hold different experts.
    Layout l;
    l.tp = 2, l.dp = 8, l.ep = 4, l.etp = 2;
    EXPECT_EQ(RankMap(l).expert_line(0, 'e'), (std::vector<std::uint32_t>{0, 2, 4, 6}));
    EXPECT_EQ(RankMap(l).expert_line(0, 'd'), (std::vector<std::uint32_t>{0, 8}));
}

TEST(RecomputedShare, CountsLayersOfChunks) {
    const Architecture a = test::toy_llama();
    Layout l;
    l.pp = 2;
    EXPECT_EQ(recomputed_share(a, l, 0), 1);
    EXPECT_EQ(recomputed_share(a, l, 1), 0.25);
    EXPECT_EQ(recomputed_share(a, l, 9), 1);
    l.stage_layers = {2, 6};
    EXPECT_EQ(recomputed_share(a, l, 3), 5.0 / 8);
}

}  // namespace
}  // namespace fabricast
