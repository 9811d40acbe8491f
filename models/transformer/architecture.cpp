// Layer kinds and parameters.
//
// Parameters of one layer, d = head_dim, a = heads, g = kv_heads, h = hidden, f = ffn:
//   attention  h a d (query) + 2 h g d (key, value) + a d h (output) [+ biases] [+ a sinks]
//   latent     query h r_q + r_q a d (or h a d in one step), key-value h (r + rope) + r a (nope + v), output a v h;
//              r_q, r the ranks of the compressed vectors, d = nope + rope, v = value_dim
//   mlp        2 h f, or 3 h f when gated [+ biases]
//   experts    E (2 or 3) h f_e [+ biases], router h E [+ E each for biases of logits and scores], shared experts (2 or 3) h f_s, their gate h
//   norms      h each, 2 h for LayerNorm with a shift: two, four with post-norms, one in a parallel block unless the
//              norms are separate; 2 d when queries and keys are normalised; r_q + r in latent attention
// A prediction module is a layer, two norms, the projection 2 h -> h and a final norm.
// Checked against: element counts of published checkpoints (tests).
#include "models/transformer/architecture.hpp"

#include <algorithm>
#include <cassert>

namespace fabricast {

namespace {

std::int64_t norm_parameters(const Architecture& a) { return a.rms_norm || !a.norm_bias ? a.hidden : 2 * a.hidden; }

/// Both or all three matrices of an MLP of one width.
std::int64_t mlp_parameters(const Architecture& a, std::int64_t width, bool biases) {
    const std::int64_t first = a.gated ? 2 * width : width;
    return a.hidden * (first + width) + (biases ? first + a.hidden : 0);
}

void add_attention(const Architecture& a, LayerParameters& p) {
    if (a.attention == AttentionKind::latent) {
        const std::int64_t query = a.heads * a.head_dim, nope = a.head_dim - a.rope_dim;
        p.attention = a.heads * a.value_dim * a.hidden + a.key_value_rank * a.heads * (nope + a.value_dim);
        p.attention += (a.query_rank > 0 ? a.query_rank : a.hidden) * query;
        p.replicated = a.hidden * (a.query_rank + a.key_value_rank + a.rope_dim);
        p.norms += a.query_rank + a.key_value_rank;
        return;
    }
    const std::int64_t query = a.heads * a.head_dim, key_value = a.kv_heads * a.head_dim;
    p.attention = 2 * a.hidden * (query + key_value);
    if (a.biases || a.qkv_bias)
        p.attention += query + 2 * key_value;
    if (a.biases || a.projection_bias)
        p.attention += a.hidden;
    if (a.attention_sinks)
        p.attention += a.heads;
    if (a.qk_norm)
        p.norms += 2 * a.head_dim;
}

}  // namespace

LayerShape layer_shape(const Architecture& a, std::int64_t layer) {
    layer = std::min(layer, a.layers - 1);
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

LayerParameters layer_parameters(const Architecture& a, const LayerShape& layer) {
    LayerParameters p;
    const std::int64_t norms = (a.parallel_block && !a.separate_norms ? 1 : 2) + (a.post_norms ? 2 : 0);
    p.norms = norms * norm_parameters(a);
    add_attention(a, p);
    if (!layer.moe) {
        p.mlp = mlp_parameters(a, a.ffn, a.biases);
        return p;
    }
    const Moe& moe = a.moe;
    p.experts = moe.experts * mlp_parameters(a, moe.ffn, moe.expert_bias);
    p.replicated += moe.experts * (a.hidden + (moe.router_bias ? 1 : 0) + (moe.score_bias ? 1 : 0));
    if (moe.shared_ffn > 0) {
        p.mlp = mlp_parameters(a, moe.shared_ffn, false);
        p.replicated += moe.shared_gate ? a.hidden : 0;
    }
    return p;
}

ParameterCount count_parameters(const Architecture& a, std::int64_t vocab) {
    const LayerParameters dense = layer_parameters(a, LayerShape{});
    ParameterCount p;
    p.attention = dense.attention + dense.replicated;
    p.mlp = dense.mlp;
    p.norms = dense.norms;
    for (std::int64_t i = 0; i < a.layers; ++i) {
        const LayerParameters layer = layer_parameters(a, layer_shape(a, i));
        p.layers += layer.total();
        if (layer.experts > 0) {
            p.idle += layer.experts / a.moe.experts * (a.moe.experts - a.moe.top_k);
            p.idle += a.moe.score_bias ? a.moe.experts : 0;
        }
    }
    p.embedding = vocab * a.hidden;
    p.positions = a.max_positions * a.hidden;
    p.final_norm = norm_parameters(a);
    p.head = a.tied_embeddings ? 0 : vocab * a.hidden;
    if (a.mtp_layers > 0) {
        const LayerParameters module = layer_parameters(a, layer_shape(a, a.layers));
        p.mtp = a.mtp_layers * (module.total() + 2 * a.hidden * a.hidden + 3 * norm_parameters(a));
    }
    return p;
}

}  // namespace fabricast
