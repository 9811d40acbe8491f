// Constants of a GPU from measured kernels: matrix products, attention, memory-bound kernels, copies to the host.
//
//   gemm       ln t of bursts: t0, c_pro, emax, bandwidth, cap of models/compute/gemm.hpp; sustained = median of burst time
//              predicted / sustained time measured, where a file holds sustained loops of training size
//   attention  by implementation: t0, e128, e64, s0; backward_rate where backward kernels are there
//   memory     fused (norms, softmax and the like), copy (copy, axpy), floor; bytes above the L2 cache alone
//   pcie       median rate of the pinned copies of 64 MiB and more
// Robust least squares with priors at the catalogue's constants, 30 % wide: shapes decide once there are a few tens of them.
//
// Cross-check: shapes are dealt to five groups in order; each group is predicted by constants from the other four.
// Refused, with the sentence of the measured figures of training runs: a rate above the dense peak of the type, above nominal
// memory bandwidth for bytes that no cache holds.
#pragma once

#include <string>
#include <vector>

#include "validate/fit/fit_curves.hpp"
#include "validate/measure/measurement.hpp"
#include "validate/score/kernel_score.hpp"

namespace fabricast {

/// Points of a measurement file as kernels of its GPU. Throws IngestError for a GPU that the catalogue does not have and for a
/// rate above its peak.
std::vector<KernelPoint> kernel_points(const MeasurementFile& measurement);

/// Seconds with the constants of `gpu`; memory-bound ones as a loop of them shows, without the gap between kernels.
double kernel_s(const KernelPoint& point, const GpuSpec& gpu);

/// A sentence for a time below what the GPU's peaks allow; empty when possible.
std::string above_peak(const GpuSpec& gpu, const KernelPoint& point);

struct KernelFit {
    Calibration::Owned gpus;
    std::vector<PartFit> parts;
};

/// points: any GPUs; each is fitted alone. Throws IngestError for a point above the peak.
KernelFit fit_kernels(const std::vector<KernelPoint>& points, const std::string& file);

/// Rate of pinned copies between host and device, bytes/s: the median over sizes of 64 MiB and more; 0 where there are none.
double pinned_rate(const MeasurementFile& measurement);

/// Catalogue entry of a device as its driver names it ("NVIDIA H100 80GB HBM3"); nullptr for one it does not have.
const GpuSpec* gpu_of_device(const std::string& device);

}  // namespace fabricast
