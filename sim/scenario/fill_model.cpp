#include <filesystem>

#include <fmt/format.h>

#include "models/transformer/hf_config.hpp"
#include "sim/scenario/document.hpp"
#include "sim/scenario/fill.hpp"

namespace fabricast {
namespace {

template <typename Owner, typename Type>
struct Key {
    std::string_view path;
    Type Owner::*member;
};
constexpr Key<Architecture, std::int64_t> kShapes[] = {
    {"model.layers", &Architecture::layers},
    {"model.hidden", &Architecture::hidden},
    {"model.heads", &Architecture::heads},
    {"model.kv_heads", &Architecture::kv_heads},
    {"model.head_dim", &Architecture::head_dim},
    {"model.ffn", &Architecture::ffn},
    {"model.vocab", &Architecture::vocab},
    {"model.vocab_multiple", &Architecture::vocab_multiple},
    {"model.max_positions", &Architecture::max_positions},
    {"model.window", &Architecture::window},
    {"model.full_every", &Architecture::full_every},
    {"model.mtp_layers", &Architecture::mtp_layers},
    {"model.mla.query_rank", &Architecture::query_rank},
    {"model.mla.key_value_rank", &Architecture::key_value_rank},
    {"model.mla.rope_dim", &Architecture::rope_dim},
    {"model.mla.value_dim", &Architecture::value_dim},
};
constexpr Key<Architecture, bool> kFeatures[] = {
    {"model.gated", &Architecture::gated},
    {"model.rms_norm", &Architecture::rms_norm},
    {"model.norm_bias", &Architecture::norm_bias},
    {"model.biases", &Architecture::biases},
    {"model.qkv_bias", &Architecture::qkv_bias},
    {"model.projection_bias", &Architecture::projection_bias},
    {"model.tied_embeddings", &Architecture::tied_embeddings},
    {"model.rotary", &Architecture::rotary},
    {"model.alibi", &Architecture::alibi},
    {"model.qk_norm", &Architecture::qk_norm},
    {"model.post_norms", &Architecture::post_norms},
    {"model.parallel_block", &Architecture::parallel_block},
    {"model.separate_norms", &Architecture::separate_norms},
    {"model.attention_sinks", &Architecture::attention_sinks},
};
constexpr Key<Moe, std::int64_t> kExperts[] = {
    {"model.moe.experts", &Moe::experts},
    {"model.moe.top_k", &Moe::top_k},
    {"model.moe.ffn", &Moe::ffn},
    {"model.moe.shared_ffn", &Moe::shared_ffn},
    {"model.moe.first_dense", &Moe::first_dense},
    {"model.moe.every", &Moe::every},
};
constexpr Key<Moe, bool> kExpertFeatures[] = {
    {"model.moe.router_bias", &Moe::router_bias},
    {"model.moe.score_bias", &Moe::score_bias},
    {"model.moe.shared_gate", &Moe::shared_gate},
    {"model.moe.expert_bias", &Moe::expert_bias},
};

void take_family(Answers& answers, Architecture& a) {
    a.family = answers.get("model.family").text;
    const bool gpt = a.family == "gpt";
    a.gated = a.rms_norm = a.rotary = !gpt;
    a.biases = a.tied_embeddings = gpt;
}

/// Lays given shapes over `a`; true when there was one.
bool take_shapes(const Answers& answers, Architecture& a) {
    bool changed = false;
    const auto integers = [&](const auto& keys, auto& owner) {
        for (const auto& key : keys)
            if (const Answer* given = answers.given(key.path))
                owner.*key.member = given->integer, changed = true;
    };
    const auto flags = [&](const auto& keys, auto& owner) {
        for (const auto& key : keys)
            if (const Answer* given = answers.given(key.path))
                owner.*key.member = given->flag, changed = true;
    };
    const std::int64_t nope = a.head_dim - a.rope_dim;
    integers(kShapes, a);
    flags(kFeatures, a);
    integers(kExperts, a.moe);
    flags(kExpertFeatures, a.moe);
    if (answers.given("model.mla")) {
        const Answer* given = answers.given("model.mla.nope_dim");
        a.head_dim = (given ? given->integer : a.attention == AttentionKind::latent ? nope : 0) + a.rope_dim;
        a.attention = AttentionKind::latent;
        changed = true;
    }
    return changed;
}

bool take_config(const Answer& path, Scenario& s, Diagnostics& diagnostics) {
    const std::filesystem::path folder =
        path.place.line > 0 ? std::filesystem::path(path.place.source).parent_path() : std::filesystem::path();
    std::string text;
    if (!read_file((folder / path.text).string(), path.place, text, diagnostics))
        return false;
    try {
        HfConfig config = read_hf_config(text, path.text);
        s.model = std::move(config.model);
        for (const std::string& note : config.notes)
            s.notes.push_back(fmt::format("model.hf: {}", note));
        return true;
    } catch (const ConfigError& error) {
        diagnostics.error(path.place, fmt::format("model.hf: {}", error.what()));
        return false;
    }
}

/// What latent attention and experts need beside each other.
void check_parts(const Answers& answers, const Architecture& a, Diagnostics& diagnostics) {
    const auto need = [&](std::string_view path, std::int64_t value) {
        if (value == 0)
            missing(answers, path, "", diagnostics);
    };
    if (a.attention == AttentionKind::latent) {
        need("model.mla.key_value_rank", a.key_value_rank);
        need("model.mla.rope_dim", a.rope_dim);
        need("model.mla.nope_dim", a.head_dim - a.rope_dim);
        need("model.mla.value_dim", a.value_dim);
        if (a.qk_norm || a.biases || a.qkv_bias)
            diagnostics.error(answers.place("model.mla"),
                              "model.mla: latent attention has neither biases nor norms of query and key heads");
    }
    if (answers.given("model.moe") && a.moe.experts == 0 && !answers.given("model.moe.experts"))
        missing(answers, "model.moe.experts", "; write moe: {experts: 8, top_k: 2, ffn: 14336}", diagnostics);
    if (a.moe.experts > 0) {
        need("model.moe.top_k", a.moe.top_k);
        need("model.moe.ffn", a.moe.ffn);
        if (a.moe.top_k > a.moe.experts)
            diagnostics.error(
                answers.place("model.moe.top_k"),
                fmt::format("model.moe.top_k: a token cannot visit {} of {} experts", a.moe.top_k, a.moe.experts));
        if (a.moe.shared_gate && a.moe.shared_ffn == 0)
            diagnostics.error(answers.place("model.moe.shared_gate"),
                              "model.moe.shared_gate: there are no shared experts; give shared_ffn");
    }
    if (a.full_every > 0 && a.window == 0)
        diagnostics.error(answers.place("model.full_every"),
                          "model.full_every: has a meaning only with a window; give model.window");
    if (a.separate_norms && !a.parallel_block)
        diagnostics.error(answers.place("model.separate_norms"),
                          "model.separate_norms: has a meaning only with parallel_block: true");
}

/// A model said by its shapes alone.
bool fill_shapes(Answers& answers, Architecture& a, Diagnostics& diagnostics) {
    if (!answers.given("model")) {
        missing(answers, "model", "; name a preset, such as model: llama3.1-8b, or give the shapes", diagnostics);
        return false;
    }
    for (const std::string_view key : {"model.layers", "model.hidden", "model.heads", "model.vocab"})
        if (!answers.given(key))
            missing(answers, key, "; give a preset or all of layers, hidden, heads, ffn, vocab", diagnostics);
    if (!diagnostics.ok())
        return false;
    take_family(answers, a);
    take_shapes(answers, a);
    a.name = fmt::format("{} {} x {}", a.family, a.layers, a.hidden);
    a.source = "shapes given in the scenario";
    if (a.kv_heads == 0 || a.attention == AttentionKind::latent)
        a.kv_heads = a.heads;
    const bool only_experts = a.moe.experts > 0 && a.moe.first_dense == 0 && a.moe.every == 1;
    if (a.ffn == 0 && only_experts)
        a.ffn = a.moe.ffn;
    if (a.ffn == 0 && a.family == "gpt")
        a.ffn = 4 * a.hidden;
    if (a.ffn == 0 && !only_experts)
        missing(answers, "model.ffn", "; a llama model has no usual ratio to hidden", diagnostics);
    if (a.head_dim == 0 && a.hidden % a.heads != 0)
        diagnostics.error(
            answers.place("model.heads"),
            fmt::format("model.heads: {} heads do not divide hidden {}; give head_dim as well", a.heads, a.hidden));
    if (a.head_dim == 0)
        a.head_dim = a.hidden / a.heads;
    return true;
}

/// A model taken from elsewhere, with shapes changed in the scenario.
void change(Answers& answers, Architecture& a) {
    const bool kv_as_heads = a.kv_heads == a.heads;
    if (answers.given("model.family"))
        take_family(answers, a);
    if (take_shapes(answers, a) || answers.given("model.family")) {
        a.name += " (changed)";
        a.source += ", changed in the scenario";
    }
    if (kv_as_heads && answers.given("model.heads") && !answers.given("model.kv_heads"))
        a.kv_heads = a.heads;
}

}  // namespace

bool fill_model(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    Architecture& a = s.model;
    const Answer* preset = answers.given("model.preset");
    const Answer* config = answers.given("model.hf");
    if (preset && config) {
        diagnostics.error(config->place, "model.hf: the model is named by `preset` already; give one of them");
        return false;
    }
    if (preset)
        a = *find_architecture(preset->text);
    else if (config && !take_config(*config, s, diagnostics))
        return false;
    if (preset || config)
        change(answers, a);
    else if (!fill_shapes(answers, a, diagnostics))
        return false;
    if (const Answer* name = answers.given("model.name"))
        a.name = name->text;
    if (a.heads % a.kv_heads != 0)
        diagnostics.error(answers.place("model.kv_heads"),
                          fmt::format("model.kv_heads: {} query heads cannot be shared evenly among {} key/value heads",
                                      a.heads, a.kv_heads));
    if (a.rotary && a.head_dim % 2 != 0)
        diagnostics.error(answers.place("model.head_dim"),
                          fmt::format("model.head_dim: {} is odd, but rotary positions turn pairs", a.head_dim));
    check_parts(answers, a, diagnostics);
    return diagnostics.ok();
}

}  // namespace fabricast
