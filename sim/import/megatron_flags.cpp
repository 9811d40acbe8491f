#include "sim/import/megatron_flags.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/import/tree.hpp"

namespace fabricast::import {
namespace {

struct Rename {
    const char *old, *now;
};
constexpr Rename kRenames[] = {
    {"model-parallel-size", "tensor-model-parallel-size"},
    {"batch-size", "micro-batch-size"},
    {"encoder-seq-length", "seq-length"},
    {"num-virtual-stages-per-pipeline-rank", "num-virtual-stages-per-pipeline-rank"},
    {"use-custom-fsdp", "use-megatron-fsdp"},
    {"hybrid-override-pattern", "hybrid-layer-pattern"},
    {"encoder-num-layers", "num-layers"},
};

/// Flags this reader acts on; abbreviations are completed among them.
constexpr const char* kKnown[] = {"tensor-model-parallel-size",
                                  "pipeline-model-parallel-size",
                                  "context-parallel-size",
                                  "expert-model-parallel-size",
                                  "expert-tensor-parallel-size",
                                  "num-layers-per-virtual-pipeline-stage",
                                  "num-virtual-stages-per-pipeline-rank",
                                  "pipeline-model-parallel-layout",
                                  "sequence-parallel",
                                  "micro-batch-size",
                                  "global-batch-size",
                                  "seq-length",
                                  "rampup-batch-size",
                                  "step-batch-size-schedule",
                                  "num-layers",
                                  "hidden-size",
                                  "ffn-hidden-size",
                                  "num-attention-heads",
                                  "group-query-attention",
                                  "num-query-groups",
                                  "kv-channels",
                                  "max-position-embeddings",
                                  "position-embedding-type",
                                  "use-rotary-position-embeddings",
                                  "no-position-embedding",
                                  "swiglu",
                                  "normalization",
                                  "disable-bias-linear",
                                  "add-qkv-bias",
                                  "untie-embeddings-and-output-weights",
                                  "make-vocab-size-divisible-by",
                                  "vocab-size",
                                  "padded-vocab-size",
                                  "qk-layernorm",
                                  "num-experts",
                                  "moe-router-topk",
                                  "moe-ffn-hidden-size",
                                  "moe-shared-expert-intermediate-size",
                                  "moe-layer-freq",
                                  "multi-latent-attention",
                                  "q-lora-rank",
                                  "kv-lora-rank",
                                  "qk-head-dim",
                                  "qk-pos-emb-head-dim",
                                  "v-head-dim",
                                  "mtp-num-layers",
                                  "bf16",
                                  "fp16",
                                  "fp8-format",
                                  "use-distributed-optimizer",
                                  "overlap-grad-reduce",
                                  "overlap-param-gather",
                                  "recompute-granularity",
                                  "recompute-activations",
                                  "use-megatron-fsdp",
                                  "use-torch-fsdp2",
                                  "train-iters",
                                  "train-samples",
                                  "train-tokens",
                                  "hybrid-layer-pattern",
                                  "cp-comm-type",
                                  "window-size",
                                  "transformer-impl",
                                  "use-flash-attn",
                                  "optimizer",
                                  "use-precision-aware-optimizer",
                                  "exp-avg-dtype",
                                  "exp-avg-sq-dtype",
                                  "main-params-dtype",
                                  "main-grads-dtype",
                                  "optimizer-cpu-offload",
                                  "optimizer-offload-fraction",
                                  "overlap-cpu-optimizer-d2h-h2d"};

}  // namespace

Flags::Flags(const std::vector<std::string>& words, Plan& plan) : plan_(plan) {
    std::vector<std::string> flat;
    for (const std::string& word : words) {
        if (!word.starts_with("--") || word.find(' ') == std::string::npos) {
            flat.push_back(word);
            continue;
        }
        std::string part;  // flag and value in one quoted word
        for (const char c : word + " ") {
            if (c != ' ')
                part += c;
            else if (!part.empty())
                flat.push_back(std::move(part)), part.clear();
        }
    }
    const auto open = [&](const std::string& word) {
        if (!word.starts_with("${"))
            return false;
        plan_.tell(fmt::format("`{}` is not set; flags it may hold are unknown", word));
        plan_.flags_open = plan_.flags_open || word.find("EXTRA") == std::string::npos;
        return true;
    };
    for (std::size_t i = 0; i < flat.size(); ++i) {
        if (!flat[i].starts_with("--")) {
            open(flat[i]);
            continue;
        }
        std::string name = flat[i].substr(2);
        std::vector<std::string> values;
        if (const std::size_t equals = name.find('='); equals != std::string::npos) {
            values.push_back(name.substr(equals + 1));
            name.resize(equals);
        }
        while (i + 1 < flat.size() && !flat[i + 1].starts_with("--"))
            if (const std::string& word = flat[++i]; values.empty() || !open(word))
                values.push_back(word);
        put(std::move(name), std::move(values), false);
    }
}

Flags::Flags(const std::vector<std::pair<std::string, std::string>>& pairs, Plan& plan) : plan_(plan) {
    for (const auto& [name, value] : pairs) {
        std::string bare = name.starts_with("--") ? name.substr(2) : name;
        if (value == "None" || value == "null" || value.empty())
            continue;
        put(std::move(bare), {value}, true);
    }
}

void Flags::put(std::string name, std::vector<std::string> values, bool literal) {
    const std::string typed = name;
    if (name.find('_') != std::string::npos) {
        std::replace(name.begin(), name.end(), '_', '-');
        if (!literal)
            plan_.tell(fmt::format("--{} is written with _; Megatron's own flags have -", typed));
    }
    for (const Rename& rename : kRenames) {
        if (name == rename.old && std::string_view(rename.old) != rename.now) {
            if (!literal && name != "encoder-seq-length")
                plan_.tell(fmt::format("--{} is an old name of --{}", name, rename.now));
            name = rename.now;
        }
    }
    if (!literal && name.size() > 4 && std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown)) {
        std::vector<const char*> fits;
        for (const char* full : kKnown)
            if (std::string_view(full).starts_with(name))
                fits.push_back(full);
        if (fits.size() == 1) {
            plan_.tell(fmt::format("--{} is taken as the abbreviation of --{}", name, fits.front()));
            name = fits.front();
        }
    }
    const auto found = values_.find(name);
    if (found != values_.end() && found->second != values)
        plan_.tell(fmt::format("--{} is given twice with different values; the last counts", name));
    values_[name] = std::move(values);
    read_.emplace(name, false);
}

