// The field table below `plan`.
#include "sim/scenario/field_kinds.hpp"

namespace fabricast {
namespace {

using namespace field_kinds;

constexpr Field integers(std::string_view path, double low, std::string_view doc) {
    return {.path = path, .kind = K::integers, .doc = doc, .low = low, .high = 1e9};
}
constexpr Field words(std::string_view path, std::string_view allowed, std::string_view doc) {
    return {.path = path, .kind = K::words, .doc = doc, .allowed = allowed};
}

constexpr Field kPlanFields[] = {
    section("plan",
            "What `fabricast plan` varies; dimensions that are not named take all that divides, or what is usual."),
    integers("plan.gpus", 1, "Numbers of GPUs, whole servers; the cluster's when absent."),
    words("plan.node", "nodes", "Servers of the catalogue; the cluster's when absent."),
    words("plan.nic", "", "Line rates of a network adapter, such as 200 Gb/s; the cluster's when absent."),
    {.path = "plan.oversubscription",
     .kind = K::numbers,
     .doc = "Of the fabric; the cluster's when absent.",
     .low = 1,
     .high = 1000},
    words("plan.precision", "bf16|fp16|fp8|fp32", "The training's when absent."),
    integers("plan.tp", 1, "Tensor parallel; powers of two within a server, or its NVLink domain, when absent."),
    words("plan.sp", "true|false", "Sequence parallel where tp is above 1; true when absent."),
    integers("plan.cp", 1, "Context parallel; when absent 1, from 16384 tokens on also powers of two up to 16."),
    words("plan.cp_exchange", "ring|all_gather|ulysses", "The layout's when absent."),
    integers("plan.pp", 1,
             "Pipeline parallel; when absent all that cut the layers evenly, or with one layer less at both "
             "ends, up to 64."),
    integers("plan.vpp", 1, "Chunks of a stage; 1, 2, 3, 4, 6 and 8 when absent."),
    integers("plan.ep", 1, "Expert parallel; powers of two that divide the experts when absent."),
    words("plan.schedule", "gpipe|1f1b|interleaved|zb-h1|zb-h2|zb-v|dual-pipe", "1f1b and interleaved when absent."),
    integers("plan.micro_batch", 1, "Sequences; 1, 2, 4 and 8 when absent."),
    integers("plan.global_batch", 1, "Sequences; the training's when absent."),
    integers("plan.zero", 0, "ZeRO stages; 1 and 3 when absent."),
    integers("plan.shard_group", 0, "Ranks that share one sharded copy, 0: all; 0 when absent."),
    words("plan.recompute", "none|selective|full", "All three when absent."),
    words("plan.overlap", "none|gradients|parameters|both", "Data-parallel traffic beside compute; both when absent."),
    words("plan.order", "", "Placement of ranks, such as tp-cp-ep-dp-pp; the layout's when absent."),
    words("plan.where", "",
          "Conditions that a plan must meet, such as tp <= 8, mfu > 0.4, memory <= 70: products of numbers and of "
          "gpus, tp, "
          "cp, pp, vpp, ep, dp, zero, shard_group, micro_batch, global_batch, micro_batches, memory (GiB), mfu, step "
          "(s), "
          "days, cost, tokens_per_s, bubble, exposed."),
    {.path = "plan.price",
     .kind = K::open_map,
     .doc = "Price of a GPU-hour by GPU, such as h100: 2.50; in place of run.price."},
    text("plan.price.*", "Price of a GPU-hour: 2.50, or with its currency, 2.50 USD/GPU-h."),
    choice("plan.by", "days|cost", "days", "What the table is ranked by."),
    integer("plan.top", 1, 1000, "10", "Rows of the table."),
};

}  // namespace

std::span<const Field> plan_fields() { return kPlanFields; }

}  // namespace fabricast
