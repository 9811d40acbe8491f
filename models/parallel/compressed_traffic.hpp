// Compressed communication of a training step: which traffic is sent in fewer bytes, and as what.
//
//   gradients        matrices of layers alone (models/collectives/compression.hpp has the table by tensor class); what of a
//                    bucket is something else goes as before. fp16, bf16: the same collective on half the bytes. fp8, int8,
//                    int4, 1-bit: all-to-all of codes, a sum on the rank that owns the part, and with ZeRO-0 an all-gather of
//                    its codes. int8 and int4 over several servers: all-to-all inside the server, sum, all-to-all across of
//                    what is left (ZeRO++ qgZ), where the group lies so. powersgd: two all-reduces of factors of rank r,
//                    4 r (rows + columns) bytes a matrix, and 32 bytes of memory traffic an element (gradient and error
//                    added, two products, the difference kept); ZeRO-0
//   parameters       gathers of matrices of layers in one byte and a scale a block (ZeRO++ qwZ)
//   tensor_parallel  hidden states between tensor-parallel ranks: gathers of codes; reductions as all-to-all of codes and a
//                    sum (all-reduce: an all-gather of codes behind); the loss stays wide
// Encoding and decoding run on the compute stream: the gradient's before its reduction, the others' behind the gather, both
// halves priced together. 1-bit Adam and PowerSGD keep the error: 4 bytes a parameter, and 1-bit 4 / ranks for the sums.
// Not modelled: what it does to convergence; compressed sums across sharding groups (HSDP stays wide there).
// Sources: ZeRO++ (arXiv:2306.10209), PowerSGD (arXiv:1905.13727; torch.distributed powerSGD_hook), 1-bit Adam
// (arXiv:2102.02888; DeepSpeed: not with ZeRO), two-step all-reduce of codes: arXiv:2412.04964.
#pragma once

#include <cstdint>

#include "models/collectives/compression.hpp"

namespace fabricast {

struct CompressedTraffic {
    Compression gradients = Compression::none, parameters = Compression::none, tensor_parallel = Compression::none;
    std::int64_t rank = 1;    ///< PowerSGD's
    std::int64_t inside = 1;  ///< ranks of a gradient group on one server; 1: one exchange among all
    bool warming_up = false;  ///< 1-bit Adam and PowerSGD have not begun
    bool narrow_gradients() const {
        const bool late = gradients == Compression::one_bit_adam || gradients == Compression::powersgd;
        return gradients != Compression::none && !(late && warming_up);
    }
};

}  // namespace fabricast
