// What a compiled step moves, holds and computes, against closed forms, over drawn layouts.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "jobs.hpp"

namespace fabricast {
namespace {

using program::OpKind;
using test::Job;

#ifdef NDEBUG
constexpr std::uint64_t kDraws = 500;
#else
constexpr std::uint64_t kDraws = 80;
#endif

struct Traffic {
    std::int64_t calls = 0;
    Bytes bytes = 0;
};
/// What one rank of a stage calls in a step on a communicator slot, by collective.
std::map<Collective, Traffic> traffic(const program::Program& p, std::size_t stage, Slot slot) {
    std::map<Collective, Traffic> out;
    test::each_operation(p.templates[stage], [&](const program::Operation& op, std::int64_t times) {
        if (op.kind != OpKind::collective)
            return;
        const program::Call& call = p.calls[op.payload];
        if (call.slot != static_cast<std::uint16_t>(slot))
            return;
        Traffic& t = out[static_cast<Collective>(call.kind)];
        t.calls += times;
        t.bytes += times * call.bytes;
    });
    return out;
}
Traffic total(const std::map<Collective, Traffic>& all) {
    Traffic sum;
    for (const auto& [kind, t] : all) {
        sum.calls += t.calls;
        sum.bytes += t.bytes;
    }
    return sum;
}

class Compiled : public ::testing::Test {
protected:
    /// Compiles every drawn job and hands it with each of its stages to `check`.
    template <typename Check>
    void for_each_stage(Check check) {
        for (std::uint64_t n = 0; n < kDraws; ++n) {
            const Job job = test::draw_job(n);
            SCOPED_TRACE(fmt::format("draw {}: {}", n, job.name()));
            std::string field;
            ASSERT_EQ(check_layout(job.model, job.plan, 16, field), "");
            const CompiledStep step = machine_.compile(job.model, job.plan, job.software);
            for (std::int64_t s = 0; s < job.plan.layout.pp; ++s)
                check(job, step, s);
            if (HasFailure())
                return;
        }
    }
    const test::Machine machine_{2};
};

TEST_F(Compiled, ProgramsAreSoundAndEveryRankHasItsStage) {
    for_each_stage([](const Job& job, const CompiledStep& step, std::int64_t s) {
        const Layout& l = job.plan.layout;
        if (s == 0) {
            EXPECT_EQ(program::validate(step.program), "");
        }
        EXPECT_EQ(step.stages.size(), static_cast<std::size_t>(l.pp));
        EXPECT_EQ(std::count(step.stage_of_rank.begin(), step.stage_of_rank.end(), static_cast<int>(s)), l.tp * l.dp);
        EXPECT_EQ(step.stages[static_cast<std::size_t>(s)].in_flight,
                  most_in_flight(schedule_steps(l.schedule, s, l.pp, l.vpp, job.micro_batches(), false,
                                                job.software.forwards_first)));
    });
}

TEST_F(Compiled, ParametersOfAllStagesAreThoseOfTheModel) {
    for_each_stage([](const Job& job, const CompiledStep& step, std::int64_t s) {
        if (s != 0)
            return;
        const Layout& l = job.plan.layout;
        std::int64_t held = 0;
        for (const StageSummary& stage : step.stages)
            held += stage.parameters * l.tp;
        Architecture a = job.model;
        a.kv_heads = std::max(a.kv_heads, l.tp);  // heads that are fewer than ranks are held by several
        const ParameterCount count = count_parameters(a, padded_vocab(a, l.tp));
        const std::int64_t replicated = a.layers * count.norms + count.positions + count.final_norm;
        const std::int64_t copy = a.tied_embeddings && l.pp > 1 ? count.embedding : 0;
        EXPECT_EQ(held, count.total() + (l.tp - 1) * replicated + copy);
    });
}

TEST_F(Compiled, GradientsAreReducedToTheByte) {
    for_each_stage([](const Job& job, const CompiledStep& step, std::int64_t s) {
        const TrainingPlan& plan = job.plan;
        const Layout& l = plan.layout;
        const auto by_kind = traffic(step.program, static_cast<std::size_t>(s), Slot::gradient);
        const StageParameters parameters = stage_parameters(job.model, l, s);
        if (l.dp == 1) {
            EXPECT_EQ(total(by_kind).calls, 0);
            return;
        }
        const bool often = l.zero >= 2 || plan.reduce_every == ReduceEvery::micro_batch;
        const std::int64_t passes = often ? job.micro_batches() : 1;
        const Bytes once = parameters.total() * job.gradient_bytes();
        EXPECT_EQ(total(by_kind).bytes, once * passes);
        ASSERT_EQ(by_kind.size(), 1u);
        EXPECT_EQ(by_kind.begin()->first, l.zero == 0 ? Collective::all_reduce : Collective::reduce_scatter);

        // How many: a unit each when sharded; by cap or split otherwise, in each model chunk.
        const std::int64_t calls = total(by_kind).calls;
        const auto layers = static_cast<std::int64_t>(parameters.layers.size());
        const std::int64_t units = layers + (parameters.embedding > 0) + (parameters.head > 0);
        if (l.zero == 3) {
            EXPECT_EQ(calls, units * passes);
        } else if (!plan.bucket_split.empty()) {
            EXPECT_EQ(calls, static_cast<std::int64_t>(plan.bucket_split.size()) * l.vpp * passes);
        } else {
            const Bytes cap = plan.bucket_bytes > 0 ? plan.bucket_bytes : 40'000'000 * job.gradient_bytes();
            std::int64_t buckets = 0;
            for (std::int64_t chunk = 0; chunk < l.vpp; ++chunk) {
                const Bytes bytes = job.gradient_bytes() * (parameters.layers.front().dense * layers / l.vpp +
                                                            (chunk == 0 ? parameters.embedding : 0) +
                                                            (chunk == l.vpp - 1 ? parameters.head : 0));
                buckets += (bytes + cap - 1) / cap;
            }
            EXPECT_EQ(calls, buckets * passes);
        }
    });
}

TEST_F(Compiled, ParametersAreGatheredToTheByte) {
    for_each_stage([](const Job& job, const CompiledStep& step, std::int64_t s) {
        const Layout& l = job.plan.layout;
        const auto by_kind = traffic(step.program, static_cast<std::size_t>(s), Slot::parameter);
        const Bytes once = 2 * stage_parameters(job.model, l, s).total();
        const std::int64_t passes = l.zero == 3 ? 2 * job.micro_batches() : l.zero >= 1 ? 1 : 0;
        EXPECT_EQ(total(by_kind).bytes, l.dp > 1 ? passes * once : 0);
        EXPECT_TRUE(by_kind.empty() || (by_kind.size() == 1 && by_kind.begin()->first == Collective::all_gather));
    });
}

TEST_F(Compiled, NothingIsGatheredBeforeTheOptimizerWroteIt) {
    for_each_stage([](const Job&, const CompiledStep& step, std::int64_t s) {
        const program::Template& t = step.program.templates[static_cast<std::size_t>(s)];
        EXPECT_EQ(step.program.names[step.program.labels[t.operations[0].label].name], "optimizer");
        const auto first = std::find_if(t.operations.begin(), t.operations.end(), [&](const program::Operation& op) {
            return op.kind == OpKind::collective &&
                   step.program.calls[op.payload].slot == static_cast<std::uint16_t>(Slot::parameter);
        });
        if (first != t.operations.end()) {
            EXPECT_TRUE(first->stream == 0 || !first->waits.empty());
        }
    });
}

TEST_F(Compiled, TensorParallelTrafficOfEveryLayer) {
    for_each_stage([](const Job& job, const CompiledStep& step, std::int64_t s) {
        const Layout& l = job.plan.layout;
        auto by_kind = traffic(step.program, static_cast<std::size_t>(s), Slot::tp);
        if (l.tp == 1) {
            EXPECT_TRUE(by_kind.empty());
            return;
        }
        const std::int64_t m = job.micro_batches(), h = job.hidden_bytes();
        const std::int64_t layers = m * job.model.layers / l.pp;
        const bool first = s == 0, last = s == l.pp - 1;
        const std::int64_t again = job.plan.recompute == Recompute::full ? 2 : 0;  // a forward more
        const std::int64_t reduced =
            job.software.recompute_stops_early ? again / 2 : again;  // without its last reduction
        const Bytes loss = last ? 3 * m * job.plan.micro_batch * job.plan.sequence * 4 : 0;
        if (l.sequence_parallel) {
            // forward: gather before, scatter after attention and MLP; backward mirrored, and the input once more
            const std::int64_t ends = m * (first + last);  // one scatter at each end, mirrored by a gather
            EXPECT_EQ(by_kind[Collective::all_gather].bytes, h * (layers * (6 + again) + ends + last * m));
            EXPECT_EQ(by_kind[Collective::reduce_scatter].bytes, h * (layers * (4 + reduced) + ends));
            EXPECT_EQ(by_kind[Collective::all_reduce].bytes, loss);
        } else {
            EXPECT_EQ(by_kind[Collective::all_reduce].bytes, h * (layers * (4 + reduced) + m * (first + last)) + loss);
            EXPECT_EQ(by_kind[Collective::reduce_scatter].bytes, 0);
            // every message that came in 1/tp pieces is put together
            const std::int64_t messages = m * (2 * l.vpp - first - last);
            const bool cut = l.pp > 1 && job.software.p2p_scatter_gather;
            EXPECT_EQ(by_kind[Collective::all_gather].bytes, cut ? messages * h : 0);
        }
    });
}

TEST_F(Compiled, PipelineMessages) {
    for_each_stage([](const Job& job, const CompiledStep& step, std::int64_t s) {
        const Layout& l = job.plan.layout;
        const program::Program& p = step.program;
        std::map<std::pair<int, bool>, Traffic> half;
        test::each_operation(p.templates[static_cast<std::size_t>(s)],
                             [&](const program::Operation& op, std::int64_t times) {
                                 if (op.kind != OpKind::p2p_batch)
                                     return;
                                 for (const program::MessageHalf& m : p.batches[op.payload].halves) {
                                     Traffic& t = half[{m.peer_slot, m.is_send}];
                                     t.calls += times;
                                     t.bytes += times * m.bytes;
                                 }
                             });
        if (l.pp == 1) {
            EXPECT_TRUE(half.empty());
            return;
        }
        const bool cut = l.tp > 1 && (l.sequence_parallel || job.software.p2p_scatter_gather);
        const Bytes size = job.hidden_bytes() / (cut ? l.tp : 1);
        const std::int64_t m = job.micro_batches();
        const std::int64_t in = m * (l.vpp - (s == 0)), out = m * (l.vpp - (s == l.pp - 1));
        const auto expect = [&](PeerSlot slot, bool send, std::int64_t calls) {
            const Traffic t = half[{static_cast<int>(slot), send}];
            EXPECT_EQ(t.calls, calls);
            EXPECT_EQ(t.bytes, calls * size);
        };
        expect(PeerSlot::send_forward, true, out);
        expect(PeerSlot::receive_forward, false, in);
        expect(PeerSlot::send_backward, true, in);
        expect(PeerSlot::receive_backward, false, out);
        // a stage in the middle sends most: every output forward, every gradient back
        const bool middle = l.pp > 2;
        EXPECT_EQ(step.messages_per_rank, middle ? 2 * m * l.vpp : 2 * m * l.vpp - m);
    });
}

TEST_F(Compiled, TiedEmbeddingsAreReducedBetweenFirstAndLastStage) {
    for_each_stage([](const Job& job, const CompiledStep& step, std::int64_t s) {
        const Layout& l = job.plan.layout;
        const auto by_kind = traffic(step.program, static_cast<std::size_t>(s), Slot::embedding);
        const bool holds = job.model.tied_embeddings && l.pp > 1 && (s == 0 || s == l.pp - 1);
        const Bytes shard = padded_vocab(job.model, l.tp) * job.model.hidden / l.tp;
        EXPECT_EQ(total(by_kind).bytes, holds ? shard * job.gradient_bytes() : 0);
    });
}

TEST_F(Compiled, GradientNormJoinsAllWhoHoldADifferentPart) {
    for_each_stage([](const Job& job, const CompiledStep& step, std::int64_t s) {
        const Layout& l = job.plan.layout;
        const auto by_kind = traffic(step.program, static_cast<std::size_t>(s), Slot::norm);
        const std::size_t members = static_cast<std::size_t>(l.zero >= 1 ? l.world() : l.tp * l.pp);
        EXPECT_EQ(total(by_kind).calls, job.plan.clip_gradients && members > 1 ? 1 : 0);
        for (const program::Rank& rank : step.program.ranks) {
            const std::uint32_t group = rank.groups[static_cast<std::size_t>(Slot::norm)];
            EXPECT_EQ(step.program.groups[group].members.size(), members);
        }
    });
}

TEST_F(Compiled, EveryByteAllocatedInAStepIsFreedInIt) {
    for_each_stage([](const Job&, const CompiledStep& step, std::int64_t s) {
        std::map<MemoryCause, Bytes> left;
        test::each_operation(step.program.templates[static_cast<std::size_t>(s)],
                             [&](const program::Operation& op, std::int64_t times) {
                                 for (const program::MemoryChange& change : op.memory)
                                     left[change.cause] += times * change.bytes;
                             });
        for (const auto& [cause, bytes] : left)
            EXPECT_EQ(bytes, 0) << memory_cause_name(cause);
    });
}

TEST_F(Compiled, StateOfAParameterUnderEveryZeroStage) {
    // bf16 weight 2, gradient 4 (2 where it adds up or travels in 16 bit), fp32 copy and two moments 12; 18 in all, 6 + 12/dp with ZeRO-1
    for_each_stage([](const Job& job, const CompiledStep& step, std::int64_t s) {
        const Layout& l = job.plan.layout;
        const program::Template& t = step.program.templates[static_cast<std::size_t>(s)];
        const Bytes p = stage_parameters(job.model, l, s).total();
        const Bytes gradient = job.software.fp32_gradients && job.software.fp32_reduce ? 4 : 2;
        const auto held = [&](MemoryCause cause) { return t.base_memory[static_cast<std::size_t>(cause)]; };
        const auto shared = [&](Bytes bytes, int from) { return l.zero >= from ? (bytes + l.dp - 1) / l.dp : bytes; };
        EXPECT_EQ(held(MemoryCause::weights), shared(2 * p, 3));
        EXPECT_EQ(held(MemoryCause::gradients), shared(gradient * p, 2));
        EXPECT_EQ(held(MemoryCause::optimizer), shared(12 * p, 1));
        if (gradient == 4 && l.zero <= 1) {
            const double each = static_cast<double>(held(MemoryCause::weights) + held(MemoryCause::gradients) +
                                                    held(MemoryCause::optimizer)) /
                                static_cast<double>(p);
            EXPECT_NEAR(each, l.zero == 0 ? 18.0 : 6 + 12.0 / static_cast<double>(l.dp), 1e-5);
        }
    });
}

// Activations of the published table: dropout, unfused attention, f = 4 h.
class Memory : public ::testing::Test {
protected:
    Memory() {
        job_.model = test::toy_gpt();
        job_.software = *find_software("megatron-2022");
        job_.plan.sequence = 1000;
        job_.plan.micro_batch = 2;
    }
    std::vector<StageSummary> stages(std::int64_t tp, bool sp, std::int64_t pp, std::int64_t m, Recompute recompute) {
        TrainingPlan& plan = job_.plan;
        plan.layout.tp = tp;
        plan.layout.sequence_parallel = sp;
        plan.layout.pp = pp;
        plan.layout.dp = 1;
        plan.global_batch = m * plan.micro_batch;
        plan.recompute = recompute;
        return stage_memory(job_.model, plan, job_.software, machine_.compute());
    }
    static Bytes part(const StageSummary& s, MemoryCause cause) {
        return s.memory.parts[static_cast<std::size_t>(cause)];
    }
    static Bytes activations(const StageSummary& s) { return part(s, MemoryCause::activations); }

