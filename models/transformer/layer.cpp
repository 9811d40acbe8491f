// One layer as pieces of kernels, forward, backward to the input, backward to the weights.
//
//   norm        pointwise on norm tokens
//   attention   qkv (column-parallel), or latent_attention.cpp -> norms of q and k -> rotary -> core -> projection
//               (row-parallel)
//   mlp         first (column-parallel, 2 f wide when gated) -> activation -> second (row-parallel)
//   moe_*       experts.cpp
//   residual    bias, dropout, sum; its backward sums the gradients of the two branches; with post-norms the branch
//               is normalised first
// In a parallel block attention and MLP read one input: residual_attention is empty, residual_mlp sums both branches, and
// norm_mlp is empty unless the block has separate norms.
// Backward of qkv joins dQ, dK, dV into one tensor (4 bytes an element) unless the projections are GEMMs of their
// own. packed_copies: q, k, v are copied out of the joint product (4), k and v joined and turned (4 + 4), and back the same
// way, instead. Eager stacks copy the context between heads and tokens (4 bytes), as a transpose before the projection. Ulysses
// packs and unpacks what it exchanges (2 x 4 bytes an element of Q, K, V and of the context, each way).
// A kernel stands for a launch, so the sum of counts prices the host. Not counted: the kernels of communication, the
// two small helpers of a flash backward (inside its measured rate).
// Sources: Megatron-LM transformer layer (fused), the public Llama code (eager), Transformer Engine's
// flash_attn_a2a_communicate (ulysses).
#include "models/transformer/layer.hpp"

#include "models/transformer/kernel_list.hpp"

