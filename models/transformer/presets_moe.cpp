// Named mixtures of experts. Shapes are the published ones, each with its source; nothing here is fitted.
#include <utility>

#include "models/transformer/presets.hpp"

namespace fabricast::presets {

namespace {

Architecture experts(Architecture a, std::int64_t count, std::int64_t top_k, std::int64_t ffn,
                     std::int64_t shared_ffn = 0) {
    a.moe.experts = count;
    a.moe.top_k = top_k;
    a.moe.ffn = ffn;
    a.moe.shared_ffn = shared_ffn;
    return a;
}

/// Latent attention of DeepSeek: heads of 128 + 64 rotary, values of 128, keys and values through 512.
Architecture latent(Architecture a, std::int64_t query_rank, std::int64_t first_dense) {
    a.family = "deepseek";
    a.attention = AttentionKind::latent;
    a.query_rank = query_rank;
    a.key_value_rank = 512;
    a.rope_dim = 64;
    a.value_dim = 128;
    a.head_dim = 128 + 64;
    a.moe.first_dense = first_dense;
    return a;
}

/// V3: a bias on the router's scores. Its prediction module is added by mtp_layers: 1.
Architecture v3(Architecture a) {
    a.moe.score_bias = true;
    return a;
}

Architecture gated_shared(Architecture a) {
    a.moe.shared_gate = true;
    return a;
}

/// Biases everywhere, sinks, every second layer sees 128 tokens.
Architecture gpt_oss(std::string name, std::int64_t layers, std::int64_t count, std::string source) {
    Architecture a =
        experts(llama(std::move(name), layers, 2880, 64, 8, 2880, 201088, std::move(source)), count, 4, 2880);
    a.family = "gpt-oss";
    a.head_dim = 64;
    a.qkv_bias = a.projection_bias = true;
    a.moe.router_bias = a.moe.expert_bias = true;
    a.window = 128;
    a.full_every = 2;
    a.attention_sinks = true;
    return a;
}

Architecture grok1() {
    Architecture a = experts(llama("grok-1", 64, 6144, 48, 8, 32768, 131072,
                                   "xai-org/grok-1 run.py and model.py (widening 8, gated: 32768 wide)"),
                             8, 2, 32768);
    a.family = "grok";
    a.tied_embeddings = true;
    a.post_norms = true;
    return a;
}

/// Text model. Chunked attention (8192) on three of four layers is taken as a window.
Architecture llama4(std::string name, std::int64_t count, std::int64_t every, std::string source) {
    Architecture a =
        experts(llama(std::move(name), 48, 5120, 40, 8, 16384, 202048, std::move(source)), count, 1, 8192, 8192);
    a.family = "llama4";
    a.moe.every = every;
    a.window = 8192;
    a.full_every = 4;
    return a;
}

}  // namespace

void add_moe(std::vector<Architecture>& all) {
    all.insert(
        all.end(),
        {
            experts(llama("mixtral-8x7b", 32, 4096, 32, 8, 14336, 32000, "config.json of mistralai/Mixtral-8x7B-v0.1"),
                    8, 2, 14336),
            experts(
                llama("mixtral-8x22b", 56, 6144, 48, 8, 16384, 32000, "config.json of mistralai/Mixtral-8x22B-v0.1"), 8,
                2, 16384),
            gated_shared(experts(qwen2(llama("qwen1.5-moe-a2.7b", 24, 2048, 16, 16, 5632, 151936,
                                             "config.json of Qwen/Qwen1.5-MoE-A2.7B")),
                                 60, 4, 1408, 5632)),
            gated_shared(experts(
                qwen2(llama("qwen2-57b-a14b", 28, 3584, 28, 4, 18944, 151936, "config.json of Qwen/Qwen2-57B-A14B")),
                64, 8, 2560, 20480)),
            experts(qwen3(llama("qwen3-30b-a3b", 48, 2048, 32, 4, 6144, 151936, "config.json of Qwen/Qwen3-30B-A3B")),
                    128, 8, 768),
            experts(
                qwen3(llama("qwen3-235b-a22b", 94, 4096, 64, 4, 12288, 151936, "config.json of Qwen/Qwen3-235B-A22B")),
                128, 8, 1536),
            latent(experts(llama("deepseek-v2-lite", 27, 2048, 16, 16, 10944, 102400,
                                 "config.json of deepseek-ai/DeepSeek-V2-Lite"),
                           64, 6, 1408, 2816),
                   0, 1),
            latent(experts(llama("deepseek-v2", 60, 5120, 128, 128, 12288, 102400,
                                 "config.json of deepseek-ai/DeepSeek-V2"),
                           160, 6, 1536, 3072),
                   1536, 1),
            v3(latent(experts(llama("deepseek-v3", 61, 7168, 128, 128, 18432, 129280,
                                    "config.json of deepseek-ai/DeepSeek-V3, without its prediction module"),
                              256, 8, 2048, 2048),
                      1536, 3)),
            gpt_oss("gpt-oss-20b", 24, 32, "config.json of openai/gpt-oss-20b"),
            gpt_oss("gpt-oss-120b", 36, 128, "config.json of openai/gpt-oss-120b"),
            grok1(),
            llama4("llama4-scout", 16, 1, "config.json of meta-llama/Llama-4-Scout-17B-16E"),
            llama4("llama4-maverick", 128, 2, "config.json of meta-llama/Llama-4-Maverick-17B-128E"),
        });
}

}  // namespace fabricast::presets
