// The four pieces of a mixture-of-experts block on one rank. R tokens routed here (T/t with sequence parallelism), k
// experts a token, E experts, P tokens received by the E_l local experts (sizes at the head of kernel_list.hpp).
//
//   shared   an MLP of width f_s/t on T tokens; a gate is a product of width 1 and a multiplication (4 bytes)
//   route    router R x E, h -> E, in 16 bit; scores in fp32, bytes a (token, expert):
//            forward   to fp32 6, softmax or sigmoid 8, top-k 4, probabilities and map written 5, load for the
//                      balancing loss 5
//            backward  gathered gradients 5, balancing loss 4, softmax 12, to 16 bit 6
//            permutation into send order: R k h read and written; its backward sums k copies: R k h read, R h written,
//            and joins the gradients of router and shared experts (6 bytes an element of R h each)
//   experts  received tokens sorted by expert and back where a rank has several experts and others send (P h read and
//            written each); grouped products h -> 2 f_e/etp, activation, f_e/etp -> h, P/E_l tokens a product
//   combine  back into token order, weighted sum: R k h read, R h written; backward: R h and, for the gradient of the
//            probabilities, R k h read, R k h written. Shared experts are added (6).
// Permutations move rows picked by index at half the rate of a streaming kernel: 0.33-0.50 of HBM bandwidth on H200,
// 0.50 on B200, where a fused pass reaches 0.85; so a byte counts 1.7 (0.85 / 0.50).
// Fp8: grouped products and shared experts as other linear layers; router and permutations stay in 16 bit.
// Experts of a rank differ as an even-handed router deals (models/compute/grouped_gemm.hpp).
// Not modelled: favoured experts within a rank (expert_load scales all of them), capacity padding and dropping, index
// arithmetic on R k integers.
// Sources: Megatron-LM moe (router.py, token_dispatcher.py, moe_utils.py: one pass per tensor operation); permutation
// rates: SimuMax B200 efficiencies, TileOPs PR 603 on H200.
#include "models/transformer/kernel_list.hpp"

