// Time of kernels on a GPU (FIELD constants in models/hardware; formulas in gemm.hpp, grouped_gemm.hpp, attention.hpp,
// memory_bound.hpp). Uses only + - * / sqrt and models/compute/math.hpp, so results are the same everywhere.
#pragma once

#include <string>
#include <string_view>

#include "models/compute/kernel.hpp"
#include "models/hardware/catalogue.hpp"

namespace fabricast {

struct KernelTime {
    double total_s = 0;  ///< of all `count` kernels
    double ideal_s = 0;  ///< gemm: FLOPs / dense peak; 0 otherwise
    double flops = 0;    ///< executed (causal attention counted half); memory-bound: 0
};

struct ComputeOptions {
    std::string attention = "fa2";  ///< key of GpuSpec::attention
    bool sustained = true;          ///< long run at the power cap rather than a burst
    double power_fraction = 1;      ///< board power limit / nominal; GEMM rate scales with its square root
    bool gemm_at_peak = false;      ///< a ceiling: every matrix product at the dense peak of the SMs it has
};

class ComputeModel {
public:
    /// Throws std::invalid_argument when the GPU has no constants for options.attention (message lists them)
    /// or no peak for a precision that is priced later.
    ComputeModel(const GpuSpec& gpu, ComputeOptions options);

    KernelTime time(const Kernel& kernel, Interference state = Interference::alone) const;
    double peak_flops(Precision precision) const;  ///< dense; throws std::invalid_argument if unsupported
    const GpuSpec& gpu() const { return *gpu_; }
    const ComputeOptions& options() const { return options_; }

private:
    const GpuSpec* gpu_;
    ComputeOptions options_;
    const AttentionConstants* attention_;
};

}  // namespace fabricast
