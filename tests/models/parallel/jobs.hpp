// Small jobs for the tests of the compiler: two H100 nodes, toy models, layouts drawn by number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/parallel/compiler.hpp"
#include "topologies/graph/cluster_graph.hpp"

namespace fabricast::test {

/// Nodes of eight H100s, NVSwitch, eight adapters on one switch a rail.
class Machine {
public:
    explicit Machine(std::uint32_t nodes, std::uint32_t gpus_per_node = 8)
        : gpu_(*Catalogue::builtin().find_gpu("H100-SXM-80G")),
          cluster_(build(nodes, gpus_per_node)),
          compute_(gpu_, {}),
          comm_(cluster_, facts(), {}) {}
    Machine(const Machine&) = delete;

    const Cluster& cluster() const { return cluster_; }
    const ComputeModel& compute() const { return compute_; }
    CompiledStep compile(const Architecture& a, const TrainingPlan& plan, const SoftwareFeatures& software,
                         std::int64_t steps = 1) const {
        return compile_step(a, plan, software, cluster_, compute_, comm_, steps);
    }

private:
    static Cluster build(std::uint32_t nodes, std::uint32_t gpus) {
        ClusterBuilder builder;
        std::vector<ClusterBuilder::VertexId> leaves;
        const auto spine = builder.add_switch(VertexKind::spine, "spine");
        for (std::uint32_t rail = 0; rail < gpus; ++rail) {
            leaves.push_back(builder.add_switch(VertexKind::leaf, "leaf"));
            builder.add_cable(leaves.back(), spine, {.bytes_per_s = nodes * 46e9});
        }
        for (std::uint32_t n = 0; n < nodes; ++n) {
            const NodeId id{n};
            const auto nvswitch = builder.add_in_node(VertexKind::nvswitch, id);
            const auto host = builder.add_in_node(VertexKind::host, id);
            for (std::uint32_t g = 0; g < gpus; ++g) {
                const auto gpu = builder.add_gpu(id);
                builder.add_cable(gpu, nvswitch, {.bytes_per_s = 367e9});
                builder.add_cable(gpu, host, {.bytes_per_s = 51.5e9});
            }
            for (std::uint32_t rail = 0; rail < gpus; ++rail) {
                const auto nic = builder.add_nic(id);
                builder.attach(host, nic);
                builder.add_cable(nic, leaves[rail], {.bytes_per_s = 46e9});
            }
        }
        return std::move(builder).freeze();
    }
    CommFacts facts() const {
        CommFacts f;
        f.nvls = true;
        f.nvlink_nccl_bytes_per_s = gpu_.nvlink_nccl_bytes_per_s;
        f.nic_line_bytes_per_s = 50e9;
        return f;
    }

    GpuSpec gpu_;
    Cluster cluster_;
    ComputeModel compute_;
    CommModel comm_;
};

struct Job {
    Architecture model;
    TrainingPlan plan;
    SoftwareFeatures software;

