#include "sim/import/importers.hpp"

#include <fmt/format.h>

#include "models/transformer/hf_config.hpp"

namespace fabricast::import {
namespace {

constexpr Format kFormats[] = {
    {"hf", "config.json", import_hf},
    {"megatron", "train.sh", import_megatron},
    {"megatron-bridge", "override.yaml", import_megatron_bridge},
    {"nemo", "conf.yaml", import_nemo},
    {"torchtitan", "job.toml", import_torchtitan},
    {"deepspeed", "ds_config.json", import_deepspeed},
    {"gpt-neox", "20B.yml", import_gpt_neox},
    {"nanotron", "config.yaml", import_nanotron},
    {"llm-foundry", "mpt.yaml", import_llm_foundry},
    {"axolotl", "config.yaml", import_axolotl},
    {"llama-factory", "train.yaml", import_llama_factory},
    {"maxtext", "model.yml", import_maxtext},
};

std::string stem(const std::string& path) {
    const std::size_t slash = path.find_last_of('/');
    const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
    return name.substr(0, name.rfind('.'));
}

}  // namespace

std::span<const Format> formats() { return kFormats; }

Plan begin(const Source& source, const Options& options, std::string format) {
    Plan plan;
    plan.file = source.file;
    plan.name = stem(source.file);
    plan.format = std::move(format);
    plan.world = options.gpus;
    return plan;
}

Plan end(Plan plan, const Keys& keys) {
    plan.ignored = keys.unread();
    finish(plan);
    return plan;
}

void offer_comments(Plan& plan, const std::string& text) {
    if (plan.world || (plan.nodes && plan.gpus_per_node))
        return;
    for (const std::int64_t count : gpus_in_comments(text))
        plan.tell(
            fmt::format("a comment speaks of {} GPUs; that is not taken: give --gpus {} if it is so", count, count));
}

Plan import_hf(const Source& source, const Options& options) {
    Plan plan = begin(source, options, "Hugging Face config.json");
    plan.layout_said = false;
    try {
        const HfConfig config = read_hf_config(source.text, source.file);
        plan.format += ", model_type " + config.model_type;
        const ParameterCount count = count_parameters(config.model, config.model.vocab);
        plan.comments.push_back(fmt::format("{} parameters", count.total()));
        if (count.active() != count.total())
            plan.comments.back() += fmt::format(", {} active a token", count.active());
        if (count.mtp > 0)
            plan.comments.back() += fmt::format(", {} more in prediction modules", count.mtp);
        plan.model = config.model;
        plan.told = config.notes;
        plan.ignored = config.ignored;
    } catch (const ConfigError& error) {
        throw ImportError(error.what());
    }
    finish(plan);
    return plan;
}

}  // namespace fabricast::import
