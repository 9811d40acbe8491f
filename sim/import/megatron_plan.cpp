#include "sim/import/megatron_plan.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/import/methods.hpp"
#include "sim/import/tree.hpp"

namespace fabricast::import {
namespace {

void precision(Flags& f, Plan& p) {
    if (f.has("fp8-format") || f.flag("fp8-hybrid") || f.flag("fp8-e4m3"))
        p.precision = "fp8";
    else if (f.flag("bf16"))
        p.precision = "bf16";
    else if (f.flag("fp16"))
        p.precision = "fp16";
    else if (!p.flags_open)
        p.precision = "fp32";
    f.flag("bf16");
    f.flag("fp16");
}

void recomputation(Flags& f, Plan& p) {
    const std::string granularity = f.text("recompute-granularity").value_or("");
    const bool old = f.flag("checkpoint-activations") || f.has("activations-checkpoint-method") ||
                     f.flag("deepspeed-activation-checkpointing");
    if (f.flag("recompute-activations") || granularity == "selective")
        p.recompute = "selective";
    else
        p.recompute = granularity == "full" || old ? "full" : "none";
    if (old)
        p.tell("the old name of activation checkpointing is used; it meant full recomputation");
    const auto method = f.text("recompute-method");
    const auto layers = f.integer("recompute-num-layers");
    if (method && *method == "block" && layers)
        p.recompute_layers = layers;
    else if (layers && *layers > 1)
        p.tell(fmt::format("full recomputation keeps the input of every {} layers; here the input of each is kept",
                           *layers));
    if (const auto modules = f.text("recompute-modules"))
        p.tell(fmt::format("recompute-modules {}: counted as the attention core", *modules));
}

/// "1", "2", "([0]*3+[1]*58)": which layers have experts.
void expert_layers(Architecture& a, const std::string& text, Plan& p) {
    if (const auto every = whole_number(text)) {
        a.moe.every = std::max<std::int64_t>(1, *every);
        if (a.moe.every > 1)
            p.tell("moe-layer-freq puts experts in the first of every group of layers, a scenario in the last");
        return;
    }
    std::int64_t zeros = 0, ones = 0;
    for (std::size_t at = 0; (at = text.find('[', at)) != std::string::npos; ++at) {
        const std::size_t close = text.find(']', at);
        if (close == std::string::npos)
            break;
        std::int64_t times = 1;
        if (close + 1 < text.size() && text[close + 1] == '*') {
            std::size_t end = close + 2;
            while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])))
                ++end;
            times = whole_number(text.substr(close + 2, end - close - 2)).value_or(1);
        }
        for (const char c : text.substr(at + 1, close - at - 1)) {
            zeros += c == '0' && ones == 0 ? times : 0;
            ones += c == '1' ? times : 0;
            if (c == '0' && ones > 0)
                return p.tell(
                    fmt::format("moe-layer-freq {} has dense layers behind the first experts: that pattern cannot "
                                "be said",
                                text));
        }
    }
    a.moe.first_dense = zeros;
}

void attention(Flags& f, Architecture& a, Plan& p) {
    a.kv_heads = a.heads;
    const auto groups = f.integer("num-query-groups");
    if (f.flag("group-query-attention"))
        a.kv_heads = groups.value_or(1);
    else if (groups && *groups != a.heads && *groups > 1)
        p.tell(fmt::format("num-query-groups {} has no effect without group-query-attention", *groups));
    a.head_dim = f.integer("kv-channels").value_or(a.heads > 0 ? a.hidden / a.heads : 0);
    a.qk_norm = f.flag("qk-layernorm");
    if (f.flag("multi-latent-attention")) {
        a.attention = AttentionKind::latent;
        a.kv_heads = a.heads;
        a.qk_norm = false;  // there it means the norms of the compressed vectors
        a.query_rank = f.integer("q-lora-rank").value_or(0);
        a.key_value_rank = f.integer("kv-lora-rank").value_or(32);
        a.rope_dim = f.integer("qk-pos-emb-head-dim").value_or(64);
        a.head_dim = f.integer("qk-head-dim").value_or(128) + a.rope_dim;
        a.value_dim = f.integer("v-head-dim").value_or(128);
    }
    if (const auto window = f.text("window-size")) {
        std::string digits;
        for (const char c : *window)
            if (std::isdigit(static_cast<unsigned char>(c)))
                digits += c;
            else if (!digits.empty())
                break;
        a.window = whole_number(digits).value_or(0);
        a.full_every = f.integer("window-attn-skip-freq").value_or(0);
    }
}

