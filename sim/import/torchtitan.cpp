// torchtitan job files (TOML), both layouts: until early 2025 tensor parallelism stood under [training], context and
// pipeline parallelism under [experimental]; then all of it under [parallelism].
//
// FSDP shards fully over the data-parallel and context ranks (shard -1 = all the rest); replicate x shard = dp. There is
// no gradient accumulation unless training.global_batch_size says so. fp8 is on only where a converter names it.
// Source: torchtitan config manager and the shipped train_configs.
#include <algorithm>

#include <fmt/format.h>

#include "sim/import/importers.hpp"
#include "sim/import/methods.hpp"

namespace fabricast::import {
namespace {

constexpr TitanModel kModels[] = {{"llama3", "8B", "llama3.1-8b"},
                                  {"llama3", "70B", "llama3.1-70b"},
                                  {"llama3", "405B", "llama3.1-405b"},
                                  {"deepseek_v3", "16B", "deepseek-v2-lite"},
                                  {"deepseek_v3", "671B", "deepseek-v3"},
                                  {"qwen3", "0.6B", "qwen3-0.6b"},
                                  {"qwen3", "8B", "qwen3-8b"},
                                  {"qwen3", "14B", "qwen3-14b"},
                                  {"qwen3", "32B", "qwen3-32b"},
                                  {"qwen3", "30B-A3B", "qwen3-30b-a3b"},
                                  {"gpt_oss", "20B", "gpt-oss-20b"},
                                  {"gpt_oss", "120B", "gpt-oss-120b"},
                                  {"llama4", "17bx16e", "llama4-scout"},
                                  {"llama4", "17bx128e", "llama4-maverick"}};

std::optional<std::int64_t> first(const Keys& keys, std::initializer_list<const char*> paths) {
    for (const char* path : paths)
        if (const auto value = keys.integer(path))
            return value;
    return std::nullopt;
}

/// A list of texts, or one text (older layout).
std::vector<std::string> texts(const Tree* value) {
    std::vector<std::string> out;
    if (value && value->kind == Tree::Kind::scalar && !value->text.empty())
        out.push_back(value->text);
    if (value && value->kind == Tree::Kind::list)
        for (const Tree& item : value->items)
            out.push_back(item.text);
    return out;
}

void model(const Keys& keys, Plan& plan) {
    const std::string name = keys.text("model.name").value_or(""), flavor = keys.text("model.flavor").value_or("");
    for (const TitanModel& row : torchtitan_models()) {
        if (name == row.name && flavor == row.flavor)
            plan.model_preset = row.preset;
    }
    if (plan.model_preset.empty())
        plan.tell(fmt::format("the model is said by name only ({} {}), which is no preset", name, flavor));
    else
        plan.tell(fmt::format("the model is said by name only ({} {}); shapes are those of the preset {}", name, flavor,
                              plan.model_preset));
}

void precision(const Keys& keys, Plan& plan, const std::string& file) {
    const std::vector<std::string> converters = texts(keys.at("model.converters"));
    const bool fp8 = std::any_of(converters.begin(), converters.end(), [](const std::string& c) {
        return c.find("float8") != std::string::npos || c == "mx";
    });
    plan.precision = fp8 ? "fp8" : "bf16";
    if (fp8)
        plan.tell(
            fmt::format("{}: fp8 linear layers are on, because model.converters names {}", file, converters.front()));
    for (const char* table : {"float8", "quantize.linear.float8", "quantize.grouped_mm.float8"})
        if (!fp8 && keys.has(table))
            plan.tell(fmt::format("{}: table [{}] is there, but no converter is named: fp8 is OFF", file, table));
}

void data_parallel(const Keys& keys, Plan& plan) {
    const std::int64_t replicate =
        first(keys, {"parallelism.data_parallel_replicate_degree", "training.data_parallel_replicate_degree"})
            .value_or(1);
    const std::int64_t shard =
        first(keys, {"parallelism.data_parallel_shard_degree", "training.data_parallel_shard_degree"}).value_or(-1);
    plan.zero = shard == 1 ? 0 : 3;
    if (shard > 0) {
        plan.dp = replicate * shard;
        if (replicate > 1 && shard > 1)
            plan.shard_group = shard;
        return;
    }
    if (plan.world && replicate > 1 && *plan.world % (plan.inner() * replicate) == 0)
        plan.shard_group = *plan.world / (plan.inner() * replicate);
    if (!plan.world)
        plan.tell(fmt::format("fully sharded over the rest: dp = GPUs / {}{}; the number of GPUs must be said",
                              plan.inner(), replicate > 1 ? fmt::format(" in {} copies", replicate) : ""));
}

// stages = (layers + less at the first + less at the last) / layers of a stage, rounded up; spread evenly, the first and the last
// then have so many less. Only where the file says any of it.
void stages(const Keys& keys, Plan& plan) {
    const auto of_stage = keys.integer("parallelism.pipeline_parallel_layers_per_stage");
    const auto less_first = keys.integer("parallelism.pipeline_parallel_first_stage_less_layers"),
               less_last = keys.integer("parallelism.pipeline_parallel_last_stage_less_layers");
    const Architecture* model = find_architecture(plan.model_preset);
    if (*plan.pp == 1 || !(of_stage || less_first || less_last))
        return;
    if (model == nullptr) {
        plan.tell(
            "the layers of a stage are said, but not how many the model has: set training.layout.vpp and stage_layers");
        return;
    }
    const std::int64_t first_less = less_first.value_or(1), last_less = less_last.value_or(1);
    const std::int64_t units = model->layers + first_less + last_less;
    const std::string schedule = keys.text("parallelism.pipeline_parallel_schedule").value_or("1F1B");
    const bool single = schedule == "1F1B" || schedule == "1f1b" || schedule == "GPipe";
    const std::int64_t count =
        of_stage && *of_stage > 0 ? (units + *of_stage - 1) / *of_stage : *plan.pp * (single ? 1 : 2);
    if (count % *plan.pp != 0) {
        plan.tell(fmt::format("CONTRADICTION: {} layers of {} a stage make {} stages, no multiple of pp {}", units,
                              of_stage.value_or(0), count, *plan.pp));
        return;
    }
    if (count > *plan.pp)
        plan.vpp = count / *plan.pp;
    std::vector<std::int64_t> layers(static_cast<std::size_t>(count), units / count);
    for (std::int64_t i = 0; i < units % count; ++i)
        ++layers[static_cast<std::size_t>(i)];
    layers.front() -= first_less;
    layers.back() -= last_less;
    if (std::any_of(layers.begin(), layers.end(), [&](std::int64_t n) { return n != layers.front(); }))
        plan.stage_layers = std::move(layers);
}

// Behind a pipeline the local batch of a rank is cut into micro-batches of pipeline_parallel_microbatch_size.
void batches(const Keys& keys, Plan& plan) {
    const auto local = first(keys, {"training.local_batch_size", "training.batch_size"});
    plan.micro_batch = local;
    const auto cut = keys.integer("parallelism.pipeline_parallel_microbatch_size");
    if (*plan.pp > 1)
        plan.micro_batch = cut.value_or(1);
    plan.global_batch = keys.integer("training.global_batch_size");
    if (plan.global_batch && *plan.global_batch < 0)
        plan.global_batch.reset();
    if (plan.global_batch || !local)
        return;
    if (*local % *plan.micro_batch != 0)
        return plan.tell(
            fmt::format("CONTRADICTION: local_batch_size {} is no multiple of pipeline_parallel_microbatch_size {}",
                        *local, *plan.micro_batch));
    plan.accumulation = *local / *plan.micro_batch;
    plan.tell(fmt::format("no accumulation: the global batch is {} x dp", *local));
}

}  // namespace

std::span<const TitanModel> torchtitan_models() { return kModels; }

Plan import_torchtitan(const Source& source, const Options& options) {
    Plan plan = begin(source, options, "torchtitan");
    const Tree root = parse_toml_tree(source.text, source.file);
    const Keys keys(root, source.file, plan.told);
    model(keys, plan);
    plan.tp = first(keys, {"parallelism.tensor_parallel_degree", "training.tensor_parallel_degree"}).value_or(1);
    plan.pp =
        first(keys, {"parallelism.pipeline_parallel_degree", "experimental.pipeline_parallel_degree"}).value_or(1);
    plan.cp = first(keys, {"parallelism.context_parallel_degree", "experimental.context_parallel_degree"}).value_or(1);
    if (const auto ep = keys.integer("parallelism.expert_parallel_degree"))
        plan.ep = ep;
    if (const auto etp = keys.integer("parallelism.expert_tensor_parallel_degree"))
        plan.etp = etp;
    plan.sp = *plan.tp > 1;  // its tensor-parallel plans always shard norms by sequence
    data_parallel(keys, plan);

    plan.sequence = keys.integer("training.seq_len");
    plan.steps = keys.integer("training.steps");
    const std::string reshard = keys.text("parallelism.fsdp_reshard_after_forward").value_or("default");
    if (reshard == "never" || (reshard == "default" && *plan.pp > 1)) {
        plan.reshard = false;
        plan.tell("gathered parameters are kept between forward and backward (fsdp_reshard_after_forward)");
    }
    batches(keys, plan);
    stages(keys, plan);
    if (const auto rotate = keys.text("parallelism.context_parallel_rotate_method"); rotate && *plan.cp > 1)
        plan.context_exchange = *rotate == "allgather" ? "all_gather" : "ring";
    precision(keys, plan, source.file);

    const std::string recompute = keys.text("activation_checkpoint.mode").value_or("selective");
    plan.recompute = recompute == "full" || recompute == "none" ? recompute : "selective";
    if (recompute == "selective")
        plan.tell(
            fmt::format("activation checkpointing is selective by `{}`; the nearest here recomputes the attention core",
                        keys.text("activation_checkpoint.selective_ac_option").value_or("op")));
    const bool compiled = keys.is("compile.enable") || (keys.at("training.compile") && keys.is("training.compile"));
    keys.at("compile.components");
    const bool asynchronous =
        keys.is("parallelism.enable_async_tensor_parallel") || keys.is("experimental.enable_async_tensor_parallel");
    plan.software = asynchronous && compiled ? "torchtitan-2024" : compiled ? "torch-fsdp-compile" : "torch-fsdp";
    if (asynchronous)
        plan.tell(fmt::format("asynchronous tensor parallelism is on{}",
                              compiled ? ": software torchtitan-2024 hides half of its traffic"
                                       : ", but needs compile, which is off: no effect"));
    plan.overlap_grad_reduce = plan.overlap_param_gather = true;
    if (const auto name = keys.text("optimizer.name"))
        take_optimizer(plan, *name);
    if (keys.is("training.enable_cpu_offload"))
        plan.offload_optimizer = plan.offload_parameters = "cpu";
    if (keys.text("model.attn_mask_type").value_or("") == "block_causal")
        tell_packed(plan, "attn_mask_type block_causal");

    if (const auto schedule = keys.text("parallelism.pipeline_parallel_schedule")) {
        if (*plan.pp == 1)
            plan.tell(fmt::format("schedule {} is named with one stage: no effect", *schedule));
        else if (*schedule == "1F1B" || *schedule == "1f1b")
            plan.schedule = "1f1b";
        else if (*schedule == "GPipe")
            plan.schedule = "gpipe";
        else if (*schedule == "Interleaved1F1B")
            plan.schedule = "interleaved";
        else if (*schedule == "ZBVZeroBubble")
            plan.schedule = "zb-v";
        else
            plan.tell(fmt::format("schedule {} has to be said by hand (training.schedule)", *schedule));
    }
    if (plan.model_preset == "deepseek-v3" && plan.ep.value_or(1) == 1)
        plan.tell(
            "671 billion parameters without expert parallelism: a GPU gathers 11.3 billion of a layer's experts at a "
            "time; check the memory on small worlds");
    offer_comments(plan, source.text);
    return end(std::move(plan), keys);
}

}  // namespace fabricast::import
