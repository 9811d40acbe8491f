// Bytes a layer keeps between forward and backward of one micro-batch.
//
// w = 2 bytes (4 in fp32); T tokens, h hidden, t = tp. "Outside" is divided by t only with sequence parallelism,
// "inside" always.
//   outside  norm inputs 2 w T h; inputs of the two column-parallel layers 2 w T h; two dropout masks 2 T h
//   inside   Q, K, V w T (a + 2 g) d; projection input w T a d; MLP: first output w T f (2 f when gated), second
//            input w T f
//   core     unfused: softmax output w b a s^2, with dropout its mask 1 and its output w on top
//            flash: log-sum-exp, 4 bytes a row
// GPT with f = 4 h, dropout, 16 bit, unfused: s b h (10 + 24/t + 5 a s/(h t)), with sequence parallelism
// (s b h / t)(34 + 5 a s/h); without the core (s b h / t)(18 + 4 f/h).
// Eager differs: RMSNorm keeps its input in fp32 and the normalised tensor (6 instead of w), gated MLP keeps SiLU's
// output (w T f more). In fp8 the inputs of linear layers are kept in 1 byte; the projection's beside the core's
// 16-bit output.
// Recomputation: selective drops the core and holds it while one layer runs; full keeps only the layer input and
// holds the whole set while one layer runs.
// Not modelled: allocator slack, temporaries inside kernels (Megatron-LM adds 5 % for them without SP).
// Sources: arXiv:2205.05198 table 2; Megatron-LM theoretical_memory_usage.py; eager tensors: autograd of PyTorch.
#include "models/transformer/kernel_list.hpp"

#include <cmath>

namespace fabricast {

ActivationBytes layer_activation(const Architecture& a, const Shard& s, const SoftwareFeatures& f, Recompute r,
                                 const LayerShape&) {
    const detail::LocalSizes n = detail::local_sizes(a, s);
    const std::int64_t width = detail::element_bytes(s.precision);
    const bool fp8 = s.precision == Precision::fp8, eager = f.fusion == Fusion::eager;
    const std::int64_t linear = fp8 ? 1 : width;

    const std::int64_t outside = n.norm_tokens * n.hidden;
    const std::int64_t norm_input = eager && a.rms_norm ? 4 + width : width;
    const std::int64_t masks = f.dropout ? 2 : 0;
    std::int64_t kept = outside * (2 * norm_input + 2 * linear + masks);

    kept += n.tokens * (width * (n.query + 2 * n.key_value) + width * n.query);
    if (fp8)
        kept += n.tokens * n.query;
    const std::int64_t first = (a.gated ? 2 : 1) + (a.gated && eager ? 1 : 0);
    kept += n.tokens * n.ffn * (width * first + linear);

    const std::int64_t rows = s.micro_batch * n.heads * s.sequence;
    const std::int64_t core =
        f.attention == "unfused" ? rows * s.sequence * (width + (f.dropout ? 1 + width : 0)) : rows * 4;

    switch (r) {
        case Recompute::none: return {kept + core, 0};
        case Recompute::selective: return {kept, core};
        case Recompute::full: return {width * outside, kept + core};
    }
    return {};
}

std::int64_t embedding_activation(const Architecture& a, const Shard& s, const SoftwareFeatures& f) {
    const detail::LocalSizes n = detail::local_sizes(a, s);
    return 8 * n.tokens + (f.dropout ? n.norm_tokens * n.hidden : 0);
}

std::int64_t logits_bytes(const Architecture& a, const Shard& s, const SoftwareFeatures& f) {
    const detail::LocalSizes n = detail::local_sizes(a, s);
    const std::int64_t inputs = 2 * detail::element_bytes(s.precision) * n.norm_tokens * n.hidden;
    return inputs + std::llround(f.logits_memory_per_logit * static_cast<double>(n.tokens * n.vocab));
}

}  // namespace fabricast
