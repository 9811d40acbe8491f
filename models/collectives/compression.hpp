// Gradient compression: bytes on the wire and memory traffic of encoding, by tensor class.
//
// Uncompressed is FP32, 4 bytes an element. Matrices: FP16 halves it; FP8 quarters it (and a scale of 4 bytes each 1024
// elements); 1-bit Adam sends a sign an element (and a scale each 4096), but only after its warm-up, until then FP32.
// Embedding, output head and vectors (norms, biases) stay FP32 under every method: their gradients are sparse or few,
// and lose accuracy first.
// FP8 and 1-bit sums do not fit their format, so these two run as all-to-all of compressed shards, a local sum, and an
// all-gather of the compressed result, not as an all-reduce; bytes are those of the buffer in either case.
// Encoding reads the gradient (1-bit: gradient and error, writes the error back) and writes the code; decoding the
// reverse. Time = memory bytes / achieved HBM rate.
// Source: 1-bit Adam (Tang et al., ICML 2021; warm-up of 15-25 % of steps), FP8-LM (Peng et al. 2023).
#pragma once

#include <cstdint>
#include <string_view>

#include "topologies/graph/units.hpp"

namespace fabricast {

enum class Compression : std::uint8_t { none, fp16, fp8, one_bit_adam };
enum class TensorClass : std::uint8_t { matrix, embedding, head, vector };

std::string_view compression_name(Compression method);  ///< "1-bit-adam"

struct CompressedGradient {
    Bytes wire = 0;          ///< of the whole buffer
    Bytes memory = 0;        ///< read and written by encoding and decoding
    bool all_reduce = true;  ///< false: all-to-all, then all-gather
};

/// elements >= 0. warming_up: 1-bit Adam has not begun to compress yet.
CompressedGradient compress(Compression method, TensorClass tensor, std::int64_t elements, bool warming_up = false);

double encode_s(const CompressedGradient& gradient, double hbm_bytes_per_s);

}  // namespace fabricast