namespace fabricast {
namespace detail {

Linear qkv_linear(const Architecture& a, const LocalSizes& n, const SoftwareFeatures& f) {
    Linear l{n.hidden, {n.query + 2 * n.key_value}, Cut::column, a.biases || a.qkv_bias};
    if (f.split_projections)
        l.outs = {n.query, n.key_value, n.key_value};
    return l;
}

Linear projection_linear(const Architecture& a, const LocalSizes& n) {
    return {n.value, {n.hidden}, Cut::row, a.biases || a.projection_bias};
}

Linear first_mlp_linear(const Architecture& a, std::int64_t width, const SoftwareFeatures& f, bool bias) {
    Linear l{a.hidden, {a.gated ? 2 * width : width}, Cut::column, bias};
    if (a.gated && f.split_projections)
        l.outs = {width, width};
    return l;
}

Linear second_mlp_linear(const Architecture& a, std::int64_t width, bool bias) {
    return {width, {a.hidden}, Cut::row, bias};
}

namespace {

/// Flash kernels on an eager stack see heads before tokens; unfused attention copies inside the core.
void context_copy(KernelList& list, const SoftwareFeatures& f) {
    if (f.fusion == Fusion::eager && f.attention != "unfused")
        list.pass(4, list.sizes().tokens * list.sizes().value);
}

/// q, k, v leave the joint product by a copy; k and v are joined, turned and split again (nanotron's attention block).
void packed_copies(KernelList& list, const SoftwareFeatures& f) {
    if (!f.packed_copies)
        return;
    const LocalSizes& n = list.sizes();
    list.pass(4, n.tokens * (n.query + 2 * n.key_value));
    list.pass(4, n.tokens * 2 * n.key_value, 0, 2);
}

void exchange_copies(KernelList& list, const Shard& s, std::int64_t width) {
    if (s.ulysses && s.cp > 1)
        list.pass(4, list.sizes().tokens * width, 0, 2);
}

std::int64_t qkv_width(const Architecture& a, const LocalSizes& n) {
    return a.attention == AttentionKind::latent ? 2 * n.query + n.value : n.query + 2 * n.key_value;
}

void attention_forward(KernelList& list, const Architecture& a, const Shard& s, const SoftwareFeatures& f,
                       const LayerShape& layer) {
    const LocalSizes& n = list.sizes();
    if (a.attention == AttentionKind::latent) {
        append_latent_forward(list, a, f);
    } else {
        list.linear_forward(qkv_linear(a, n, f));
        if (a.qk_norm) {
            list.norm_forward(true, n.tokens * n.heads, a.head_dim);
            list.norm_forward(true, n.tokens * n.kv_heads, a.head_dim);
        }
        packed_copies(list, f);
        if (a.rotary)
            list.rotary(n.tokens * n.query, n.tokens * n.key_value);
    }
    exchange_copies(list, s, qkv_width(a, n));
    append_core_forward(list, a, s, f, layer);
    exchange_copies(list, s, n.value);
    context_copy(list, f);
    list.linear_forward(projection_linear(a, n));
}

void attention_data(KernelList& list, const Architecture& a, const Shard& s, const SoftwareFeatures& f,
                    const LayerShape& layer) {
    const LocalSizes& n = list.sizes();
    list.linear_data(projection_linear(a, n));
    context_copy(list, f);
    exchange_copies(list, s, n.value);
    append_core_backward(list, a, s, f, layer);
    exchange_copies(list, s, qkv_width(a, n));
    if (a.attention == AttentionKind::latent)
        return append_latent_data(list, a, f);
    if (a.rotary)
        list.rotary(n.tokens * n.query, n.tokens * n.key_value);
    if (a.qk_norm) {
        list.norm_data(true, n.tokens * n.heads, a.head_dim);
        list.norm_data(true, n.tokens * n.kv_heads, a.head_dim);
    }
    packed_copies(list, f);
    if (!f.split_projections && !f.packed_copies)
        list.pass(4, n.tokens * (n.query + 2 * n.key_value));
    list.linear_data(qkv_linear(a, n, f));
}

void attention_weight(KernelList& list, const Architecture& a, const SoftwareFeatures& f) {
    const LocalSizes& n = list.sizes();
    list.linear_weight(projection_linear(a, n));
    if (a.attention == AttentionKind::latent)
        return append_latent_weight(list, a);
    if (a.qk_norm) {
        list.norm_weight(true, n.tokens * n.heads, a.head_dim);
        list.norm_weight(true, n.tokens * n.kv_heads, a.head_dim);
    }
    list.linear_weight(qkv_linear(a, n, f));
}

/// Branches a residual piece sums; 0 = it is empty.
std::int64_t branches(const Architecture& a, Piece piece) {
    if (!a.parallel_block)
        return 1;
    return piece == Piece::residual_mlp ? 2 : 0;
}

bool has_norm(const Architecture& a, Piece piece) {
    return piece == Piece::norm_attention || !a.parallel_block || a.separate_norms;
}

}  // namespace
}  // namespace detail

using detail::KernelList;

std::vector<Kernel> forward_kernels(const Architecture& a, const Shard& s, const SoftwareFeatures& f, Piece piece,
                                    const LayerShape& layer) {
    KernelList list(a, s, f);
    switch (piece) {
        case Piece::norm_attention:
        case Piece::norm_mlp:
            if (detail::has_norm(a, piece))
                list.norm_forward(a.rms_norm);
            break;
        case Piece::attention: detail::attention_forward(list, a, s, f, layer); break;
        case Piece::mlp:
            if (layer.moe)
                break;
            list.linear_forward(detail::first_mlp_linear(a, list.sizes().ffn, f, a.biases));
            list.activation_forward(a.gated, list.sizes().tokens * list.sizes().ffn);
            list.linear_forward(detail::second_mlp_linear(a, list.sizes().ffn, a.biases));
            break;
        case Piece::residual_attention:
        case Piece::residual_mlp:
            for (std::int64_t i = 0; a.post_norms && i < detail::branches(a, piece); ++i)
                list.norm_forward(a.rms_norm);
            if (detail::branches(a, piece) > 0)
                list.residual_forward(detail::branches(a, piece));
            break;
        case Piece::moe_shared:
        case Piece::moe_route:
        case Piece::moe_experts:
        case Piece::moe_combine:
            if (layer.moe)
                detail::append_moe_forward(list, a, s, f, piece);
            break;
        case Piece::count: break;
    }
    return list.take();
}

std::vector<Kernel> backward_data_kernels(const Architecture& a, const Shard& s, const SoftwareFeatures& f, Piece piece,
                                          const LayerShape& layer) {
    KernelList list(a, s, f);
    const detail::LocalSizes& n = list.sizes();
    switch (piece) {
        case Piece::norm_attention:
        case Piece::norm_mlp:
            if (detail::has_norm(a, piece))
                list.norm_data(a.rms_norm);
            break;
        case Piece::attention: detail::attention_data(list, a, s, f, layer); break;
        case Piece::mlp:
            if (layer.moe)
                break;
            list.linear_data(detail::second_mlp_linear(a, n.ffn, a.biases));
            list.activation_backward(a.gated, n.tokens * n.ffn);
            list.linear_data(detail::first_mlp_linear(a, n.ffn, f, a.biases));
            break;
        case Piece::residual_attention:
        case Piece::residual_mlp:
            if (detail::branches(a, piece) > 0)
                list.residual_backward(detail::branches(a, piece));
            for (std::int64_t i = 0; a.post_norms && i < detail::branches(a, piece); ++i)
                list.norm_data(a.rms_norm);
            break;
        case Piece::moe_shared:
        case Piece::moe_route:
        case Piece::moe_experts:
        case Piece::moe_combine:
            if (layer.moe)
                detail::append_moe_data(list, a, s, f, piece);
            break;
        case Piece::count: break;
    }
    return list.take();
}

std::vector<Kernel> backward_weight_kernels(const Architecture& a, const Shard& s, const SoftwareFeatures& f,
                                            Piece piece, const LayerShape& layer) {
    KernelList list(a, s, f);
    switch (piece) {
        case Piece::norm_attention:
        case Piece::norm_mlp:
            if (detail::has_norm(a, piece))
                list.norm_weight(a.rms_norm);
            break;
        case Piece::attention: detail::attention_weight(list, a, f); break;
        case Piece::mlp:
            if (layer.moe)
                break;
            list.linear_weight(detail::second_mlp_linear(a, list.sizes().ffn, a.biases));
            list.linear_weight(detail::first_mlp_linear(a, list.sizes().ffn, f, a.biases));
            break;
        case Piece::residual_attention:
        case Piece::residual_mlp:
            for (std::int64_t i = 0; a.post_norms && i < detail::branches(a, piece); ++i)
                list.norm_weight(a.rms_norm);
            break;
        case Piece::moe_shared:
        case Piece::moe_route:
        case Piece::moe_experts:
        case Piece::moe_combine:
            if (layer.moe)
                detail::append_moe_weight(list, a, s, f, piece);
            break;
        case Piece::count: break;
    }
    return list.take();
}

std::vector<Kernel> attention_core_forward(const Architecture& a, const Shard& s, const SoftwareFeatures& f,
                                           const LayerShape& layer) {
    KernelList list(a, s, f);
    detail::append_core_forward(list, a, s, f, layer);
    return list.take();
}

std::string_view recompute_name(Recompute recompute) {
    switch (recompute) {
        case Recompute::none: return "none";
        case Recompute::selective: return "selective";
        case Recompute::full: return "full";
    }
    return {};
}

std::int64_t attention_input_width(const Architecture& a) {
    if (a.attention != AttentionKind::latent)
        return a.hidden;
    return (a.query_rank > 0 ? a.query_rank : a.hidden) + a.key_value_rank + a.rope_dim;
}

}  // namespace fabricast
