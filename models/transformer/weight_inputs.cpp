// Bytes that wait for the weight gradients once the input gradients of a micro-batch are done: of every linear layer
// C[T, out] = A[T, in] W the input A and the gradient dC.
//
// w bytes an element (inputs in 1 byte in fp8), T tokens, t = tp. Column-parallel: A is kept as the norm left it (over t
// with sequence parallelism, gathered again for the product), dC is T out / t. Row-parallel: A is T in / t, dC is whole:
// it was gathered for the input gradient. GPT with f = 4 h on one rank: 32 s b h, beside 34 s b h + core before
// (arXiv:2401.10241, table 1). Freed with the input gradients: norm inputs, dropout masks, Q, K, V, core, the MLP's
// inner activations. Norms have no part: their weight gradients come with their input gradients.
#include "models/transformer/kernel_list.hpp"

namespace fabricast {

std::int64_t weight_gradient_bytes(const Architecture& a, const Shard& s, const SoftwareFeatures& f,
                                   const LayerShape&) {
    const detail::LocalSizes n = detail::local_sizes(a, s);
    const std::int64_t width = detail::element_bytes(s.precision);
    const std::int64_t input = s.precision == Precision::fp8 ? 1 : width;
    std::int64_t bytes = 0;
    for (const detail::Linear& l : {detail::qkv_linear(a, n, f), detail::projection_linear(a, n),
                                    detail::first_mlp_linear(a, n, f), detail::second_mlp_linear(a, n)}) {
        bytes += input * l.in * (l.column ? n.norm_tokens : n.tokens);
        for (const std::int64_t out : l.outs)
            bytes += width * out * n.tokens;
    }
    return bytes;
}

std::int64_t head_weight_gradient_bytes(const Architecture& a, const Shard& s, const SoftwareFeatures&) {
    const detail::LocalSizes n = detail::local_sizes(a, s);
    return detail::element_bytes(s.precision) * (n.norm_tokens * n.hidden + n.tokens * n.vocab);
}

}  // namespace fabricast
