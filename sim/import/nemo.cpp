// NeMo launcher configurations (YAML with OmegaConf), flat Megatron names below `model`, and Megatron-Bridge override
// files, which are laid over a recipe in code: what they do not say is unknown, not default.
// Source: NeMo-Framework-Launcher and MLPerf configurations, NeMo megatron_gpt_config.yaml for the defaults.
#include <fmt/format.h>

#include "sim/import/importers.hpp"
#include "sim/import/methods.hpp"

namespace fabricast::import {
namespace {

std::string join(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& word : words)
        out += (out.empty() ? "" : ", ") + word;
    return out;
}

void precision(const Keys& keys, Plan& plan) {
    const std::string word = keys.text("trainer.precision").value_or(keys.text("model.precision").value_or(""));
    if (word.find("bf16") != std::string::npos)
        plan.precision = "bf16";
    else if (word.find("16") != std::string::npos)
        plan.precision = "fp16";
    else if (word.find("32") != std::string::npos)
        plan.precision = "fp32";
    if (keys.is("model.fp8"))
        plan.precision = "fp8";
    else if (keys.is("model.fp8_hybrid") || keys.is("model.fp8_e4m3"))
        plan.tell("model.fp8_hybrid or fp8_e4m3 names a format, but model.fp8 is false: fp8 is OFF");
}

void model(const Keys& keys, Plan& plan) {
    Architecture a;
    std::vector<std::string> absent;
    const auto need = [&](const char* path, const char* ours, std::int64_t& value) {
        const auto given = keys.integer(path);
        value = given.value_or(0);
        if (!given)
            absent.emplace_back(ours);
    };
    a.name = plan.name;
    need("model.num_layers", "layers", a.layers);
    if (a.layers == 0) {
        if (const auto layers = keys.integer("model.overwritten_attributes.num_layers")) {
            a.layers = *layers;
            absent.pop_back();
        }
    }
    need("model.hidden_size", "hidden", a.hidden);
    need("model.num_attention_heads", "heads", a.heads);
    need("model.ffn_hidden_size", "ffn", a.ffn);
    a.kv_heads = keys.integer("model.num_query_groups").value_or(a.heads);
    a.head_dim = keys.integer("model.kv_channels").value_or(a.heads > 0 ? a.hidden / a.heads : 0);
    const std::string activation = keys.text("model.activation").value_or("gelu");
    a.gated = activation.find("glu") != std::string::npos;
    a.rms_norm = keys.text("model.normalization").value_or("layernorm1p") == "rmsnorm";
    a.biases = keys.is("model.bias", true);
    a.tied_embeddings = keys.is("model.share_embeddings_and_output_weights", true);
    a.rotary = keys.text("model.position_embedding_type").value_or("learned_absolute") == "rope";
    const auto positions = keys.integer("model.max_position_embeddings");
    a.max_positions = a.rotary ? 0 : positions.value_or(0);
    a.vocab_multiple = keys.integer("model.make_vocab_size_divisible_by").value_or(128);
    a.moe.experts = keys.integer("model.num_moe_experts").value_or(0);
    if (a.moe.experts > 0) {
        a.moe.top_k = keys.integer("model.moe_router_topk").value_or(2);
        a.moe.ffn = keys.integer("model.moe_ffn_hidden_size").value_or(a.ffn);
    }
    absent.emplace_back("vocab");
    const auto base = keys.text("model.base_config");
    if (a.hidden == 0 && base) {
        struct Row {
            const char *base, *preset;
        };
        for (const Row& row : {Row{"405b", "llama3.1-405b"}, Row{"70b", "llama3.1-70b"}, Row{"8b", "llama3.1-8b"}})
            if (*base == row.base)
                plan.model_preset = row.preset;
        plan.tell(fmt::format("the shape comes from model.base_config: {}{}", *base,
                              plan.model_preset.empty()
                                  ? ", which is not in this file"
                                  : fmt::format("; taken from the preset {}", plan.model_preset)));
        const Architecture* known = find_architecture(plan.model_preset);
        if (known && a.layers > 0 && known->layers != a.layers)
            plan.tell(
                fmt::format("layers are overwritten: {} instead of {}; set model.layers", a.layers, known->layers));
        return;
    }
    take_partial_model(plan, a, absent);
    if (const auto tokenizer = keys.text("model.tokenizer.type"))
        plan.tell(fmt::format("the vocabulary is said by a tokenizer's name only: {}", *tokenizer));
    for (const Architecture& known : architectures()) {
        if (known.layers == a.layers && known.hidden == a.hidden && known.ffn == a.ffn && known.heads == a.heads &&
            known.kv_heads != a.kv_heads)
            plan.tell(
                fmt::format("num_query_groups is {}, but {} of the same shape has {} key and value heads: parameters "
                            "differ",
                            a.kv_heads, known.name, known.kv_heads));
    }
}

void parallel(const Keys& keys, Plan& plan, bool defaults) {
    const auto degree = [&](const char* path, std::optional<std::int64_t>& value) {
        value = keys.integer(path);
        if (!value && defaults)
            value = 1;
    };
    degree("model.tensor_model_parallel_size", plan.tp);
    degree("model.pipeline_model_parallel_size", plan.pp);
    degree("model.context_parallel_size", plan.cp);
    plan.vpp = keys.integer("model.virtual_pipeline_model_parallel_size");
    plan.ep = keys.integer("model.expert_model_parallel_size");
    plan.etp = keys.integer("model.expert_tensor_parallel_size");
    plan.sp = keys.flag("model.sequence_parallel");
    if (plan.vpp && *plan.vpp > 1)
        plan.schedule = "interleaved";
    else if (plan.pp.value_or(1) > 1)
        plan.schedule = "1f1b";
}

}  // namespace

