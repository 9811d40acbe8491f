// The attention core: softmax(Q K^T / sqrt(d)) V.
//
// Flash ("fa2", "cudnn" ...): one kernel forward, one backward; grouped keys, causality and windows are its own
// business; sinks are a number a head in its softmax.
// Context parallelism, a sequence of s tokens on cp ranks: rings and gathers see s/cp query rows against s keys, the
// rows taken evenly from all positions (balanced); ulysses sees all rows of heads/cp.
// Unfused: batched GEMMs over micro_batch * heads / tp with full sq x sk scores, and passes over the scores:
//   forward   Q K^T | scale, mask, softmax 3 bytes a score | dropout 5 | P V
//   backward  dP = dO V^T, dV = P^T dO | dropout 5 | softmax 4 | dQ = dS K, dK = dS^T Q
// so 8 bytes a score forward and 9 backward with dropout, 3 and 4 without: the fused causal softmax reads the half below
// the diagonal and writes all (4 and 6 where a rank's rows are not the first of their keys). These are the reads and writes of the
// pointwise kernels only; the GEMMs carry the bytes of their own operands, scores included. The context is copied
// from heads to tokens (4 bytes an element), and back in backward. Eager and unfused: scale and mask are passes of
// their own (8) and softmax goes through fp32 (20; backward 24).
// Not modelled: skipping of masked blocks, copies that expand grouped keys and values when unfused; the s/cp x s/cp
// pieces a ring cuts its kernel into.
// Sources: Megatron-LM CoreAttention; arXiv:2205.05198 section 4.1 (the tensors), arXiv:2307.08691 (flash).
#include "models/transformer/kernel_list.hpp"

namespace fabricast::detail {

namespace {

struct Core {
    CoreSizes size;
    std::int64_t batch, scores, context, head_dim, value_dim;
};

Core core(const KernelList& list, const Architecture& a, const Shard& s) {
    Core c{};
    c.size = core_sizes(list.sizes(), s);
    c.head_dim = a.head_dim;
    c.value_dim = a.attention == AttentionKind::latent ? a.value_dim : a.head_dim;
    c.batch = s.micro_batch * c.size.heads;
    c.scores = c.batch * c.size.sq * c.size.sk;
    c.context = c.batch * c.size.sq * c.value_dim;
    return c;
}

bool reads_half(const Core& c) { return c.size.sq == c.size.sk; }

void flash(KernelList& list, KernelKind kind, const Core& c, const Shard& s, const LayerShape& layer) {
    Kernel k;
    k.kind = kind;
    k.account = Account::attention;
    k.batch = s.micro_batch;
    k.heads = c.size.heads;
    k.kv_heads = c.size.kv_heads;
    k.sq = c.size.sq;
    k.sk = c.size.sk;
    k.head_dim = c.head_dim;
    k.value_dim = c.value_dim != c.head_dim ? c.value_dim : 0;
    k.window = layer.window < c.size.sk ? layer.window : 0;
    k.balanced = c.size.sq < c.size.sk;
    k.document = s.document < c.size.sk ? s.document : 0;
    k.precision = wide(s.precision);
    list.kernel(std::move(k));
}

}  // namespace

CoreSizes core_sizes(const LocalSizes& n, const Shard& s) {
    if (s.ulysses && s.cp > 1)
        return {std::max<std::int64_t>(1, n.heads / s.cp), std::max<std::int64_t>(1, n.kv_heads / s.cp), s.sequence,
                s.sequence};
    return {n.heads, n.kv_heads, s.sequence / s.cp, s.sequence};
}

void append_core_forward(KernelList& list, const Architecture& a, const Shard& s, const SoftwareFeatures& f,
                         const LayerShape& layer) {
    const Core c = core(list, a, s);
    if (f.attention != "unfused")
        return flash(list, KernelKind::attention_forward, c, s, layer);
    const Precision precision = wide(s.precision);
    list.gemm(c.size.sq, c.size.sk, c.head_dim, precision, Account::attention, c.batch);
    if (f.fusion == Fusion::eager) {
        list.pass(4, c.scores, 0, 2, Account::attention);
        list.pass(6, c.scores, 0, 2, Account::attention);
        list.pass(8, c.scores, 0, 1, Account::attention);
    } else {
        list.pass(reads_half(c) ? 3 : 4, c.scores, 0, 1, Account::attention);
    }
    if (f.dropout)
        list.pass(4, c.scores, 1, 1, Account::attention);
    list.gemm(c.size.sq, c.value_dim, c.size.sk, precision, Account::attention, c.batch);
    list.pass(4, c.context, 0, 1, Account::attention);
}

void append_core_backward(KernelList& list, const Architecture& a, const Shard& s, const SoftwareFeatures& f,
                          const LayerShape& layer) {
    const Core c = core(list, a, s);
    if (f.attention != "unfused")
        return flash(list, KernelKind::attention_backward, c, s, layer);
    const Precision precision = wide(s.precision);
    list.pass(4, c.context, 0, 1, Account::attention);
    list.gemm(c.size.sq, c.size.sk, c.value_dim, precision, Account::attention, c.batch);
    list.gemm(c.size.sk, c.value_dim, c.size.sq, precision, Account::attention, c.batch);
    if (f.dropout)
        list.pass(4, c.scores, 1, 1, Account::attention);
    if (f.fusion == Fusion::eager) {
        list.pass(6, c.scores, 0, 2, Account::attention);
        list.pass(12, c.scores, 0, 1, Account::attention);
        list.pass(4, c.scores, 0, 2, Account::attention);
    } else {
        list.pass(reads_half(c) ? 4 : 6, c.scores, 0, 1, Account::attention);
    }
    list.gemm(c.size.sq, c.head_dim, c.size.sk, precision, Account::attention, c.batch);
    list.gemm(c.size.sk, c.head_dim, c.size.sq, precision, Account::attention, c.batch);
}

}  // namespace fabricast::detail
