#include "models/transformer/hf_config.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "models/transformer/hf_families.hpp"
#include "models/transformer/hf_keys.hpp"

namespace fabricast {
namespace {

using detail::HfFamily;
using detail::HfKeys;

std::string base_name(const std::string& path) {
    const std::size_t slash = path.find_last_of('/');
    std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
    return name.substr(0, name.rfind('.'));
}

/// Shapes no layer can be made of.
void check_shape(const HfKeys& k, const Architecture& a) {
    for (const auto& [value, what] : {std::pair{a.layers, "layers"},
                                      {a.hidden, "the hidden size"},
                                      {a.heads, "heads"},
                                      {a.kv_heads, "key and value heads"},
                                      {a.head_dim, "the width of a head"},
                                      {a.ffn, "the MLP width"},
                                      {a.vocab, "the vocabulary"}})
        if (value <= 0)
            k.fail(fmt::format("{} cannot be 0", what));
    if (a.heads % a.kv_heads != 0)
        k.fail(fmt::format("{} query heads cannot share {} key and value heads evenly", a.heads, a.kv_heads));
    if (a.moe.experts > 0 && (a.moe.top_k < 1 || a.moe.top_k > a.moe.experts || a.moe.every < 1))
        k.fail(fmt::format("a token cannot visit {} of {} experts", a.moe.top_k, a.moe.experts));
}

}  // namespace

std::vector<std::string> hf_model_types() {
    std::vector<std::string> types;
    for (const HfFamily& f : detail::hf_families())
        types.emplace_back(f.type);
    return types;
}

std::string generic_model_form() {
    return "model: {layers: 32, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336, vocab: 128256}, with moe: {experts: "
           "8, "
           "top_k: 2, ffn: 14336} and mla: {key_value_rank: 512, nope_dim: 128, rope_dim: 64, value_dim: 128} where it "
           "has "
           "them";
}

HfConfig read_hf_config(const std::string& json, const std::string& name) {
    HfKeys keys(json, name);
    HfConfig c;
    c.model_type = keys.text("model_type");
    const auto families = detail::hf_families();
    const auto family =
        std::find_if(families.begin(), families.end(), [&](const HfFamily& f) { return f.type == c.model_type; });
    if (family == families.end()) {
        std::string known;
        for (const HfFamily& f : detail::hf_families())
            known += fmt::format("{}{}", known.empty() ? "" : ", ", f.type);
        keys.fail(fmt::format(
            "{}; known are {}. Any other decoder can be said by its shapes: {}",
            c.model_type.empty() ? "model_type is missing" : fmt::format("model_type `{}` is not known", c.model_type),
            known, generic_model_form()));
    }
    c.model.family = family->family;
    c.model.name = base_name(name);
    c.model.source = fmt::format("config.json of model_type {} ({})", c.model_type, name);
    family->read(keys, c);
    if (keys.has("quantization_config"))
        c.notes.emplace_back("the checkpoint is stored quantised; that says nothing about the precision of training");
    check_shape(keys, c.model);
    c.ignored = keys.unread();
    return c;
}

}  // namespace fabricast
