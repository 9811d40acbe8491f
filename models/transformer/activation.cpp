// Bytes a layer keeps between forward and backward of one micro-batch.
//
// w = 2 bytes (4 in fp32); T tokens, h hidden, t = tp. "Outside" is divided by t only with sequence parallelism,
// "inside" always.
//   outside  norm inputs 2 w T h; inputs of the two column-parallel layers 2 w T h; two dropout masks 2 T h
//   inside   Q, K, V w T (a + 2 g) d; projection input w T a d; MLP: first output w T f (2 f when gated), second
//            input w T f
//   core     unfused: softmax output w b a sq sk, with dropout its mask 1 and its output w on top
//            flash: log-sum-exp, 4 bytes a row
// GPT with f = 4 h, dropout, 16 bit, unfused: s b h (10 + 24/t + 5 a s/(h t)), with sequence parallelism
// (s b h / t)(34 + 5 a s/h); without the core (s b h / t)(18 + 4 f/h).
// Other families, on top or instead:
//   q, k norms       their inputs w T (a + g) d
//   post-norms       inputs of the norms behind both blocks 2 w T h, outside
//   parallel block   one norm input, one input of the column-parallel layers (two with separate norms), outside
//   latent           compressed vectors outside: before their norms w T (r_q + r + rope), after them w T (r_q + r);
//                    inside Q and K w T a d each, V and projection input w T a v each
//   experts          instead of the MLP: the router's input (outside, where the second column-parallel input was), scores
//                    9 bytes a (token, expert) (fp32 probabilities, those of the balancing loss, map), 16 bytes an index
//                    of each copy; permuted inputs w P h, first output w P f_e (2 f_e when gated), second input w P f_e, and
//                    on the routing rank the returned outputs w R k h (gradient of the weights). Shared experts as an MLP
//                    of width f_s, with a gate their output w T h outside.
//   context          T is the rank's part; ulysses keeps the same volume, exchanged
// Eager differs: RMSNorm keeps its input in fp32 and the normalised tensor (6 instead of w), gated MLP keeps SiLU's
// output (w T f more). In fp8 the inputs of linear layers are kept in 1 byte; the projection's beside the core's
// 16-bit output, the router's 16-bit input beside the shared experts' copy.
// Recomputation: selective drops the core and holds it while one layer runs; full keeps only the layer input and
// holds the whole set while one layer runs. Selective by product (torchtitan's selective_ac_option op) keeps the layer
// input w T h, the core's output w T a d and log-sum-exp, the output of every second product in order of execution (split:
// queries w T a d, values w T g d, gate w T f, second MLP product w T h in full width) and with sequence parallelism both
// reduce-scattered sums; the rest of the whole set comes back while one layer runs.
// Not modelled: allocator slack, temporaries inside kernels (Megatron-LM adds 5 % for them without SP).
// Sources: arXiv:2205.05198 table 2; Megatron-LM theoretical_memory_usage.py; saved tensors of Megatron-LM moe and
// multi_latent_attention; eager tensors: autograd of PyTorch; selective by product: torchtitan,
// models/parallelize_llama.py (_save_list, every second aten.mm).
#include <algorithm>
#include <cmath>

#include "models/transformer/kernel_list.hpp"

