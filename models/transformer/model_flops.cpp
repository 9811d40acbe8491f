// Model FLOPs of a training step, as published throughput figures count them.
//
// A weight of a matrix product costs 2 FLOPs a token forward and 4 backward; attention scores (QK^T and AV) cost
// 2 k a (d + v) a token forward, k keys, d and v the widths of query and value heads. Every layer counts k = s, not
// halved for causality; a layer with a window w counts k = min(w, s); packed sequences count k = D (packing.hpp). Experts: the top_k a token visits and the shared
// ones; the router is left out. Prediction modules: their layer, their projection 2 h -> h and the head once more.
// Biases, norms and the embedding lookup are not counted.
// Source: Megatron-LM num_floating_point_operations (dense, experts, latent attention, prediction modules; newer
// releases halve the scores); Megatron-Bridge flop_utils counts a window as min(w, s) in the same place; arXiv:2104.04473
// section 5.1 for the GPT special case.
#include <algorithm>

#include <fmt/format.h>

#include "models/transformer/architecture.hpp"

namespace fabricast {

namespace {

std::int64_t layers_in_all(const Architecture& a) { return a.layers + a.mtp_layers; }

/// Width of a query head and of a value head, all heads.
std::int64_t score_width(const Architecture& a) {
    return a.heads * (a.head_dim + (a.attention == AttentionKind::latent ? a.value_dim : a.head_dim));
}

/// Weights of matrix products a token meets in one layer.
std::int64_t product_weights(const Architecture& a, const LayerShape& layer) {
    std::int64_t weights = 0;
    if (a.attention == AttentionKind::latent) {
        const std::int64_t query = a.heads * a.head_dim;
        weights = a.query_rank > 0 ? a.query_rank * (a.hidden + query) : a.hidden * query;
        weights += a.hidden * (a.key_value_rank + a.rope_dim) + a.heads * a.value_dim * a.hidden;
        weights += a.key_value_rank * a.heads * (a.head_dim - a.rope_dim + a.value_dim);
    } else {
        weights = 2 * a.hidden * (a.heads + a.kv_heads) * a.head_dim;
    }
    const std::int64_t width = layer.moe ? a.moe.top_k * a.moe.ffn + a.moe.shared_ffn : a.ffn;
    return weights + (a.gated ? 3 : 2) * a.hidden * width;
}

}  // namespace

double attention_flops(const Architecture& a, double sequences, double length, double document) {
    const double seen = document > 0 ? std::min(document, length) : length;
    double keys = 0;  // summed over layers
    for (std::int64_t i = 0; i < layers_in_all(a); ++i) {
        const std::int64_t window = layer_shape(a, i).window;
        keys += window > 0 ? std::min(static_cast<double>(window), seen) : seen;
    }
    return 6.0 * sequences * length * keys * static_cast<double>(score_width(a));
}

double model_flops(const Architecture& a, double sequences, double length, std::int64_t padded_vocabulary,
                   double document) {
    std::int64_t weights = padded_vocabulary * a.hidden * (1 + a.mtp_layers);
    for (std::int64_t i = 0; i < layers_in_all(a); ++i)
        weights += product_weights(a, layer_shape(a, i));
    weights += 2 * a.hidden * a.hidden * a.mtp_layers;
    return 6.0 * sequences * length * static_cast<double>(weights) + attention_flops(a, sequences, length, document);
}

std::string flops_convention(const Architecture& a, double document) {
    std::string text = "forward + backward (3 x forward), attention scores counted in full (not halved for causality)";
    if (document > 0)
        text += fmt::format(
            "; packed: {:.0f} keys a token, the tokens of its document on average (sum of squared lengths / sum of "
            "lengths)",
            document);
    if (a.window > 0)
        text += fmt::format("; windowed layers: at most {} keys a query", a.window);
    if (a.moe.experts > 0) {
        text += fmt::format("; {} of {} experts{}, not the router", a.moe.top_k, a.moe.experts,
                            a.moe.shared_ffn > 0 ? " and the shared ones" : "");
    }
    if (a.mtp_layers > 0)
        text += fmt::format("; {} prediction module{} with the head", a.mtp_layers, a.mtp_layers > 1 ? "s" : "");
    return text;
}

}  // namespace fabricast
