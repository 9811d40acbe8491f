// Megatron-LM's arguments, names of Megatron-Core 0.9 and later.
#include <algorithm>

#include <fmt/format.h>

#include "sim/export/launch.hpp"
#include "sim/export/notes.hpp"

namespace fabricast::launch {
namespace {

class Arguments {
public:
    void flag(std::string_view name) { lines_ += fmt::format("    --{}\n", name); }
    template <typename T>
    void value(std::string_view name, const T& value) {
        lines_ += fmt::format("    --{} {}\n", name, value);
    }
    void flag_if(bool on, std::string_view name) {
        if (on)
            flag(name);
    }
    std::string block(std::string_view name) const { return fmt::format("{}=(\n{})\n", name, lines_); }

private:
    std::string lines_;
};

class Megatron {
public:
    Megatron(const Scenario& scenario, const TrainingPlan& plan) : s_(scenario), p_(plan), l_(plan.layout) {}

    Launch write() {
        model();
        layout();
        training();
        Launch out;
        std::string& text = out.text;
        text = "#!/bin/bash\n";
        text += fmt::format("# {} on {} x {}: {}.\n", s_.model.name, s_.nodes, s_.node.name, follows(p_));
        text +=
            "# Data, tokenizer, learning rate and checkpoints are given to this script; they go to the program as they "
            "are.\n";
        text += notes_.comments();
        text += "\n" + model_.block("MODEL_ARGS") + layout_.block("LAYOUT_ARGS") + training_.block("TRAINING_ARGS");
        text += fmt::format(
            "torchrun --nnodes {} --nproc-per-node {} pretrain_gpt.py \\\n"
            "    \"${{MODEL_ARGS[@]}}\" \"${{LAYOUT_ARGS[@]}}\" \"${{TRAINING_ARGS[@]}}\" \"$@\"\n",
            s_.nodes, s_.node.gpus);
        out.notes = notes_.take();
        return out;
    }

private:
    void model() {
        const Architecture& a = s_.model;
        model_.value("num-layers", a.layers);
        model_.value("hidden-size", a.hidden);
        model_.value("ffn-hidden-size", a.ffn);
        model_.value("num-attention-heads", a.heads);
        attention(a);
        model_.value("normalization", a.rms_norm ? "RMSNorm" : "LayerNorm");
        model_.flag_if(a.gated, "swiglu");
        model_.flag_if(!a.biases, "disable-bias-linear");
        model_.flag_if(a.qkv_bias && !a.biases, "add-qkv-bias");
        model_.flag_if(!a.tied_embeddings, "untie-embeddings-and-output-weights");
        if (a.alibi)
            notes_.add("linear biases on the scores (ALiBi), which Megatron-LM has not");
        else
            model_.value("position-embedding-type", a.rotary ? "rope" : "learned_absolute");
        model_.value("max-position-embeddings", a.max_positions > 0 ? a.max_positions : p_.sequence);
        model_.value("vocab-size", a.vocab);
        model_.value("make-vocab-size-divisible-by", a.vocab_multiple);
        experts(a);
        if (a.mtp_layers > 0)
            model_.value("mtp-num-layers", a.mtp_layers);
        notes_.add_if(a.parallel_block, "attention and MLP that read the same input");
        notes_.add_if(a.post_norms, "norms behind attention and MLP");
        notes_.add_if(a.projection_bias && !a.biases, "a bias of the attention output alone");
        notes_.add_if(a.attention_sinks, "learned attention sinks");
    }

    void attention(const Architecture& a) {
        if (a.attention == AttentionKind::latent) {
            model_.flag("multi-latent-attention");
            if (a.query_rank > 0)
                model_.value("q-lora-rank", a.query_rank);
            model_.value("kv-lora-rank", a.key_value_rank);
            model_.value("qk-head-dim", a.head_dim - a.rope_dim);
            model_.value("qk-pos-emb-head-dim", a.rope_dim);
            model_.value("v-head-dim", a.value_dim);
            return;
        }
        if (a.kv_heads != a.heads) {
            model_.flag("group-query-attention");
            model_.value("num-query-groups", a.kv_heads);
        }
        if (a.head_dim * a.heads != a.hidden)
            model_.value("kv-channels", a.head_dim);
        model_.flag_if(a.qk_norm, "qk-layernorm");
        if (a.window > 0) {
            model_.value("window-size", fmt::format("{},0", a.window));
            if (a.full_every > 0)
                model_.value("window-attn-skip-freq", a.full_every);
        }
    }

