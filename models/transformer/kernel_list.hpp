// Internal: how the pieces of a layer write down their kernels.
//
// Sizes on one rank (t = tp): tokens T = micro_batch * sequence / cp; outside the sharded region T/t with sequence
// parallelism, T without. Query width a d / t, key/value width max(1, g/t) d, MLP width f/t, vocabulary V/t.
// Experts: a rank routes R = T/t tokens with sequence parallelism (every tp rank its own), T without, and receives
//   R top_k expert_load g,  g = etp with sequence parallelism (the etp ranks of an expert share what each of them
//                           routed), else max(1, etp/t) (tp ranks route the same tokens)
// for E/ep experts of width f_e/etp.
//
// A linear layer is C[T, out] = A[T, in] W, its gradients dA = dC W^T and dW = dC^T A (fp32 accumulation when the
// stack says so). Column-parallel: `out` is sharded and the input was gathered; row-parallel: `in` is sharded and
// the output will be reduced; neither cut (latent attention's down projections, router): every tp rank holds the whole
// weight and multiplies the tokens it has outside. Bytes of operands belong to the GEMM kernel (models/compute).
//
// Bytes per element are given for 16-bit tensors and scale with the element width in fp32 or tf32.
//
// Fp8: a linear layer multiplies in fp8. Each operand is quantised row-wise before the product that needs it first (read
// 2, write 1 byte an element), on the elements this rank holds before the gather. The weight gradient needs transposed
// copies on all tokens: of the saved fp8 input (read 1, write 1) and of the output gradient (write 1, by the kernel that
// casts it: Transformer Engine's cast_transpose, the fused casts of torchao). Casts of weights happen once a step and are
// left out. Head, attention, norms stay bf16.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/transformer/layer.hpp"

namespace fabricast::detail {

struct LocalSizes {
    std::int64_t tokens, norm_tokens, hidden, query, key_value, value, ffn, heads, kv_heads, vocab, mtp;
    std::int64_t shared_ffn, expert_ffn, experts;  ///< on this rank
    std::int64_t received;                         ///< tokens this rank's experts work on
    /// Mean tokens of a local expert and how many experts see any.
    std::int64_t expert_tokens() const { return std::max<std::int64_t>(1, (received + experts / 2) / experts); }
    std::int64_t busy_experts() const { return std::min(experts, received); }
};

inline LocalSizes local_sizes(const Architecture& a, const Shard& s) {
    assert(s.tp > 0 && s.micro_batch > 0 && s.sequence > 0 && "shard must be positive");
    assert(a.heads % s.tp == 0 && a.ffn % s.tp == 0 && "heads and ffn must divide by tp");
    assert((a.moe.experts == 0 || (a.moe.experts % s.ep == 0 && a.moe.ffn % s.etp == 0)) &&
           "experts must divide by ep and their width by etp");
    assert((!s.sequence_parallel || s.tokens() % s.tp == 0) && "tokens must divide by tp with sequence parallelism");
    LocalSizes n{};
    n.tokens = s.tokens();
    n.norm_tokens = s.sequence_parallel ? n.tokens / s.tp : n.tokens;
    n.hidden = a.hidden;
    n.heads = a.heads / s.tp;
    n.kv_heads = a.kv_heads > s.tp ? a.kv_heads / s.tp : 1;
    n.query = n.heads * a.head_dim;
    n.key_value = n.kv_heads * a.head_dim;
    n.value = a.attention == AttentionKind::latent ? n.heads * a.value_dim : n.query;
    n.ffn = a.ffn / s.tp;
    n.mtp = a.hidden / s.tp;
    n.shared_ffn = a.moe.shared_ffn / s.tp;
    n.expert_ffn = a.moe.ffn / s.etp;
    n.experts = a.moe.experts / s.ep;
    const std::int64_t gathered = s.sequence_parallel ? s.etp : std::max<std::int64_t>(1, s.etp / s.tp);
    n.received =
        static_cast<std::int64_t>(static_cast<double>(n.norm_tokens * a.moe.top_k * gathered) * s.expert_load + 0.5);
    n.vocab = padded_vocab(a, s.tp) / s.tp;
    return n;
}

/// Precision of head, attention and pointwise work: fp8 means bf16 there.
inline Precision wide(Precision p) { return p == Precision::fp8 ? Precision::bf16 : p; }

/// Bytes of an activation element.
inline std::int64_t element_bytes(Precision p) { return p == Precision::fp32 || p == Precision::tf32 ? 4 : 2; }

/// What tensor parallelism cuts of a weight.
enum class Cut : std::uint8_t { column, row, none };

struct Linear {
    std::int64_t in = 0;
    std::vector<std::int64_t> outs;  ///< one GEMM each
    Cut cut = Cut::column;
    bool bias = false;
};

class KernelList {
public:
    KernelList(const Architecture& a, const Shard& s, const SoftwareFeatures& f)
        : sizes_(local_sizes(a, s)), shard_(s), software_(f) {}

