// Bytes that wait for the weight gradients once the input gradients of a micro-batch are done: of every linear layer
// C[T, out] = A[T, in] W the input A and the gradient dC.
//
// w bytes an element (inputs in 1 byte in fp8), T tokens, t = tp. Column-parallel: A is kept as the norm left it (over t
// with sequence parallelism, gathered again for the product), dC is T out / t. Row-parallel: A is T in / t, dC is whole:
// it was gathered for the input gradient. GPT with f = 4 h on one rank: 32 s b h, beside 34 s b h + core before
// (arXiv:2401.10241, table 1). Freed with the input gradients: norm inputs, dropout masks, Q, K, V, core, the MLP's
// inner activations. Norms have no part: their weight gradients come with their input gradients. Routed experts: the same over the tokens received.
#include "models/transformer/kernel_list.hpp"

namespace fabricast {

std::int64_t weight_gradient_bytes(const Architecture& a, const Shard& s, const SoftwareFeatures& f,
                                   const LayerShape& layer) {
    const detail::LocalSizes n = detail::local_sizes(a, s);
    const std::int64_t width = detail::element_bytes(s.precision);
    const std::int64_t input = s.precision == Precision::fp8 ? 1 : width;
    std::int64_t bytes = 0;
    const auto add = [&](const detail::Linear& l) {
        bytes += input * l.in * (l.cut == detail::Cut::row ? n.tokens : n.norm_tokens);
        for (const std::int64_t out : l.outs)
            bytes += width * out * n.tokens;
    };
    const auto mlp = [&](std::int64_t inner) {
        add(detail::first_mlp_linear(a, inner, f, false));
        add(detail::second_mlp_linear(a, inner, false));
    };
    add(detail::projection_linear(a, n));
    if (a.attention == AttentionKind::latent) {
        const std::int64_t queries = a.query_rank > 0 ? a.query_rank : a.hidden;
        bytes += n.norm_tokens * (input * (a.hidden + queries + a.key_value_rank) +
                                  width * (a.query_rank + a.key_value_rank + a.rope_dim));
        bytes += width * n.tokens * (n.query + n.heads * (a.head_dim - a.rope_dim) + n.value);
    } else {
        add(detail::qkv_linear(a, n, f));
    }
    if (!layer.moe) {
        mlp(n.ffn);
        return bytes;
    }
    if (n.shared_ffn > 0)
        mlp(n.shared_ffn);
    const std::int64_t first = (a.gated ? 2 : 1) * n.expert_ffn;  // experts: inputs and gradients of both products
    bytes += n.received * ((input + width) * (n.hidden + n.expert_ffn) + width * (first - n.expert_ffn));
    return bytes + n.norm_tokens * (input * n.hidden + width * a.moe.experts);
}

std::int64_t head_weight_gradient_bytes(const Architecture& a, const Shard& s, const SoftwareFeatures&) {
    const detail::LocalSizes n = detail::local_sizes(a, s);
    return detail::element_bytes(s.precision) * (n.norm_tokens * n.hidden + n.tokens * n.vocab);
}

}  // namespace fabricast
