// Compiled pipelines of every schedule and of uneven stages: what they compute, move and hold does not depend on the
// order it happens in.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "jobs.hpp"
#include "models/parallel/placement.hpp"

namespace fabricast {
namespace {

using program::OpKind;
using test::Job;

#ifdef NDEBUG
constexpr std::uint64_t kDraws = 300;
#else
constexpr std::uint64_t kDraws = 60;
#endif

class Pipeline : public ::testing::Test {
protected:
    template <typename Check>
    void for_each_job(Check check) {
        for (std::uint64_t n = 0; n < kDraws; ++n) {
            const Job job = test::draw_pipeline_job(n);
            SCOPED_TRACE(fmt::format("draw {}: {}", n, job.name()));
            std::string field;
            ASSERT_EQ(check_layout(job.model, job.plan, 16, field), "");
            check(job, machine_.compile(job.model, job.plan, job.software));
            if (HasFailure())
                return;
        }
    }
    /// Picoseconds of all kernels of one replica of the model outside the optimizer.
    static double work(const Job& job, const CompiledStep& step) {
        double sum = 0;
        for (std::int64_t s = 0; s < job.plan.layout.pp; ++s) {
            test::each_operation(step.program.templates[static_cast<std::size_t>(s)], [&](const program::Operation& op,
                                                                                          std::int64_t times) {
                if (op.kind == OpKind::compute && step.program.labels[op.label].phase != program::Phase::optimizer)
                    sum += static_cast<double>(times) * static_cast<double>(step.program.costs[op.payload].work);
            });
        }
        return sum;
    }
    const test::Machine machine_{2};
};

TEST_F(Pipeline, TheScheduleChangesNoWork) {
    for_each_job([&](const Job& job, const CompiledStep& step) {
        EXPECT_EQ(program::validate(step.program), "");
        Job plain = job;
        plain.plan.layout.schedule = Schedule::one_f_one_b;
        plain.plan.layout.vpp = 1;
        plain.plan.layout.stage_layers.clear();
        const CompiledStep reference = machine_.compile(plain.model, plain.plan, plain.software);
        // A tied matrix that is held twice is copied twice by sharded training.
        const bool copies = job.plan.layout.zero == 3 && job.model.tied_embeddings;
        EXPECT_NEAR(work(job, step) / work(plain, reference), 1, copies ? 1e-3 : 1e-6);
        EXPECT_EQ(step.model_flops, reference.model_flops);
    });
}

TEST_F(Pipeline, EveryLayerIsRunByItsStageOnly) {
    for_each_job([](const Job& job, const CompiledStep& step) {
        const Layout& l = job.plan.layout;
        std::vector<std::int64_t> owners(static_cast<std::size_t>(job.model.layers), 0);
        std::int64_t parameters = 0, first = 0;
        for (std::int64_t at = 0; at < virtual_stages(l); ++at) {
            EXPECT_EQ(first_layer_of(job.model, l, at), first);
            first += layers_of(job.model, l, at);
        }
        EXPECT_EQ(first, job.model.layers);
        std::set<std::int64_t> seen;
        for (std::int64_t s = 0; s < l.pp; ++s) {
            for (std::int64_t chunk = 0; chunk < chunks_held(l); ++chunk)
                seen.insert(virtual_stage(l.schedule, l.pp, s, chunk));
            parameters += step.stages[static_cast<std::size_t>(s)].parameters;
        }
        EXPECT_EQ(static_cast<std::int64_t>(seen.size()), virtual_stages(l));
        Layout whole = l;
        whole.pp = whole.vpp = 1;
        whole.schedule = Schedule::one_f_one_b;
        whole.stage_layers.clear();
        const StageParameters one = stage_parameters(job.model, whole, 0);
        const bool copied = job.model.tied_embeddings && parts_embedding_and_head(l);
        const std::int64_t copy = copied ? padded_vocab(job.model, l.tp) * job.model.hidden / l.tp : 0;
        EXPECT_EQ(parameters, copies_in_pipeline(l) * one.total() + copy);
    });
}

TEST_F(Pipeline, GradientsOfEveryCopyAreReducedToTheByte) {
    for_each_job([](const Job& job, const CompiledStep& step) {
        const Layout& l = job.plan.layout;
        for (std::int64_t s = 0; s < l.pp; ++s) {
            std::map<std::uint16_t, Bytes> moved;
            test::each_operation(step.program.templates[static_cast<std::size_t>(s)],
                                 [&](const program::Operation& op, std::int64_t times) {
                                     if (op.kind == OpKind::collective) {
                                         const program::Call& call = step.program.calls[op.payload];
                                         moved[call.slot] += times * call.bytes;
                                     }
                                 });
            const std::int64_t held = stage_parameters(job.model, l, s).total(), m = job.micro_batches();
            const bool often = l.zero >= 2 || job.plan.reduce_every == ReduceEvery::micro_batch;
            const Bytes reduced = held * job.gradient_bytes() * (often ? m : 1);
            EXPECT_EQ(moved[static_cast<std::uint16_t>(Slot::gradient)], replicas(l) > 1 ? reduced : 0);
            const Bytes gathered = 2 * held * (l.zero == 3 ? 2 * m : l.zero >= 1 ? 1 : 0);
            EXPECT_EQ(moved[static_cast<std::uint16_t>(Slot::parameter)], replicas(l) > 1 ? gathered : 0);
        }
        for (const program::Rank& rank : step.program.ranks) {
            const std::uint32_t group = rank.groups[static_cast<std::size_t>(Slot::gradient)];
            ASSERT_NE(group, program::kNone);
            EXPECT_EQ(static_cast<std::int64_t>(step.program.groups[group].members.size()), replicas(l));
        }
    });
}

TEST_F(Pipeline, EveryMessageHasTwoEnds) {
    for_each_job([](const Job& job, const CompiledStep& step) {
        const program::Program& p = step.program;
        // (source, destination, channel) -> messages sent, received; bytes
        std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::array<std::int64_t, 3>> flows;
        std::int64_t all = 0;
        for (std::uint32_t r = 0; r < p.ranks.size(); ++r) {
            test::each_operation(p.templates[p.ranks[r].tmpl], [&](const program::Operation& op, std::int64_t times) {
                if (op.kind != OpKind::p2p_batch)
                    return;
                for (const program::MessageHalf& half : p.batches[op.payload].halves) {
                    const program::Peer& peer = p.ranks[r].peers.at(half.peer_slot);
                    auto& flow =
                        half.is_send ? flows[{r, peer.rank, peer.channel}] : flows[{peer.rank, r, peer.channel}];
                    flow[half.is_send ? 0 : 1] += times;
                    flow[2] += (half.is_send ? 1 : -1) * times * half.bytes;
                    all += half.is_send ? times : 0;
                }
            });
        }
        for (const auto& [key, flow] : flows) {
            EXPECT_EQ(flow[0], flow[1]);
            EXPECT_EQ(flow[2], 0);
        }
        // every micro-batch passes every border between virtual stages twice; the turn of the V is no border
        const Layout& l = job.plan.layout;
        const std::int64_t borders = virtual_stages(l) - 1 - (l.schedule == Schedule::zb_v);
        EXPECT_EQ(all, 2 * borders * job.micro_batches() * l.tp * l.dp);
    });
}

TEST_F(Pipeline, EveryByteAllocatedInAStepIsFreedInIt) {
    for_each_job([](const Job& job, const CompiledStep& step) {
        for (std::int64_t s = 0; s < job.plan.layout.pp; ++s) {
            std::map<MemoryCause, Bytes> left;
            test::each_operation(step.program.templates[static_cast<std::size_t>(s)],
                                 [&](const program::Operation& op, std::int64_t times) {
                                     for (const program::MemoryChange& change : op.memory)
                                         left[change.cause] += times * change.bytes;
                                 });
            for (const auto& [cause, bytes] : left)
                EXPECT_EQ(bytes, 0) << memory_cause_name(cause) << " stage " << s;
        }
    });
}

// GPT, dropout, unfused attention: 34 s b h + core before the input gradients, 32 s b h before the weight gradients.
TEST(SplitMemory, HeldBetweenThePasses) {
    const test::Machine machine(1);
    Job job;
    job.model = test::toy_gpt();
    job.software = *find_software("megatron-2022");
    job.plan.sequence = 1000;
    job.plan.micro_batch = 2;
    job.plan.layout.pp = 4;
    const Bytes sbh = job.plan.sequence * job.plan.micro_batch * job.model.hidden;
    Shard shard;
    shard.sequence = job.plan.sequence;
    shard.micro_batch = job.plan.micro_batch;
    EXPECT_EQ(weight_gradient_bytes(job.model, shard, job.software), 32 * sbh);
    const auto peaks = [&](Schedule schedule, std::int64_t m) {
        job.plan.layout.schedule = schedule;
        job.plan.layout.vpp = schedule == Schedule::zb_v ? 2 : 1;
        job.plan.global_batch = m * job.plan.micro_batch;
        std::vector<Bytes> out;
        for (const StageSummary& s : stage_memory(job.model, job.plan, job.software, machine.compute()))
            out.push_back(s.memory.parts[static_cast<std::size_t>(MemoryCause::activations)]);
        return out;
    };
    const Bytes layer = layer_activation(job.model, shard, job.software, Recompute::none).kept;
    const std::vector<Bytes> plain = peaks(Schedule::one_f_one_b, 16), h1 = peaks(Schedule::zb_h1, 16),
                             h2 = peaks(Schedule::zb_h2, 16), v = peaks(Schedule::zb_v, 16),
                             dual = peaks(Schedule::dual_pipe, 16);
    const Bytes embedding = embedding_activation(job.model, shard, job.software);
    EXPECT_EQ(h1[0], plain[0]);
    EXPECT_EQ(h2[0], 7 * (2 * layer + embedding));
    for (std::size_t s = 1; s < 4; ++s) {
        // in flight: 4 - s micro-batches before, s before their weight gradients
        const auto ahead = static_cast<Bytes>(4 - s), behind = static_cast<Bytes>(s);
        EXPECT_EQ(h1[s], 2 * (ahead * layer + behind * 32 * sbh)) << s;
        EXPECT_EQ(h2[s], 2 * ((2 * ahead - 1) * layer + 2 * behind * 32 * sbh)) << s;
        EXPECT_LE(v[s], 8 * layer + 8 * embedding) << s;
        EXPECT_LE(dual[s], 2 * 5 * layer + 5 * embedding) << s;
    }
    EXPECT_LE(v[0], 8 * (layer + embedding));
}

}  // namespace
}  // namespace fabricast
