// Trainers around Hugging Face models: nanotron, llm-foundry, axolotl, LLaMA-Factory; and MaxText's model files.
// Source: the configuration classes of each project as of the shipped examples.
#include <fmt/format.h>

#include "sim/import/importers.hpp"
#include "sim/import/methods.hpp"

namespace fabricast::import {
namespace {

/// Integers of a model under `prefix`; what is not there goes to `absent`.
struct Shape {
    const Keys& keys;
    std::string prefix;
    std::vector<std::string> absent;

    void need(const char* path, const char* ours, std::int64_t& value) {
        const auto given = keys.integer(prefix + path);
        value = given.value_or(0);
        if (!given)
            absent.emplace_back(ours);
    }
};

std::string lower_precision(const std::string& word) {
    if (word.find("bf16") != std::string::npos || word == "bfloat16")
        return "bf16";
    if (word.find("16") != std::string::npos)
        return "fp16";
    return word.find("8") != std::string::npos ? "fp8" : "fp32";
}

}  // namespace

Plan import_nanotron(const Source& source, const Options& options) {
    Plan plan = begin(source, options, "nanotron");
    const Tree root = parse_yaml_tree(source.text, source.file, plan.told);
    const Keys keys(root, source.file, plan.told);
    plan.tp = keys.integer("parallelism.tp").value_or(1);
    plan.pp = keys.integer("parallelism.pp").value_or(1);
    plan.cp = keys.integer("parallelism.context_parallel_size").value_or(1);
    plan.ep = keys.integer("parallelism.expert_parallel_size").value_or(1);
    plan.dp = keys.integer("parallelism.dp");
    plan.sp = keys.text("parallelism.tp_mode").value_or("ALL_REDUCE") == "REDUCE_SCATTER";
    const std::string engine = keys.text("parallelism.pp_engine").value_or("1f1b");
    if (*plan.pp > 1)
        plan.schedule = engine == "afab" ? "gpipe" : "1f1b";
    plan.recompute = keys.is("parallelism.recompute_layer") ? "full" : "none";
    plan.zero = keys.integer("optimizer.zero_stage").value_or(0);
    if (*plan.sp)
        plan.tell("tp_mode REDUCE_SCATTER is tensor parallelism with sequence parallelism");
    plan.sequence = keys.integer("tokens.sequence_length");
    plan.steps = keys.integer("tokens.train_steps");
    plan.micro_batch = keys.integer("tokens.micro_batch_size");
    plan.accumulation = keys.integer("tokens.batch_accumulation_per_replica").value_or(1);
    if (const auto dtype = keys.text("model.dtype"))
        plan.precision = lower_precision(*dtype);
    if (const auto name = keys.text("optimizer.optimizer_factory.name"))
        take_optimizer(plan, *name);
    if (keys.is("optimizer.accumulate_grad_in_fp32"))
        plan.tell("gradients accumulate in fp32 (training.software.fp32_gradients)");

    Shape shape{keys, "model.model_config.", {}};
    Architecture a;
    a.name = plan.name;
    shape.need("num_hidden_layers", "layers", a.layers);
    shape.need("hidden_size", "hidden", a.hidden);
    shape.need("num_attention_heads", "heads", a.heads);
    shape.need("intermediate_size", "ffn", a.ffn);
    shape.need("vocab_size", "vocab", a.vocab);
    a.kv_heads = keys.integer("model.model_config.num_key_value_heads").value_or(a.heads);
    a.head_dim = a.heads > 0 ? a.hidden / a.heads : 0;
    a.tied_embeddings = keys.is("model.model_config.tie_word_embeddings");
    a.qkv_bias = keys.is("model.model_config.attention_bias");
    a.window = keys.integer("model.model_config.sliding_window_size").value_or(0);
    a.vocab_multiple = keys.integer("model.make_vocab_size_divisible_by").value_or(1);
    const std::string moe = "model.model_config.moe_config";
    if (keys.has(moe)) {
        a.moe.experts = keys.integer(moe + ".num_experts").value_or(0);
        a.moe.top_k = keys.integer(moe + ".top_k").value_or(1);
        const auto width = keys.integer(moe + ".moe_intermediate_size");
        a.moe.ffn = width.value_or(a.ffn);
        if (!width)
            plan.tell(fmt::format("the width of an expert is not said; {} is taken, the MLP's", a.ffn));
        if (keys.text(moe + ".token_dispatcher_type").value_or("") == "alltoall")
            plan.expert_dispatch = "all_to_all";
        if (keys.is(moe + ".enable_shared_expert"))
            a.moe.shared_ffn = keys.integer(moe + ".shared_expert_intermediate_size").value_or(a.moe.ffn);
    }
    take_partial_model(plan, a, shape.absent);
    return end(std::move(plan), keys);
}

Plan import_llm_foundry(const Source& source, const Options& options) {
    Plan plan = begin(source, options, "llm-foundry");
    Tree root = parse_yaml_tree(source.text, source.file, plan.told);
    interpolate(root, options.environment);
    const Keys keys(root, source.file, plan.told);
    plan.tp = plan.pp = plan.cp = 1;
    plan.sequence = keys.integer("max_seq_len");
    plan.global_batch = keys.integer("global_train_batch_size");
    plan.micro_batch = keys.integer("device_train_microbatch_size");
    if (const auto precision = keys.text("precision"))
        plan.precision = lower_precision(*precision);
    const std::string sharding = keys.text("fsdp_config.sharding_strategy").value_or("NO_SHARD");
    plan.zero = sharding == "NO_SHARD" ? 0 : sharding == "SHARD_GRAD_OP" ? 2 : 3;
    if (sharding.starts_with("HYBRID"))
        plan.tell(
            "sharding inside a node and copies between nodes: set training.layout.shard_group to the GPUs of a node");
    plan.recompute = keys.is("fsdp_config.activation_checkpointing") ? "full" : "none";
    if (const auto name = keys.text("optimizer.name"))
        take_optimizer(plan, *name);
    if (keys.is("fsdp_config.activation_cpu_offload"))
        plan.tell("activations go to the CPU: that is not in a scenario");
    if (const auto mixed = keys.text("fsdp_config.mixed_precision"))
        plan.tell(
            fmt::format("fsdp_config.mixed_precision {}: gradients are reduced in {} (training.software.fp32_reduce)",
                        *mixed, *mixed == "PURE" ? "16 bit" : "fp32"));
    plan.overlap_grad_reduce = plan.overlap_param_gather = true;
    plan.software = "llm-foundry-2023";
    if (!plan.world && plan.global_batch && plan.micro_batch)
        plan.tell(fmt::format("the number of GPUs must divide global batch {} / micro batch {} = {}",
                              *plan.global_batch, *plan.micro_batch, *plan.global_batch / *plan.micro_batch));
    if (const auto duration = keys.text("max_duration")) {
        const auto batches =
            duration->ends_with("ba") ? std::optional(duration->substr(0, duration->size() - 2)) : std::nullopt;
        const auto count = batches ? whole_number(*batches) : std::nullopt;
        if (count && plan.global_batch && plan.sequence)
            plan.tokens = static_cast<double>(*count) * static_cast<double>(*plan.global_batch * *plan.sequence);
        else
            plan.tell(fmt::format("max_duration: {} is left out (only batches, \"ba\", are read)", *duration));
    }
    const std::string name = keys.text("model.name").value_or("");
    if (name != "mpt_causal_lm") {
        if (const auto hub = keys.text("model.pretrained_model_name_or_path"))
            take_model_name(plan, *hub);
        return end(std::move(plan), keys);
    }
    Shape shape{keys, "model.", {}};
    Architecture a;
    a.name = plan.name;
    a.family = "mpt";
    shape.need("n_layers", "layers", a.layers);
    shape.need("d_model", "hidden", a.hidden);
    shape.need("n_heads", "heads", a.heads);
    shape.need("vocab_size", "vocab", a.vocab);
    a.kv_heads = keys.integer("model.attn_config.kv_n_heads").value_or(a.heads);
    a.head_dim = a.heads > 0 ? a.hidden / a.heads : 0;
    a.ffn = keys.integer("model.expansion_ratio").value_or(4) * a.hidden;
    a.gated = a.rms_norm = a.rotary = false;
    a.tied_embeddings = true;
    a.biases = a.norm_bias = !keys.is("model.no_bias", false);
    a.alibi = keys.is("model.attn_config.alibi");
    keys.text("model.attn_config.attn_impl");
    const bool learned = keys.is("model.learned_pos_emb", true) && !a.alibi;
    a.max_positions = learned ? keys.integer("model.max_seq_len").value_or(0) : 0;
    take_partial_model(plan, a, shape.absent);
    return end(std::move(plan), keys);
}

Plan import_axolotl(const Source& source, const Options& options) {
    Plan plan = begin(source, options, "axolotl");
    const Tree root = parse_yaml_tree(source.text, source.file, plan.told);
    const Keys keys(root, source.file, plan.told);
    plan.tp = keys.integer("tensor_parallel_size").value_or(1);
    plan.cp = keys.integer("context_parallel_size").value_or(1);
    plan.pp = 1;
    plan.sp = *plan.tp > 1;
    const auto shard = keys.integer("dp_shard_size"), replicate = keys.integer("dp_replicate_size");
    if (shard || replicate)
        plan.dp = shard.value_or(1) * replicate.value_or(1);
    if (shard && replicate.value_or(1) > 1)
        plan.shard_group = shard;
    const bool fsdp = keys.has("fsdp_config") || keys.has("fsdp");
    const bool deepspeed = keys.has("deepspeed");
    plan.zero = fsdp ? 3 : 0;
    if (fsdp && !keys.is("fsdp_config.reshard_after_forward", true))
        plan.reshard = false;
    if (deepspeed)
        plan.tell(fmt::format("ZeRO is said in a DeepSpeed file, {}: import that as well",
                              keys.text("deepspeed").value_or("")));
    if (keys.is("fsdp_config.offload_params") || keys.is("fsdp_config.fsdp_offload_params"))
        plan.offload_optimizer = plan.offload_parameters = "cpu";
    if (const auto name = keys.text("optimizer"))
        take_optimizer(plan, *name);
    plan.sequence = keys.integer("sequence_len");
    plan.micro_batch = keys.integer("micro_batch_size");
    plan.accumulation = keys.integer("gradient_accumulation_steps").value_or(1);
    const std::string bf16 = keys.text("bf16").value_or("");
    if (bf16 == "true" || bf16 == "full")
        plan.precision = "bf16";
    else if (keys.is("fp16"))
        plan.precision = "fp16";
    if (keys.is("tf32"))
        plan.tell("tf32 is for what is left of fp32 products");
    if (keys.is("sample_packing"))
        tell_packed(plan, "sample_packing");
    else
        plan.tell("samples are not packed: the sequence is a maximum, not a mean");
    if (keys.has("num_epochs"))
        plan.tell("the run is said in epochs; tokens depend on the data set");
    plan.recompute =
        keys.is("gradient_checkpointing") || keys.is("fsdp_config.activation_checkpointing") ? "full" : "none";
    if (!keys.has("gradient_checkpointing"))
        plan.tell("recomputation is not said: none is taken, the trainer's default");
    plan.software = "torch-fsdp";
    if (const auto name = keys.text("base_model"))
        take_model_name(plan, *name);
    offer_comments(plan, source.text);
    return end(std::move(plan), keys);
}

Plan import_llama_factory(const Source& source, const Options& options) {
    Plan plan = begin(source, options, "LLaMA-Factory");
    const Tree root = parse_yaml_tree(source.text, source.file, plan.told);
    const Keys keys(root, source.file, plan.told);
    plan.tp = keys.integer("tensor_model_parallel_size").value_or(1);
    plan.pp = keys.integer("pipeline_model_parallel_size").value_or(1);
    plan.cp = keys.integer("context_parallel_size").value_or(1);
    plan.vpp = keys.integer("virtual_pipeline_model_parallel_size");
    plan.ep = keys.integer("expert_model_parallel_size");
    plan.etp = keys.integer("expert_tensor_parallel_size");
    plan.sp = keys.flag("sequence_parallel");
    plan.schedule = plan.vpp.value_or(1) > 1 ? std::optional<std::string>("interleaved")
                    : *plan.pp > 1           ? std::optional<std::string>("1f1b")
                                             : std::nullopt;
    plan.zero = keys.is("use_distributed_optimizer") ? 1 : 0;
    plan.overlap_grad_reduce = keys.is("overlap_grad_reduce");
    plan.overlap_param_gather = keys.is("overlap_param_gather");
    if (keys.has("deepspeed"))
        plan.tell(fmt::format("ZeRO is said in a DeepSpeed file, {}: import that as well",
                              keys.text("deepspeed").value_or("")));
    const std::string recompute = keys.text("recompute_granularity").value_or("none");
    plan.recompute = recompute == "full" || recompute == "selective" ? recompute : "none";
    const std::string dispatcher = keys.text("moe_token_dispatcher_type").value_or("");
    if (dispatcher == "alltoall")
        plan.expert_dispatch = "all_to_all";
    else if (dispatcher == "allgather")
        plan.expert_dispatch = "all_gather";
    else if (dispatcher == "flex")
        plan.expert_dispatch = "node_aware";
    if (const auto name = keys.text("optim"))
        take_optimizer(plan, *name);
    if (keys.is("neat_packing") || keys.is("packing"))
        tell_packed(plan, keys.is("neat_packing") ? "neat_packing" : "packing");
    plan.sequence = keys.integer("cutoff_len");
    plan.tell("cutoff_len is a maximum; the mean length of the data is not in the file");
    plan.micro_batch = keys.integer("per_device_train_batch_size");
    plan.accumulation = keys.integer("gradient_accumulation_steps").value_or(1);
    plan.precision = keys.is("bf16") ? "bf16" : keys.is("fp16") ? "fp16" : "fp32";
    plan.software = "megatron-core-2024";
    if (const auto name = keys.text("model_name_or_path"))
        take_model_name(plan, *name);
    if (plan.ep.value_or(1) > 1 && plan.micro_batch) {
        const auto at = [&](std::int64_t world) {
            return fmt::format("on {} GPUs {} x {} x dp {} = {}", world, *plan.micro_batch, *plan.accumulation,
                               world / plan.inner(), *plan.micro_batch * *plan.accumulation * (world / plan.inner()));
        };
        std::vector<std::int64_t> worlds = gpus_in_comments(source.text);
        if (plan.world)
            worlds = {*plan.world};
        else if (worlds.empty())
            worlds = {8};
        for (const std::int64_t world : worlds)
            plan.tell(
                fmt::format("expert parallelism lies inside dp in Megatron, so dp = GPUs / (tp pp cp) and ep does not "
                            "divide the batch: {}, where a rule that divides by ep as well has {}; the former is "
                            "used",
                            at(world), *plan.micro_batch * *plan.accumulation * (world / plan.inner() / *plan.ep)));
    }
    // "# GPU memory: 8 * 78GB": a count beside a size.
    for (std::size_t at = source.text.find("GPU memory:"); at != std::string::npos;
         at = source.text.find("GPU memory:", at + 1)) {
        const std::string rest = source.text.substr(at + 11, 12);
        const std::size_t star = rest.find('*');
        const auto count =
            star == std::string::npos ? std::nullopt : whole_number(rest.substr(1, rest.find(' ', 1) - 1));
        if (count && !plan.world)
            plan.tell(fmt::format("a comment speaks of {} GPUs; that is not taken: give --gpus {} if it is so", *count,
                                  *count));
    }
    return end(std::move(plan), keys);
}

Plan import_maxtext(const Source& source, const Options& options) {
    Plan plan = begin(source, options, "MaxText model file");
    const Tree root = parse_yaml_tree(source.text, source.file, plan.told);
    const Keys keys(root, source.file, plan.told);
    plan.layout_said = false;
    Shape shape{keys, "", {}};
    Architecture a;
    a.name = plan.name;
    shape.need("base_num_decoder_layers", "layers", a.layers);
    shape.need("base_emb_dim", "hidden", a.hidden);
    shape.need("base_num_query_heads", "heads", a.heads);
    shape.need("base_mlp_dim", "ffn", a.ffn);
    shape.need("vocab_size", "vocab", a.vocab);
    a.kv_heads = keys.integer("base_num_kv_heads").value_or(a.heads);
    a.head_dim = keys.integer("head_dim").value_or(a.heads > 0 ? a.hidden / a.heads : 0);
    a.tied_embeddings = keys.is("logits_via_embedding");
    if (const Tree* activations = keys.at("mlp_activations"))
        a.gated = activations->items.size() > 1;
    a.moe.experts = keys.integer("num_experts").value_or(1);
    if (a.moe.experts > 1) {
        a.moe.top_k = keys.integer("num_experts_per_tok").value_or(1);
        a.moe.ffn = keys.integer("base_moe_mlp_dim").value_or(a.ffn);
        a.moe.shared_ffn = keys.integer("shared_experts").value_or(0) * a.moe.ffn;
        a.moe.first_dense = keys.integer("first_num_dense_layers").value_or(0);
        a.moe.every = keys.integer("interleave_moe_layer_step").value_or(1);
        a.moe.score_bias = keys.is("routed_bias");
    } else {
        a.moe = Moe{};
    }
    if (keys.text("attention_type").value_or("") == "mla") {
        a.attention = AttentionKind::latent;
        a.kv_heads = a.heads;
        a.query_rank = keys.integer("q_lora_rank").value_or(0);
        shape.need("kv_lora_rank", "mla.key_value_rank", a.key_value_rank);
        shape.need("qk_rope_head_dim", "mla.rope_dim", a.rope_dim);
        shape.need("v_head_dim", "mla.value_dim", a.value_dim);
        a.head_dim = keys.integer("qk_nope_head_dim").value_or(0) + a.rope_dim;
    }
    if (const auto positions = keys.integer("max_position_embeddings"))
        plan.tell(
            fmt::format("max_position_embeddings {} is the longest context, not the training sequence", *positions));
    if (const auto name = keys.text("opt_type"))
        take_optimizer(plan, *name);
    if (keys.text("decoder_block").value_or("") == "deepseek")
        plan.tell("no prediction module is in this file; DeepSeek-V3 was trained with one (model.mtp_layers)");
    take_partial_model(plan, a, shape.absent);
    return end(std::move(plan), keys);
}

}  // namespace fabricast::import
