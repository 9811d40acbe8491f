#include "models/parallel/stage_parameters.hpp"

#include <algorithm>
#include <functional>

#include "models/parallel/placement.hpp"

namespace fabricast {

bool norm_over_world(const Layout& layout) { return layout.zero >= 1 || layout.ep > 1; }

Held StageParameters::sum() const {
    Held out{embedding + head, 0};
    for (const Held& layer : layers) {
        out.dense += layer.dense;
        out.expert += layer.expert;
    }
    return out;
}

Sharding dense_sharding(const Layout& layout) {
    const std::int64_t data = replicas(layout) * layout.cp;
    if (layout.zero == 0 || layout.shard_group == 0)
        return {data, 1};
    return {layout.shard_group, data / layout.shard_group};
}

// A sharding group of g data ranks holds g / ep copies of an expert's data group, at least one.
Sharding expert_sharding(const Layout& layout) {
    const std::int64_t data = layout.tp * layout.cp * replicas(layout) / (layout.expert_tp() * layout.ep);
    if (layout.zero == 0 || layout.shard_group == 0)
        return {data, 1};
    const std::int64_t span = layout.shard_group * layout.tp / (layout.expert_tp() * layout.ep);
    const std::int64_t ranks = std::max<std::int64_t>(1, std::min(span, data));
    return {ranks, data / ranks};
}

Held held_of_layer(const Architecture& a, const Layout& layout, std::int64_t layer) {
    Architecture held = a;
    held.kv_heads = std::max(a.kv_heads, layout.tp);  // fewer heads than ranks: several ranks hold the same one
    const LayerParameters p = layer_parameters(held, layer_shape(a, layer));
    return {(p.attention + p.mlp) / layout.tp + p.norms + p.replicated, p.experts / (layout.ep * layout.expert_tp())};
}

Held held_of_module(const Architecture& a, const Layout& layout, std::int64_t layer) {
    Held out = held_of_layer(a, layout, layer);
    out.dense += 2 * a.hidden * a.hidden / layout.tp + 3 * (a.rms_norm ? 1 : 2) * a.hidden;
    return out;
}

StageParameters stage_parameters(const Architecture& a, const Layout& layout, std::int64_t stage) {
    Architecture held = a;
    held.kv_heads = std::max(a.kv_heads, layout.tp);  // fewer heads than ranks: several ranks hold the same one
    const ParameterCount count = count_parameters(held, padded_vocab(a, layout.tp));
    StageParameters out;
    for (std::int64_t chunk = 0; chunk < chunks_held(layout); ++chunk) {
        const std::int64_t at = virtual_stage(layout.schedule, layout.pp, stage, chunk);
        const std::int64_t first = first_layer_of(a, layout, at);
        for (std::int64_t layer = first; layer < first + layers_of(a, layout, at); ++layer)
            out.layers.push_back(held_of_layer(a, layout, layer));
        if (at == 0)
            out.embedding = count.embedding / layout.tp + count.positions;
        if (at == virtual_stages(layout) - 1) {
            out.head = count.head / layout.tp + count.final_norm;
            if (a.tied_embeddings && parts_embedding_and_head(layout))
                out.head += count.embedding / layout.tp;  // the last stage keeps a copy
            for (std::int64_t m = 0; m < a.mtp_layers; ++m)
                out.layers.push_back(held_of_module(a, layout, a.layers + m));
        }
    }
    return out;
}

std::vector<std::int64_t> parameter_tensors(const Architecture& a, const Layout& layout, std::int64_t stage) {
    const StageParameters all = stage_parameters(a, layout, stage);
    std::vector<std::int64_t> out;
    for (const Held& layer : all.layers) {
        std::int64_t left = layer.total();
        const auto take = [&](std::int64_t size) {
            size = std::min(size, left);
            left -= size;
            if (size > 0)
                out.push_back(size);
        };
        const std::int64_t head = a.hidden * a.head_dim / layout.tp;
        take((a.heads + 2 * std::max(a.kv_heads, layout.tp)) * head);
        take(a.heads * head);
        for (int matrix = 0; layer.expert == 0 && matrix < (a.gated ? 3 : 2); ++matrix)
            take(a.hidden * a.ffn / layout.tp);
        take(left);
    }
    for (const std::int64_t size : {all.embedding, all.head}) {
        if (size > 0)
            out.push_back(size);
    }
    return out;
}

std::vector<std::int64_t> owned_parameters(std::vector<std::int64_t> tensors, std::int64_t ranks) {
    std::stable_sort(tensors.begin(), tensors.end(), std::greater<>());
    std::vector<std::int64_t> out(static_cast<std::size_t>(ranks), 0);
    for (const std::int64_t size : tensors)
        *std::min_element(out.begin(), out.end()) += size;
    out.erase(std::remove(out.begin(), out.end(), 0), out.end());
    return out;
}

}  // namespace fabricast