    std::int64_t micro_batches() const { return plan.micro_batches(); }
    std::int64_t gradient_bytes() const { return software.fp32_reduce ? 4 : 2; }
    /// Bytes of the hidden states of a micro-batch in 16 bit.
    std::int64_t hidden_bytes() const { return plan.micro_batch * plan.sequence * model.hidden * 2; }
    bool p2p_overlap() const { return software.p2p_overlap && plan.layout.schedule == Schedule::interleaved; }
    std::string name() const {
        const Layout& l = plan.layout;
        return fmt::format(
            "{} tp {} sp {} pp {} vpp {} [{}] dp {} zero {} schedule {} order {} m {} recompute {} overlap {}{} every "
            "{} "
            "buckets {}/{} clip {}; {} hidden {} tp overlap {} p2p overlap {} scatter {} reduce fp32 {}",
            model.name, l.tp, l.sequence_parallel, l.pp, l.vpp, fmt::join(l.stage_layers, ","), l.dp, l.zero,
            static_cast<int>(l.schedule), l.order, micro_batches(), static_cast<int>(plan.recompute),
            plan.overlap_grad_reduce, plan.overlap_param_gather,
            plan.reduce_every == ReduceEvery::step ? "step" : "micro-batch", plan.bucket_bytes,
            plan.bucket_split.size(), plan.clip_gradients, software.name, software.tp_hidden_fraction,
            software.tp_backward_overlap, software.p2p_overlap, software.p2p_scatter_gather, software.fp32_reduce);
    }
};

/// 8 layers, tied head, LayerNorm with biases, learned positions.
inline Architecture toy_gpt() {
    Architecture a = *find_architecture("gpt2");
    a.name = "toy gpt";
    a.layers = 8;
    a.hidden = 512;
    a.heads = a.kv_heads = 8;
    a.head_dim = 64;
    a.ffn = 2048;
    a.vocab = 3000;
    return a;
}
/// 8 layers, gated MLP, two key-value heads, head of its own.
inline Architecture toy_llama() {
    Architecture a = *find_architecture("llama-7b");
    a.name = "toy llama";
    a.layers = 8;
    a.hidden = 512;
    a.heads = 8;
    a.kv_heads = 2;
    a.head_dim = 64;
    a.ffn = 1536;
    a.vocab = 3000;
    return a;
}

/// Numbers that depend on (seed, draw) only.
class Draw {
public:
    explicit Draw(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u) {}
    std::uint64_t bits() {
        std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }
    bool flag() { return (bits() & 1) != 0; }
    template <typename T>
    T of(std::initializer_list<T> choices) {
        return choices.begin()[bits() % choices.size()];
    }

private:
    std::uint64_t state_;
};

/// Job number n on 16 GPUs; sequence 1000 keeps shares of messages whole.
inline Job draw_job(std::uint64_t n) {
    Draw draw(n);
    Job job;
    job.model = draw.flag() ? toy_gpt() : toy_llama();
    TrainingPlan& plan = job.plan;
    Layout& l = plan.layout;
    l.tp = draw.of<std::int64_t>({1, 2, 4, 8});
    l.sequence_parallel = draw.flag();
    l.pp = draw.of<std::int64_t>({1, 2, 4});
    if (l.tp * l.pp > 16)
        l.pp = 2;
    l.dp = 16 / (l.tp * l.pp);
    l.zero = draw.of({0, 1, 2, 3});
    l.schedule = draw.of({Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved});
    if (l.pp == 1 && l.schedule == Schedule::interleaved)
        l.schedule = Schedule::one_f_one_b;
    if (l.schedule == Schedule::interleaved)
        l.vpp = 2;
    l.order = draw.of({"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "dp-tp-cp-ep-pp"});
    plan.sequence = 1000;
    plan.micro_batch = draw.of<std::int64_t>({1, 2});
    plan.global_batch = plan.micro_batch * l.dp * l.pp * draw.of<std::int64_t>({1, 2, 3});
    plan.recompute = draw.of({Recompute::none, Recompute::selective, Recompute::full});
    plan.overlap_grad_reduce = draw.flag();
    plan.overlap_param_gather = draw.flag();
    plan.reduce_every = draw.of({ReduceEvery::step, ReduceEvery::micro_batch});
    switch (draw.of({0, 1, 2})) {
        case 1: plan.bucket_bytes = draw.of<std::int64_t>({1'000'000, 3'333'333, 40'000'000}); break;
        case 2: plan.bucket_split = {2, 4, 6}; break;
        default: break;
    }
    plan.clip_gradients = draw.of({true, true, false});
    job.software = *find_software(draw.of({"megatron-2022", "megatron-core-2024", "torch-fsdp"}));
    job.software.attention = job.software.attention == "auto" ? "cudnn" : job.software.attention;
    job.software.tp_hidden_fraction = draw.of({0.0, 0.6});
    job.software.tp_backward_overlap = draw.flag();
    job.software.p2p_overlap = draw.flag();
    job.software.p2p_scatter_gather = draw.flag();
    job.software.fp32_reduce = draw.flag();
    return job;
}

/// Job number n on 16 GPUs with a pipeline of any schedule, half of them of uneven stages (the first and the last chunk
/// give a layer to their neighbours, the last they have where chunks hold one).
inline Job draw_pipeline_job(std::uint64_t n) {
    Job job = draw_job(n);
    Draw draw(n + 1'000'000);
    TrainingPlan& plan = job.plan;
    Layout& l = plan.layout;
    l.pp = draw.of<std::int64_t>({2, 4});
    l.tp = draw.of<std::int64_t>({1, 2, 4});
    l.dp = 16 / (l.tp * l.pp);
    l.schedule = draw.of({Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved, Schedule::zb_h1,
                          Schedule::zb_h2, Schedule::zb_v, Schedule::dual_pipe});
    l.vpp = l.schedule == Schedule::interleaved || l.schedule == Schedule::zb_v ? 2 : 1;
    if (l.schedule == Schedule::dual_pipe) {
        l.zero = std::min(l.zero, 1);
        plan.reduce_every = ReduceEvery::step;
    }
    plan.global_batch = plan.micro_batch * l.dp * l.pp * draw.of<std::int64_t>({2, 3, 5});
    const std::int64_t chunks = l.pp * l.vpp;
    if (chunks > 2 && draw.flag()) {
        l.stage_layers.assign(static_cast<std::size_t>(chunks), job.model.layers / chunks);
        --l.stage_layers.front();
        ++l.stage_layers[1];
        --l.stage_layers.back();
        ++l.stage_layers[static_cast<std::size_t>(chunks) - 2];
    }
    return job;
}

/// Visits the operations of one step of a template with how often they run.
inline void each_operation(const program::Template& t,
                           const std::function<void(const program::Operation&, std::int64_t)>& visit) {
    const auto walk = [&](const auto& self, std::uint32_t begin, std::uint32_t end, std::int64_t times) -> void {
        for (std::uint32_t n = begin; n < end;) {
            const program::Node& node = t.nodes[n];
            if (node.kind == program::Node::Kind::operation) {
                visit(t.operations[node.operation], times);
                ++n;
            } else {
                self(self, n + 1, node.end, node.kind == program::Node::Kind::repeat ? times * node.count : times);
                n = node.end;
            }
        }
    };
    walk(walk, 1, t.nodes[0].end, 1);  // the outermost repeat is the step
}

}  // namespace fabricast::test
