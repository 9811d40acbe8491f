// The attention core: softmax(Q K^T / sqrt(d)) V.
//
// Flash ("fa2", "cudnn" ...): one kernel forward, one backward; grouped keys and causality are its own business.
// Unfused: batched GEMMs over micro_batch * heads / tp with full s x s scores, and passes over the scores:
//   forward   Q K^T | scale, mask, softmax 4 bytes a score | dropout 5 | P V
//   backward  dP = dO V^T, dV = P^T dO | dropout 5 | softmax 6 | dQ = dS K, dK = dS^T Q
// so 9 bytes a score forward and 11 backward with dropout, 4 and 6 without. These are the reads and writes of the
// pointwise kernels only; the GEMMs carry the bytes of their own operands, scores included. The context is copied
// from heads to tokens (4 bytes an element), and back in backward. Eager and unfused: scale and mask are passes of
// their own (8) and softmax goes through fp32 (20; backward 24).
// Not modelled: skipping of masked blocks, copies that expand grouped keys and values when unfused.
// Sources: Megatron-LM CoreAttention; arXiv:2205.05198 section 4.1 (the tensors), arXiv:2307.08691 (flash).
#include "models/transformer/kernel_list.hpp"

namespace fabricast::detail {

void append_core_forward(KernelList& list, const Architecture& a, const Shard& s, const SoftwareFeatures& f) {
    if (f.attention != "unfused")
        return list.attention(KernelKind::attention_forward, a.head_dim);
    const std::int64_t batch = s.micro_batch * list.sizes().heads, length = s.sequence;
    const std::int64_t scores = batch * length * length;
    const Precision precision = wide(s.precision);
    list.gemm(length, length, a.head_dim, precision, Account::attention, batch);
    if (f.fusion == Fusion::eager) {
        list.pass(4, scores, 0, 2, Account::attention);
        list.pass(6, scores, 0, 2, Account::attention);
        list.pass(8, scores, 0, 1, Account::attention);
    } else {
        list.pass(4, scores, 0, 1, Account::attention);
    }
    if (f.dropout)
        list.pass(4, scores, 1, 1, Account::attention);
    list.gemm(length, a.head_dim, length, precision, Account::attention, batch);
    list.pass(4, list.sizes().tokens * list.sizes().query, 0, 1, Account::attention);
}

void append_core_backward(KernelList& list, const Architecture& a, const Shard& s, const SoftwareFeatures& f) {
    if (f.attention != "unfused")
        return list.attention(KernelKind::attention_backward, a.head_dim);
    const std::int64_t batch = s.micro_batch * list.sizes().heads, length = s.sequence;
    const std::int64_t scores = batch * length * length;
    const Precision precision = wide(s.precision);
    list.pass(4, list.sizes().tokens * list.sizes().query, 0, 1, Account::attention);
    list.gemm(length, length, a.head_dim, precision, Account::attention, batch);
    list.gemm(length, a.head_dim, length, precision, Account::attention, batch);
    if (f.dropout)
        list.pass(4, scores, 1, 1, Account::attention);
    if (f.fusion == Fusion::eager) {
        list.pass(6, scores, 0, 2, Account::attention);
        list.pass(12, scores, 0, 1, Account::attention);
        list.pass(4, scores, 0, 2, Account::attention);
    } else {
        list.pass(6, scores, 0, 1, Account::attention);
    }
    list.gemm(length, a.head_dim, length, precision, Account::attention, batch);
    list.gemm(length, a.head_dim, length, precision, Account::attention, batch);
}

}  // namespace fabricast::detail
