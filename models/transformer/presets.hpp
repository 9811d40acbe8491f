// Internal: shapes that several presets share.
#pragma once

#include <string>
#include <vector>

#include "models/transformer/architecture.hpp"

namespace fabricast::presets {

/// RMSNorm, rotary positions, gated MLP, no biases, head of its own.
Architecture llama(std::string name, std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                   std::int64_t kv_heads, std::int64_t ffn, std::int64_t vocab, std::string source);
/// LayerNorm, learned positions, GeLU MLP of 4 h, biases, head tied to the embedding.
Architecture gpt(std::string name, std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab,
                 std::int64_t positions, std::string source);
Architecture qwen2(Architecture a);  ///< biases on queries, keys, values
Architecture qwen3(Architecture a);  ///< normalised queries and keys, heads of 128

/// presets_moe.cpp
void add_moe(std::vector<Architecture>& all);

}  // namespace fabricast::presets
