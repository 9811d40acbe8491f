#include "models/parallel/placement.hpp"

#include <algorithm>

namespace fabricast {

bool splits_backward(Schedule schedule) {
    return schedule == Schedule::zb_h1 || schedule == Schedule::zb_h2 || schedule == Schedule::zb_v ||
           schedule == Schedule::dual_pipe;
}

std::int64_t copies_in_pipeline(const Layout& layout) { return layout.schedule == Schedule::dual_pipe ? 2 : 1; }

std::int64_t replicas(const Layout& layout) { return layout.dp * copies_in_pipeline(layout); }

std::int64_t virtual_stages(const Layout& layout) { return layout.pp * layout.vpp; }

std::int64_t chunks_held(const Layout& layout) { return layout.vpp * copies_in_pipeline(layout); }

std::int64_t virtual_stage(Schedule schedule, std::int64_t pp, std::int64_t stage, std::int64_t chunk) {
    if (!runs_up(schedule, chunk))
        return chunk * pp + stage;
    return (schedule == Schedule::zb_v ? 2 * pp : pp) - 1 - stage;
}

bool runs_up(Schedule schedule, std::int64_t chunk) {
    return chunk == 1 && (schedule == Schedule::zb_v || schedule == Schedule::dual_pipe);
}

std::int64_t layers_of(const Architecture& a, const Layout& layout, std::int64_t virtual_stage) {
    return layout.stage_layers.empty() ? a.layers / virtual_stages(layout)
                                       : layout.stage_layers[static_cast<std::size_t>(virtual_stage)];
}

std::int64_t first_layer_of(const Architecture& a, const Layout& layout, std::int64_t virtual_stage) {
    std::int64_t first = 0;
    for (std::int64_t before = 0; before < virtual_stage; ++before)
        first += layers_of(a, layout, before);
    return first;
}

std::int64_t first_of_chunk(const Architecture& a, const Layout& layout, std::int64_t layer) {
    std::int64_t first = 0;
    for (std::int64_t at = 0; at < virtual_stages(layout); ++at) {
        const std::int64_t layers = layers_of(a, layout, at);
        if (layer < first + layers)
            break;
        first += layers;
    }
    return first;
}

double recomputed_share(const Architecture& a, const Layout& layout, std::int64_t layers) {
    if (layers == 0)
        return 1;
    std::int64_t again = 0;
    for (std::int64_t at = 0; at < virtual_stages(layout); ++at)
        again += std::min(layers, layers_of(a, layout, at));
    return static_cast<double>(again) / static_cast<double>(a.layers);
}

bool parts_embedding_and_head(const Layout& layout) {
    return layout.pp > 1 && layout.schedule != Schedule::zb_v && layout.schedule != Schedule::dual_pipe;
}

}  // namespace fabricast
