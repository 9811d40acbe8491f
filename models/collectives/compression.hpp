// Compressed communication: bytes on the wire and memory traffic of encoding, by method and tensor class.
//
// Uncompressed is `width` bytes an element, 4 for FP32 gradients. Matrices: FP16 and BF16 take 2; FP8 1 (and a scale of 4
// bytes each 1024 elements); INT8 1 and INT4 1/2 (a scale each 4096); 1-bit Adam a sign (and a scale each 4096), but only
// after its warm-up, until then nothing is compressed. PowerSGD sends factors of matrices, whose shapes this does not know
// (models/parallel/stage_compress.cpp); here it changes nothing.
// Embedding, output head and vectors (norms, biases) stay wide under every method: their gradients are sparse or few,
// and lose accuracy first.
// Sums of FP8, INT8, INT4 and signs do not fit their format, so these run as all-to-all of compressed shards, a local sum,
// and an all-gather of the compressed result, not as an all-reduce; bytes are those of the buffer in either case.
// Encoding reads the gradient (1-bit: gradient and error, writes the error back) and writes the code; decoding the
// reverse. Time = memory bytes / achieved HBM rate.
// Source: 1-bit Adam (Tang et al., ICML 2021; warm-up of 15-25 % of steps), FP8-LM (Peng et al. 2023), ZeRO++ (Wang et al.
// 2023: INT8 weights, INT4 gradients; groups of 4k elements: DeepSpeed CUDAQuantizer), PowerSGD (Vogels et al. 2019).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "topologies/graph/units.hpp"

namespace fabricast {

enum class Compression : std::uint8_t { none, fp16, bf16, fp8, int8, int4, one_bit_adam, powersgd };
enum class TensorClass : std::uint8_t { matrix, embedding, head, vector };

std::string_view compression_name(Compression method);  ///< "1-bit-adam"
/// All, in the order of the enumeration.
std::span<const Compression> compressions();

struct CompressedGradient {
    Bytes wire = 0;          ///< of the whole buffer
    Bytes memory = 0;        ///< read and written by encoding and decoding
    bool all_reduce = true;  ///< false: all-to-all, then all-gather
};

/// elements >= 0. warming_up: 1-bit Adam has not begun to compress yet.
CompressedGradient compress(Compression method, TensorClass tensor, std::int64_t elements, bool warming_up = false,
                            Bytes width = 4);

double encode_s(const CompressedGradient& gradient, double hbm_bytes_per_s);

}  // namespace fabricast