    void experts(const Architecture& a) {
        const Moe& m = a.moe;
        if (m.experts == 0)
            return;
        model_.value("num-experts", m.experts);
        model_.value("moe-router-topk", m.top_k);
        model_.value("moe-ffn-hidden-size", m.ffn);
        if (m.shared_ffn > 0)
            model_.value("moe-shared-expert-intermediate-size", m.shared_ffn);
        model_.flag_if(m.shared_gate, "moe-shared-expert-gate");
        model_.flag_if(m.score_bias, "moe-router-enable-expert-bias");
        if (m.first_dense > 0)
            model_.value("moe-layer-freq", fmt::format("'([0]*{}+[1]*{})'", m.first_dense, a.layers - m.first_dense));
        else if (m.every > 1)
            model_.value("moe-layer-freq", m.every);
        notes_.add_if(m.every > 1, "experts in the last layer of every group: Megatron-LM puts them in the first");
        notes_.add_if(m.router_bias || m.expert_bias, "biases of the router or of experts");
    }

    void layout() {
        layout_.value("tensor-model-parallel-size", l_.tp);
        layout_.value("pipeline-model-parallel-size", l_.pp);
        layout_.value("context-parallel-size", l_.cp);
        layout_.flag_if(l_.sequence_parallel, "sequence-parallel");
        if (s_.model.moe.experts > 0) {
            layout_.value("expert-model-parallel-size", l_.ep);
            if (l_.etp > 0)
                layout_.value("expert-tensor-parallel-size", l_.etp);
            layout_.value("moe-token-dispatcher-type", p_.dispatch == ExpertDispatch::all_gather   ? "allgather"
                                                       : p_.dispatch == ExpertDispatch::node_aware ? "flex"
                                                                                                   : "alltoall");
            layout_.flag_if(p_.dispatch == ExpertDispatch::node_aware, "moe-enable-deepep");
            if (p_.capacity_factor > 0)
                layout_.value("moe-expert-capacity-factor", p_.capacity_factor);
        }
        if (l_.cp > 1)
            layout_.value("cp-comm-type", p_.context == ContextExchange::ring         ? "p2p"
                                          : p_.context == ContextExchange::all_gather ? "all_gather"
                                                                                      : "a2a");
        pipeline();
        sharding();
        if (l_.order == "tp-cp-ep-pp-dp")
            layout_.flag("use-tp-pp-dp-mapping");
        else
            notes_.order(l_);
    }

    void pipeline() {
        if (!l_.stage_layers.empty()) {
            std::string stages;
            for (const std::int64_t layers : l_.stage_layers)
                stages += fmt::format("{}t*{}", stages.empty() ? "E" : "|", layers);
            layout_.value(
                "pipeline-model-parallel-layout",
                fmt::format("'{}{}L'", stages, std::string(static_cast<std::size_t>(s_.model.mtp_layers), 'm')));
        } else if (l_.vpp > 1) {
            layout_.value("num-virtual-stages-per-pipeline-rank", l_.vpp);
        }
        const Schedule own = l_.vpp > 1 ? Schedule::interleaved : Schedule::one_f_one_b;
        if (l_.pp > 1 && l_.schedule != own)
            notes_.add(
                fmt::format("the schedule {}; Megatron-LM runs {}", schedule_name(l_.schedule), schedule_name(own)));
    }

