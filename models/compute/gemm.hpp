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
// Grouped products: as `batch` equal ones, and slower by a share that fades with the tokens an expert receives:
//   efficiency = 1 - (1 - e) clamp(log2(4096 / tokens) / 3, 0, 1)        full at <= 512 tokens, none from 4096 on
// e = 0.86 before Blackwell, 0.70 on it, means of forward, data and weight products: measured 0.87-0.95 of dense with 4096
// and 8192 tokens, 0.75 for weight gradients (DeepGEMM on H800), half on B200 at 150-300 tokens (SimuMax); fitted weakly.
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

/// Of the dense rate that a grouped product of `tokens` tokens an expert reaches, beyond what tiles and weights cost.
double grouped_efficiency(const GpuSpec& gpu, std::int64_t tokens);

/// 2 m n k batch.
double gemm_flops(const Kernel& kernel);

/// Burst time in seconds of one launch; `peak` is the dense FLOP/s of kernel.precision.
double gemm_time(const GpuSpec& gpu, const Kernel& kernel, double peak, const Available& left);

}  // namespace fabricast
