// The optimizer of a training step: bytes of its state, memory traffic and matrix products of an update.
//
// State a parameter in bytes, master = copy of 16-bit weights (none in fp32 training, where weights are fp32):
//
//   adam, adamw    master + first + second moment                       fp32: 4 + 4 + 4
//   adam-8bit      master + 2 moments of 1 byte, 4 bytes of scale each `block` elements and moment
//   lion           master + first                                       one moment, the sign of a mix of it and the gradient
//   sgd            master;   sgd-momentum: master + first
//   adafactor      master + 4 (rows + columns) a matrix instead of a second moment, no first one; vectors: 4
//   muon           matrices of layers: master + first; embedding, head, norms and biases: as adam
//
// Traffic of an update element by element: master and moments read and written, gradient read, the weight written (without
// a master read and written). Multi-tensor kernels, one launch. Adafactor: gradient read for row and column means; read
// again, update written (4) for its norm; update read, weight updated.
// Muon, a matrix of m x n, m <= n: momentum updated and written in 16 bit; read, scaled by its norm (6 bytes an element);
// k times X X^T, its square and their product with X (2 (2 m^2 n + m^3) FLOP); the update. 16-bit products of one matrix
// at a time.
//
// Not modelled: LAMB's and LARS's norms; fusing Muon's three products, skipping half of the symmetric ones.
// Sources: apex FusedAdam (30 bytes a parameter with fp32 gradients: master and moments 24, gradient 4, weight 2).
// bitsandbytes (arXiv:2110.02861; blocks of 2048 there, 256 in current releases).
// arXiv:2302.06675 (Lion), arXiv:1804.04235 (Adafactor). Muon: K. Jordan, kellerjordan.github.io/posts/muon (5 iterations,
// FLOP), arXiv:2502.16982 (AdamW for embedding, head and norms). Narrow moments: Megatron-Core's precision-aware optimizer
// (exp_avg_dtype, exp_avg_sq_dtype, main_params_dtype), FP8-LM (arXiv:2310.18313), DeepSeek-V3 (bf16).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/compute/kernel.hpp"
#include "topologies/graph/units.hpp"

namespace fabricast {

enum class OptimizerKind : std::uint8_t { adam, adam_8bit, lion, sgd, sgd_momentum, adafactor, muon };
enum class StateType : std::uint8_t { none, fp32, bf16, fp16, fp8, int8 };

struct Optimizer {
    OptimizerKind kind = OptimizerKind::adam;
    StateType master = StateType::fp32;  ///< of 16-bit weights; none: they are updated in place
    StateType first = StateType::fp32, second = StateType::fp32;  ///< moments, where the kind has them
    std::int64_t block = 256;                                     ///< int8: elements that share a scale
    std::int64_t iterations = 5;                                  ///< of Newton and Schulz (Muon)
    bool operator==(const Optimizer&) const = default;
};

std::string_view optimizer_name(OptimizerKind kind);  ///< "adam-8bit"
std::string_view state_type_name(StateType type);     ///< "fp32"
/// Kind and whatever differs from fp32 state: "muon", "adam, moments bf16, no master weights".
std::string optimizer_text(const Optimizer& optimizer);

/// Equal weight matrices, as one rank holds them.
struct MatrixCount {
    std::int64_t rows = 0, columns = 0, count = 0;
    std::int64_t elements() const { return rows * columns * count; }
    bool operator==(const MatrixCount&) const = default;
};

/// What one rank updates.
struct Updated {
    std::int64_t elements = 0;               ///< element by element
    std::int64_t factored = 0, factors = 0;  ///< Adafactor: elements of matrices, their rows and columns
    std::vector<MatrixCount> matrices;       ///< Muon
    std::int64_t matrix_elements() const;
    std::int64_t total() const { return elements + factored + matrix_elements(); }
};

/// Bytes of a moment or master of so many elements.
Bytes state_bytes(StateType type, std::int64_t elements, std::int64_t block);
/// Everything the optimizer keeps beside the weights.
Bytes optimizer_bytes(const Optimizer& optimizer, Precision precision, const Updated& updated);
/// Memory traffic of the element-wise update of one parameter; scales of int8 moments included.
double update_traffic(const Optimizer& optimizer, Precision precision, Bytes gradient);

/// One step on gradients of `gradient` bytes: norm (when they are clipped), update, zeroing.
std::vector<Kernel> optimizer_kernels(const Optimizer& optimizer, Precision precision, const Updated& updated,
                                      Bytes gradient, bool clip);

}  // namespace fabricast
