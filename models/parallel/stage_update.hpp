// What a rank of a stage updates in the optimizer step, under ZeRO.
//
//   zero 0       everything it holds: replicas all do the same work
//   zero 1, 2, 3 element-wise updates: its share, parameters / sharding ranks. Muon: whole matrices, largest first, each to
//                the rank that has least so far; the gradient of a matrix is reduced to its owner, updated weights are
//                gathered, so that the update itself communicates nothing. Priced is the rank with most: all wait for it
//
// Not modelled: padding of shards of unequal size on the wire; matrices made whole over tp (Megatron-Core's duplicated and
// distributed modes; here the rank's part is orthogonalised, its default); the variant that shards flat buffers and gathers
// momenta (arXiv:2502.16982, at most 1.25 times AdamW's traffic).
// Source: Megatron-Core LayerWiseDistributedOptimizer (whole parameters by size to the least loaded rank).
#pragma once

#include <cstdint>
#include <vector>

#include "models/parallel/layout.hpp"
#include "models/parallel/stage_parameters.hpp"
#include "models/transformer/weight_matrices.hpp"

namespace fabricast {

/// Matrices of all layers and prediction modules of a stage, one rank's.
LayerMatrices stage_matrices(const Architecture& a, const Layout& layout, std::int64_t stage);

Updated stage_update(const Architecture& a, const TrainingPlan& plan, std::int64_t stage,
                     const StageParameters& parameters);

/// Matrices of the rank with most elements when whole ones are dealt to `ranks`.
std::vector<MatrixCount> most_loaded(std::vector<MatrixCount> matrices, std::int64_t ranks);

}  // namespace fabricast
