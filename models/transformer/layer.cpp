// One layer as six pieces of kernels, forward, backward to the input, backward to the weights.
//
//   norm        pointwise on norm tokens
//   attention   qkv (column-parallel) -> rotary -> core -> projection (row-parallel)
//   mlp         first (column-parallel, 2 f wide when gated) -> activation -> second (row-parallel)
//   residual    bias, dropout, sum; its backward sums the gradients of the two branches
// Backward of qkv joins dQ, dK, dV into one tensor (4 bytes an element) unless the projections are GEMMs of their
// own. Eager stacks copy the context between heads and tokens (4 bytes), as a transpose before the projection.
// A kernel stands for a launch, so the sum of counts prices the host. Not counted: the kernels of communication, the
// two small helpers of a flash backward (inside its measured rate).
// Sources: Megatron-LM transformer layer (fused), the public Llama code (eager).
#include "models/transformer/layer.hpp"

#include "models/transformer/kernel_list.hpp"

namespace fabricast {
namespace detail {

Linear qkv_linear(const Architecture& a, const LocalSizes& n, const SoftwareFeatures& f) {
    Linear l{n.hidden, {n.query + 2 * n.key_value}, true, a.biases || a.qkv_bias};
    if (f.split_projections)
        l.outs = {n.query, n.key_value, n.key_value};
    return l;
}

Linear projection_linear(const Architecture& a, const LocalSizes& n) { return {n.query, {n.hidden}, false, a.biases}; }

Linear first_mlp_linear(const Architecture& a, const LocalSizes& n, const SoftwareFeatures& f) {
    Linear l{n.hidden, {a.gated ? 2 * n.ffn : n.ffn}, true, a.biases};
    if (a.gated && f.split_projections)
        l.outs = {n.ffn, n.ffn};
    return l;
}

Linear second_mlp_linear(const Architecture& a, const LocalSizes& n) { return {n.ffn, {n.hidden}, false, a.biases}; }

namespace {

/// Flash kernels on an eager stack see heads before tokens; unfused attention copies inside the core.
void context_copy(KernelList& list, const SoftwareFeatures& f) {
    if (f.fusion == Fusion::eager && f.attention != "unfused")
        list.pass(4, list.sizes().tokens * list.sizes().query);
}

}  // namespace
}  // namespace detail

using detail::KernelList;

std::vector<Kernel> forward_kernels(const Architecture& a, const Shard& s, const SoftwareFeatures& f, Piece piece,
                                    const LayerShape&) {
    KernelList list(a, s, f);
    switch (piece) {
        case Piece::norm_attention:
        case Piece::norm_mlp: list.norm_forward(a.rms_norm); break;
        case Piece::attention:
            list.linear_forward(detail::qkv_linear(a, list.sizes(), f));
            if (a.rotary)
                list.rotary();
            detail::append_core_forward(list, a, s, f);
            detail::context_copy(list, f);
            list.linear_forward(detail::projection_linear(a, list.sizes()));
            break;
        case Piece::mlp:
            list.linear_forward(detail::first_mlp_linear(a, list.sizes(), f));
            list.activation_forward(a.gated);
            list.linear_forward(detail::second_mlp_linear(a, list.sizes()));
            break;
        case Piece::residual_attention:
        case Piece::residual_mlp: list.residual_forward(); break;
        case Piece::moe_shared:
        case Piece::moe_route:
        case Piece::moe_experts:
        case Piece::moe_combine:
        case Piece::count: break;
    }
    return list.take();
}

std::vector<Kernel> backward_data_kernels(const Architecture& a, const Shard& s, const SoftwareFeatures& f, Piece piece,
                                          const LayerShape&) {
    KernelList list(a, s, f);
    const detail::LocalSizes& n = list.sizes();
    switch (piece) {
        case Piece::norm_attention:
        case Piece::norm_mlp: list.norm_data(a.rms_norm); break;
        case Piece::attention:
            list.linear_data(detail::projection_linear(a, n));
            detail::context_copy(list, f);
            detail::append_core_backward(list, a, s, f);
            if (a.rotary)
                list.rotary();
            if (!f.split_projections)
                list.pass(4, n.tokens * (n.query + 2 * n.key_value));
            list.linear_data(detail::qkv_linear(a, n, f));
            break;
        case Piece::mlp:
            list.linear_data(detail::second_mlp_linear(a, n));
            list.activation_backward(a.gated);
            list.linear_data(detail::first_mlp_linear(a, n, f));
            break;
        case Piece::residual_attention:
        case Piece::residual_mlp: list.residual_backward(); break;
        case Piece::moe_shared:
        case Piece::moe_route:
        case Piece::moe_experts:
        case Piece::moe_combine:
        case Piece::count: break;
    }
    return list.take();
}

std::vector<Kernel> backward_weight_kernels(const Architecture& a, const Shard& s, const SoftwareFeatures& f,
                                            Piece piece, const LayerShape&) {
    KernelList list(a, s, f);
    switch (piece) {
        case Piece::norm_attention:
        case Piece::norm_mlp: list.norm_weight(a.rms_norm); break;
        case Piece::attention:
            list.linear_weight(detail::projection_linear(a, list.sizes()));
            list.linear_weight(detail::qkv_linear(a, list.sizes(), f));
            break;
        case Piece::mlp:
            list.linear_weight(detail::second_mlp_linear(a, list.sizes()));
            list.linear_weight(detail::first_mlp_linear(a, list.sizes(), f));
            break;
        case Piece::residual_attention:
        case Piece::residual_mlp:
        case Piece::moe_shared:
        case Piece::moe_route:
        case Piece::moe_experts:
        case Piece::moe_combine:
        case Piece::count: break;
    }
    return list.take();
}

std::vector<Kernel> attention_core_forward(const Architecture& a, const Shard& s, const SoftwareFeatures& f,
                                           const LayerShape&) {
    KernelList list(a, s, f);
    detail::append_core_forward(list, a, s, f);
    return list.take();
}

}  // namespace fabricast