void model(Flags& f, Plan& p) {
    Architecture a;
    std::vector<std::string> absent;
    const auto need = [&](const char* flag, const char* ours, std::int64_t& value) {
        const auto given = f.integer(flag);
        value = given.value_or(0);
        if (!given)
            absent.emplace_back(ours);
    };
    a.name = p.name;
    need("num-layers", "layers", a.layers);
    need("hidden-size", "hidden", a.hidden);
    need("num-attention-heads", "heads", a.heads);
    if (absent.size() == 3)
        return;
    a.gated = f.flag("swiglu") || f.flag("gated-linear-unit");
    const std::int64_t usual = a.gated ? a.hidden * 8 / 3 / 64 * 64 : 4 * a.hidden;
    a.ffn = f.integer("ffn-hidden-size").value_or(usual);
    attention(f, a, p);
    a.rms_norm = f.text("normalization").value_or("LayerNorm") == "RMSNorm";
    a.biases = !(f.flag("disable-bias-linear") || (f.has("add-bias-linear") && !f.flag("add-bias-linear")));
    a.qkv_bias = f.flag("add-qkv-bias");
    a.tied_embeddings = !f.flag("untie-embeddings-and-output-weights");
    const std::string positions = f.text("position-embedding-type").value_or("learned_absolute");
    a.rotary = positions == "rope" || positions == "yarn" || f.flag("use-rotary-position-embeddings");
    a.alibi = positions == "alibi";
    const bool none = f.flag("no-position-embedding") || positions == "none";
    const auto longest = f.integer("max-position-embeddings");
    a.max_positions = a.rotary || a.alibi || none ? 0 : longest.value_or(0);
    a.vocab_multiple = f.integer("make-vocab-size-divisible-by").value_or(128);
    const auto vocab = f.integer("vocab-size"), padded = f.integer("padded-vocab-size");
    a.vocab = vocab ? *vocab : padded.value_or(0);
    if (!vocab && padded)
        p.tell(fmt::format("the vocabulary is taken from its padded size, {}", *padded));
    if (a.vocab == 0) {
        absent.emplace_back("vocab");
        p.tell("the vocabulary comes from the tokenizer's files; say it as model.vocab");
    }
    a.moe.experts = f.integer("num-experts").value_or(0);
    if (a.moe.experts > 0) {
        a.moe.top_k = f.integer("moe-router-topk").value_or(2);
        a.moe.ffn = f.integer("moe-ffn-hidden-size").value_or(a.ffn);
        a.moe.shared_ffn = f.integer("moe-shared-expert-intermediate-size").value_or(0);
        a.moe.shared_gate = f.flag("moe-shared-expert-gate");
        a.moe.score_bias = f.flag("moe-router-enable-expert-bias");
        if (const auto pattern = f.text("moe-layer-freq"))
            expert_layers(a, *pattern, p);
    }
    a.mtp_layers = f.integer("mtp-num-layers").value_or(0);
    take_partial_model(p, a, absent);
}

