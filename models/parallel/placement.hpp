// Where the chunks of a model sit. The chunks in model order are virtual stages 0 .. V - 1 (embedding on the first, head
// on the last); a rank of stage s holds chunks 0 .. c - 1 of them:
//
//   gpipe, 1F1B, ZB-H1, ZB-H2   V = p,    chunk 0 is virtual stage s
//   interleaved                 V = p v,  chunk c is c p + s
//   ZB-V                        V = 2 p,  chunk 0 is s, chunk 1 is 2 p - 1 - s: the turn needs no message
//   DualPipe                    V = p,    chunk 0 is s, chunk 1 is p - 1 - s, a second copy: half of the micro-batches
//                                         enters at stage 0 and runs down chunks 0, half enters at stage p - 1 and runs
//                                         up chunks 1
//
// Layers are numbered through the model; virtual stage i holds stage_layers[i] of them, equal shares when none are given.
#pragma once

#include <cstdint>

#include "models/parallel/layout.hpp"

namespace fabricast {

/// Weight gradients are a pass of their own (of every micro-batch, or of some).
bool splits_backward(Schedule schedule);
/// Ranks of a stage against each other: the parameters are held twice along the pipeline.
std::int64_t copies_in_pipeline(const Layout& layout);
/// Replicas of every parameter in the job: dp, twice that with DualPipe.
std::int64_t replicas(const Layout& layout);

std::int64_t virtual_stages(const Layout& layout);
/// Model chunks a rank holds.
std::int64_t chunks_held(const Layout& layout);
std::int64_t virtual_stage(Schedule schedule, std::int64_t pp, std::int64_t stage, std::int64_t chunk);
/// Forward of this chunk goes to the stage before (ZB-V and DualPipe, chunk 1) instead of the stage behind.
bool runs_up(Schedule schedule, std::int64_t chunk);
/// Layers of a virtual stage and the first of them.
std::int64_t layers_of(const Architecture& a, const Layout& layout, std::int64_t virtual_stage);
std::int64_t first_layer_of(const Architecture& a, const Layout& layout, std::int64_t virtual_stage);
/// First layer of the virtual stage that holds `layer`.
std::int64_t first_of_chunk(const Architecture& a, const Layout& layout, std::int64_t layer);
/// Share of the layers that are recomputed when `layers` of every chunk are (0: all).
double recomputed_share(const Architecture& a, const Layout& layout, std::int64_t layers);
/// Embedding and head sit on different stages: a tied matrix is held twice and its gradient exchanged.
bool parts_embedding_and_head(const Layout& layout);

}  // namespace fabricast
