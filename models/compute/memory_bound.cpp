#include "models/compute/memory_bound.hpp"

#include <algorithm>

namespace fabricast {

namespace {

double fraction(const MemoryConstants& c, Fusion fusion) {
    switch (fusion) {
        case Fusion::fused: return c.fused;
        case Fusion::compiled: return c.compiled;
        case Fusion::eager: return c.eager;
    }
    return c.eager;
}

}  // namespace

double memory_bound_time(const GpuSpec& gpu, const Kernel& kernel, const Available& left) {
    const double rate = left.hbm_bytes_per_s * fraction(gpu.memory, kernel.fusion);
    return std::max(gpu.memory.floor_s, static_cast<double>(kernel.bytes) / rate) + kKernelGapSeconds;
}

}  // namespace fabricast