void layout(Flags& f, Plan& p) {
    const auto degree = [&](const char* flag, const char* ours, std::optional<std::int64_t>& value) {
        value = f.integer(flag);
        if (!value && (f.has(flag) || p.flags_open)) {
            p.layout_open = true;
            p.miss(fmt::format("training.layout.{}", ours));
        } else if (!value) {
            value = 1;
        }
    };
    degree("tensor-model-parallel-size", "tp", p.tp);
    degree("pipeline-model-parallel-size", "pp", p.pp);
    p.cp = f.integer("context-parallel-size").value_or(1);
    const std::int64_t pp = p.pp.value_or(1);
    p.ep = f.integer("expert-model-parallel-size");
    p.etp = f.integer("expert-tensor-parallel-size");
    p.sp = f.flag("sequence-parallel");
    const auto layers = f.integer("num-layers"), of_stage = f.integer("num-layers-per-virtual-pipeline-stage");
    if (const auto stages = f.integer("num-virtual-stages-per-pipeline-rank")) {
        p.vpp = stages;
    } else if (of_stage && layers && *of_stage > 0) {
        const std::int64_t per_rank = *layers / pp;
        if (*layers % pp != 0 || per_rank % *of_stage != 0)
            p.tell(fmt::format("CONTRADICTION: {} layers / pp {} are not divisible by {} a virtual stage", *layers,
                               *p.pp, *of_stage));
        else
            p.vpp = per_rank / *of_stage;
    }
    if (const auto pattern = f.text("pipeline-model-parallel-layout")) {
        p.stage_layers = pipeline_layout(*pattern);
        const auto chunks = static_cast<std::int64_t>(p.stage_layers.size());
        if (chunks == 0 || chunks % pp != 0) {
            p.tell(fmt::format("pipeline layout `{}` could not be read as a multiple of pp {} stages", *pattern, pp));
            p.stage_layers.clear();
        } else if (chunks > pp) {
            p.vpp = chunks / pp;
        }
    }
    if (f.has("decoder-first-pipeline-num-layers") || f.has("decoder-last-pipeline-num-layers")) {
        const auto first = f.integer("decoder-first-pipeline-num-layers"),
                   last = f.integer("decoder-last-pipeline-num-layers");
        const std::int64_t ends = (first ? 1 : 0) + (last ? 1 : 0), between = pp - ends;
        const std::int64_t rest = layers.value_or(0) - first.value_or(0) - last.value_or(0);
        if (layers && between > 0 && rest % between == 0 && p.vpp.value_or(1) == 1) {
            p.stage_layers.assign(static_cast<std::size_t>(pp), rest / between);
            if (first)
                p.stage_layers.front() = *first;
            if (last)
                p.stage_layers.back() = *last;
        } else {
            p.tell("first and last pipeline stage have their own number of layers: set training.layout.stage_layers");
        }
    }
    if (p.vpp.value_or(1) > 1)
        p.schedule = "interleaved";
    else if (pp > 1)
        p.schedule = "1f1b";
    p.zero = f.flag("use-distributed-optimizer") ? 1 : 0;
    if (f.flag("use-megatron-fsdp") || f.flag("use-torch-fsdp2"))
        p.zero = 3;
    if (const auto strategy = f.text("data-parallel-sharding-strategy"); strategy && f.flag("use-megatron-fsdp"))
        p.zero = *strategy == "optim" ? 1 : *strategy == "optim_grads" ? 2 : *strategy == "no_shard" ? 0 : 3;
    p.overlap_grad_reduce = f.flag("overlap-grad-reduce");
    p.overlap_param_gather = f.flag("overlap-param-gather");
    if (const auto exchange = f.text("cp-comm-type")) {
        const std::string first = exchange->substr(0, exchange->find(' '));
        if (first == "p2p")
            p.context_exchange = "ring";
        else if (first == "all_gather" || first == "allgather")
            p.context_exchange = "all_gather";
        else if (first == "a2a")
            p.context_exchange = "ulysses";
        else
            p.tell(fmt::format("context exchange {} is two-level: set training.layout.cp_exchange", *exchange));
    }
    if (const auto dispatcher = f.text("moe-token-dispatcher-type")) {
        p.expert_dispatch = *dispatcher == "allgather" ? "all_gather"
                            : *dispatcher == "flex"    ? "node_aware"
                                                       : "all_to_all";
        if (*dispatcher == "flex" && !f.flag("moe-enable-deepep"))
            p.tell("the flexible dispatcher is taken as node-aware (DeepEP)");
    }
    if (const auto factor = f.text("moe-expert-capacity-factor"))
        p.capacity_factor = real_number(*factor);
}

