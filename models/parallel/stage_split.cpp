// The backward of a unit in two passes, for schedules that run weight gradients later.
//
// Input gradients: what the whole backward does without the weight products of the linear layers; norms, embedding and
// the loss are done here as a whole. Weight gradients: the products alone; with sequence parallelism the saved input is
// gathered for them, while the gathered output gradient was kept. Recomputation belongs to the first pass.
//
// Memory of a layer: layer_activation().kept until the first pass ends, weight_gradient_bytes() until the second does.
#include <algorithm>

#include "models/parallel/stage_layers.hpp"

namespace fabricast::stage {
namespace {

constexpr std::string_view kInput = "backward";
constexpr std::string_view kWeight = "weight gradients";

}  // namespace

void LayerEmitter::block_backward_input(Piece piece, std::int64_t layer) {
    tensor_in(kInput, Phase::backward, layer);
    data_backward(piece, layer);
    tensor_out(kInput, Phase::backward, layer);
}

void LayerEmitter::block_backward_weight(Piece piece, std::int64_t layer) {
    if (shard_.sequence_parallel)
        tensor(Collective::all_gather, hidden_bytes(), "tp all-gather (saved input)", kWeight, Phase::backward, layer);
    weight_backward(piece, layer);
}

void LayerEmitter::layer_backward_input(std::int64_t layer) {
    const ActivationBytes activation = activation_of(layer);
    const Recompute recompute = recompute_of(layer);
    const LayerShape shape = layer_shape(a_, layer);
    const Bytes change = weight_gradient_bytes(a_, shard_, software_, shape) - activation.kept;
    // What stays is part of what was recomputed.
    const Bytes working = std::max<Bytes>(activation.working - std::max<Bytes>(change, 0), 0);
    hold(MemoryCause::temporary, working);
    hold(MemoryCause::activations, change);
    if (recompute == Recompute::full) {
        layer_forward(layer, Phase::recompute, "recompute");
        flush("recompute", Phase::recompute, layer);
    }
    ++passes_.backward;
    simple_backward(Piece::residual_mlp);
    if (shape.moe)
        moe_backward_input(layer);
    else
        block_backward_input(Piece::mlp, layer);
    simple_backward(Piece::norm_mlp);
    simple_backward(Piece::residual_attention);
    if (recompute == Recompute::selective)
        recompute_selected(layer, kInput);
    block_backward_input(Piece::attention, layer);
    simple_backward(Piece::norm_attention);
    hold(MemoryCause::temporary, -working);
    if (working > 0)
        flush(kInput, Phase::backward, layer);
}

void LayerEmitter::layer_backward_weight(std::int64_t layer) {
    ++passes_.backward;
    if (layer_shape(a_, layer).moe)
        moe_backward_weight(layer);
    else
        block_backward_weight(Piece::mlp, layer);
    block_backward_weight(Piece::attention, layer);
    hold(MemoryCause::activations, -weight_gradient_bytes(a_, shard_, software_, layer_shape(a_, layer)));
}

void LayerEmitter::unit_backward_input(const Unit& unit) {
    switch (unit.kind) {
        case Unit::Kind::embedding:
        case Unit::Kind::module: unit_backward(unit); break;  // a module is not split
        case Unit::Kind::layer: layer_backward_input(unit.layer); break;
        case Unit::Kind::head:
            if (shard_.sequence_parallel)
                tensor(Collective::all_gather, hidden_bytes(), "tp all-gather (saved input)", "head and loss",
                       Phase::backward, -1);
            add(head_backward_data(a_, shard_, software_));
            hold(MemoryCause::logits,
                 head_weight_gradient_bytes(a_, shard_, software_) - logits_bytes(a_, shard_, software_));
            tensor_out("head and loss", Phase::backward, -1);
            if (layout_.tp == 1)
                flush("head and loss", Phase::backward);
            break;
    }
}

void LayerEmitter::unit_backward_weight(const Unit& unit) {
    switch (unit.kind) {
        case Unit::Kind::embedding:
        case Unit::Kind::module: break;
        case Unit::Kind::layer: layer_backward_weight(unit.layer); break;
        case Unit::Kind::head:
            if (shard_.sequence_parallel)
                tensor(Collective::all_gather, hidden_bytes(), "tp all-gather (saved input)", kWeight, Phase::backward,
                       -1);
            add(head_backward_weight(a_, shard_, software_));
            hold(MemoryCause::logits, -head_weight_gradient_bytes(a_, shard_, software_));
            flush(kWeight, Phase::backward);
            break;
    }
}

}  // namespace fabricast::stage
