#include "models/transformer/architecture.hpp"

#include <gtest/gtest.h>

#include <set>

namespace fabricast {
namespace {

const Architecture& preset(std::string_view name) {
    const Architecture* a = find_architecture(name);
    if (!a)
        throw std::runtime_error("no preset " + std::string(name));
    return *a;
}

std::int64_t published_total(const Architecture& a) { return count_parameters(a, a.vocab).total(a.layers); }

// Exact element counts of the published checkpoints (model cards and safetensors indices on Hugging Face).
TEST(Parameters, EqualPublishedCheckpoints) {
    EXPECT_EQ(published_total(preset("llama-7b")), 6738415616);
    EXPECT_EQ(published_total(preset("llama2-13b")), 13015864320);
    EXPECT_EQ(published_total(preset("llama2-70b")), 68976648192);
    EXPECT_EQ(published_total(preset("llama-70b")), 68976648192);
    EXPECT_EQ(published_total(preset("llama3.1-8b")), 8030261248);
    EXPECT_EQ(published_total(preset("llama3.1-70b")), 70553706496);
    EXPECT_EQ(published_total(preset("llama3.1-405b")), 405853388800);
    EXPECT_EQ(published_total(preset("mistral-7b")), 7241732096);
    EXPECT_EQ(published_total(preset("qwen-7b")), 7721324544);
    EXPECT_EQ(published_total(preset("qwen2-7b")), 7615616512);
    EXPECT_EQ(published_total(preset("gpt2")), 124439808);
}

// arXiv:2104.04473 eq. 2: P = 12 L h^2 (1 + 13/(12 h) + (V + s)/(12 L h)), which leaves out the final norm.
TEST(Parameters, EqualMegatronFormula) {
    struct Row {
        const char* name;
        double billions;  // as published in the tables
    };
    for (const Row& row : {Row{"gpt3-175b", 174.6}, Row{"megatron-22b", 22.07}, Row{"megatron-39b", 39.1},
                           Row{"mt-nlg-530b", 529.6}, Row{"megatron-1t", 1008.0}}) {
        const Architecture& a = preset(row.name);
        const std::int64_t h = a.hidden;
        const std::int64_t formula = a.layers * (12 * h * h + 13 * h) + (a.vocab + a.max_positions) * h;
        EXPECT_EQ(published_total(a), formula + 2 * h) << row.name;
        EXPECT_NEAR(static_cast<double>(formula) * 1e-9, row.billions, 0.002 * row.billions) << row.name;
    }
}

TEST(Vocabulary, PadsToMultipleOfTensorParallel) {
    const Architecture& gpt2 = preset("gpt2");
    EXPECT_EQ(padded_vocab(gpt2, 1), 50304);
    EXPECT_EQ(padded_vocab(gpt2, 8), 51200);
    EXPECT_EQ(padded_vocab(preset("llama-7b"), 1), 32000);
    EXPECT_EQ(padded_vocab(preset("llama-7b"), 8), 32768);
    EXPECT_EQ(padded_vocab(preset("gpt3-175b"), 8), 51200);
}

// 12 B s L h^2 [(1 + g/a + s/h) q + (f/h) gm + V/(2 L h)], written from its definition.
double general_formula(const Architecture& a, double sequences, double s, double vocab) {
    const auto real = [](std::int64_t x) { return static_cast<double>(x); };
    const double h = real(a.hidden), layers = real(a.layers);
    const double q = real(a.head_dim * a.heads) / h, gm = a.gated ? 1.5 : 1.0;
    return 12 * sequences * s * layers * h * h *
           ((1 + real(a.kv_heads) / real(a.heads) + s / h) * q + real(a.ffn) / h * gm + vocab / (2 * layers * h));
}

TEST(ModelFlops, EqualGeneralFormula) {
    for (const Architecture& a : architectures()) {
        const double expected = general_formula(a, 3, 4096, static_cast<double>(padded_vocab(a, 8)));
        EXPECT_NEAR(model_flops(a, 3, 4096, padded_vocab(a, 8)) / expected, 1, 1e-12) << a.name;
    }
}

// 72 B s L h^2 (1 + s/(6 h) + V/(12 h L)): arXiv:2104.04473 without recomputation.
TEST(ModelFlops, EqualGptSpecialCase) {
    for (const char* name : {"gpt3-175b", "megatron-22b", "megatron-1t"}) {
        const Architecture& a = preset(name);
        const double h = static_cast<double>(a.hidden), layers = static_cast<double>(a.layers), s = 2048;
        const double expected = 72 * 1536 * s * layers * h * h * (1 + s / (6 * h) + 51200 / (12 * h * layers));
        EXPECT_NEAR(model_flops(a, 1536, s, 51200) / expected, 1, 1e-12) << name;
    }
}

TEST(ModelFlops, NearSixTimesParametersTimesTokens) {
    for (const char* name : {"llama-7b", "llama2-70b", "llama3.1-405b", "gpt3-175b"}) {
        const Architecture& a = preset(name);
        const double tokens = 2048;
        const double weights = model_flops(a, 1, tokens, a.vocab) - attention_flops(a, 1, tokens);
        const double six = 6 * static_cast<double>(published_total(a)) * tokens;
        EXPECT_LT(weights, six * 1.001) << name;
        EXPECT_GT(weights, six * 0.95) << name;
    }
    // 175B at 2048 tokens: attention is s/(6h) of the layers, 2.8 %.
    const Architecture& gpt3 = preset("gpt3-175b");
    EXPECT_NEAR(attention_flops(gpt3, 1, 2048) / model_flops(gpt3, 1, 2048, 51200), 0.027, 0.001);
}

TEST(ModelFlops, LinearInSequencesAndQuadraticInLengthForAttention) {
    const Architecture& a = preset("llama3.1-8b");
    EXPECT_DOUBLE_EQ(model_flops(a, 8, 4096, a.vocab), 8 * model_flops(a, 1, 4096, a.vocab));
    EXPECT_DOUBLE_EQ(attention_flops(a, 1, 8192), 4 * attention_flops(a, 1, 4096));
}

TEST(Presets, AreConsistent) {
    std::set<std::string> names;
    for (const Architecture& a : architectures()) {
        EXPECT_TRUE(names.insert(a.name).second) << a.name;
        EXPECT_FALSE(a.source.empty()) << a.name;
        EXPECT_EQ(a.head_dim * a.heads, a.hidden) << a.name;
        EXPECT_EQ(a.heads % a.kv_heads, 0) << a.name;
        EXPECT_EQ(a.rotary, a.max_positions == 0) << a.name;
        EXPECT_EQ(find_architecture(a.name), &a);
    }
    EXPECT_EQ(find_architecture("llama-71b"), nullptr);
}

}  // namespace
}  // namespace fabricast
