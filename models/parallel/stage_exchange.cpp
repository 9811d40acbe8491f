// The exchanges inside a layer: context parallelism at the attention core, expert parallelism around the experts.
//
// Ring attention (n = cp): the core is n equal parts, causally balanced (cut in order: one half part and n - 1 whole ones on
// the last rank, which all wait for; every rank is priced as the last); while a part runs, keys and values of the next one
// arrive from the neighbour. Every part but the first is added to the output so far: 10 bytes an element (16-bit part read,
// fp32 sum read and written; Transformer Engine's correction). Backward: keys and values travel the same way, their
// gradients one part behind, so n messages of 1, 2 .. 2, 1 times the bytes; the last is not hidden.
// All-gather: keys and values of the whole sequence before the core, again in backward, where their gradients are
// reduce-scattered. Ulysses: all-to-all of q, k, v before the core and of its output behind, mirrored in backward.
//
// Experts: a rank routes the tokens it holds (tokens / tp). All-to-all: every token top_k times, times the capacity factor
// when experts are padded to a capacity. All-gather: every token to all ep ranks, results reduce-scattered. Node-aware:
// models/collectives/moe.hpp, 24 SMs (DeepEP's default for training); in fp8 training tokens go out in 1 byte. Without a
// capacity the host must read how many tokens came before it can issue the experts (a synchronisation). With DualPipe
// tokens travel on a stream of their own while the other half of a pair computes, and the host waits for counts alone.
#include "models/parallel/stage_layers.hpp"

namespace fabricast::stage {
namespace {

bool is_attention(const Kernel& kernel) {
    return kernel.kind == KernelKind::attention_forward || kernel.kind == KernelKind::attention_backward;
}

constexpr std::int64_t kCorrectionBytes = 10;

}  // namespace

Bytes LayerEmitter::key_value_bytes() const {
    const bool latent = a_.attention == AttentionKind::latent;
    const std::int64_t heads = latent ? a_.heads : a_.kv_heads;
    const std::int64_t width = latent ? a_.head_dim + a_.value_dim : 2 * a_.head_dim;
    return shard_.tokens() * std::max<std::int64_t>(1, heads / layout_.tp) * width * activation_bytes_;
}

void LayerEmitter::context(Collective kind, Bytes bytes, std::string_view what, std::string_view name, Phase phase,
                           std::int64_t layer) {
    flush(name, phase, layer);
    const std::uint32_t node =
        collective(kContext, Slot::context, kind, bytes, what, Account::comm_cp, phase, {last_main_}, layer);
    next_waits_.push_back(node);
}

void LayerEmitter::around_core(std::vector<Kernel> kernels, bool backward, bool again, std::string_view name,
                               Phase phase, std::int64_t layer) {
    if (layout_.cp == 1) {
        add(std::move(kernels), again);
        return;
    }
    std::size_t first = kernels.size(), behind = 0;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        if (is_attention(kernels[i])) {
            first = std::min(first, i);
            behind = i + 1;
        }
    }
    if (first == kernels.size()) {  // no core in this piece
        add(std::move(kernels), again);
        return;
    }
    const auto part = [&](std::size_t from, std::size_t to) {
        add({kernels.begin() + static_cast<long>(from), kernels.begin() + static_cast<long>(to)}, again);
    };
    if (!plan_.context_balanced) {
        for (std::size_t i = first; i < behind; ++i)
            kernels[i].balanced = false;  // the last rank's rows, which see all keys
    }
    const Bytes heads = shard_.tokens() * (a_.heads / layout_.tp) * activation_bytes_;
    const Bytes output = heads * (a_.attention == AttentionKind::latent ? a_.value_dim : a_.head_dim);
    const Bytes inputs = heads * a_.head_dim + key_value_bytes();
    part(0, first);
    switch (plan_.context) {
        case ContextExchange::ring:
            for (std::size_t i = first; i < behind; ++i) {
                if (is_attention(kernels[i]))
                    context_ring(kernels[i], backward, again, name, phase, layer);
                else
                    part(i, i + 1);
            }
            break;
        case ContextExchange::all_gather:
            context(Collective::all_gather, key_value_bytes() * layout_.cp, "cp all-gather (keys, values)", name, phase,
                    layer);
            part(first, behind);
            if (backward)
                context(Collective::reduce_scatter, key_value_bytes() * layout_.cp, "cp reduce-scatter (keys, values)",
                        name, phase, layer);
            break;
        case ContextExchange::ulysses:
            context(Collective::all_to_all, backward ? output : inputs, "cp all-to-all (heads)", name, phase, layer);
            part(first, behind);
            context(Collective::all_to_all, backward ? inputs : output, "cp all-to-all (heads)", name, phase, layer);
            break;
    }
    part(behind, kernels.size());
}

void LayerEmitter::context_ring(const Kernel& core, bool backward, bool again, std::string_view name, Phase phase,
                                std::int64_t layer) {
    Kernel part = core;  // as many scores as a causal square of the local length
    part.sk = core.sq;
    part.balanced = false;
    if (core.document > 0)  // keys of a document lie in all parts
        part.document = std::max<std::int64_t>(1, core.document / layout_.cp);
    Kernel whole = part;  // of the last rank of a cut in order: every part but its own is seen by all rows
    whole.causal = plan_.context_balanced || core.document > 0;
    Kernel sum;
    sum.account = Account::attention;
    sum.precision = core.precision;
    sum.fusion = software_.fusion;
    sum.bytes =
        kCorrectionBytes * core.batch * core.heads * core.sq * (core.value_dim > 0 ? core.value_dim : core.head_dim);
    const auto pass_on = [&](Bytes bytes) {
        return collective(kContext, Slot::context, Collective::send_recv, bytes, "cp ring (keys, values)",
                          Account::comm_cp, phase, {last_main_}, layer);
    };
    flush(name, phase, layer);
    for (std::int64_t i = 0; i < layout_.cp; ++i) {
        const bool last = i + 1 == layout_.cp;
        std::uint32_t arrives = program::kNone;
        if (!last)
            arrives = pass_on(key_value_bytes() * (backward && i > 0 ? 2 : 1));
        add({i > 0 ? whole : part}, again);
        if (i > 0 && !backward)
            add({sum}, again);
        flush(name, phase, layer);
        if (last && backward)
            arrives = pass_on(key_value_bytes());
        if (arrives != program::kNone)
            next_waits_.push_back(arrives);
    }
}

