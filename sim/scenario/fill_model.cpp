#include <fmt/format.h>

#include "sim/scenario/fill.hpp"

namespace fabricast {
namespace {

struct Shape {
    std::string_view key;
    std::int64_t Architecture::*member;
};
constexpr Shape kShapes[] = {
    {"model.layers", &Architecture::layers},
    {"model.hidden", &Architecture::hidden},
    {"model.heads", &Architecture::heads},
    {"model.kv_heads", &Architecture::kv_heads},
    {"model.head_dim", &Architecture::head_dim},
    {"model.ffn", &Architecture::ffn},
    {"model.vocab", &Architecture::vocab},
    {"model.vocab_multiple", &Architecture::vocab_multiple},
    {"model.max_positions", &Architecture::max_positions},
};
struct Feature {
    std::string_view key;
    bool Architecture::*member;
};
constexpr Feature kFeatures[] = {
    {"model.gated", &Architecture::gated},
    {"model.rms_norm", &Architecture::rms_norm},
    {"model.biases", &Architecture::biases},
    {"model.qkv_bias", &Architecture::qkv_bias},
    {"model.tied_embeddings", &Architecture::tied_embeddings},
    {"model.rotary", &Architecture::rotary},
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
    for (const Shape& shape : kShapes)
        if (const Answer* given = answers.given(shape.key))
            a.*shape.member = given->integer, changed = true;
    for (const Feature& feature : kFeatures)
        if (const Answer* given = answers.given(feature.key))
            a.*feature.member = given->flag, changed = true;
    return changed;
}

}  // namespace

bool fill_model(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    Architecture& a = s.model;
    const Answer* preset = answers.given("model.preset");
    if (preset) {
        a = *find_architecture(preset->text);
        const bool kv_as_heads = a.kv_heads == a.heads;
        if (answers.given("model.family"))
            take_family(answers, a);
        if (take_shapes(answers, a) || answers.given("model.family")) {
            a.name = preset->text + " (changed)";
            a.source = a.source + ", changed in the scenario";
        }
        if (kv_as_heads && answers.given("model.heads") && !answers.given("model.kv_heads"))
            a.kv_heads = a.heads;
    } else {
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
        if (a.kv_heads == 0)
            a.kv_heads = a.heads;
        if (a.ffn == 0 && a.family == "gpt")
            a.ffn = 4 * a.hidden;
        if (a.ffn == 0)
            missing(answers, "model.ffn", "; a llama model has no usual ratio to hidden", diagnostics);
        if (a.head_dim == 0 && a.hidden % a.heads != 0)
            diagnostics.error(
                answers.place("model.heads"),
                fmt::format("model.heads: {} heads do not divide hidden {}; give head_dim as well", a.heads, a.hidden));
        if (a.head_dim == 0)
            a.head_dim = a.hidden / a.heads;
    }
    if (const Answer* name = answers.given("model.name"))
        a.name = name->text;
    if (a.heads % a.kv_heads != 0)
        diagnostics.error(answers.place("model.kv_heads"),
                          fmt::format("model.kv_heads: {} query heads cannot be shared evenly among {} key/value heads",
                                      a.heads, a.kv_heads));
    if (a.rotary && a.head_dim % 2 != 0)
        diagnostics.error(answers.place("model.head_dim"),
                          fmt::format("model.head_dim: {} is odd, but rotary positions turn pairs", a.head_dim));
    return diagnostics.ok();
}

}  // namespace fabricast
