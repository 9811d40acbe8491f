// Internal: how the pieces of a layer write down their kernels.
//
// Sizes on one rank (t = tp): tokens T = micro_batch * sequence; outside the sharded region T/t with sequence
// parallelism, T without. Query width a d / t, key/value width max(1, g/t) d, MLP width f/t, vocabulary V/t.
//
// A linear layer is C[T, out] = A[T, in] W, its gradients dA = dC W^T and dW = dC^T A (fp32 accumulation when the
// stack says so). Column-parallel: `out` is sharded and the input was gathered; row-parallel: `in` is sharded and
// the output will be reduced. Bytes of operands belong to the GEMM kernel (models/compute).
//
// Bytes per element are given for 16-bit tensors and scale with the element width in fp32 or tf32.
//
// Fp8: a linear layer multiplies in fp8. Each operand is quantised (read 2, write 1 byte an element) once for each
// layout it is needed in: row-wise before the product that needs it first, on the elements this rank holds before
// the gather; transposed, on all tokens, for the weight gradient. Casts of weights happen once a step and are left
// out. Head, attention, norms stay bf16.
#pragma once

#include <cassert>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/transformer/layer.hpp"

namespace fabricast::detail {

struct LocalSizes {
    std::int64_t tokens, norm_tokens, hidden, query, key_value, ffn, heads, kv_heads, vocab;
};

inline LocalSizes local_sizes(const Architecture& a, const Shard& s) {
    assert(s.tp > 0 && s.micro_batch > 0 && s.sequence > 0 && "shard must be positive");
    assert(a.heads % s.tp == 0 && a.ffn % s.tp == 0 && "heads and ffn must divide by tp");
    assert((!s.sequence_parallel || s.tokens() % s.tp == 0) && "tokens must divide by tp with sequence parallelism");
    LocalSizes n{};
    n.tokens = s.tokens();
    n.norm_tokens = s.sequence_parallel ? n.tokens / s.tp : n.tokens;
    n.hidden = a.hidden;
    n.heads = a.heads / s.tp;
    n.kv_heads = a.kv_heads > s.tp ? a.kv_heads / s.tp : 1;
    n.query = n.heads * a.head_dim;
    n.key_value = n.kv_heads * a.head_dim;
    n.ffn = a.ffn / s.tp;
    n.vocab = padded_vocab(a, s.tp) / s.tp;
    return n;
}

/// Precision of head, attention and pointwise work: fp8 means bf16 there.
inline Precision wide(Precision p) { return p == Precision::fp8 ? Precision::bf16 : p; }

/// Bytes of an activation element.
inline std::int64_t element_bytes(Precision p) { return p == Precision::fp32 || p == Precision::tf32 ? 4 : 2; }

struct Linear {
    std::int64_t in = 0;
    std::vector<std::int64_t> outs;  ///< one GEMM each
    bool column = true;
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
    void attention(KernelKind kind, std::int64_t head_dim) {
        Kernel k;
        k.kind = kind;
        k.account = Account::attention;
        k.batch = shard_.micro_batch;
        k.heads = sizes_.heads;
        k.kv_heads = sizes_.kv_heads;
        k.sq = shard_.sequence;
        k.sk = shard_.sequence;
        k.head_dim = head_dim;
        k.precision = wide(shard_.precision);
        k.fusion = software_.fusion;
        kernels_.push_back(k);
    }

    void linear_forward(const Linear& l) {
        quantise(l.in, l.column ? sizes_.norm_tokens : sizes_.tokens);
        for (const std::int64_t out : l.outs)
            gemm(sizes_.tokens, out, l.in, shard_.precision, Account::gemm_ideal);
    }
    /// Gradients of several products with one input are summed pairwise (6 bytes an element).
    void linear_data(const Linear& l) {
        for (const std::int64_t out : l.outs) {
            quantise(out, l.column ? sizes_.tokens : sizes_.norm_tokens);
            gemm(sizes_.tokens, l.in, out, shard_.precision, Account::gemm_ideal);
        }
        const auto sums = static_cast<std::int64_t>(l.outs.size()) - 1;
        if (sums > 0)
            pass(6, sizes_.tokens * l.in, 0, sums);
    }
    /// A bias is added for nothing (epilogue or the kernel behind); its gradient reads dC once.
    void linear_weight(const Linear& l) {
        quantise(l.in, sizes_.tokens);
        for (const std::int64_t out : l.outs) {
            quantise(out, sizes_.tokens);
            gemm(out, l.in, sizes_.tokens, shard_.precision, Account::gemm_ideal, 1, software_.fp32_gradients);
            if (l.bias)
                pass(2, out * (l.column ? sizes_.tokens : sizes_.norm_tokens));
        }
    }

    // Pointwise kernels, pointwise.cpp.
    void norm_forward(bool rms);
    void norm_data(bool rms);
    void norm_weight(bool rms);
    void residual_forward();
    void residual_backward();
    void rotary();  ///< forward and backward cost the same
    void activation_forward(bool gated);
    void activation_backward(bool gated);

private:
    void quantise(std::int64_t width, std::int64_t tokens) {
        if (shard_.precision == Precision::fp8)
            bytes(3 * width * tokens);
    }

    LocalSizes sizes_;
    Shard shard_;
    const SoftwareFeatures& software_;
    std::vector<Kernel> kernels_;
};

/// The linear layers of a block on one rank.
Linear qkv_linear(const Architecture& a, const LocalSizes& n, const SoftwareFeatures& f);
Linear projection_linear(const Architecture& a, const LocalSizes& n);
Linear first_mlp_linear(const Architecture& a, const LocalSizes& n, const SoftwareFeatures& f);
Linear second_mlp_linear(const Architecture& a, const LocalSizes& n);

/// attention_core.cpp: appended so that the attention piece and selective recomputation share it.
void append_core_forward(KernelList& list, const Architecture& a, const Shard& s, const SoftwareFeatures& f);
void append_core_backward(KernelList& list, const Architecture& a, const Shard& s, const SoftwareFeatures& f);

}  // namespace fabricast::detail
