// What one rank holds of the model, and over how many ranks it is shared.
//
// Held: parameters before data-parallel sharding; attention, MLP and shared experts / tp, routed experts / (ep etp), norms,
// router and compressed projections whole. Embedding on the first virtual stage, head, final norm and prediction modules on
// the last.
// Sharding: the data group of dense parameters has cp dp ranks (twice that with DualPipe), of routed experts tp cp dp /
// (etp ep). ZeRO shards over all of it, or over groups of shard_group ranks; a group of experts has what of them meets in
// such a group, at least one rank.
#pragma once

#include <cstdint>
#include <vector>

#include "models/parallel/layout.hpp"
#include "models/transformer/architecture.hpp"

namespace fabricast {

/// Parameters one rank holds before data-parallel sharding: those every data-parallel rank shares, and those of routed
/// experts, which expert-data-parallel ranks share.
struct Held {
    std::int64_t dense = 0, expert = 0;
    std::int64_t total() const { return dense + expert; }
};
struct StageParameters {
    std::vector<Held> layers;  ///< in model order, chunk by chunk
    std::int64_t embedding = 0, head = 0;
    Held sum() const;
    std::int64_t total() const { return sum().total(); }
};
Held held_of_layer(const Architecture& a, const Layout& layout, std::int64_t layer);
/// A prediction module: its layer, a projection of two vectors into one and three norms; embedding and head are shared.
Held held_of_module(const Architecture& a, const Layout& layout, std::int64_t layer);
StageParameters stage_parameters(const Architecture& a, const Layout& layout, std::int64_t stage);

/// Weight tensors a rank holds, in model order: of a layer query-key-value and output product, two or three of a dense MLP,
/// what is left (norms, biases, router, all experts together) as one; embedding and head. Their sum is all it holds.
std::vector<std::int64_t> parameter_tensors(const Architecture& a, const Layout& layout, std::int64_t stage);
/// Whole tensors dealt to `ranks`: largest first, each to the rank that has least. What each rank with any owns, by rank.
std::vector<std::int64_t> owned_parameters(std::vector<std::int64_t> tensors, std::int64_t ranks);

/// How many ranks share one sharded copy, and how many such copies there are.
struct Sharding {
    std::int64_t ranks = 1, replicas = 1;
};
Sharding dense_sharding(const Layout& layout);
Sharding expert_sharding(const Layout& layout);
/// The gradient norm is a sum over all ranks; else over the tp pp ranks of one replica.
bool norm_over_world(const Layout& layout);

}  // namespace fabricast
