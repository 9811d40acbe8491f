#include "models/parallel/stage_update.hpp"

#include <algorithm>
#include <queue>

#include "models/parallel/placement.hpp"

namespace fabricast {
namespace {

std::int64_t share(std::int64_t whole, std::int64_t parts) { return (whole + parts - 1) / parts; }

struct Load {
    std::int64_t elements, rank;
    bool operator>(const Load& other) const {
        return elements != other.elements ? elements > other.elements : rank > other.rank;
    }
};

}  // namespace

LayerMatrices stage_matrices(const Architecture& a, const Layout& layout, std::int64_t stage) {
    Architecture held = a;
    held.kv_heads = std::max(a.kv_heads, layout.tp);
    LayerMatrices out;
    const auto take = [&](std::int64_t layer) {
        const LayerMatrices more =
            layer_matrices(held, layer_shape(a, layer), layout.tp, layout.ep, layout.expert_tp());
        add_matrices(out.dense, more.dense);
        add_matrices(out.experts, more.experts);
    };
    for (std::int64_t chunk = 0; chunk < chunks_held(layout); ++chunk) {
        const std::int64_t at = virtual_stage(layout.schedule, layout.pp, stage, chunk);
        const std::int64_t first = first_layer_of(a, layout, at);
        for (std::int64_t layer = first; layer < first + layers_of(a, layout, at); ++layer)
            take(layer);
        for (std::int64_t m = 0; at == virtual_stages(layout) - 1 && m < a.mtp_layers; ++m) {
            take(a.layers + m);
            add_matrices(out.dense, {{a.hidden / layout.tp, 2 * a.hidden, 1}});
        }
    }
    return out;
}

std::vector<MatrixCount> most_loaded(std::vector<MatrixCount> matrices, std::int64_t ranks) {
    if (ranks == 1)
        return matrices;
    std::stable_sort(matrices.begin(), matrices.end(), [](const MatrixCount& x, const MatrixCount& y) {
        return x.rows * x.columns > y.rows * y.columns;
    });
    std::priority_queue<Load, std::vector<Load>, std::greater<>> least;
    for (std::int64_t rank = 0; rank < ranks; ++rank)
        least.push({0, rank});
    std::vector<std::vector<MatrixCount>> owned(static_cast<std::size_t>(ranks));
    Load most{-1, 0};
    for (const MatrixCount& matrix : matrices) {
        for (std::int64_t i = 0; i < matrix.count; ++i) {
            Load load = least.top();
            least.pop();
            load.elements += matrix.rows * matrix.columns;
            add_matrices(owned[static_cast<std::size_t>(load.rank)], {{matrix.rows, matrix.columns, 1}});
            if (load.elements > most.elements)
                most = load;
            least.push(load);
        }
    }
    return owned[static_cast<std::size_t>(most.rank)];
}

Updated stage_update(const Architecture& a, const TrainingPlan& plan, std::int64_t stage,
                     const StageParameters& parameters) {
    const Layout& l = plan.layout;
    const Held held = parameters.sum();
    const std::int64_t dense = l.zero >= 1 ? dense_sharding(l).ranks : 1;
    const std::int64_t experts = l.zero >= 1 ? expert_sharding(l).ranks : 1;
    Updated out;
    const bool muon = plan.optimizer.kind == OptimizerKind::muon;
    if (!muon && plan.optimizer.kind != OptimizerKind::adafactor) {
        out.elements = share(held.dense, dense) + share(held.expert, experts);
        return out;
    }
    const LayerMatrices whole = stage_matrices(a, l, stage);
    const std::int64_t in_dense = element_count(whole.dense), in_experts = element_count(whole.experts);
    out.elements = share(held.dense - in_dense, dense) + share(held.expert - in_experts, experts);
    if (muon) {
        out.matrices = most_loaded(whole.dense, dense);
        add_matrices(out.matrices, most_loaded(whole.experts, experts));
        return out;
    }
    out.factored = share(in_dense, dense) + share(in_experts, experts);
    out.factors = share(row_and_column_count(whole.dense), dense) + share(row_and_column_count(whole.experts), experts);
    return out;
}

}  // namespace fabricast
