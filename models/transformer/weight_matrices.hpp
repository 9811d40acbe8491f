// The weight matrices of one layer as a rank of tp (and of ep and etp) holds them: what works on whole matrices, such as
// Muon and PowerSGD, sees these shapes. Query, key and value, gate and up are matrices of their own (Megatron-Core's
// --muon-split-qkv); a matrix cut over tp is the rank's part of it (its blockwise mode, the default).
// Sum of elements = parameters of layer_parameters() less norms, biases, sinks and gates.
#pragma once

#include <vector>

#include "models/transformer/architecture.hpp"
#include "models/transformer/optimizer.hpp"

namespace fabricast {

struct LayerMatrices {
    std::vector<MatrixCount> dense;    ///< everything but routed experts
    std::vector<MatrixCount> experts;  ///< of this rank
};

/// kv_heads of `a` at least tp (ranks that share a head hold it each).
LayerMatrices layer_matrices(const Architecture& a, const LayerShape& layer, std::int64_t tp, std::int64_t ep,
                             std::int64_t etp);

/// Adds, joining equal shapes.
void add_matrices(std::vector<MatrixCount>& to, const std::vector<MatrixCount>& more);

std::int64_t element_count(const std::vector<MatrixCount>& matrices);
std::int64_t row_and_column_count(const std::vector<MatrixCount>& matrices);

}  // namespace fabricast
