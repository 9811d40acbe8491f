// Spaces small enough to simulate everything in them: a dense pipeline, experts, long sequences with every schedule.
#pragma once

#include <string>

#include "sim/plan/plan.hpp"

namespace fabricast::plan {

inline const std::string kDense = R"(name: dense
cluster: {nodes: 2, node: hgx-h100}
model: {layers: 12, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336, vocab: 32000}
training: {sequence: 4096 tokens, global_batch: 64 sequences}
plan: {tp: [1, 2, 8], pp: [1, 2, 4], vpp: [1, 3], micro_batch: [1, 2], zero: [1, 3], recompute: [none, full]}
)";

inline const std::string kExperts = R"(name: experts
cluster: {nodes: 4, node: hgx-a100-80g, fabric: {nic: 200 Gb/s}}
model:
  layers: 8
  hidden: 2048
  heads: 16
  kv_heads: 4
  head_dim: 128
  ffn: 6144
  vocab: 64000
  moe: {experts: 32, top_k: 4, ffn: 768}
training: {sequence: 4096 tokens, global_batch: 64 sequences, overlap: {grad_reduce: true}}
plan: {tp: [1, 4], pp: [1, 4], vpp: [1, 2], ep: [1, 4, 8], micro_batch: [1, 2], zero: [0, 1], recompute: [none],
       overlap: [none, both]}
)";

inline const std::string kLong = R"(name: long
cluster: {nodes: 2, node: hgx-h800, fabric: {nic: 100 Gb/s}}
model: {layers: 8, hidden: 2048, heads: 16, ffn: 8192, vocab: 50000}
training: {sequence: 16384 tokens, global_batch: 32 sequences}
plan: {tp: [1, 2], cp: [1, 2, 4], pp: [1, 2, 4], vpp: [1, 2], schedule: [1f1b, gpipe, interleaved, zb-h1, zb-h2, zb-v],
       micro_batch: [1], zero: [1], recompute: [none, selective]}
)";

// ZeRO-3 over a network that is shared four to one, whole and in groups of a server, two and half a server.
inline const std::string kSharded = R"(name: sharded
cluster: {nodes: 4, node: hgx-h100, fabric: {nic: 100 Gb/s, oversubscription: 4}}
model: {layers: 12, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336, vocab: 32000}
training: {sequence: 4096 tokens, global_batch: 64 sequences}
plan: {tp: [1, 2, 8], pp: [1, 2], vpp: [1], zero: [1, 3], shard_group: [0, 4, 8, 16], micro_batch: [1, 2],
       overlap: [none, both], recompute: [none, full]}
)";

// Many small gathers: narrow layers, fp8 weights, one micro-batch and many, gathers kept for the backward.
inline const std::string kNarrow = R"(name: narrow
cluster: {nodes: 2, node: hgx-h100, fabric: {nic: 200 Gb/s, oversubscription: 2}}
model: {layers: 24, hidden: 1024, heads: 16, ffn: 4096, vocab: 256000}
training: {sequence: 2048 tokens, global_batch: 64 sequences, precision: fp8,
           overlap: {reshard: false}}
plan: {tp: [1, 2], pp: [1, 2, 4, 12], vpp: [1], zero: [1, 3], shard_group: [0, 4], micro_batch: [1, 4],
       overlap: [none, both], recompute: [none]}
)";

// A stack that overlaps messages, gathers the first chunk beside the update of the others and keeps buckets to the first stage.
inline const std::string kBeside = R"(name: beside
cluster: {nodes: 4, node: hgx-h100, fabric: {nic: 200 Gb/s}}
model: {layers: 24, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336, vocab: 32000}
training: {sequence: 4096 tokens, global_batch: 64 sequences, software: {preset: nemo-2024}}
plan: {tp: [1, 4], pp: [2, 4], vpp: [1, 3, 6], zero: [0, 1], micro_batch: [1, 2], overlap: [none, both],
       recompute: [none]}
)";

// For any stack.
inline const std::string kStack = R"(name: stack
cluster: {nodes: 2, node: hgx-h100, fabric: {nic: 100 Gb/s}}
model: {layers: 12, hidden: 2048, heads: 16, ffn: 8192, vocab: 32000}
training: {sequence: 2048 tokens, global_batch: 32 sequences}
plan: {tp: [1, 4], pp: [1, 2, 4], vpp: [1, 3], zero: [1, 3], micro_batch: [1], overlap: [none, both],
       recompute: [none, full]}
)";

inline PlanRequest request_of(const std::string& text) {
    PlanRequest request;
    request.source.text = text;
    request.source.file = "plan.yaml";
    request.search.threads = 1;
    return request;
}

}  // namespace fabricast::plan
