// Time of a matrix product C[m,n] (+)= A[m,k] B[k,n], `batch` times in one launch.
//
// The library is taken to choose the best of 18 tile shapes and 7 split-K counts:
//
//   intensity = tm tn / (tm + tn)                      small tiles cannot feed the tensor cores
//   eff       = emax / (1 + (fall / intensity)^2)
//   x         = batch ceil(m/tm) ceil(n/tn) s / S      tile waves on the S SMs that are free
//   w         = x <= 1 ? 1 : (1-q) x + q ceil(x)       q = wave weight: 1 full quantisation, 0 none
//   t         = w (2 tm tn Kc / (P/S0 eff) + c_pro) + (s > 1 ? 8 batch m n s / (BW bw m2) : 0)
//   t_compute = min over tiles and splits
//   t_memory  = bytes / (BW bw (1 + (hot - 1) / (1 + (bytes / (L2/2))^2)))
//   time      = t0 + max((t_compute^p + t_memory^p)^(1/p), flops / (P cap S/S0))
//
// S0 = all SMs; Kc = ceil(k/s) rounded up to 64, at least 256 when s > 1. P = dense peak of the precision,
// for fp8 times 0.90. bytes: A and B at their precision, C in 2 bytes (4 for fp32 and tf32); a
// weight gradient that accumulates in fp32 reads and writes 4 bytes an element. Casts and quantisation are
// kernels of their own. The power ceiling belongs to the SMs that run the product, so `cap` shrinks with S.
//
// Grouped products: grouped_gemm.hpp.
//
// Invariants: never above cap P; never faster when m, n, k or batch grow, or when S or BW shrink.
// Not modelled: operand layout, misaligned shapes (m, n, k not a multiple of 8).
//
// Source: model and constants fitted per GPU on public measured tables (models/hardware); the fp8 fraction on
// published fp8 training runs (0.8 and 1.0 give 10.1 and 8.4 % error there against 6.8 %).
#pragma once

#include "models/compute/interference.hpp"
#include "models/compute/kernel.hpp"

namespace fabricast {

inline constexpr double kFp8Envelope = 0.90;  ///< fp8 reaches this share of bf16's fraction of peak

/// An element of A or B.
double operand_bytes(Precision precision);

/// An element of C, written and, when accumulating, read.
double result_bytes(const Kernel& kernel);

/// 2 m n k batch.
double gemm_flops(const Kernel& kernel);

/// How the products of one launch differ from kernel.m and kernel.k, their means (grouped_gemm.hpp); not at all for equal ones.
struct Uneven {
    double m_variance = 0, k_variance = 0;
    double visited = 1;    ///< share of the products that have any work
    double longest_k = 0;  ///< of the longest product, beyond the mean
    double exposed_s = 0;  ///< beside compute and memory time
};

/// Burst time in seconds of one launch; `peak` is the dense FLOP/s of kernel.precision.
double gemm_time(const GpuSpec& gpu, const Kernel& kernel, double peak, const Available& left,
                 const Uneven& uneven = {});

/// Mean of ceil(x / step) for whole x >= 0, normal with this mean and variance; `visited` = P(x > 0). Exact for variance 0.
/// Grows with the mean.
double mean_steps(std::int64_t mean, double variance, double visited, std::int64_t step);

}  // namespace fabricast
