// Time of a kernel that only moves bytes: norms, activations, residuals, loss, casts, optimizer.
//
//   time = max(floor, bytes / (BW f)) + gap
//
// f = share of nominal HBM bandwidth, by how the code is generated (GpuSpec::memory); bytes = read + written,
// every pass of an unfused chain counted. floor = shortest kernel, gap = between two dependent kernels.
//
// Not modelled: tensors that stay in L2 (up to 1.2 times faster than HBM), scatter patterns, host launch cost
// (the engine's host queue). Source: floor and gap from CUDA-graph replays of the smallest kernels; f fitted on
// published training runs.
#pragma once

#include "models/compute/interference.hpp"
#include "models/compute/kernel.hpp"

namespace fabricast {

inline constexpr double kKernelGapSeconds = 1e-6;  ///< without programmatic dependent launch

/// Seconds of one launch.
double memory_bound_time(const GpuSpec& gpu, const Kernel& kernel, const Available& left);

}  // namespace fabricast