bool Flags::has(const std::string& name) {
    const auto found = read_.find(name);
    if (found == read_.end())
        return false;
    found->second = true;
    return true;
}

std::optional<std::string> Flags::text(const std::string& name) {
    if (!has(name))
        return std::nullopt;
    std::string out;
    for (const std::string& value : values_[name])
        out += (out.empty() ? "" : " ") + value;
    if (holds_variable(out) || out.find('<') != std::string::npos) {
        plan_.tell(fmt::format("--{} is `{}`, which the script alone does not settle", name, out));
        return std::nullopt;
    }
    return out.empty() ? std::nullopt : std::optional(out);
}

std::optional<std::int64_t> Flags::integer(const std::string& name) {
    const auto value = text(name);
    if (!value)
        return std::nullopt;
    const auto number = whole_number(*value);
    if (!number)
        plan_.tell(fmt::format("--{} is `{}`, not a whole number; it is left out", name, *value));
    return number;
}

bool Flags::flag(const std::string& name) {
    if (!has(name))
        return false;
    const std::vector<std::string>& values = values_[name];
    return values.empty() || (values.front() != "False" && values.front() != "false" && values.front() != "0");
}

std::vector<std::string> Flags::unread() const {
    std::vector<std::string> out;
    for (const auto& [name, read] : read_)
        if (!read)
            out.push_back("--" + name);
    return out;
}

}  // namespace fabricast::import
