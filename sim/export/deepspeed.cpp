// ds_config.json. JSON has no comments: what is not said stands in the notes alone.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/export/launch.hpp"
#include "sim/export/notes.hpp"

namespace fabricast::launch {
namespace {

using nlohmann::ordered_json;

ordered_json zero(const TrainingPlan& p, Notes& notes) {
    const Layout& l = p.layout;
    ordered_json out = {{"stage", l.zero}};
    if (l.zero > 0)
        out["overlap_comm"] = p.overlap_grad_reduce;
    if (p.offload.optimizer > 0) {
        out["offload_optimizer"] = {{"device", "cpu"}};
        if (p.offload.optimizer < 1)
            out["offload_optimizer"]["ratio"] = p.offload.optimizer;
    }
    if (p.offload.parameters)
        out["offload_param"] = {{"device", "cpu"}};
    if (l.zero == 3 && l.shard_group > 0 && l.shard_group < l.dp)
        out["mics_shard_size"] = l.shard_group;
    else if (l.zero > 0 && l.shard_group > 0 && l.shard_group < l.dp)
        notes.add(fmt::format("sharding in groups of {} ranks, which DeepSpeed has for stage 3 only", l.shard_group));
    if (l.zero > 0 && l.zero < 3 && p.overlap_param_gather)
        notes.add("gathering of parameters beside compute, which DeepSpeed has for stage 3 only");
    if (l.zero == 3 && !p.reshard_after_forward)
        notes.add("parameters kept gathered between forward and backward");
    CompressedTraffic rest = p.compression;
    if (rest.parameters == Compression::int8) {
        out["zero_quantized_weights"] = true;
        rest.parameters = Compression::none;
    }
    if (rest.gradients == Compression::int4) {
        out["zero_quantized_gradients"] = true;
        rest.gradients = Compression::none;
    }
    if (rest.gradients == Compression::one_bit_adam && p.optimizer.kind == OptimizerKind::adam)
        rest.gradients = Compression::none;  // an optimizer there
    notes.compression(rest);
    return out;
}

// What the program around DeepSpeed says.
void note_layout(const Scenario& s, const TrainingPlan& p, Notes& notes) {
    const Layout& l = p.layout;
    notes.add(fmt::format("the model {} and {} x {} GPUs: deepspeed --num_nodes {} --num_gpus {}", s.model.name,
                          s.nodes, s.node.gpus, s.nodes, s.node.gpus));
    notes.add(fmt::format("the sequence, {} tokens", p.sequence));
    if (l.tp * l.pp * l.cp * l.ep > 1)
        notes.add(fmt::format(
            "tp {}, pp {}, cp {}, ep {}: the program that calls DeepSpeed cuts the model (Megatron-DeepSpeed: "
            "--tensor-model-parallel-size {} --pipeline-model-parallel-size {})",
            l.tp, l.pp, l.cp, l.ep, l.tp, l.pp));
    if (p.capacity_factor > 0)
        notes.add(fmt::format("experts that take {} times their share of tokens at most, which the model's code has",
                              p.capacity_factor));
    if (p.recompute != Recompute::none)
        notes.add("recomputation, which the model's code calls");
}

}  // namespace

Launch deepspeed_launch(const Scenario& scenario, const TrainingPlan& p) {
    Notes notes;
    note_layout(scenario, p, notes);
    ordered_json json = {{"train_batch_size", p.global_batch},
                         {"train_micro_batch_size_per_gpu", p.micro_batch},
                         {"gradient_accumulation_steps", p.micro_batches()},
                         {"zero_optimization", zero(p, notes)}};
    if (p.precision == Precision::bf16 || p.precision == Precision::fp8)
        json["bf16"] = {{"enabled", true}};
    else if (p.precision == Precision::fp16)
        json["fp16"] = {{"enabled", true}};
    if (p.precision == Precision::fp8)
        notes.add("fp8, which the model's code has; this says bf16");
    const Optimizer& o = p.optimizer;
    if (o.kind == OptimizerKind::lion)
        json["optimizer"] = {{"type", "Lion"}};
    else if (o.kind == OptimizerKind::sgd || o.kind == OptimizerKind::sgd_momentum)
        json["optimizer"] = {{"type", "SGD"}, {"params", {{"momentum", o.kind == OptimizerKind::sgd ? 0.0 : 0.9}}}};
    else if (p.compression.gradients == Compression::one_bit_adam)
        json["optimizer"] = {{"type", "OneBitAdam"}};
    else
        json["optimizer"] = {{"type", "AdamW"}};
    if (o.kind != OptimizerKind::adam && !json["optimizer"].contains("params") && o.kind != OptimizerKind::lion)
        notes.add(fmt::format("the optimizer {}", optimizer_name(o.kind)));
    const Optimizer usual;
    const bool narrow = o.first != usual.first || o.second != usual.second ||
                        (o.master != usual.master && p.precision != Precision::fp32);
    if (o.kind != OptimizerKind::adam_8bit && narrow)
        notes.add(fmt::format("the state of the optimizer: {}", optimizer_text(o)));
    if (p.clip_gradients)  // it does not where nothing is said
        json["gradient_clipping"] = 1.0;
    return {json.dump(2) + "\n", notes.take()};
}

}  // namespace fabricast::launch
