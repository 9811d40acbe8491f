// Embedding in front of the first layer; final norm, head and loss behind the last.
//
// Embedding forward: every rank looks up all tokens in its V/t rows (4 bytes an element), with t > 1 clears the rows
// it does not own (2); learned positions are added (6; backward sums over the batch, 2), dropout 5. Backward: sorted
// scatter, four times dearer a byte than the lookup (published range 3-5), into a dense gradient of V/t x h
// that is cleared (2) and added to the accumulated one (10 bytes in fp32, 6 in 16 bit).
// Loss: the stack's bytes per logit, half forward and half backward, in passes of about 4 bytes: 1 kernel each way
// when fused (12 bytes in all), 3 in Megatron-LM (24: fp32 copy, exponentials, sums), 4 in eager fp32 (32).
// The head multiplies in 16 bit also when the layers run in fp8; logits are fp32 inside the loss.
// Prediction module: the next token's embedding, a norm of it and of the hidden vector, both joined (4 bytes an element)
// and projected 2 h -> h/t.
// Sources: Megatron-LM VocabParallelEmbedding, vocab_parallel_cross_entropy; loss bytes: software.cpp.
#include "models/transformer/kernel_list.hpp"

#include <cmath>

namespace fabricast {
namespace {

using detail::KernelList;

constexpr std::int64_t kScatterCost = 4;

/// One direction of the loss.
void loss(KernelList& list, const SoftwareFeatures& f) {
    const double logits = static_cast<double>(list.sizes().tokens * list.sizes().vocab);
    const double half = f.loss_bytes_per_logit / 2;
    const std::int64_t passes = half < 8 ? 1 : static_cast<std::int64_t>(half / 4);
    list.bytes(std::llround(half * logits / static_cast<double>(passes)), passes);
}

}  // namespace

std::vector<Kernel> embedding_forward(const Architecture& a, const Shard& s, const SoftwareFeatures& f) {
    KernelList list(a, s, f);
    const detail::LocalSizes& n = list.sizes();
    list.pass(4, n.tokens * n.hidden);
    if (s.tp > 1)
        list.pass(2, n.tokens * n.hidden);
    if (a.max_positions > 0)
        list.pass(6, n.tokens * n.hidden);
    if (f.dropout)
        list.pass(4, n.norm_tokens * n.hidden, 1);
    return list.take();
}

std::vector<Kernel> embedding_backward(const Architecture& a, const Shard& s, const SoftwareFeatures& f) {
    KernelList list(a, s, f);
    const detail::LocalSizes& n = list.sizes();
    if (f.dropout)
        list.pass(4, n.norm_tokens * n.hidden, 1);
    if (a.max_positions > 0)
        list.pass(2, n.tokens * n.hidden);
    list.pass(2, n.vocab * n.hidden);
    list.pass(4 * kScatterCost, n.tokens * n.hidden);
    list.bytes((f.fp32_gradients ? 10 : 6) * n.vocab * n.hidden);
    return list.take();
}

std::vector<Kernel> head_forward(const Architecture& a, const Shard& s, const SoftwareFeatures& f) {
    KernelList list(a, s, f);
    const detail::LocalSizes& n = list.sizes();
    list.norm_forward(a.rms_norm);
    list.gemm(n.tokens, n.vocab, n.hidden, detail::wide(s.precision), Account::gemm_ideal);
    loss(list, f);
    return list.take();
}

std::vector<Kernel> head_backward(const Architecture& a, const Shard& s, const SoftwareFeatures& f) {
    KernelList list(a, s, f);
    const detail::LocalSizes& n = list.sizes();
    const Precision precision = detail::wide(s.precision);
    loss(list, f);
    list.gemm(n.tokens, n.hidden, n.vocab, precision, Account::gemm_ideal);
    list.weight_gradient(n.vocab, n.hidden, n.tokens, precision);
    list.norm_data(a.rms_norm);
    list.norm_weight(a.rms_norm);
    return list.take();
}

std::vector<Kernel> mtp_forward(const Architecture& a, const Shard& s, const SoftwareFeatures& f) {
    std::vector<Kernel> kernels = embedding_forward(a, s, f);
    KernelList list(a, s, f);
    const detail::LocalSizes& n = list.sizes();
    list.norm_forward(a.rms_norm);
    list.norm_forward(a.rms_norm);
    list.pass(4, 2 * n.norm_tokens * n.hidden);
    list.linear_forward(detail::mtp_linear(n));
    const std::vector<Kernel> rest = list.take();
    kernels.insert(kernels.end(), rest.begin(), rest.end());
    return kernels;
}

std::vector<Kernel> mtp_backward(const Architecture& a, const Shard& s, const SoftwareFeatures& f) {
    KernelList list(a, s, f);
    const detail::LocalSizes& n = list.sizes();
    list.linear_data(detail::mtp_linear(n));
    list.linear_weight(detail::mtp_linear(n));
    list.pass(4, 2 * n.norm_tokens * n.hidden);
    for (int i = 0; i < 2; ++i) {
        list.norm_data(a.rms_norm);
        list.norm_weight(a.rms_norm);
    }
    std::vector<Kernel> kernels = list.take();
    const std::vector<Kernel> rest = embedding_backward(a, s, f);
    kernels.insert(kernels.end(), rest.begin(), rest.end());
    return kernels;
}

std::vector<Kernel> head_backward_data(const Architecture& a, const Shard& s, const SoftwareFeatures& f) {
    KernelList list(a, s, f);
    const detail::LocalSizes& n = list.sizes();
    loss(list, f);
    list.gemm(n.tokens, n.hidden, n.vocab, detail::wide(s.precision), Account::gemm_ideal);
    list.norm_data(a.rms_norm);
    list.norm_weight(a.rms_norm);
    return list.take();
}

std::vector<Kernel> head_backward_weight(const Architecture& a, const Shard& s, const SoftwareFeatures& f) {
    KernelList list(a, s, f);
    const detail::LocalSizes& n = list.sizes();
    list.weight_gradient(n.vocab, n.hidden, n.tokens, detail::wide(s.precision));
    return list.take();
}

}  // namespace fabricast
