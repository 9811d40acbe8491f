// The work of a stage: layers, embedding and head on one micro-batch, with their tensor-parallel communication.
#pragma once

#include <cstdint>
#include <vector>

#include "models/parallel/placement.hpp"
#include "models/parallel/stage_emitter.hpp"

namespace fabricast::stage {

class LayerEmitter : protected StageEmitter {
protected:
    LayerEmitter(const Architecture& a, const TrainingPlan& plan, const SoftwareFeatures& software, std::int64_t stage,
                 ProgramParts parts);

    Bytes hidden_bytes() const { return shard_.tokens() * a_.hidden * activation_bytes_; }
    // Of what linear layers read: in fp8 a stack may gather the casted copy.
    Bytes gathered_bytes() const {
        return plan_.precision == Precision::fp8 && software_.fp8_tensor_gather ? hidden_bytes() / 2 : hidden_bytes();
    }
    Bytes wire_bytes(Collective kind) const {
        return kind == Collective::all_gather ? gathered_bytes() : hidden_bytes();
    }
    // Communicates between segments; the next segment needs the result.
    void tensor(Collective kind, Bytes bytes, std::string_view what, std::string_view segment, Phase phase,
                std::int64_t layer, std::int32_t share = 1000);
    // The collective itself, compressed or not (stage_compress.cpp); the last node of it.
    std::uint32_t tensor_call(Collective kind, Bytes bytes, std::string_view what, Phase phase,
                              const std::vector<std::uint32_t>& waits, std::int64_t layer, std::int32_t share = 1000);
    // Chunked GEMMs hide a share of the traffic: that part of a collective runs beside the linear layers it feeds (in)
    // or that feed it (out), the rest stands between segments.
    void beside(Collective kind, std::string_view what, Phase phase, std::int64_t layer, std::uint32_t after);
    void tensor_in(std::string_view segment, Phase phase, std::int64_t layer);
    void tensor_out(std::string_view segment, Phase phase, std::int64_t layer);

    std::vector<Kernel> forward(Piece piece, const LayerShape& shape = {}) {
        return forward_kernels(a_, shard_, software_, piece, shape);
    }
    // Kernels of a block around an attention core, with the exchange of context parallelism at the core.
    void around_core(std::vector<Kernel> kernels, bool backward, bool again, std::string_view name, Phase phase,
                     std::int64_t layer);
    void context_ring(const Kernel& core, bool backward, bool again, std::string_view name, Phase phase,
                      std::int64_t layer);
    void context(Collective kind, Bytes bytes, std::string_view what, std::string_view name, Phase phase,
                 std::int64_t layer);
    Bytes key_value_bytes() const;  ///< keys and values of this rank's tokens
    // Tokens to their experts and back.
    void to_experts(bool backward, std::string_view name, Phase phase, std::int64_t layer);
    void from_experts(bool backward, std::string_view name, Phase phase, std::int64_t layer);
    void expert_call(bool combine, bool backward, std::string_view name, Phase phase, std::int64_t layer);
    void expert_tensor(Collective kind, std::string_view name, Phase phase, std::int64_t layer);
    std::int64_t routed_tokens() const { return shard_.tokens() / layout_.tp; }

    void mlp_forward(std::int64_t layer, Phase phase, std::string_view name);
    void moe_forward(std::int64_t layer, Phase phase, std::string_view name);
    void moe_backward(std::int64_t layer);
    void moe_backward_input(std::int64_t layer);
    void moe_backward_weight(std::int64_t layer);
    Recompute recompute_of(std::int64_t layer) const;
    ActivationBytes activation_of(std::int64_t layer) const {
        return layer_activation(a_, shard_, software_, recompute_of(layer), layer_shape(a_, layer));
    }
    void layer_forward(std::int64_t layer, Phase phase, std::string_view name);
    // stage_recompute.cpp: what of a layer is run again.
    std::vector<Kernel> again(std::vector<Kernel> kernels, Piece piece) const;
    bool stops_early(std::int64_t layer, Phase phase) const {
        return phase == Phase::recompute && software_.recompute_stops_early && !layer_shape(a_, layer).moe;
    }
    void recompute_selected(std::int64_t layer, std::string_view name);
    // Backward of a column-row pair of linear layers: input gradients first, then weight gradients.
    void block_backward(Piece piece, std::int64_t layer);
    void data_backward(Piece piece, std::int64_t layer);
    void weight_backward(Piece piece, std::int64_t layer);
    void simple_backward(Piece piece);
    void layer_backward(std::int64_t layer);

    std::int64_t virtual_stage_of(std::int64_t chunk) const {
        return virtual_stage(layout_.schedule, layout_.pp, stage_, chunk);
    }
    struct Unit {
        enum class Kind : std::uint8_t { embedding, layer, module, head } kind;  ///< module: predicts a token ahead
        std::int64_t layer;  ///< of the whole model; -1 for embedding and head
        Held parameters;
    };
    std::vector<Unit> units(std::int64_t chunk) const;
    void unit_forward(const Unit& unit);
    void head_forward_pass();
    void head_backward_pass(bool weights_later);
    void unit_backward(const Unit& unit);
    // stage_split.cpp: the two halves of the backward.
    void block_backward_input(Piece piece, std::int64_t layer);
    void block_backward_weight(Piece piece, std::int64_t layer);
    void layer_backward_input(std::int64_t layer);
    void layer_backward_weight(std::int64_t layer);
    void unit_backward_input(const Unit& unit);
    void unit_backward_weight(const Unit& unit);

    StageParameters parameters_;
    Shard shard_;
    Bytes activation_bytes_ = 2, gradient_bytes_ = 4;
    std::uint8_t tensor_stream_ = kCompute;
    std::int32_t hidden_ = 0;  ///< per mille of TP traffic beside the linear layers
    bool head_waits_ = false;  ///< the weight gradient of the head comes after the schedule
};

}  // namespace fabricast::stage
