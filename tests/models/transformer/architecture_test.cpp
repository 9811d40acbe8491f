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

std::int64_t published_total(const Architecture& a) { return count_parameters(a, a.vocab).total(); }

// Exact element counts of the published checkpoints (model cards and safetensors indices on Hugging Face), and what a
// token meets of them, embeddings and head included.
TEST(Parameters, EqualPublishedCheckpoints) {
    struct Row {
        const char* name;
        std::int64_t total, active;
    };
    for (const Row& row : {
             Row{"llama-7b", 6738415616, 6738415616},          Row{"llama2-13b", 13015864320, 13015864320},
             Row{"llama2-70b", 68976648192, 68976648192},      Row{"llama-70b", 68976648192, 68976648192},
             Row{"llama3.1-8b", 8030261248, 8030261248},       Row{"llama3.1-70b", 70553706496, 70553706496},
             Row{"llama3.1-405b", 405853388800, 405853388800}, Row{"mistral-7b", 7241732096, 7241732096},
             Row{"mixtral-8x7b", 46702792704, 12879925248},    Row{"qwen-7b", 7721324544, 7721324544},
             Row{"qwen2-7b", 7615616512, 7615616512},          Row{"qwen1.5-moe-a2.7b", 14315784192, 2689173504},
             Row{"qwen3-0.6b", 596049920, 596049920},          Row{"qwen3-32b", 32762123264, 32762123264},
             Row{"qwen3-30b-a3b", 30532122624, 3353032704},    Row{"deepseek-v2-lite", 15706484224, 2661150208},
             Row{"deepseek-v3", 671026419200, 37552282624},    Row{"gpt2", 124439808, 124439808},
             Row{"pythia-6.9b", 6857302016, 6857302016},       Row{"gpt-neox-20b", 20554567680, 20554567680},
             Row{"falcon-7b", 6921720704, 6921720704},         Row{"gemma-7b", 8537680896, 8537680896},
             Row{"gemma2-9b", 9241705984, 9241705984},         Row{"gpt-oss-20b", 20914757184, 4187440704},
         }) {
        const ParameterCount count = count_parameters(preset(row.name), preset(row.name).vocab);
        EXPECT_EQ(count.total(), row.total) << row.name;
        EXPECT_EQ(count.active(), row.active) << row.name;
    }
}

// Figures of model cards and papers, rounded as they print them.
TEST(Parameters, NearPublishedSizes) {
    struct Row {
        const char* name;
        double billions, active;  // 0 = not published
    };
    for (const Row& row :
         {Row{"mixtral-8x22b", 141, 39},   Row{"deepseek-v2", 236, 21},      Row{"qwen3-235b-a22b", 235, 22},
          Row{"qwen2-57b-a14b", 57.4, 14}, Row{"gpt-oss-120b", 117, 0},      Row{"grok-1", 314, 0},
          Row{"llama4-maverick", 400, 17}, Row{"nemotron4-340b", 340, 0},    Row{"nemotron4-15b", 15.6, 0},
          Row{"falcon-180b", 179.5, 0},    Row{"mpt-7b", 6.65, 0},           Row{"mpt-30b", 30.0, 0},
          Row{"mpt-70b", 64.9, 0},         Row{"gemma-2b", 2.51, 0},         Row{"gemma2-27b", 27.2, 0},
          Row{"gemma2-2b", 2.61, 0},       Row{"internlm-7b", 7.32, 0},      Row{"internlm2-7b", 7.74, 0},
          Row{"internlm2-20b", 19.86, 0},  Row{"llama3.2-1b", 1.24, 0},      Row{"llama3.2-3b", 3.21, 0},
          Row{"llama-65b", 65.2, 0},       Row{"qwen2-72b", 72.7, 0},        Row{"qwen3-8b", 8.19, 0},
          Row{"qwen3-14b", 14.77, 0},      Row{"mistral-nemo-12b", 12.25, 0}}) {
        const ParameterCount count = count_parameters(preset(row.name), preset(row.name).vocab);
        EXPECT_NEAR(static_cast<double>(count.total()) * 1e-9, row.billions, 0.007 * row.billions) << row.name;
        if (row.active > 0) {
            EXPECT_NEAR(static_cast<double>(count.active()) * 1e-9, row.active, 0.06 * row.active) << row.name;
        }
    }
}

// OpenAI leaves the input embedding out of its 3.6 and 5.1 billion; Falcon checkpoints store the tied head again; 109
// billion of Llama 4 Scout hold a vision tower of 0.9.
TEST(Parameters, AsOthersCount) {
    const auto count = [](const char* name) { return count_parameters(preset(name), preset(name).vocab); };
    const auto billions = [](std::int64_t n) { return static_cast<double>(n) * 1e-9; };
    EXPECT_NEAR(billions(count("gpt-oss-20b").active() - count("gpt-oss-20b").embedding), 3.6, 0.05);
    EXPECT_NEAR(billions(count("gpt-oss-120b").active() - count("gpt-oss-120b").embedding), 5.1, 0.05);
    EXPECT_NEAR(billions(count("falcon-40b").total() + count("falcon-40b").embedding), 41.8, 0.05);
    EXPECT_NEAR(billions(count("llama4-scout").total()), 109 - 0.9, 0.5);
}