    void sharding() {
        if (l_.zero == 1) {
            layout_.flag("use-distributed-optimizer");
        } else if (l_.zero >= 2) {
            layout_.flag("use-distributed-optimizer");
            layout_.flag("use-megatron-fsdp");
            layout_.value("data-parallel-sharding-strategy", l_.zero == 2 ? "optim_grads" : "optim_grads_params");
            layout_.value("ckpt-format", "fsdp_dtensor");
            layout_.flag("no-gradient-accumulation-fusion");
        }
        if (l_.zero > 0 && l_.shard_group > 0 && l_.shard_group < l_.dp)
            notes_.add(fmt::format("sharding in groups of {} ranks: see --num-distributed-optimizer-instances",
                                   l_.shard_group));
        layout_.flag_if(p_.overlap_grad_reduce, "overlap-grad-reduce");
        // Its arguments are refused otherwise: gathers beside compute ask for reductions beside it.
        layout_.flag_if(p_.overlap_param_gather && p_.overlap_grad_reduce && l_.zero > 0, "overlap-param-gather");
        notes_.add_if(p_.overlap_param_gather && !p_.overlap_grad_reduce && l_.zero > 0,
                      "parameters gathered beside compute while gradients wait for it: --overlap-param-gather is taken "
                      "with --overlap-grad-reduce only");
        notes_.add_if(l_.zero == 3 && !p_.reshard_after_forward,
                      "parameters kept gathered between forward and backward");
    }

    void training() {
        training_.value("seq-length", p_.sequence);
        training_.value("micro-batch-size", p_.micro_batch);
        training_.value("global-batch-size", p_.global_batch);
        if (s_.tokens > 0)
            training_.value("train-samples", static_cast<std::int64_t>(s_.tokens / static_cast<double>(p_.sequence)));
        switch (p_.precision) {
            case Precision::fp8:
                training_.flag("bf16");
                training_.value("fp8-format", "hybrid");
                break;
            case Precision::bf16: training_.flag("bf16"); break;
            case Precision::fp16: training_.flag("fp16"); break;
            default: break;
        }
        if (p_.recompute == Recompute::selective) {
            training_.value("recompute-granularity", "selective");
        } else if (p_.recompute == Recompute::full) {
            training_.value("recompute-granularity", "full");
            training_.value("recompute-method", p_.recompute_layers > 0 ? "block" : "uniform");
            training_.value("recompute-num-layers", std::max<std::int64_t>(1, p_.recompute_layers));
        }
        optimizer();
        if (!p_.clip_gradients)
            training_.value("clip-grad", "0.0");
        notes_.compression(p_.compression);
    }

    void optimizer() {
        const Optimizer& o = p_.optimizer;
        if (o.kind == OptimizerKind::sgd || o.kind == OptimizerKind::sgd_momentum) {
            training_.value("optimizer", "sgd");
            if (o.kind == OptimizerKind::sgd)
                training_.value("sgd-momentum", 0);
        } else if (o.kind != OptimizerKind::adam) {
            notes_.add(fmt::format("the optimizer {}", optimizer_name(o.kind)));
        } else if (o != Optimizer()) {
            training_.flag("use-precision-aware-optimizer");
            training_.value("exp-avg-dtype", state_type_name(o.first));
            training_.value("exp-avg-sq-dtype", state_type_name(o.second));
            if (o.master == StateType::none)
                notes_.add("no master copy of the weights");
            else
                training_.value("main-params-dtype", state_type_name(o.master));
        }
        if (p_.offload.active())
            offload();
    }

    void offload() {
        training_.flag("optimizer-cpu-offload");
        training_.value("optimizer-offload-fraction", p_.offload.optimizer);
        training_.flag_if(p_.offload.overlap, "overlap-cpu-optimizer-d2h-h2d");
        notes_.add_if(p_.offload.parameters, "weights that rest in host memory");
    }

    const Scenario& s_;
    const TrainingPlan& p_;
    const Layout& l_;
    Arguments model_, layout_, training_;
    Notes notes_;
};

}  // namespace

Launch megatron_launch(const Scenario& scenario, const TrainingPlan& plan) { return Megatron(scenario, plan).write(); }

}  // namespace fabricast::launch