    const LocalSizes& sizes() const { return sizes_; }
    std::vector<Kernel> take() { return std::move(kernels_); }

    /// `count` memory-bound kernels of `bytes` each; see scaled() for per-element counts.
    void bytes(std::int64_t bytes, std::int64_t count = 1, Account account = Account::memory_bound) {
        Kernel k;
        k.account = account;
        k.count = count;
        k.bytes = bytes;
        k.precision = wide(shard_.precision);
        k.fusion = software_.fusion;
        kernels_.push_back(k);
    }
    /// A pass over `elements` moving `per_element` bytes at 16 bit and `masks` bytes at any width.
    void pass(std::int64_t per_element, std::int64_t elements, std::int64_t masks = 0, std::int64_t count = 1,
              Account account = Account::memory_bound) {
        bytes((per_element * element_bytes(shard_.precision) / 2 + masks) * elements, count, account);
    }
    void gemm(std::int64_t m, std::int64_t n, std::int64_t k, Precision precision, Account account,
              std::int64_t batch = 1, bool accumulate_fp32 = false) {
        Kernel g;
        g.kind = KernelKind::gemm;
        g.account = account;
        g.m = m;
        g.n = n;
        g.k = k;
        g.batch = batch;
        g.precision = precision;
        g.accumulate_fp32 = accumulate_fp32;
        g.fusion = software_.fusion;
        kernels_.push_back(g);
    }
    /// `batch` products of local experts in one launch; see Kernel for the token dimension.
    void grouped(std::int64_t m, std::int64_t n, std::int64_t k) {
        gemm(m, n, k, shard_.precision, Account::gemm_ideal, sizes_.busy_experts());
        kernels_.back().kind = KernelKind::grouped_gemm;
    }
    void grouped_weight(std::int64_t out, std::int64_t in, std::int64_t tokens) {
        grouped(out, in, tokens);
        kernels_.back().tokens_in_k = true;
        kernels_.back().accumulate_fp32 = software_.fp32_gradients;
    }
    void kernel(Kernel k) {
        k.fusion = software_.fusion;
        kernels_.push_back(std::move(k));
    }

    void linear_forward(const Linear& l) {
        quantise(l.in, l.cut == Cut::row ? sizes_.tokens : sizes_.norm_tokens);
        for (const std::int64_t out : l.outs)
            gemm(rows(l), out, l.in, shard_.precision, Account::gemm_ideal);
    }
    /// Gradients of several products with one input are summed pairwise (6 bytes an element).
    void linear_data(const Linear& l) {
        for (const std::int64_t out : l.outs) {
            quantise(out, l.cut == Cut::column ? sizes_.tokens : sizes_.norm_tokens);
            gemm(rows(l), l.in, out, shard_.precision, Account::gemm_ideal);
        }
        const auto sums = static_cast<std::int64_t>(l.outs.size()) - 1;
        if (sums > 0)
            pass(6, rows(l) * l.in, 0, sums);
    }
    /// A bias is added for nothing (epilogue or the kernel behind); its gradient reads dC once.
    void linear_weight(const Linear& l) {
        cast(2, l.in, rows(l));
        for (const std::int64_t out : l.outs) {
            cast(1, out, rows(l));
            weight_gradient(out, l.in, rows(l), shard_.precision);
            if (l.bias)
                pass(2, out * (l.cut == Cut::column ? sizes_.tokens : sizes_.norm_tokens));
        }
    }
    /// dW[out, in]: accumulated in fp32 by the product, or written in 16 bit and added by a pass: the new one read (2), the sum
    /// read and written (4 + 4, or 2 + 2).
    void weight_gradient(std::int64_t out, std::int64_t in, std::int64_t tokens, Precision precision) {
        gemm(out, in, tokens, precision, Account::gemm_ideal, 1,
             software_.fp32_gradients && !software_.accumulate_apart);
        if (software_.accumulate_apart)
            bytes((software_.fp32_gradients ? 10 : 6) * out * in);
    }
    void quantise(std::int64_t width, std::int64_t tokens) { cast(3, width, tokens); }
    /// Fp8 copies of an operand: `per_element` bytes read and written.
    void cast(std::int64_t per_element, std::int64_t width, std::int64_t tokens) {
        if (shard_.precision == Precision::fp8)
            bytes(per_element * width * tokens);
    }

