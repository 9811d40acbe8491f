// Named architectures. Shapes are the published ones, each with its source; nothing here is fitted.
#include "models/transformer/architecture.hpp"

#include <utility>

namespace fabricast {
namespace {

/// RMSNorm, rotary positions, gated MLP, no biases, head of its own.
Architecture llama(std::string name, std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                   std::int64_t kv_heads, std::int64_t ffn, std::int64_t vocab, std::string source) {
    Architecture a;
    a.name = std::move(name);
    a.family = "llama";
    a.layers = layers;
    a.hidden = hidden;
    a.heads = heads;
    a.kv_heads = kv_heads;
    a.head_dim = hidden / heads;
    a.ffn = ffn;
    a.vocab = vocab;
    a.source = std::move(source);
    return a;
}

Architecture qwen(Architecture a) {
    a.qkv_bias = true;
    return a;
}

/// LayerNorm, learned positions, GeLU MLP of 4 h, biases, head tied to the embedding.
Architecture gpt(std::string name, std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab,
                 std::int64_t positions, std::string source) {
    Architecture a = llama(std::move(name), layers, hidden, heads, heads, 4 * hidden, vocab, std::move(source));
    a.family = "gpt";
    a.max_positions = positions;
    a.gated = false;
    a.rms_norm = false;
    a.biases = true;
    a.tied_embeddings = true;
    a.rotary = false;
    return a;
}

std::vector<Architecture> build() {
    const std::string scaling = "arXiv:2104.04473 table 1; vocabulary 51200, sequence 2048";
    const std::string reduced = "arXiv:2205.05198 table 3; vocabulary 51200, sequence 2048";
    const std::string llama70 = "config.json of meta-llama/Llama-2-70b-hf";
    return {
        llama("llama-7b", 32, 4096, 32, 32, 11008, 32000, "config.json of meta-llama/Llama-2-7b-hf"),
        llama("llama2-13b", 40, 5120, 40, 40, 13824, 32000, "config.json of meta-llama/Llama-2-13b-hf"),
        llama("llama2-70b", 80, 8192, 64, 8, 28672, 32000, llama70),
        llama("llama-70b", 80, 8192, 64, 8, 28672, 32000, llama70 + " (the same shape as llama2-70b)"),
        llama("llama3.1-8b", 32, 4096, 32, 8, 14336, 128256, "config.json of meta-llama/Meta-Llama-3.1-8B"),
        llama("llama3.1-70b", 80, 8192, 64, 8, 28672, 128256, "config.json of meta-llama/Meta-Llama-3.1-70B"),
        llama("llama3.1-405b", 126, 16384, 128, 8, 53248, 128256, "config.json of meta-llama/Llama-3.1-405B"),
        llama("mistral-7b", 32, 4096, 32, 8, 14336, 32000,
              "config.json of mistralai/Mistral-7B-v0.1; its sliding window of 4096 is ignored"),
        qwen(llama("qwen-7b", 32, 4096, 32, 32, 11008, 151936,
                   "config.json of Qwen/Qwen-7B (intermediate_size 22016 counts gate and up)")),
        qwen(llama("qwen2-7b", 28, 3584, 28, 4, 18944, 152064, "config.json of Qwen/Qwen2-7B")),
        gpt("gpt2", 12, 768, 12, 50257, 1024, "config.json of openai-community/gpt2"),
        gpt("gpt3-175b", 96, 12288, 96, 51200, 2048, reduced),
        gpt("megatron-22b", 48, 6144, 64, 51200, 2048, reduced),
        gpt("megatron-39b", 48, 8192, 64, 51200, 2048, scaling),
        gpt("mt-nlg-530b", 105, 20480, 128, 51200, 2048, reduced),
        gpt("megatron-1t", 128, 25600, 160, 51200, 2048, reduced),
    };
}

}  // namespace

const std::vector<Architecture>& architectures() {
    static const std::vector<Architecture> all = build();
    return all;
}

const Architecture* find_architecture(std::string_view name) {
    for (const Architecture& a : architectures())
        if (a.name == name)
            return &a;
    return nullptr;
}

}  // namespace fabricast