    // s b h of the table, and a s / h
    Bytes sbh() const { return job_.plan.sequence * job_.plan.micro_batch * job_.model.hidden; }
    double core() const {
        return 5.0 * static_cast<double>(job_.model.heads * job_.plan.sequence) /
               static_cast<double>(job_.model.hidden);
    }
    Bytes layer(double coefficient) const {
        return static_cast<Bytes>(std::llround(static_cast<double>(sbh()) * coefficient));
    }
    Bytes tokens() const { return job_.plan.sequence * job_.plan.micro_batch; }

    Job job_;
    const test::Machine machine_{1};
};

TEST_F(Memory, ActivationsOfOneStageAreThePublishedTable) {
    const Bytes embedding = 8 * tokens() + sbh();  // token ids, dropout mask
    const auto one = [&](std::int64_t tp, bool sp, Recompute r) { return activations(stages(tp, sp, 1, 1, r)[0]); };
    EXPECT_EQ(one(1, false, Recompute::none), 8 * layer(34 + core()) + embedding);
    EXPECT_EQ(one(1, false, Recompute::selective), 8 * layer(34) + embedding);
    EXPECT_EQ(one(1, false, Recompute::full), 8 * layer(2) + embedding);
    EXPECT_EQ(one(4, false, Recompute::none), 8 * layer(10 + 24 / 4.0 + core() / 4) + embedding);
    EXPECT_EQ(one(4, true, Recompute::none), 8 * layer((34 + core()) / 4) + 8 * tokens() + sbh() / 4);
    EXPECT_EQ(one(4, true, Recompute::selective), 8 * layer(34 / 4.0) + 8 * tokens() + sbh() / 4);
    EXPECT_EQ(one(4, true, Recompute::full), 8 * layer(2 / 4.0) + 8 * tokens() + sbh() / 4);
}

TEST_F(Memory, StagesHoldTheMicroBatchesInFlight) {
    job_.plan.layout.schedule = Schedule::one_f_one_b;
    const std::vector<StageSummary> four = stages(1, false, 4, 8, Recompute::none);
    for (std::int64_t s = 0; s < 4; ++s) {
        const Bytes embedding = s == 0 ? 8 * tokens() + sbh() : 0;
        EXPECT_EQ(activations(four[static_cast<std::size_t>(s)]), (4 - s) * (2 * layer(34 + core()) + embedding)) << s;
    }
    job_.plan.layout.schedule = Schedule::gpipe;
    EXPECT_EQ(activations(stages(1, false, 4, 8, Recompute::none)[1]), 8 * 2 * layer(34 + core()));
    job_.plan.layout.schedule = Schedule::interleaved;
    job_.plan.layout.vpp = 2;
    // p v (1 + (p - 1) / (p v)) = 11 chunks of one layer on stage 0; embeddings of chunk 0 come on top
    const Bytes first = activations(stages(1, false, 4, 8, Recompute::none)[0]);
    EXPECT_GE(first, 11 * layer(34 + core()));
    EXPECT_LE(first, 11 * (layer(34 + core()) + 8 * tokens() + sbh()));
}

TEST_F(Memory, OneLayerIsRecomputedAtATime) {
    for (const std::int64_t tp : {1, 4}) {
        const bool sp = tp > 1;
        const double t = static_cast<double>(tp);
        // temporary memory is the working set of one layer, and what the allocator wastes
        const auto working = [&](Recompute r) {
            const StageSummary s = stages(tp, sp, 1, 1, r)[0];
            Bytes tensors = 0;
            for (const MemoryCause c :
                 {MemoryCause::weights, MemoryCause::gradients, MemoryCause::optimizer, MemoryCause::activations,
                  MemoryCause::logits, MemoryCause::gathered_parameters})
                tensors += part(s, c);
            return static_cast<double>(part(s, MemoryCause::temporary)) - 0.038 * static_cast<double>(tensors);
        };
        const double most = static_cast<double>(layer((34 + core()) / t));
        EXPECT_NEAR(working(Recompute::none), 0, 2);
        EXPECT_LE(working(Recompute::selective), 1.038 * static_cast<double>(layer(core() / t)) + 2) << tp;
        EXPECT_LE(working(Recompute::full), 1.038 * most + 2) << tp;
    }
}

TEST_F(Memory, PrefetchHoldsOneUnitMore) {
    job_.software = *find_software("torch-fsdp");
    TrainingPlan& plan = job_.plan;
    plan.layout.dp = 8;
    plan.layout.zero = 3;
    plan.global_batch = 16;
    const auto held = [&](bool ahead) {
        plan.overlap_param_gather = ahead;
        return stage_memory(job_.model, plan, job_.software, machine_.compute())[0].memory;
    };
    const StageParameters p = stage_parameters(job_.model, plan.layout, 0);
    const Bytes more = held(true).total - held(false).total;
    EXPECT_GT(more, 0);
    EXPECT_LE(static_cast<double>(more),
              1.039 * 2 * static_cast<double>(std::max({p.layers.front().dense, p.embedding, p.head})));
}

TEST_F(Memory, RecomputingMoreHoldsLess) {
    for (const std::int64_t tp : {1, 2, 4, 8}) {
        for (const std::int64_t pp : {1, 2, 4}) {
            const auto held = [&](Recompute r) { return stages(tp, true, pp, 2 * pp, r)[0].memory.total; };
            const Bytes none = held(Recompute::none), selective = held(Recompute::selective),
                        full = held(Recompute::full);
            EXPECT_LT(full, selective) << tp << ' ' << pp;
            EXPECT_LT(selective, none) << tp << ' ' << pp;
        }
    }
}

TEST_F(Memory, TotalIsTheSumOfItsParts) {
    const StageSummary s = stages(2, true, 2, 4, Recompute::selective)[1];
    Bytes sum = 0;
    for (const Bytes bytes : s.memory.parts)
        sum += bytes;
    EXPECT_EQ(sum, s.memory.total);
    EXPECT_EQ(s.parameters, stage_parameters(job_.model, job_.plan.layout, 1).total());
}

TEST_F(Compiled, IdealProductsAreTheModelFlops) {
    // Without recomputation GEMMs at the dense peak take the model FLOPs less the attention cores.
    for_each_stage([&](const Job& job, const CompiledStep& step, std::int64_t s) {
        if (s != 0 || job.plan.recompute == Recompute::full || job.software.attention == "unfused")
            return;
        const Layout& l = job.plan.layout;
        if (l.tp > job.model.kv_heads)
            return;  // shared key-value heads are computed more than once
        double ideal_s = 0;
        for (std::int64_t stage = 0; stage < l.pp; ++stage) {
            test::each_operation(
                step.program.templates[static_cast<std::size_t>(stage)],
                [&](const program::Operation& op, std::int64_t times) {
                    if (op.kind == OpKind::compute)
                        ideal_s +=
                            static_cast<double>(times) *
                            seconds(
                                step.program.costs[op.payload].parts[static_cast<std::size_t>(Account::gemm_ideal)]);
                });
        }
        const double flops =
            ideal_s * machine_.compute().peak_flops(Precision::bf16) * static_cast<double>(l.tp * l.dp);
        const double attention = attention_flops(job.model, static_cast<double>(job.plan.global_batch),
                                                 static_cast<double>(job.plan.sequence));
        EXPECT_NEAR(flops / (step.model_flops - attention), 1, 1e-6);
    });
}

}  // namespace
}  // namespace fabricast
