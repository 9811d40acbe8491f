#include "models/parallel/stage_layers.hpp"

namespace fabricast::stage {

LayerEmitter::LayerEmitter(const Architecture& a, const TrainingPlan& plan, const SoftwareFeatures& software,
                           std::int64_t stage, ProgramParts parts)
    : StageEmitter(a, plan, software, stage, parts), parameters_(stage_parameters(a, plan.layout, stage)) {
    shard_.tp = layout_.tp;
    shard_.sequence_parallel = layout_.sequence_parallel && layout_.tp > 1;
    shard_.micro_batch = plan.micro_batch;
    shard_.sequence = plan.sequence;
    shard_.precision = plan.precision;
    shard_.cp = layout_.cp;
    shard_.ulysses = plan.context == ContextExchange::ulysses;
    shard_.document = plan.document;
    shard_.ep = layout_.ep;
    shard_.etp = layout_.expert_tp();
    shard_.expert_load = plan.capacity_factor > 0 ? plan.capacity_factor : plan.expert_imbalance;
    activation_bytes_ = plan.precision == Precision::fp32 ? 4 : 2;
    gradient_bytes_ = software.fp32_reduce || plan.precision == Precision::fp32 ? 4 : 2;
    hidden_ = static_cast<std::int32_t>(software.tp_hidden_fraction * 1000 + 0.5);
    tensor_stream_ = software.tp_backward_overlap || hidden_ > 0 ? kTensor : kCompute;
}

// Communicates between segments; the next segment needs the result.
void LayerEmitter::tensor(Collective kind, Bytes bytes, std::string_view what, std::string_view segment, Phase phase,
                          std::int64_t layer, std::int32_t share) {
    if (layout_.tp == 1)
        return;
    flush(segment, phase, layer);
    const std::uint32_t node = tensor_call(kind, bytes, what, phase, {last_main_}, layer, share);
    if (tensor_stream_ != kCompute)
        next_waits_.push_back(node);
}

// Chunked GEMMs hide a share of the traffic: that part of a collective runs beside the linear layers it feeds (in)
// or that feed it (out), the rest stands between segments.
void LayerEmitter::beside(Collective kind, std::string_view what, Phase phase, std::int64_t layer,
                          std::uint32_t after) {
    if (hidden_ > 0)
        tensor_call(kind, wire_bytes(kind), what, phase, {after}, layer, hidden_);
}

void LayerEmitter::tensor_in(std::string_view segment, Phase phase, std::int64_t layer) {
    if (!shard_.sequence_parallel)
        return;
    constexpr std::string_view what = "tp all-gather";
    tensor(Collective::all_gather, gathered_bytes(), what, segment, phase, layer, 1000 - hidden_);
    beside(Collective::all_gather, what, phase, layer, last_main_);
}

void LayerEmitter::tensor_out(std::string_view segment, Phase phase, std::int64_t layer) {
    if (layout_.tp == 1)
        return;
    const Collective kind = shard_.sequence_parallel ? Collective::reduce_scatter : Collective::all_reduce;
    const std::string_view what = shard_.sequence_parallel ? "tp reduce-scatter" : "tp all-reduce";
    const std::uint32_t before = last_main_;
    flush(segment, phase, layer);
    const bool split = before != last_main_ && before != program::kNone;
    if (split)
        beside(kind, what, phase, layer, before);
    tensor(kind, hidden_bytes(), what, segment, phase, layer, split ? 1000 - hidden_ : 1000);
}

void LayerEmitter::layer_forward(std::int64_t layer, Phase phase, std::string_view name) {
    const bool again = phase == Phase::recompute;
    ++passes_.forward;
    add(forward(Piece::norm_attention), again);
    tensor_in(name, phase, layer);
    std::vector<Kernel> attention = forward(Piece::attention, layer_shape(a_, layer));
    around_core(again ? this->again(std::move(attention), Piece::attention) : std::move(attention), false, again, name,
                phase, layer);
    tensor_out(name, phase, layer);
    add(forward(Piece::residual_attention), again);
    add(forward(Piece::norm_mlp), again);
    if (layer_shape(a_, layer).moe)
        moe_forward(layer, phase, name);
    else
        mlp_forward(layer, phase, name);
    if (!stops_early(layer, phase))
        add(forward(Piece::residual_mlp), again);
}

void LayerEmitter::mlp_forward(std::int64_t layer, Phase phase, std::string_view name) {
    tensor_in(name, phase, layer);
    if (stops_early(layer, phase))
        return add(again(forward(Piece::mlp), Piece::mlp), true);
    add(forward(Piece::mlp), phase == Phase::recompute);
    tensor_out(name, phase, layer);
}

// Backward of a column-row pair of linear layers: input gradients first, then weight gradients.
void LayerEmitter::block_backward(Piece piece, std::int64_t layer) {
    constexpr std::string_view kName = "backward";
    const Phase phase = Phase::backward;
    const bool overlap = hidden_ == 0 && tensor_stream_ != kCompute && layout_.tp > 1;
    tensor_in(kName, phase, layer);  // gradient of the reduce-scatter
    if (!overlap) {
        // The weight gradient needs the whole input again; with chunked GEMMs its gather runs beside the input gradient.
        if (shard_.sequence_parallel && hidden_ > 0) {
            flush(kName, phase, layer);
            tensor_call(Collective::all_gather, gathered_bytes(), "tp all-gather (saved input)", phase, {last_main_},
                        layer);
        } else if (shard_.sequence_parallel) {
            tensor(Collective::all_gather, gathered_bytes(), "tp all-gather (saved input)", kName, phase, layer);
        }
        data_backward(piece, layer);
        weight_backward(piece, layer);
        tensor_out(kName, phase, layer);
        return;
    }
    std::uint32_t gathered = program::kNone;
    flush(kName, phase, layer);
    if (shard_.sequence_parallel) {
        gathered = tensor_call(Collective::all_gather, gathered_bytes(), "tp all-gather (saved input)", phase,
                               {last_main_}, layer);
    }
    data_backward(piece, layer);
    flush(kName, phase, layer);
    const std::uint32_t reduced =
        tensor_call(shard_.sequence_parallel ? Collective::reduce_scatter : Collective::all_reduce, hidden_bytes(),
                    shard_.sequence_parallel ? "tp reduce-scatter" : "tp all-reduce", phase, {last_main_}, layer);
    if (gathered != program::kNone)
        next_waits_.push_back(gathered);
    weight_backward(piece, layer);
    flush(kName, phase, layer);
    next_waits_.push_back(reduced);
}

void LayerEmitter::data_backward(Piece piece, std::int64_t layer) {
    std::vector<Kernel> kernels = backward_data_kernels(a_, shard_, software_, piece, layer_shape(a_, layer));
    around_core(std::move(kernels), true, false, "backward", Phase::backward, layer);
}

void LayerEmitter::weight_backward(Piece piece, std::int64_t layer) {
    add(backward_weight_kernels(a_, shard_, software_, piece, layer_shape(a_, layer)));
}

void LayerEmitter::simple_backward(Piece piece) {
    add(backward_data_kernels(a_, shard_, software_, piece));
    add(backward_weight_kernels(a_, shard_, software_, piece));
}

void LayerEmitter::layer_backward(std::int64_t layer) {
    const ActivationBytes activation = activation_of(layer);
    const Recompute recompute = recompute_of(layer);
    hold(MemoryCause::temporary, activation.working);
    if (recompute == Recompute::full) {
        layer_forward(layer, Phase::recompute, "recompute");
        flush("recompute", Phase::recompute, layer);
    }
    ++passes_.backward;
    simple_backward(Piece::residual_mlp);
    if (layer_shape(a_, layer).moe)
        moe_backward(layer);
    else
        block_backward(Piece::mlp, layer);
    simple_backward(Piece::norm_mlp);
    simple_backward(Piece::residual_attention);
    if (recompute == Recompute::selective)
        recompute_selected(layer, "backward");
    block_backward(Piece::attention, layer);
    simple_backward(Piece::norm_attention);
    hold(MemoryCause::temporary, -activation.working);
    hold(MemoryCause::activations, -activation.kept);
    if (activation.working > 0)
        flush("backward", Phase::backward, layer);  // given back before the next layer needs it
}

Recompute LayerEmitter::recompute_of(std::int64_t layer) const {
    if (plan_.recompute_layers == 0)
        return plan_.recompute;
    return layer - first_of_chunk(a_, layout_, layer) < plan_.recompute_layers ? plan_.recompute : Recompute::none;
}

std::vector<LayerEmitter::Unit> LayerEmitter::units(std::int64_t chunk) const {
    std::vector<Unit> out;
    const std::int64_t at = virtual_stage_of(chunk);
    const std::int64_t first = first_layer_of(a_, layout_, at), layers = layers_of(a_, layout_, at);
    if (at == 0)
        out.push_back({Unit::Kind::embedding, -1, {parameters_.embedding, 0}});
    for (std::int64_t layer = first; layer < first + layers; ++layer)
        out.push_back({Unit::Kind::layer, layer, held_of_layer(a_, layout_, layer)});
    if (at == virtual_stages(layout_) - 1) {
        for (std::int64_t m = 0; m < a_.mtp_layers; ++m)
            out.push_back({Unit::Kind::module, a_.layers + m, held_of_module(a_, layout_, a_.layers + m)});
    }
    if (at == virtual_stages(layout_) - 1)
        out.push_back({Unit::Kind::head, -1, {parameters_.head, 0}});
    return out;
}

void LayerEmitter::unit_forward(const Unit& unit) {
    constexpr std::string_view kName = "forward";
    switch (unit.kind) {
        case Unit::Kind::embedding:
            hold(MemoryCause::activations, embedding_activation(a_, shard_, software_));
            add(embedding_forward(a_, shard_, software_));
            tensor_out("embedding", Phase::forward, -1);
            break;
        case Unit::Kind::layer:
            hold(MemoryCause::activations, activation_of(unit.layer).kept);
            layer_forward(unit.layer, Phase::forward, kName);
            break;
        case Unit::Kind::module:
            hold(MemoryCause::activations, activation_of(unit.layer).kept);
            add(mtp_forward(a_, shard_, software_));
            tensor_out("embedding", Phase::forward, unit.layer);
            layer_forward(unit.layer, Phase::forward, kName);
            head_forward_pass();
            break;
        case Unit::Kind::head: head_forward_pass(); break;
    }
}

void LayerEmitter::head_forward_pass() {
    if (shard_.sequence_parallel)
        tensor(Collective::all_gather, hidden_bytes(), "tp all-gather", "forward", Phase::forward, -1);
    hold(MemoryCause::logits, logits_bytes(a_, shard_, software_));
    add(head_forward(a_, shard_, software_));
    for (int i = 0; i < 3 && layout_.tp > 1; ++i) {  // vocabulary-parallel loss: maximum, target logit, sum
        tensor(Collective::all_reduce, shard_.tokens() * 4, "tp all-reduce (loss)", "head and loss", Phase::forward,
               -1);
    }
}

void LayerEmitter::head_backward_pass(bool weights_later) {
    if (shard_.sequence_parallel)
        tensor(Collective::all_gather, hidden_bytes(), "tp all-gather (saved input)", "head and loss", Phase::backward,
               -1);
    if (weights_later) {
        add(head_backward_data(a_, shard_, software_));
        hold(MemoryCause::activations, head_weight_gradient_bytes(a_, shard_, software_));
    } else {
        add(head_backward(a_, shard_, software_));
    }
    hold(MemoryCause::logits, -logits_bytes(a_, shard_, software_));
    tensor_out("head and loss", Phase::backward, -1);
    if (layout_.tp == 1)
        flush("head and loss", Phase::backward);  // logits are gone before the layers' turn
}

void LayerEmitter::unit_backward(const Unit& unit) {
    switch (unit.kind) {
        case Unit::Kind::embedding:
            tensor_in("backward", Phase::backward, -1);  // gradient of the reduce-scatter
            add(embedding_backward(a_, shard_, software_));
            hold(MemoryCause::activations, -embedding_activation(a_, shard_, software_));
            break;
        case Unit::Kind::layer: layer_backward(unit.layer); break;
        case Unit::Kind::module:
            head_backward_pass(false);
            layer_backward(unit.layer);
            tensor_in("backward", Phase::backward, unit.layer);
            add(mtp_backward(a_, shard_, software_));
            break;
        case Unit::Kind::head: head_backward_pass(head_waits_); break;
    }
}

}  // namespace fabricast::stage
