// What a layer runs again in its backward, by the stack.
//
//   full         the whole forward; a stack may keep the outputs of query, key and value (MaxText's save_qkv_proj), and
//                stop once the last saved tensor is back: the second product of the MLP, its communication and the
//                residual behind it feed nothing (PyTorch since 2.1, non-reentrant checkpoints)
//   selective    the attention core; or, per operator (torchtitan), everything pointwise and every second product, while
//                the core, the other products and reduced sums were kept
#include <utility>

#include "models/parallel/stage_layers.hpp"

namespace fabricast::stage {
namespace {

bool product(const Kernel& k) { return k.kind == KernelKind::gemm && k.account == Account::gemm_ideal; }
bool core(const Kernel& k) { return k.kind == KernelKind::attention_forward || k.account == Account::attention; }

}  // namespace

std::vector<Kernel> LayerEmitter::again(std::vector<Kernel> kernels, Piece piece) const {
    if (piece == Piece::mlp && software_.recompute_stops_early) {
        std::size_t last = kernels.size();
        for (std::size_t i = 0; i < kernels.size(); ++i)
            if (product(kernels[i]))
                last = i;
        if (last > 0 && last < kernels.size() && shard_.precision == Precision::fp8)
            --last;  // the cast in front of it
        kernels.resize(std::min(last, kernels.size()));
    }
    if (piece == Piece::attention && software_.recompute_keeps_qkv) {
        std::vector<Kernel> rest;
        bool before = true;
        for (const Kernel& kernel : kernels) {
            before = before && !core(kernel);
            if (!(before && product(kernel)))
                rest.push_back(kernel);
        }
        return rest;
    }
    return kernels;
}

void LayerEmitter::recompute_selected(std::int64_t layer, std::string_view name) {
    const LayerShape shape = layer_shape(a_, layer);
    if (!software_.selective_by_product || shape.moe) {
        return around_core(attention_core_forward(a_, shard_, software_, shape), false, true, name, Phase::backward,
                           layer);
    }
    int products = 0;
    const auto selected = [&](Piece piece) {
        std::vector<Kernel> out;
        for (const Kernel& kernel : forward(piece, shape)) {
            if (core(kernel) || (product(kernel) && ++products % 2 == 1))
                continue;
            out.push_back(kernel);
        }
        add(std::move(out), true);
    };
    ++passes_.forward;
    selected(Piece::norm_attention);
    tensor_in(name, Phase::backward, layer);
    selected(Piece::attention);
    selected(Piece::residual_attention);
    selected(Piece::norm_mlp);
    tensor_in(name, Phase::backward, layer);
    selected(Piece::mlp);
}

}  // namespace fabricast::stage
