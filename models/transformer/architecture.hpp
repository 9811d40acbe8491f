// A dense decoder: shapes, parameters, FLOPs. Knows nothing of parallel layouts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fabricast {

struct Architecture {
    std::string name;    ///< "llama-70b"
    std::string family;  ///< "llama" or "gpt"
    std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0;
    std::int64_t vocab = 0;             ///< as the tokenizer has it; padded_vocab() is what is computed
    std::int64_t vocab_multiple = 128;  ///< padding unit per tensor-parallel rank (Megatron: 128)
    std::int64_t max_positions = 0;     ///< learned position embeddings; 0 = none (rotary)
    bool gated = true;                  ///< SwiGLU: three MLP matrices
    bool rms_norm = true;               ///< false: LayerNorm with bias
    bool biases = false;                ///< on all linear layers
    bool qkv_bias = false;
    bool tied_embeddings = false;
    bool rotary = true;
    std::string source;  ///< where the shape comes from
};

/// Vocabulary rounded up to vocab_multiple * tensor_parallel.
std::int64_t padded_vocab(const Architecture& a, std::int64_t tensor_parallel);

struct ParameterCount {
    std::int64_t attention = 0, mlp = 0, norms = 0;                       ///< one layer
    std::int64_t embedding = 0, positions = 0, final_norm = 0, head = 0;  ///< head 0 when tied
    std::int64_t layer() const { return attention + mlp + norms; }
    std::int64_t total(std::int64_t layers) const {
        return layers * layer() + embedding + positions + final_norm + head;
    }
};
/// Exact parameters with the given vocabulary (pass a.vocab for the published count).
ParameterCount count_parameters(const Architecture& a, std::int64_t vocab);

/// Model FLOPs of forward + backward of `sequences` sequences of `length` tokens, attention counted in full
/// (not halved for causality), no recomputation:
/// 12 B s L h^2 [(1 + g/a + s/h) q + (f/h) gm + V/(2 L h)], q = head_dim heads / hidden, gm = 3/2 gated else 1.
double model_flops(const Architecture& a, double sequences, double length, std::int64_t padded_vocabulary);
/// The part of model_flops that is attention scores (QK^T and AV).
double attention_flops(const Architecture& a, double sequences, double length);

/// Presets ("llama-70b", "gpt3-175b" ...); nullptr when unknown.
const Architecture* find_architecture(std::string_view name);
const std::vector<Architecture>& architectures();

}  // namespace fabricast