    // Pointwise kernels, pointwise.cpp.
    // Norms of the hidden vector on norm tokens, or of `rows` vectors of `width`.
    void norm_forward(bool rms) { norm_forward(rms, sizes_.norm_tokens, sizes_.hidden); }
    void norm_data(bool rms) { norm_data(rms, sizes_.norm_tokens, sizes_.hidden); }
    void norm_weight(bool rms) { norm_weight(rms, sizes_.norm_tokens, sizes_.hidden); }
    void norm_forward(bool rms, std::int64_t rows, std::int64_t width);
    void norm_data(bool rms, std::int64_t rows, std::int64_t width);
    void norm_weight(bool rms, std::int64_t rows, std::int64_t width);
    void residual_forward(std::int64_t branches = 1);
    void residual_backward(std::int64_t branches = 1);
    void rotary(std::int64_t query, std::int64_t key);  ///< elements; forward and backward cost the same
    void activation_forward(bool gated, std::int64_t elements);
    void activation_backward(bool gated, std::int64_t elements);

private:
    /// Norm and rotary are one kernel each.
    bool single_kernels() const { return software_.fusion != Fusion::eager || software_.fused_norms; }
    std::int64_t rows(const Linear& l) const { return l.cut == Cut::none ? sizes_.norm_tokens : sizes_.tokens; }

    LocalSizes sizes_;
    Shard shard_;
    const SoftwareFeatures& software_;
    std::vector<Kernel> kernels_;
};

/// The linear layers of a block on one rank; `width` is the local width of the MLP.
Linear qkv_linear(const Architecture& a, const LocalSizes& n, const SoftwareFeatures& f);
Linear projection_linear(const Architecture& a, const LocalSizes& n);
Linear first_mlp_linear(const Architecture& a, std::int64_t width, const SoftwareFeatures& f, bool bias);
inline Linear mtp_linear(const LocalSizes& n) { return {2 * n.hidden, {n.mtp}, Cut::column, false}; }
Linear second_mlp_linear(const Architecture& a, std::int64_t width, bool bias);

/// latent_attention.cpp: from the normalised hidden vector to Q, K, V, and back.
void append_latent_forward(KernelList& list, const Architecture& a, const SoftwareFeatures& f);
void append_latent_data(KernelList& list, const Architecture& a, const SoftwareFeatures& f);
void append_latent_weight(KernelList& list, const Architecture& a);

/// experts.cpp: the four pieces of a mixture-of-experts block.
void append_moe_forward(KernelList& list, const Architecture& a, const Shard& s, const SoftwareFeatures& f,
                        Piece piece);
void append_moe_data(KernelList& list, const Architecture& a, const Shard& s, const SoftwareFeatures& f, Piece piece);
void append_moe_weight(KernelList& list, const Architecture& a, const Shard& s, const SoftwareFeatures& f, Piece piece);

/// attention_core.cpp: appended so that the attention piece and selective recomputation share it.
void append_core_forward(KernelList& list, const Architecture& a, const Shard& s, const SoftwareFeatures& f,
                         const LayerShape& layer);
void append_core_backward(KernelList& list, const Architecture& a, const Shard& s, const SoftwareFeatures& f,
                          const LayerShape& layer);
/// What one rank's attention core works on: local query heads and rows, all keys.
struct CoreSizes {
    std::int64_t heads, kv_heads, sq, sk;
};
CoreSizes core_sizes(const LocalSizes& n, const Shard& s);

}  // namespace fabricast::detail