// Non-embedding parameters of the Qwen model cards, in billions; the prediction module of DeepSeek-V3 (its checkpoint
// of 685 billion holds 14, of which embedding and head are copies).
TEST(Parameters, WithoutEmbeddingsAndOfPredictionModules) {
    const auto layers = [](const char* name) {
        return static_cast<double>(count_parameters(preset(name), preset(name).vocab).active_layers()) * 1e-9;
    };
    EXPECT_NEAR(layers("qwen2-7b"), 6.53, 0.005);
    EXPECT_NEAR(layers("qwen3-0.6b"), 0.44, 0.005);
    EXPECT_NEAR(layers("qwen3-32b"), 31.2, 0.05);
    Architecture with_module = preset("deepseek-v3");
    with_module.mtp_layers = 1;
    const ParameterCount v3 = count_parameters(with_module, 129280);
    EXPECT_EQ(v3.total(), count_parameters(preset("deepseek-v3"), 129280).total());
    EXPECT_NEAR(static_cast<double>(v3.mtp + v3.embedding + v3.head) * 1e-9, 14, 0.7);
    EXPECT_EQ(count_parameters(preset("deepseek-v2"), 102400).mtp, 0);
}

TEST(Parameters, OfEveryKindOfLayer) {
    const Architecture& v3 = preset("deepseek-v3");
    EXPECT_FALSE(layer_shape(v3, 2).moe);
    EXPECT_TRUE(layer_shape(v3, 3).moe);
    EXPECT_EQ(layer_shape(v3, 61), layer_shape(v3, 60));
    const LayerParameters moe = layer_parameters(v3, layer_shape(v3, 3));
    EXPECT_EQ(moe.experts, 256LL * 3 * 7168 * 2048);
    EXPECT_EQ(moe.mlp, 3LL * 7168 * 2048);
    EXPECT_EQ(moe.norms, 2 * 7168 + 1536 + 512);
    EXPECT_EQ(moe.replicated, 7168 * (256 + 1536 + 512 + 64) + 256);
    EXPECT_EQ(moe.attention, 128LL * (1536 * 192 + 512 * 256 + 128 * 7168));
    EXPECT_EQ(layer_parameters(v3, layer_shape(v3, 0)).mlp, 3LL * 7168 * 18432);

    const Architecture& maverick = preset("llama4-maverick");
    EXPECT_FALSE(layer_shape(maverick, 0).moe);
    EXPECT_TRUE(layer_shape(maverick, 1).moe);
    EXPECT_EQ(layer_shape(maverick, 2).window, 8192);
    EXPECT_EQ(layer_shape(maverick, 3).window, 0);
    EXPECT_EQ(layer_parameters(preset("gpt-oss-20b"), {}).norms, 2 * 2880);
    EXPECT_EQ(layer_parameters(preset("gemma2-9b"), {}).norms, 4 * 3584);
    EXPECT_EQ(layer_parameters(preset("falcon-7b"), {}).norms, 2 * 4544);
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
        if (a.moe.experts > 0 || a.attention == AttentionKind::latent || a.window > 0)
            continue;
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

// DeepSeek-V3 without its prediction module, by hand: weights a token meets in the three dense and the 58 other layers.
TEST(ModelFlops, OfLatentAttentionAndExperts) {
    Architecture a = preset("deepseek-v3");
    const double attention = 7168.0 * (1536 + 512 + 64) + 128.0 * (1536 * 192 + 512 * 256 + 128 * 7168);
    const double weights = 61 * attention + 3 * 3.0 * 7168 * (18432.0) + 58 * 3.0 * 7168 * 2048 * 9 + 7168.0 * 129280;
    const double scores = 6.0 * 4096 * 61 * 128 * (192 + 128);
    EXPECT_NEAR(model_flops(a, 1, 4096, 129280), 4096 * (6 * weights + scores), 1e-9 * 4096 * 6 * weights);
    EXPECT_DOUBLE_EQ(attention_flops(a, 1, 4096), 4096 * scores);
    // The module: its layer, the projection and the head again.
    const double module = attention + 3.0 * 7168 * 2048 * 9 + 2.0 * 7168 * 7168 + 7168.0 * 129280;
    a.mtp_layers = 1;
    const double with = model_flops(a, 1, 4096, 129280), layers = scores / 61 * 62;
    EXPECT_NEAR(with, 4096 * (6 * (weights + module) + layers), 1e-9 * with);
}

TEST(ModelFlops, WindowedLayersCountTheirWindow) {
    const Architecture& a = preset("gpt-oss-20b");
    const double width = 64 * 128;
    EXPECT_DOUBLE_EQ(attention_flops(a, 2, 4096), 6.0 * 2 * 4096 * width * (12 * 4096 + 12 * 128));
    EXPECT_DOUBLE_EQ(attention_flops(a, 2, 100), 6.0 * 2 * 100 * width * 24 * 100);
    EXPECT_NE(flops_convention(a).find("at most 128 keys"), std::string::npos);
    EXPECT_NE(flops_convention(a).find("4 of 32 experts"), std::string::npos);
    EXPECT_EQ(flops_convention(preset("gpt3-175b")),
              "forward + backward (3 x forward), attention scores counted in full (not halved for causality)");
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
        EXPECT_GT(a.head_dim, 0) << a.name;
        EXPECT_EQ(a.heads % a.kv_heads, 0) << a.name;
        EXPECT_FALSE(a.rotary && a.max_positions > 0) << a.name;
        EXPECT_EQ(a.attention == AttentionKind::latent, a.value_dim > 0) << a.name;
        EXPECT_LE(a.moe.top_k, a.moe.experts) << a.name;
        EXPECT_EQ(find_architecture(a.name), &a);
    }
    EXPECT_EQ(find_architecture("llama-71b"), nullptr);
}

}  // namespace
}  // namespace fabricast