Plan import_nemo(const Source& source, const Options& options) {
    Plan plan = begin(source, options, "NeMo");
    Tree root = parse_yaml_tree(source.text, source.file, plan.told);
    const std::vector<std::string> unset = interpolate(root, options.environment);
    if (!unset.empty())
        throw ImportError(
            fmt::format("{}: {} environment variable{} without a default {} not set: {}; give {} with --env "
                        "NAME=VALUE",
                        source.file, unset.size(), unset.size() > 1 ? "s" : "", unset.size() > 1 ? "are" : "is",
                        join(unset), unset.size() > 1 ? "them" : "it"));
    const Keys keys(root, source.file, plan.told);
    plan.nodes = keys.integer("trainer.num_nodes");
    plan.gpus_per_node = keys.integer("trainer.devices");
    if (options.gpus)
        plan.nodes.reset();
    parallel(keys, plan, true);
    plan.micro_batch = keys.integer("model.micro_batch_size");
    plan.global_batch = keys.integer("model.global_batch_size");
    plan.sequence = keys.integer("model.encoder_seq_length");
    const auto data_sequence = keys.integer("model.data.seq_length");
    if (plan.sequence && data_sequence && *plan.sequence != *data_sequence)
        plan.tell(fmt::format("model.encoder_seq_length is {}, model.data.seq_length {}: the former is taken",
                              *plan.sequence, *data_sequence));
    precision(keys, plan);
    model(keys, plan);
    const std::string recompute = keys.text("model.activations_checkpoint_granularity").value_or("none");
    plan.recompute = recompute == "full" || recompute == "selective" ? recompute : "none";
    const bool distributed = keys.text("model.optim.name").value_or("").find("distributed") != std::string::npos ||
                             keys.is("model.optim.use_distributed_optimizer");
    plan.zero = distributed ? 1 : 0;
    plan.overlap_grad_reduce = keys.is("model.optim.overlap_grad_sync") || keys.is("model.optim.overlap_grad_reduce");
    plan.overlap_param_gather =
        keys.is("model.optim.overlap_param_sync") || keys.is("model.optim.overlap_param_gather");
    if (const auto name = keys.text("model.optim.name"))
        take_optimizer(plan, *name);
    if (keys.is("model.data.packed_sequence") || keys.is("model.data.train_ds.packed_sequence"))
        tell_packed(plan, "packed_sequence");
    plan.software = "nemo-2024";
    if (keys.is("model.ub_tp_comm_overlap"))
        plan.tell(
            "tensor-parallel overlap is on (ub_tp_comm_overlap); its details come from another file, software "
            "nemo-2024 "
            "hides 0.6 of that traffic");
    return end(std::move(plan), keys);
}

Plan import_megatron_bridge(const Source& source, const Options& options) {
    Plan plan = begin(source, options, "Megatron-Bridge override");
    Tree root = parse_yaml_tree(source.text, source.file, plan.told);
    interpolate(root, options.environment);
    const Keys keys(root, source.file, plan.told);
    plan.tell("this file is laid over a recipe in code: what it does not say is unknown, not default");
    parallel(keys, plan, false);
    plan.steps = keys.integer("train.train_iters");
    plan.micro_batch = keys.integer("train.micro_batch_size");
    plan.global_batch = keys.integer("train.global_batch_size");
    const auto model_sequence = keys.integer("model.seq_length"), data_sequence = keys.integer("dataset.seq_length");
    plan.sequence = model_sequence ? model_sequence : data_sequence;
    if (model_sequence && data_sequence && *model_sequence != *data_sequence)
        plan.tell(fmt::format("CONTRADICTION: seq_length is {} below model and {} below dataset; they must agree",
                              *model_sequence, *data_sequence));
    if (const auto flag = keys.flag("optimizer.use_distributed_optimizer"))
        plan.zero = *flag ? 1 : 0;
    if (const auto name = keys.text("optimizer.optimizer"))
        take_optimizer(plan, *name, keys.number("optimizer.sgd_momentum").value_or(0.9) != 0);
    const auto type = [&](const char* key) -> std::optional<std::string> {
        const auto value = keys.text(std::string("optimizer.") + key);
        return value ? state_type(plan, key, *value) : std::nullopt;
    };
    if (keys.is("optimizer.use_precision_aware_optimizer")) {
        plan.moments = type("exp_avg_dtype");
        plan.second_moment = type("exp_avg_sq_dtype");
        plan.master = type("main_params_dtype");
        settle_state_types(plan);
    }
    if (keys.is("optimizer.optimizer_cpu_offload")) {
        plan.offload_optimizer = "cpu";
        plan.offload_fraction = keys.number("optimizer.optimizer_offload_fraction");
        plan.offload_overlap = keys.is("optimizer.overlap_cpu_optimizer_d2h_h2d");
    }
    for (const char* key : {"dataset.packed_sequence_specs", "dataset.packed_sequence_size"})
        if (keys.has(key))
            tell_packed(plan, key);
    if (!plan.world && plan.global_batch && plan.micro_batch)
        plan.tell(fmt::format("dp must divide global batch {} / micro batch {}: at most {} GPUs of this layout",
                              *plan.global_batch, *plan.micro_batch,
                              *plan.global_batch / *plan.micro_batch * plan.inner()));
    plan.miss("training.layout.zero (optimizer sharding)");
    plan.miss("training.recompute");
    return end(std::move(plan), keys);
}

}  // namespace fabricast::import