namespace fabricast {

namespace {

constexpr std::int64_t kScoreBytes = 9, kIndexBytes = 16;

/// Element widths of what is kept.
struct Widths {
    std::int64_t wide, linear, norm, gates;  ///< activations, linear inputs, norm inputs, tensors of a first MLP output
    bool fp8;
};

Widths widths(const Architecture& a, const Shard& s, const SoftwareFeatures& f) {
    const bool eager = f.fusion == Fusion::eager;
    Widths w{};
    w.wide = detail::element_bytes(s.precision);
    w.fp8 = s.precision == Precision::fp8;
    w.linear = w.fp8 ? 1 : w.wide;
    w.norm = eager && a.rms_norm ? 4 + w.wide : w.wide;
    w.gates = (a.gated ? 2 : 1) + (a.gated && eager ? 1 : 0);
    return w;
}

/// Norm inputs, inputs of column-parallel layers, dropout masks, per hidden element outside.
std::int64_t outside_bytes(const Architecture& a, const SoftwareFeatures& f, const Widths& w) {
    const std::int64_t norms = a.parallel_block && !a.separate_norms ? 1 : 2;
    return norms * (w.norm + w.linear) + (a.post_norms ? 2 * w.norm : 0) + (f.dropout ? 2 : 0);
}

std::int64_t attention_bytes(const Architecture& a, const detail::LocalSizes& n, const Widths& w) {
    std::int64_t kept = w.fp8 ? n.tokens * n.value : 0;
    if (a.attention == AttentionKind::latent) {
        kept += n.tokens * w.wide * (2 * n.query + 2 * n.value);
        kept += n.norm_tokens * (w.norm * (a.query_rank + a.key_value_rank) + w.wide * a.rope_dim);
        return kept + n.norm_tokens * w.linear * (a.query_rank + a.key_value_rank);
    }
    kept += n.tokens * w.wide * (2 * n.query + 2 * n.key_value);
    return kept + (a.qk_norm ? n.tokens * w.norm * (n.query + n.key_value) : 0);
}

std::int64_t mlp_bytes(std::int64_t tokens, std::int64_t width, const Widths& w) {
    return tokens * width * (w.wide * w.gates + w.linear);
}

std::int64_t moe_bytes(const Architecture& a, const detail::LocalSizes& n, const Widths& w) {
    const std::int64_t copies = n.norm_tokens * a.moe.top_k;
    std::int64_t kept = n.norm_tokens * a.moe.experts * kScoreBytes + copies * kIndexBytes;
    kept += n.received * n.hidden * w.linear + mlp_bytes(n.received, n.expert_ffn, w);
    kept += copies * n.hidden * w.wide;
    if (w.fp8)
        kept += n.norm_tokens * n.hidden * (a.moe.shared_ffn > 0 ? w.wide : w.wide - w.linear);
    if (a.moe.shared_ffn > 0) {
        kept += mlp_bytes(n.tokens, n.shared_ffn, w);
        kept += a.moe.shared_gate ? n.norm_tokens * n.hidden * w.wide : 0;
    }
    return kept;
}

/// Selective by product (header): outputs of every second product, 16 bit also in fp8; of them those that the backward
/// reads as they are.
struct KeptProducts {
    std::int64_t all = 0, read = 0;
};

KeptProducts kept_products(const Architecture& a, const detail::LocalSizes& n, const SoftwareFeatures& f,
                           std::int64_t wide) {
    KeptProducts out;
    int products = 0;
    const auto add = [&](const detail::Linear& linear, std::size_t first_read) {
        for (std::size_t i = 0; i < linear.outs.size(); ++i) {
            if (products++ % 2 == 1)
                continue;
            out.all += n.tokens * linear.outs[i] * wide;
            out.read += i >= first_read ? n.tokens * linear.outs[i] * wide : 0;
        }
    };
    constexpr std::size_t kNone = ~std::size_t{0};
    add(detail::qkv_linear(a, n, f), f.split_projections ? 2 : kNone);  // values; queries and keys turn first
    add(detail::projection_linear(a, n), kNone);
    add(detail::first_mlp_linear(a, n.ffn, f, false), 0);
    add(detail::second_mlp_linear(a, n.ffn, false), kNone);
    return out;
}

}  // namespace

ActivationBytes layer_activation(const Architecture& a, const Shard& s, const SoftwareFeatures& f, Recompute r,
                                 const LayerShape& layer) {
    const detail::LocalSizes n = detail::local_sizes(a, s);
    const Widths w = widths(a, s, f);
    const std::int64_t outside = n.norm_tokens * n.hidden;
    std::int64_t kept = outside * outside_bytes(a, f, w) + attention_bytes(a, n, w);
    kept += layer.moe ? moe_bytes(a, n, w) : mlp_bytes(n.tokens, n.ffn, w);

    const detail::CoreSizes c = detail::core_sizes(n, s);
    const std::int64_t rows = s.micro_batch * c.heads * c.sq;
    const std::int64_t core =
        f.attention == "unfused" ? rows * c.sk * (w.wide + (f.dropout ? 1 + w.wide : 0)) : rows * 4;

    switch (r) {
        case Recompute::none: return {kept + core, 0};
        case Recompute::selective: {
            if (!f.selective_by_product || layer.moe || a.attention == AttentionKind::latent)
                return {kept, core};
            const KeptProducts products = kept_products(a, n, f, w.wide);
            const std::int64_t result = n.tokens * n.value * w.wide;  // of the core, the projection's input
            const std::int64_t reduced = s.sequence_parallel && s.tp > 1 ? 2 * w.wide * outside : 0;
            const std::int64_t held = w.wide * outside + result + core + products.all + reduced;
            return {held, std::max<std::int64_t>(0, kept + core - result - core - products.read)};
        }
        case Recompute::full: return {w.wide * outside, kept + core};
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
