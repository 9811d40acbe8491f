// Norms, residuals, rotary embedding, activations: memory traffic in bytes per 16-bit element.
//
// One kernel each on a fused or compiled stack (a read or a write of a tensor is 2 bytes an element):
//   norm              4 forward, 8 backward (x, dy, incoming residual gradient or second read, dx)
//   norm weights      fused: 128 partial rows of fp32 written and read again; otherwise x and dy once more (4)
//   residual          6 forward (+1 dropout mask); backward: sum of the two branches 6, dropout 5
//                     a parallel block sums both branches at once, 8 forward, each branch its own sum backward
//   rotary            4 on queries and keys
//   GeLU              4 forward, 6 backward;  SwiGLU 6 forward, 10 backward (per element of the MLP width)
// Eager stacks run every pass by itself, RMSNorm and rotary in fp32:
//   RMSNorm forward   to fp32 6, square 8, mean 4, scale 8, to 16 bit 6, weight 4 = 36, two kernels on one value a row
//           backward  weight 4, to fp32 6, scale 8, product 12 + row sum 4, mean 4, square 8 + 8 + 12, sum 12,
//                     to 16 bit 6 = 84, three kernels on rows; weights: product 6 + column sum 2
//   rotary            to fp32 6, rotate 8, back 6 = 20
//   SwiGLU            SiLU 4, product 6; backward products 12, SiLU 6
//   residual          dropout 5 apart from the sum 6
//   LayerNorm, GeLU   are single kernels in eager mode as well
// fused_norms: RMSNorm and rotary as on a fused stack, the rest eager.
// Sources: PyTorch eager operators of the public Llama code; fused counts are those of Transformer Engine and
// Megatron-LM kernels. Check: the public torchtitan ladder for an 8B (5762 tokens/s/GPU eager, 6667 compiled) leaves
// 24 us a token, about 380 bytes per hidden element and layer at 0.63 of HBM; these counts give 418 with the
// elementwise part recomputed once, as that run does.
#include "models/transformer/kernel_list.hpp"

namespace fabricast::detail {
namespace {
constexpr std::int64_t kPartialRows = 128;  // one per thread block, about one block per SM
}

void KernelList::norm_forward(bool rms, std::int64_t rows, std::int64_t width) {
    const std::int64_t elements = rows * width;
    if (single_kernels() || !rms)
        return pass(4, elements);
    pass(6, elements, 0, 2);
    pass(8, elements, 0, 2);
    pass(4, elements, 0, 2);
    bytes(8 * rows, 2);
}

void KernelList::norm_data(bool rms, std::int64_t rows, std::int64_t width) {
    const std::int64_t elements = rows * width;
    if (single_kernels() || !rms)
        return pass(8, elements);
    pass(4, elements, 0, 3);
    pass(6, elements, 0, 2);
    pass(8, elements, 0, 3);
    pass(12, elements, 0, 3);
    bytes(12 * rows, 3);
}

void KernelList::norm_weight(bool rms, std::int64_t rows, std::int64_t width) {
    const std::int64_t elements = rows * width;
    if (software_.fusion != Fusion::compiled && single_kernels())
        return bytes((rms ? 1 : 2) * 8 * kPartialRows * width);
    if (software_.fusion == Fusion::compiled || !rms)
        return pass(4, elements);
    pass(6, elements);
    pass(2, elements);
}

void KernelList::residual_forward(std::int64_t branches) {
    const std::int64_t elements = sizes_.norm_tokens * sizes_.hidden;
    const bool apart = software_.fusion == Fusion::eager && software_.dropout;
    if (apart)
        pass(4, elements, 1, branches);
    const std::int64_t masks = software_.dropout && !apart ? branches : 0;
    if (software_.fusion == Fusion::eager)
        return pass(6, elements, 0, branches);
    pass(4 + 2 * branches, elements, masks);
}

void KernelList::residual_backward(std::int64_t branches) {
    const std::int64_t elements = sizes_.norm_tokens * sizes_.hidden;
    pass(6, elements, 0, branches);
    if (software_.dropout)
        pass(4, elements, 1, branches);
}

void KernelList::rotary(std::int64_t query, std::int64_t key) {
    if (software_.fusion == Fusion::compiled)
        return pass(4, query + key);
    for (const std::int64_t elements : {query, key}) {
        if (single_kernels()) {
            pass(4, elements);
        } else {
            pass(6, elements, 0, 2);
            pass(8, elements);
        }
    }
}

void KernelList::activation_forward(bool gated, std::int64_t elements) {
    if (!gated)
        return pass(4, elements);
    if (software_.fusion != Fusion::eager)
        return pass(6, elements);
    pass(4, elements);
    pass(6, elements);
}

void KernelList::activation_backward(bool gated, std::int64_t elements) {
    if (!gated)
        return pass(6, elements);
    if (software_.fusion != Fusion::eager)
        return pass(10, elements);
    pass(6, elements, 0, 3);
}

}  // namespace fabricast::detail
