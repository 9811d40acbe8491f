// Named dense architectures (presets_moe.cpp has the others). Shapes are the published ones, each with its source;
// nothing here is fitted.
#include <utility>

#include "models/transformer/presets.hpp"

namespace fabricast {
namespace presets {

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

Architecture qwen2(Architecture a) {
    a.family = "qwen";
    a.qkv_bias = true;
    return a;
}

Architecture qwen3(Architecture a) {
    a.family = "qwen";
    a.head_dim = 128;
    a.qk_norm = true;
    return a;
}

namespace {

Architecture tied(Architecture a) {
    a.tied_embeddings = true;
    return a;
}

Architecture windowed(Architecture a, std::int64_t window, std::int64_t full_every) {
    a.window = window;
    a.full_every = full_every;
    return a;
}

Architecture gemma(Architecture a, std::int64_t head_dim) {
    a.family = "gemma";
    a.head_dim = head_dim;
    a.tied_embeddings = true;
    return a;
}

/// Every second layer sees 4096 tokens; norms behind both blocks.
Architecture gemma2(Architecture a, std::int64_t head_dim) {
    a = windowed(gemma(std::move(a), head_dim), 4096, 2);
    a.post_norms = true;
    return a;
}

/// LayerNorm, rotary positions, plain MLP of 4 h.
Architecture neox(std::string name, std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab,
                  std::string source) {
    Architecture a = gpt(std::move(name), layers, hidden, heads, vocab, 0, std::move(source));
    a.family = "gpt-neox";
    a.tied_embeddings = false;
    a.rotary = true;
    a.parallel_block = true;
    a.separate_norms = true;
    return a;
}

Architecture falcon(std::string name, std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                    std::int64_t kv_heads, std::string source) {
    Architecture a = neox(std::move(name), layers, hidden, heads, 65024, std::move(source));
    a.family = "falcon";
    a.kv_heads = kv_heads;
    a.biases = false;
    a.tied_embeddings = true;
    a.separate_norms = kv_heads > 1;
    return a;
}

/// LayerNorm without shift, no biases at all, ALiBi instead of position embeddings.
Architecture mpt(std::string name, std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab,
                 std::string source) {
    Architecture a = gpt(std::move(name), layers, hidden, heads, vocab, 0, std::move(source));
    a.family = "mpt";
    a.biases = false;
    a.norm_bias = false;
    a.alibi = true;
    return a;
}

/// LayerNorm, rotary positions, squared ReLU, no biases on linear layers.
Architecture nemotron(std::string name, std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                      std::int64_t ffn) {
    Architecture a = llama(std::move(name), layers, hidden, heads, 8, ffn, 256000, "arXiv:2406.11704 table 1");
    a.family = "nemotron";
    a.gated = false;
    a.rms_norm = false;
    return a;
}

Architecture internlm(Architecture a) {
    a.family = "internlm";
    return a;
}

void add_llama(std::vector<Architecture>& all) {
    const std::string llama70 = "config.json of meta-llama/Llama-2-70b-hf";
    all.insert(
        all.end(),
        {
            llama("llama-7b", 32, 4096, 32, 32, 11008, 32000, "config.json of meta-llama/Llama-2-7b-hf"),
            llama("llama2-13b", 40, 5120, 40, 40, 13824, 32000, "config.json of meta-llama/Llama-2-13b-hf"),
            llama("llama2-70b", 80, 8192, 64, 8, 28672, 32000, llama70),
            llama("llama-65b", 80, 8192, 64, 64, 22016, 32000, "arXiv:2302.13971 table 2"),
            llama("llama-70b", 80, 8192, 64, 8, 28672, 32000, llama70 + " (the same shape as llama2-70b)"),
            llama("llama3-8b", 32, 4096, 32, 8, 14336, 128256, "config.json of meta-llama/Meta-Llama-3-8B"),
            llama("llama3-70b", 80, 8192, 64, 8, 28672, 128256, "config.json of meta-llama/Meta-Llama-3-70B"),
            llama("llama3.1-8b", 32, 4096, 32, 8, 14336, 128256, "config.json of meta-llama/Meta-Llama-3.1-8B"),
            llama("llama3.1-70b", 80, 8192, 64, 8, 28672, 128256, "config.json of meta-llama/Meta-Llama-3.1-70B"),
            llama("llama3.1-405b", 126, 16384, 128, 8, 53248, 128256, "config.json of meta-llama/Llama-3.1-405B"),
            tied(llama("llama3.2-1b", 16, 2048, 32, 8, 8192, 128256, "config.json of meta-llama/Llama-3.2-1B")),
            tied(llama("llama3.2-3b", 28, 3072, 24, 8, 8192, 128256, "config.json of meta-llama/Llama-3.2-3B")),
        });
}

void add_llama_like(std::vector<Architecture>& all) {
    Architecture nemo =
        llama("mistral-nemo-12b", 40, 5120, 32, 8, 14336, 131072, "config.json of mistralai/Mistral-Nemo-Base-2407");
    nemo.head_dim = 128;
    Architecture internlm7 = llama("internlm-7b", 32, 4096, 32, 32, 11008, 103168,
                                   "config.json of internlm/internlm-7b (bias on all attention projections)");
    internlm7.qkv_bias = internlm7.projection_bias = true;
    all.insert(
        all.end(),
        {
            windowed(llama("mistral-7b", 32, 4096, 32, 8, 14336, 32000, "config.json of mistralai/Mistral-7B-v0.1"),
                     4096, 0),
            nemo,
            qwen2(llama("qwen-7b", 32, 4096, 32, 32, 11008, 151936,
                        "config.json of Qwen/Qwen-7B (intermediate_size 22016 counts gate and up)")),
            qwen2(llama("qwen2-7b", 28, 3584, 28, 4, 18944, 152064, "config.json of Qwen/Qwen2-7B")),
            qwen2(llama("qwen2-72b", 80, 8192, 64, 8, 29568, 152064, "config.json of Qwen/Qwen2-72B")),
            tied(qwen3(llama("qwen3-0.6b", 28, 1024, 16, 8, 3072, 151936, "config.json of Qwen/Qwen3-0.6B"))),
            qwen3(llama("qwen3-8b", 36, 4096, 32, 8, 12288, 151936, "config.json of Qwen/Qwen3-8B")),
            qwen3(llama("qwen3-14b", 40, 5120, 40, 8, 17408, 151936, "config.json of Qwen/Qwen3-14B")),
            qwen3(llama("qwen3-32b", 64, 5120, 64, 8, 25600, 151936, "config.json of Qwen/Qwen3-32B")),
            gemma(llama("gemma-2b", 18, 2048, 8, 1, 16384, 256000, "config.json of google/gemma-2b"), 256),
            gemma(llama("gemma-7b", 28, 3072, 16, 16, 24576, 256000, "config.json of google/gemma-7b"), 256),
            gemma2(llama("gemma2-2b", 26, 2304, 8, 4, 9216, 256000, "config.json of google/gemma-2-2b"), 256),
            gemma2(llama("gemma2-9b", 42, 3584, 16, 8, 14336, 256000, "config.json of google/gemma-2-9b"), 256),
            gemma2(llama("gemma2-27b", 46, 4608, 32, 16, 36864, 256000, "config.json of google/gemma-2-27b"), 128),
            internlm(internlm7),
            internlm(llama("internlm2-7b", 32, 4096, 32, 8, 14336, 92544, "config.json of internlm/internlm2-7b")),
            internlm(llama("internlm2-20b", 48, 6144, 48, 8, 16384, 92544, "config.json of internlm/internlm2-20b")),
        });
}

void add_gpt_like(std::vector<Architecture>& all) {
    const std::string scaling = "arXiv:2104.04473 table 1; vocabulary 51200, sequence 2048";
    const std::string reduced = "arXiv:2205.05198 table 3; vocabulary 51200, sequence 2048";
    all.insert(all.end(), {
                              gpt("gpt2", 12, 768, 12, 50257, 1024, "config.json of openai-community/gpt2"),
                              gpt("gpt3-175b", 96, 12288, 96, 51200, 2048, reduced),
                              gpt("megatron-22b", 48, 6144, 64, 51200, 2048, reduced),
                              gpt("megatron-39b", 48, 8192, 64, 51200, 2048, scaling),
                              gpt("mt-nlg-530b", 105, 20480, 128, 51200, 2048, reduced),
                              gpt("megatron-1t", 128, 25600, 160, 51200, 2048, reduced),
                              neox("pythia-6.9b", 32, 4096, 32, 50432, "config.json of EleutherAI/pythia-6.9b"),
                              neox("gpt-neox-20b", 44, 6144, 64, 50432, "config.json of EleutherAI/gpt-neox-20b"),
                              falcon("falcon-7b", 32, 4544, 71, 1, "config.json of tiiuae/falcon-7b"),
                              falcon("falcon-40b", 60, 8192, 128, 8, "config.json of tiiuae/falcon-40b"),
                              falcon("falcon-180b", 80, 14848, 232, 8, "config.json of tiiuae/falcon-180B"),
                              mpt("mpt-7b", 32, 4096, 32, 50432, "config.json of mosaicml/mpt-7b"),
                              mpt("mpt-30b", 48, 7168, 64, 50432, "config.json of mosaicml/mpt-30b"),
                              mpt("mpt-70b", 80, 8192, 64, 50368,
                                  "mosaicml/llm-foundry scripts/train/yamls/pretrain/mpt-70b.yaml"),
                              nemotron("nemotron4-15b", 32, 6144, 48, 24576),
                              nemotron("nemotron4-340b", 96, 18432, 96, 73728),
                          });
}

}  // namespace

}  // namespace presets

const std::vector<Architecture>& architectures() {
    static const std::vector<Architecture> all = [] {
        std::vector<Architecture> list;
        presets::add_llama(list);
        presets::add_llama_like(list);
        presets::add_gpt_like(list);
        presets::add_moe(list);
        return list;
    }();
    return all;
}

const Architecture* find_architecture(std::string_view name) {
    for (const Architecture& a : architectures())
        if (a.name == name)
            return &a;
    return nullptr;
}

}  // namespace fabricast
