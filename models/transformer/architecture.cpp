// Parameters and model FLOPs of a dense decoder.
//
// Parameters of one layer, d = head_dim, a = heads, g = kv_heads, h = hidden, f = ffn:
//   attention  h a d (query) + 2 h g d (key, value) + a d h (output) [+ biases]
//   mlp        2 h f, or 3 h f when gated [+ biases]
//   norms      2 h scale [+ 2 h shift for LayerNorm]
// FLOPs: a weight of a matrix product costs 2 FLOPs a token forward and 4 backward; attention scores (QK^T and AV)
// cost 4 s a d a token forward, counted in full. Biases, norms and the embedding lookup are not counted.
// Source: Megatron-LM num_floating_point_operations; arXiv:2104.04473 section 5.1 for the GPT special case.
#include "models/transformer/architecture.hpp"

#include <cassert>

namespace fabricast {

LayerShape layer_shape(const Architecture& a, std::int64_t layer) {
    LayerShape shape;
    shape.moe = a.moe.experts > 0 && layer >= a.moe.first_dense && (layer + 1) % a.moe.every == 0;
    shape.window = a.full_every > 0 && (layer + 1) % a.full_every == 0 ? 0 : a.window;
    return shape;
}

std::int64_t padded_vocab(const Architecture& a, std::int64_t tensor_parallel) {
    assert(a.vocab_multiple > 0 && tensor_parallel > 0 && "padding unit must be positive");
    const std::int64_t unit = a.vocab_multiple * tensor_parallel;
    return (a.vocab + unit - 1) / unit * unit;
}

ParameterCount count_parameters(const Architecture& a, std::int64_t vocab) {
    const std::int64_t query = a.heads * a.head_dim, key_value = a.kv_heads * a.head_dim;
    const std::int64_t norm = a.rms_norm ? a.hidden : 2 * a.hidden;
    const std::int64_t first = a.gated ? 2 * a.ffn : a.ffn;  // width of the first MLP product
    ParameterCount p;
    p.attention = 2 * a.hidden * (query + key_value);
    if (a.biases || a.qkv_bias)
        p.attention += query + 2 * key_value;
    p.mlp = a.hidden * (first + a.ffn);
    if (a.biases) {
        p.attention += a.hidden;
        p.mlp += first + a.hidden;
    }
    p.norms = 2 * norm;
    p.embedding = vocab * a.hidden;
    p.positions = a.max_positions * a.hidden;
    p.final_norm = norm;
    p.head = a.tied_embeddings ? 0 : vocab * a.hidden;
    return p;
}

double attention_flops(const Architecture& a, double sequences, double length) {
    const double width = static_cast<double>(a.layers * a.heads * a.head_dim);
    return 12.0 * sequences * length * length * width;
}

double model_flops(const Architecture& a, double sequences, double length, std::int64_t padded_vocabulary) {
    const std::int64_t attention = 2 * a.hidden * (a.heads + a.kv_heads) * a.head_dim;
    const std::int64_t mlp = (a.gated ? 3 : 2) * a.hidden * a.ffn;
    const double weights = static_cast<double>(a.layers * (attention + mlp) + padded_vocabulary * a.hidden);
    return 6.0 * sequences * length * weights + attention_flops(a, sequences, length);
}

}  // namespace fabricast
