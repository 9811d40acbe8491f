// Rules of optimizer, offload and compression that depend on the layout.
#include <fmt/format.h>

#include "models/parallel/layout.hpp"
#include "models/parallel/placement.hpp"

namespace fabricast {
namespace {

std::string check_offload(const TrainingPlan& plan, std::string& field) {
    const Offload& o = plan.offload;
    const OptimizerKind kind = plan.optimizer.kind;
    field = "training.offload.optimizer";
    if (o.optimizer > 0 &&
        (kind == OptimizerKind::adam_8bit || kind == OptimizerKind::adafactor || kind == OptimizerKind::muon))
        return fmt::format("{} has no update on the CPU; adam, lion, sgd and sgd-momentum do", optimizer_name(kind));
    if (o.optimizer > 0 && !(o.host_bytes_per_s > 0))
        return "the server's memory bandwidth is not known; give cluster.node.host_bandwidth";
    field = "training.offload.parameters";
    if (o.parameters && plan.layout.zero != 3)
        return fmt::format("weights on the host are gathered as they are needed, which is zero: 3; it is {}",
                           plan.layout.zero);
    return {};
}

std::string check_compression(const TrainingPlan& plan, std::string& field) {
    const CompressedTraffic& c = plan.compression;
    const Layout& l = plan.layout;
    const bool block = c.parameters == Compression::fp8 || c.parameters == Compression::int8;
    field = "comm.compression.parameters";
    if (c.parameters != Compression::none && !block)
        return fmt::format(
            "{} compresses sums; parameters are gathered, not summed. fp8 and int8 send a byte an element",
            compression_name(c.parameters));
    if (block && l.zero == 0)
        return "with zero 0 parameters are not gathered, there is nothing to compress";
    field = "comm.compression.tensor_parallel";
    if (c.tensor_parallel != Compression::none && c.tensor_parallel != Compression::fp8 &&
        c.tensor_parallel != Compression::int8)
        return fmt::format("{} is made for gradients; hidden states travel in fp8 or int8",
                           compression_name(c.tensor_parallel));
    if (c.tensor_parallel != Compression::none && l.tp == 1)
        return "with tp 1 there is no such traffic";
    field = "comm.compression.gradients";
    const bool whole = c.gradients == Compression::one_bit_adam || c.gradients == Compression::powersgd;
    if (whole && l.zero > 0)
        return fmt::format("{} feeds the error of whole gradients back and runs with zero: 0; it is {}",
                           compression_name(c.gradients), l.zero);
    if (c.gradients == Compression::one_bit_adam && plan.optimizer.kind != OptimizerKind::adam)
        return fmt::format("1-bit-adam compresses Adam's momentum; the optimizer is {}",
                           optimizer_name(plan.optimizer.kind));
    if (c.gradients != Compression::none && replicas(l) * l.cp == 1)
        return "with one data-parallel rank gradients are not reduced";
    if (c.gradients != Compression::none && plan.optimizer.kind == OptimizerKind::muon && l.zero > 0 &&
        c.gradients != Compression::fp16 && c.gradients != Compression::bf16)
        return fmt::format("muon's matrices are reduced whole to their owners, which {} does not do",
                           compression_name(c.gradients));
    return {};
}

}  // namespace

std::string check_methods(const TrainingPlan& plan, std::string& field) {
    for (const auto check : {check_offload, check_compression}) {
        std::string key;
        if (std::string sentence = check(plan, key); !sentence.empty()) {
            field = key;
            return sentence;
        }
    }
    return {};
}

}  // namespace fabricast
