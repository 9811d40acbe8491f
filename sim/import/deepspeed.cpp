// DeepSpeed configurations (JSON), alone and inside GPT-NeoX (YAML flow maps).
//
//   train_batch_size = train_micro_batch_size_per_gpu x gradient_accumulation_steps x dp
// `auto` is filled in by the trainer. The file has neither model nor layout; offload to NVMe is refused.
// Source: DeepSpeed configuration documentation; gpt-neox neox_arguments.
#include <fmt/format.h>

#include "sim/import/importers.hpp"
#include "sim/import/methods.hpp"

namespace fabricast::import {
namespace {

void zero(const Keys& keys, Plan& plan) {
    plan.zero = keys.integer("zero_optimization.stage").value_or(0);
    const auto offload = [&](const char* part) -> std::optional<std::string> {
        const std::string path = fmt::format("zero_optimization.{}.device", part);
        const std::string device = keys.text(path).value_or("none");
        if (device != "none")
            plan.tell(fmt::format("{} goes to {}", part, device));
        return offload_device(plan, path, device);
    };
    plan.offload_optimizer = offload("offload_optimizer");
    plan.offload_parameters = offload("offload_param");
    if (const auto group = keys.integer("zero_optimization.mics_shard_size"); group && *group > 0)
        plan.shard_group = group;  // MiCS
    plan.offload_fraction = keys.number("zero_optimization.offload_optimizer.ratio");
    if (keys.is("zero_optimization.zero_quantized_weights"))
        plan.compression_parameters = "int8";
    if (keys.is("zero_optimization.zero_quantized_gradients"))
        plan.compression_gradients = "int4";
    plan.overlap_grad_reduce = keys.is("zero_optimization.overlap_comm", *plan.zero == 3);
    plan.overlap_param_gather = *plan.zero == 3;
    for (const char* bucket : {"reduce_bucket_size", "allgather_bucket_size", "stage3_prefetch_bucket_size",
                               "stage3_param_persistence_threshold"}) {
        const std::string path = fmt::format("zero_optimization.{}", bucket);
        const Tree* value = keys.at(path);
        if (value && value->text == "auto")
            plan.tell(fmt::format("{}: auto; its default depends on the hidden size", path));
        else if (value)
            plan.tell(fmt::format("{}: {} counts elements, not bytes; not used", path, value->text));
    }
}

void optimizer(const Keys& keys, Plan& plan) {
    if (const auto name = keys.text("optimizer.type"))
        take_optimizer(plan, *name, keys.number("optimizer.params.momentum").value_or(0) != 0);
}

void precision(const Keys& keys, Plan& plan) {
    if (keys.is("bf16.enabled"))
        plan.precision = "bf16";
    else if (keys.is("fp16.enabled") || keys.is("fp16.fp16"))
        plan.precision = "fp16";
    else
        plan.precision = "fp32";
}

void batch(const Keys& keys, Plan& plan) {
    plan.global_batch = keys.integer("train_batch_size");
    plan.micro_batch = keys.integer("train_micro_batch_size_per_gpu");
    plan.accumulation = keys.integer("gradient_accumulation_steps");
}

}  // namespace

Plan import_deepspeed(const Source& source, const Options& options) {
    Plan plan = begin(source, options, "DeepSpeed");
    const Tree root = parse_json_tree(source.text, source.file, plan.told);
    const Keys keys(root, source.file, plan.told);
    plan.layout_said = false;
    batch(keys, plan);
    zero(keys, plan);
    optimizer(keys, plan);
    precision(keys, plan);
    if (options.gpus) {
        plan.dp = options.gpus;
        plan.tell("the file has no layout: all GPUs are taken as data parallel");
    }
    if (plan.global_batch && !plan.micro_batch && !plan.dp)
        plan.tell(fmt::format("the micro batch is {} / (accumulation {} x dp) and needs dp; the world must divide {}",
                              *plan.global_batch, plan.accumulation.value_or(1), *plan.global_batch));
    if (plan.global_batch && !plan.accumulation && plan.dp && !plan.micro_batch)
        plan.accumulation = 1;
    return end(std::move(plan), keys);
}

Plan import_gpt_neox(const Source& source, const Options& options) {
    Plan plan = begin(source, options, "GPT-NeoX");
    Tree root = parse_yaml_tree(source.text, source.file, plan.told);
    // Keys may be written with - or _.
    for (auto& [key, value] : root.members)
        for (char& c : key)
            c = c == '-' ? '_' : c;
    const Keys keys(root, source.file, plan.told);
    plan.tp = keys.integer("model_parallel_size").value_or(1);
    const std::int64_t pipe = keys.integer("pipe_parallel_size").value_or(0);
    plan.pp = pipe > 0 ? pipe : 1;
    plan.schedule = *plan.pp > 1 ? std::optional<std::string>("1f1b") : std::nullopt;
    plan.sequence = keys.integer("seq_length");
    batch(keys, plan);
    zero(keys, plan);
    optimizer(keys, plan);
    precision(keys, plan);
    const bool recompute = keys.is("checkpoint_activations");
    const std::int64_t every = keys.integer("checkpoint_num_layers").value_or(1);
    plan.recompute = recompute ? "full" : "none";
    if (recompute && every > 1)
        plan.tell(fmt::format("activations are kept every {} layers; here the input of each layer is", every));
    plan.software = "megatron-deepspeed-2023";

    Architecture a;
    a.name = plan.name;
    a.family = "gpt-neox";
    std::vector<std::string> absent = {"vocab"};
    const auto need = [&](const char* path, const char* ours, std::int64_t& value) {
        const auto given = keys.integer(path);
        value = given.value_or(0);
        if (!given)
            absent.emplace_back(ours);
    };
    need("num_layers", "layers", a.layers);
    need("hidden_size", "hidden", a.hidden);
    need("num_attention_heads", "heads", a.heads);
    a.kv_heads = keys.integer("num_kv_heads").value_or(a.heads);
    a.head_dim = a.heads > 0 ? a.hidden / a.heads : 0;
    a.ffn = keys.integer("intermediate_size").value_or(4 * a.hidden);
    const std::string activation = keys.text("activation").value_or("gelu");
    a.gated = activation == "swiglu" || activation == "geglu";
    a.rms_norm = keys.text("norm").value_or("layernorm") == "rmsnorm";
    a.biases = true;
    a.tied_embeddings = !keys.is("no_weight_tying");
    const std::string positions = keys.text("pos_emb").value_or("learned");
    a.rotary = positions == "rotary";
    a.alibi = positions == "alibi";
    const auto learned = keys.integer("max_position_embeddings");
    a.max_positions = positions == "learned" ? learned.value_or(0) : 0;
    a.parallel_block = a.separate_norms = keys.is("gpt_j_residual");
    if (const auto share = keys.number("rotary_pct"); share && *share < 1)
        plan.tell(fmt::format("rotary on {} of a head is counted as on all of it", *share));
    take_partial_model(plan, a, absent);
    plan.tell("the vocabulary is in a tokenizer file");
    offer_comments(plan, source.text);
    return end(std::move(plan), keys);
}

}  // namespace fabricast::import
