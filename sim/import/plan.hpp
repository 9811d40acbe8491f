// What a launch says about a run, whatever program it is for, and the arithmetic all of them share.
//
//   world = nodes x GPUs a node;  inner = tp x pp x cp;  dp = world / inner
//   global batch = micro batch x accumulation x dp, whichever of the three is not said
// A reader fills what its format says and puts the format's defaults in where they are certain; what is not said stays
// empty. finish() derives the rest, tells every contradiction and lists what is still missing. Nothing is repaired: where
// two statements exclude each other the layout is kept and the smaller statement is left out, with a sentence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/transformer/architecture.hpp"

namespace fabricast::import {

struct Plan {
    std::string file, format, name;

    std::optional<std::int64_t> world, nodes, gpus_per_node;
    std::optional<std::int64_t> tp, pp, vpp, cp, ep, etp, dp, zero, shard_group;
    std::vector<std::int64_t> stage_layers;
    std::optional<bool> sp;
    std::optional<std::int64_t> sequence, micro_batch, global_batch, accumulation;
    std::optional<std::string> precision, schedule, recompute, software;
    std::optional<std::string> context_exchange,
        expert_dispatch;  ///< words of training.layout.cp_exchange, moe.dispatch
    std::optional<double> capacity_factor;
    std::optional<std::int64_t> recompute_layers;
    std::optional<std::string> optimizer, master, moments, second_moment;  ///< words of training.optimizer
    std::optional<std::string> offload_optimizer, offload_parameters;      ///< "cpu"
    std::optional<double> offload_fraction;
    std::optional<bool> offload_overlap;
    std::optional<std::string> compression_gradients, compression_parameters;  ///< words of comm.compression
    std::optional<bool> overlap_grad_reduce, overlap_param_gather, reshard;
    std::optional<std::int64_t> steps;  ///< of the whole run
    std::optional<double> tokens;       ///< of the whole run; from the steps when absent

    std::optional<Architecture> model;    ///< complete shapes
    std::string model_preset;             ///< a name of the catalogue
    std::vector<std::string> model_keys;  ///< "layers: 44" where the shape is not complete

    bool layout_said = true;   ///< the format has a layout at all
    bool layout_open = false;  ///< a degree is said, but its value is not known
    bool flags_open = false;   ///< more flags may stand where the file cannot be followed
    bool refused_batch = false;
    std::vector<std::string> told;      ///< sentences: traps, contradictions, what a forecast counts differently
    std::vector<std::string> ignored;   ///< keys
    std::vector<std::string> missing;   ///< what must still be said, "training.sequence (why)"
    std::vector<std::string> comments;  ///< into the scenario, beside the source

    std::int64_t inner() const { return tp.value_or(1) * pp.value_or(1) * cp.value_or(1); }
    void tell(std::string sentence);
    void miss(std::string what);
};

/// Derives, checks, lists what is missing.
void finish(Plan& plan);

/// The scenario as YAML, with `plan.comments` on top.
std::string scenario_yaml(const Plan& plan);

/// Everything that did not go into the scenario, for stderr.
std::string remarks(const Plan& plan);

/// Architecture -> the lines below `model:` that read back as the same shapes.
std::vector<std::string> model_lines(const Architecture& a);

/// Shapes the format does not give completely: what is there becomes model_keys, the rest is missing.
void take_partial_model(Plan& plan, const Architecture& a, const std::vector<std::string>& absent);

/// A model named the way hubs name it ("meta-llama/Llama-3.1-8B") -> a preset, or told as unknown.
void take_model_name(Plan& plan, const std::string& name);

}  // namespace fabricast::import