void LayerEmitter::expert_call(bool combine, bool backward, std::string_view name, Phase phase, std::int64_t layer) {
    if (layout_.ep == 1)
        return;
    flush(name, phase, layer);
    const double copies = plan_.capacity_factor > 0 ? plan_.capacity_factor : 1;
    CallInfo info;
    info.slot = Slot::expert;
    info.what = combine ? "expert combine" : "expert dispatch";
    const Bytes row = a_.hidden * activation_bytes_;
    if (plan_.dispatch == ExpertDispatch::all_gather) {
        info.kind = combine ? Collective::reduce_scatter : Collective::all_gather;
        info.bytes = routed_tokens() * layout_.ep * row;
    } else {
        info.kind = Collective::all_to_all;
        info.bytes = static_cast<Bytes>(copies * static_cast<double>(routed_tokens() * a_.moe.top_k * row));
        info.imbalance = plan_.capacity_factor > 0 ? 1 : plan_.expert_imbalance;
    }
    if (plan_.dispatch == ExpertDispatch::node_aware) {
        const bool narrow = plan_.precision == Precision::fp8 && !combine && !backward;
        info.moe.tokens = routed_tokens();
        info.moe.hidden = a_.hidden;
        info.moe.top_k = static_cast<double>(a_.moe.top_k);
        info.moe.bytes_an_element = narrow ? 1 : 2;
        info.moe.combine = combine;
    }
    if (copies_in_pipeline(layout_) > 1) {  // beside the other half of a pair; counts come before the data
        next_waits_.push_back(collective(kExpert, info, Account::comm_ep, phase, {last_main_}, layer));
        return;
    }
    collective(kCompute, info, Account::comm_ep, phase, {}, layer);
    if (!combine && !backward && plan_.capacity_factor == 0)
        t_.operations.back().host_sync = true;
}

void LayerEmitter::expert_tensor(Collective kind, std::string_view name, Phase phase, std::int64_t layer) {
    if (layout_.expert_tp() == 1)
        return;
    flush(name, phase, layer);
    const double rows = static_cast<double>(routed_tokens() * a_.moe.top_k * layout_.expert_tp()) * shard_.expert_load;
    collective(kCompute, Slot::expert_tensor, kind, static_cast<Bytes>(rows) * a_.hidden * activation_bytes_,
               kind == Collective::all_gather ? "expert tp all-gather" : "expert tp reduce-scatter", Account::comm_tp,
               phase, {}, layer);
}

// Backward runs the same way: gradients of the results go where the results came from.
void LayerEmitter::to_experts(bool backward, std::string_view name, Phase phase, std::int64_t layer) {
    expert_call(false, backward, name, phase, layer);
    expert_tensor(Collective::all_gather, name, phase, layer);
}

void LayerEmitter::from_experts(bool backward, std::string_view name, Phase phase, std::int64_t layer) {
    expert_tensor(Collective::reduce_scatter, name, phase, layer);
    expert_call(true, backward, name, phase, layer);
}

void LayerEmitter::moe_forward(std::int64_t layer, Phase phase, std::string_view name) {
    const bool again = phase == Phase::recompute;
    const LayerShape shape = layer_shape(a_, layer);
    if (a_.moe.shared_ffn > 0) {
        tensor_in(name, phase, layer);
        add(forward(Piece::moe_shared, shape), again);
        tensor_out(name, phase, layer);
    }
    add(forward(Piece::moe_route, shape), again);
    to_experts(false, name, phase, layer);
    add(forward(Piece::moe_experts, shape), again);
    from_experts(false, name, phase, layer);
    add(forward(Piece::moe_combine, shape), again);
}

void LayerEmitter::moe_backward(std::int64_t layer) {
    constexpr std::string_view kName = "backward";
    const auto both = [&](Piece piece) {
        data_backward(piece, layer);
        weight_backward(piece, layer);
    };
    both(Piece::moe_combine);
    to_experts(true, kName, Phase::backward, layer);
    both(Piece::moe_experts);
    from_experts(true, kName, Phase::backward, layer);
    both(Piece::moe_route);
    if (a_.moe.shared_ffn > 0)
        block_backward(Piece::moe_shared, layer);
}

// The two passes of a split backward: the exchanges belong to the first.
void LayerEmitter::moe_backward_input(std::int64_t layer) {
    constexpr std::string_view kName = "backward";
    data_backward(Piece::moe_combine, layer);
    to_experts(true, kName, Phase::backward, layer);
    data_backward(Piece::moe_experts, layer);
    from_experts(true, kName, Phase::backward, layer);
    data_backward(Piece::moe_route, layer);
    if (a_.moe.shared_ffn > 0)
        block_backward_input(Piece::moe_shared, layer);
}

void LayerEmitter::moe_backward_weight(std::int64_t layer) {
    for (const Piece piece : {Piece::moe_combine, Piece::moe_experts, Piece::moe_route})
        weight_backward(piece, layer);
    if (a_.moe.shared_ffn > 0)
        block_backward_weight(Piece::moe_shared, layer);
}

}  // namespace fabricast::stage