namespace fabricast::detail {

namespace {

constexpr std::int64_t kScoreForward[] = {6, 8, 4, 5, 5};
constexpr std::int64_t kScoreBackward[] = {5, 4, 12, 6};
constexpr std::int64_t kPermuteTenths = 17;

struct Sizes {
    std::int64_t hidden, routed, copies, received, width, tokens;
    bool sorted;
};

Sizes sizes(const Architecture& a, const Shard& s, const LocalSizes& n) {
    Sizes z{};
    z.hidden = n.hidden;
    z.routed = n.norm_tokens;
    z.copies = z.routed * a.moe.top_k;
    z.received = n.received;
    z.width = n.expert_ffn;
    z.tokens = n.expert_tokens();
    z.sorted = s.ep > 1 && n.experts > 1;
    return z;
}

/// Rows picked by index: `read` and `written` elements in all.
void permute(KernelList& list, const Shard& s, std::int64_t read, std::int64_t written) {
    list.bytes(element_bytes(s.precision) * (read + written) * kPermuteTenths / 10);
}

void scores(KernelList& list, const Architecture& a, const Sizes& z, bool forward) {
    if (forward) {
        for (const std::int64_t bytes : kScoreForward)
            list.bytes(bytes * z.routed * a.moe.experts);
    } else {
        for (const std::int64_t bytes : kScoreBackward)
            list.bytes(bytes * z.routed * a.moe.experts);
    }
}

std::vector<std::int64_t> first_widths(const Architecture& a, const Sizes& z, const SoftwareFeatures& f) {
    return first_mlp_linear(a, z.width, f, false).outs;
}

}  // namespace

void append_moe_forward(KernelList& list, const Architecture& a, const Shard& s, const SoftwareFeatures& f,
                        Piece piece) {
    const LocalSizes& n = list.sizes();
    const Sizes z = sizes(a, s, n);
    if (piece == Piece::moe_shared && n.shared_ffn > 0) {
        list.linear_forward(first_mlp_linear(a, n.shared_ffn, f, false));
        list.activation_forward(a.gated, n.tokens * n.shared_ffn);
        list.linear_forward(second_mlp_linear(a, n.shared_ffn, false));
        if (a.moe.shared_gate) {
            list.gemm(z.routed, 1, z.hidden, wide(s.precision), Account::gemm_ideal);
            list.pass(4, z.routed * z.hidden);
        }
    } else if (piece == Piece::moe_route) {
        list.gemm(z.routed, a.moe.experts, z.hidden, wide(s.precision), Account::gemm_ideal);
        scores(list, a, z, true);
        permute(list, s, z.copies * z.hidden, z.copies * z.hidden);
    } else if (piece == Piece::moe_experts) {
        if (z.sorted)
            permute(list, s, z.received * z.hidden, z.received * z.hidden);
        list.quantise(z.hidden, z.received);
        for (const std::int64_t out : first_widths(a, z, f))
            list.grouped(z.tokens, out, z.hidden);
        list.activation_forward(a.gated, z.received * z.width);
        list.quantise(z.width, z.received);
        list.grouped(z.tokens, z.hidden, z.width);
        if (z.sorted)
            permute(list, s, z.received * z.hidden, z.received * z.hidden);
    } else if (piece == Piece::moe_combine) {
        permute(list, s, z.copies * z.hidden, z.routed * z.hidden);
        if (n.shared_ffn > 0)
            list.pass(6, z.routed * z.hidden);
    }
}

void append_moe_data(KernelList& list, const Architecture& a, const Shard& s, const SoftwareFeatures& f, Piece piece) {
    const LocalSizes& n = list.sizes();
    const Sizes z = sizes(a, s, n);
    if (piece == Piece::moe_shared && n.shared_ffn > 0) {
        if (a.moe.shared_gate) {
            list.pass(8, z.routed * z.hidden);
            list.gemm(z.routed, z.hidden, 1, wide(s.precision), Account::gemm_ideal);
        }
        list.linear_data(second_mlp_linear(a, n.shared_ffn, false));
        list.activation_backward(a.gated, n.tokens * n.shared_ffn);
        list.linear_data(first_mlp_linear(a, n.shared_ffn, f, false));
    } else if (piece == Piece::moe_route) {
        permute(list, s, z.copies * z.hidden, z.routed * z.hidden);
        scores(list, a, z, false);
        list.gemm(z.routed, z.hidden, a.moe.experts, wide(s.precision), Account::gemm_ideal);
        list.pass(6, z.routed * z.hidden, 0, n.shared_ffn > 0 ? 2 : 1);
    } else if (piece == Piece::moe_experts) {
        if (z.sorted)
            permute(list, s, z.received * z.hidden, z.received * z.hidden);
        list.quantise(z.hidden, z.received);
        list.grouped(z.tokens, z.width, z.hidden);
        list.activation_backward(a.gated, z.received * z.width);
        const std::vector<std::int64_t> outs = first_widths(a, z, f);
        for (const std::int64_t out : outs) {
            list.quantise(out, z.received);
            list.grouped(z.tokens, z.hidden, out);
        }
        if (outs.size() > 1)
            list.pass(6, z.received * z.hidden);
        if (z.sorted)
            permute(list, s, z.received * z.hidden, z.received * z.hidden);
    } else if (piece == Piece::moe_combine) {
        permute(list, s, (z.routed + z.copies) * z.hidden, z.copies * z.hidden);
    }
}

void append_moe_weight(KernelList& list, const Architecture& a, const Shard& s, const SoftwareFeatures& f,
                       Piece piece) {
    const LocalSizes& n = list.sizes();
    const Sizes z = sizes(a, s, n);
    if (piece == Piece::moe_shared && n.shared_ffn > 0) {
        list.linear_weight(second_mlp_linear(a, n.shared_ffn, false));
        list.linear_weight(first_mlp_linear(a, n.shared_ffn, f, false));
        if (a.moe.shared_gate)
            list.gemm(1, z.hidden, z.routed, wide(s.precision), Account::gemm_ideal, 1, f.fp32_gradients);
    } else if (piece == Piece::moe_route) {
        list.gemm(a.moe.experts, z.hidden, z.routed, wide(s.precision), Account::gemm_ideal, 1, f.fp32_gradients);
    } else if (piece == Piece::moe_experts) {
        list.quantise(z.width, z.received);
        list.quantise(z.hidden, z.received);
        list.grouped_weight(z.hidden, z.width, z.tokens);
        list.quantise(z.hidden, z.received);
        for (const std::int64_t out : first_widths(a, z, f)) {
            list.quantise(out, z.received);
            list.grouped_weight(out, z.hidden, z.tokens);
            if (a.moe.expert_bias)
                list.pass(2, z.received * out);
        }
        if (a.moe.expert_bias)
            list.pass(2, z.received * z.hidden);
    }
}

}  // namespace fabricast::detail