void batch(Flags& f, Plan& p) {
    p.sequence = f.integer("seq-length");
    p.micro_batch = f.integer("micro-batch-size");
    p.global_batch = f.integer("global-batch-size");
    if (const auto ramp = f.text("rampup-batch-size"))
        p.tell(fmt::format("the batch grows (rampup-batch-size {}); the final size is planned with", *ramp));
    if (const auto schedule = f.text("step-batch-size-schedule")) {
        const std::string last = schedule->substr(schedule->find_last_of(" :") + 1);
        const auto final_size = whole_number(last);
        if (p.global_batch && final_size)
            p.tell(fmt::format(
                "global-batch-size {} and step-batch-size-schedule are both given, which the program refuses; "
                "the final {} is planned with",
                *p.global_batch, *final_size));
        if (final_size)
            p.global_batch = final_size;
    }
    if (!p.global_batch && p.micro_batch) {
        p.accumulation = 1;
        p.tell("no global batch is given: micro batch x dp, the program's rule");
    }
    const auto samples = f.integer("train-samples"), tokens = f.integer("train-tokens"),
               steps = f.integer("train-iters");
    if (samples && tokens)
        p.tell("train-tokens and train-samples are both given: the tokens are taken");
    if (tokens)
        p.tokens = static_cast<double>(*tokens);
    else if (samples && p.sequence)
        p.tokens = static_cast<double>(*samples) * static_cast<double>(*p.sequence);
    else
        p.steps = steps;
}

// adam is the program's default; only a flag is taken over.
void optimizer(Flags& f, Plan& p) {
    if (const auto name = f.text("optimizer")) {
        const auto momentum = f.text("sgd-momentum");
        take_optimizer(p, *name, !momentum || real_number(*momentum).value_or(1) != 0);
    }
    const bool aware = f.flag("use-precision-aware-optimizer");
    const auto type = [&](const char* flag) -> std::optional<std::string> {
        const auto value = f.text(flag);
        if (!value)
            return std::nullopt;
        if (!aware)
            p.tell(fmt::format("--{} has no effect without --use-precision-aware-optimizer", flag));
        return aware ? state_type(p, std::string("--") + flag, *value) : std::nullopt;
    };
    p.moments = type("exp-avg-dtype");
    p.second_moment = type("exp-avg-sq-dtype");
    p.master = type("main-params-dtype");
    settle_state_types(p);
    if (const auto gradients = type("main-grads-dtype"); gradients && *gradients != "fp32")
        p.tell("--main-grads-dtype: 16-bit gradients are said as training.software.fp32_gradients: false");
    if (f.flag("optimizer-cpu-offload")) {
        p.offload_optimizer = "cpu";
        if (const auto share = f.text("optimizer-offload-fraction"))
            p.offload_fraction = real_number(*share);
        p.offload_overlap = f.flag("overlap-cpu-optimizer-d2h-h2d");
    }
}

}  // namespace

std::vector<std::int64_t> pipeline_layout(const std::string& text) {
    std::string flat;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::size_t close = text[i] == '(' ? text.find(')', i) : std::string::npos;
        const std::string unit =
            close != std::string::npos ? text.substr(i + 1, close - i - 1) : std::string(1, text[i]);
        std::size_t next = close != std::string::npos ? close + 1 : i + 1;
        std::int64_t times = 1;
        if (next < text.size() && text[next] == '*') {
            std::size_t end = next + 1;
            while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])))
                ++end;
            times = whole_number(text.substr(next + 1, end - next - 1)).value_or(1);
            next = end;
        }
        for (std::int64_t k = 0; k < std::min<std::int64_t>(times, 4096); ++k)
            flat += unit;
        i = next - 1;
    }
    std::vector<std::int64_t> stages(1, 0);
    for (const char c : flat) {
        if (c == '|')
            stages.push_back(0);
        else if (c == 't')
            ++stages.back();
        else if (c != 'E' && c != 'm' && c != 'L' && c != ',' && c != ' ' && c != '\'')
            return {};
    }
    return stages;
}

void take_flags(Flags& f, Plan& p) {
    if (const auto pattern = f.text("hybrid-layer-pattern")) {
        const auto count = [&](char c) { return std::count(pattern->begin(), pattern->end(), c); };
        throw ImportError(
            fmt::format("{}: the layers are a pattern ({} state-space, {} attention, {} MLP layers); state-space "
                        "layers are not in a scenario",
                        p.file, count('M'), count('*'), count('-')));
    }
    layout(f, p);
    batch(f, p);
    precision(f, p);
    recomputation(f, p);
    optimizer(f, p);
    model(f, p);
    p.software = "megatron-core-2024";
    if (f.has("attention-backend") || f.flag("use-flash-attn"))
        f.text("attention-backend");
    p.ignored = f.unread();
}

}  // namespace fabricast::import
