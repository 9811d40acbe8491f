// Software stacks of training runs: find_software and software_stacks are declared with SoftwareFeatures in layer.hpp.
#pragma once

#include <string>

#include "models/transformer/layer.hpp"

namespace fabricast {

struct GpuSpec;

/// The attention implementation to price: f.attention as it stands. "auto" is what Transformer Engine does, the
/// faster of "cudnn" and "fa2" on this GPU (in practice cuDNN on Hopper and Blackwell, FlashAttention-2 on Ampere):
/// the shorter forward + backward at head dimension 128, i.e. the lesser (1 + 2.5 / backward_rate) / e128; the one
/// the GPU has when it has one, "unfused" when it has neither. Other kernels (fa1, fa3, fa4) run only where named.
std::string resolve_attention(const SoftwareFeatures& f, const GpuSpec& gpu);

}  // namespace fabricast
