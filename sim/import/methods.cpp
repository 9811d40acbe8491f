// Names: torch.optim, apex, Transformer Engine, Megatron-Core (--optimizer), NeMo (optim.name), transformers (OptimizerNames),
// bitsandbytes, DeepSpeed (optimizer.type), Composer and llm-foundry, torchao.
#include "sim/import/methods.hpp"

#include <cctype>

#include <fmt/format.h>

#include "sim/scenario/nearest.hpp"

namespace fabricast::import {
namespace {

struct Name {
    const char *theirs, *ours;
};
constexpr Name kNames[] = {
    {"adam", "adam"},
    {"adamw", "adam"},
    {"adamwtorch", "adam"},
    {"adamwtorchfused", "adam"},
    {"adamwtorchxla", "adam"},
    {"adamwapexfused", "adam"},
    {"adamwhf", "adam"},
    {"fusedadam", "adam"},
    {"cpuadam", "adam"},
    {"deepspeedcpuadam", "adam"},
    {"distributedfusedadam", "adam"},
    {"mcoredistributedoptim", "adam"},
    {"megatronfusedadam", "adam"},
    {"decoupledadamw", "adam"},
    {"adampax", "adam"},
    {"adamwbnb8bit", "adam-8bit"},
    {"adamw8bit", "adam-8bit"},
    {"adam8bit", "adam-8bit"},
    {"adamwtorch8bit", "adam-8bit"},
    {"lion", "lion"},
    {"lion32bit", "lion"},
    {"fusedlion", "lion"},
    {"decoupledlionw", "lion"},
    {"sgd", "sgd"},
    {"fusedsgd", "sgd"},
    {"muon", "muon"},
    {"distmuon", "muon"},
    {"adafactor", "adafactor"},
};

std::string squeezed(const std::string& text) {
    std::string out;
    for (const char c : text)
        if (std::isalnum(static_cast<unsigned char>(c)))
            out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

}  // namespace

void take_optimizer(Plan& plan, const std::string& name, bool momentum) {
    std::string wanted = squeezed(name);
    if (wanted == "onebitadam" || wanted == "zerooneadam") {
        plan.optimizer = "adam";
        plan.compression_gradients = "1-bit-adam";
        if (wanted == "zerooneadam")
            plan.tell("0/1 Adam is counted as 1-bit Adam: its steps without any exchange are not");
        return;
    }
    if (wanted.starts_with("paged")) {
        plan.tell(fmt::format("{}: paging to host memory is not counted, its state as if it stayed on the GPU", name));
        wanted.erase(0, 5);
        if (wanted == "adamw32bit")
            wanted = "adamw";
    }
    if (wanted == "lion8bit") {
        plan.optimizer = "lion";
        plan.moments = "int8";
        return;
    }
    for (const Name& one : kNames) {
        if (wanted != one.theirs)
            continue;
        plan.optimizer = one.ours;
        if (*plan.optimizer == "sgd" && momentum)
            plan.optimizer = "sgd-momentum";
        return;
    }
    const std::vector<std::string> known = {"adam",         "adamw",     "adam-8bit", "lion",      "sgd",
                                            "sgd-momentum", "adafactor", "muon",      "1-bit Adam"};
    throw ImportError(fmt::format("{}: optimizer `{}` is not modelled{}; modelled are {}", plan.file, name,
                                  did_you_mean(name, known), listed(known)));
}

std::optional<std::string> state_type(Plan& plan, const std::string& key, const std::string& value) {
    const std::string word =
        squeezed(value.substr(value.find_last_of('.') == std::string::npos ? 0 : value.find_last_of('.') + 1));
    for (const auto& [theirs, ours] : {std::pair{"fp32", "fp32"},
                                       {"float32", "fp32"},
                                       {"bf16", "bf16"},
                                       {"bfloat16", "bf16"},
                                       {"fp16", "fp16"},
                                       {"float16", "fp16"},
                                       {"fp8", "fp8"},
                                       {"uint8", "fp8"}})
        if (word == theirs)
            return ours;
    plan.tell(fmt::format("{}: type `{}` of optimizer state is not known; fp32 is taken", key, value));
    return std::nullopt;
}

void settle_state_types(Plan& plan) {
    if (plan.second_moment && !plan.moments)
        plan.moments = "fp32";
    if (plan.second_moment == plan.moments)
        plan.second_moment.reset();
    if ((plan.moments || plan.master) && !plan.optimizer)
        plan.optimizer = "adam";
}

void tell_packed(Plan& plan, const std::string& key) {
    plan.tell(
        fmt::format("{}: samples are packed to the full sequence. Where documents attend to themselves alone, say "
                    "their mean length as training.packed; without it attention is that of whole sequences",
                    key));
}

std::optional<std::string> offload_device(const Plan& plan, const std::string& key, const std::string& device) {
    if (device == "nvme")
        throw ImportError(
            fmt::format("{}: {} is nvme; offload to NVMe drives is not modelled, cpu is", plan.file, key));
    return device == "cpu" ? std::optional<std::string>("cpu") : std::nullopt;
}

}  // namespace fabricast::import
