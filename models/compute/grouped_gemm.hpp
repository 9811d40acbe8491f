// Time of a grouped matrix product: one launch of `batch` = B products, one an expert, over unequal numbers of tokens.
//
// The kernel carries the mean T over the experts of one rank (m forward and for data, k for weight gradients). A router
// that favours nobody deals the B T tokens like a multinomial draw:
//
//   var N     = T (1 - 1/B)                       N = tokens of an expert
//   visited   = 1 - (1 - 1/B)^(B T)               experts that get any; only their weights move
//   rows      = B E[ceil(N / tm)]                 tiles, partly filled at the end of every expert (gemm.hpp: mean_steps)
//   chunk     = E[ceil(N / 64 s)] 64              weight gradients: k of a tile, and the longest tile ends the launch:
//   longest   = sqrt(2 var ln B)                  k beyond the mean of the expert with most tokens
//   exposed   = r (B - 1) visited W / (BW bw)     W = bytes of one expert's weights, or of its gradient
//
// and the rest is gemm.hpp: one tile shape for all experts, waves over all experts together, all visited weights through
// memory, the same ceiling, power and L2 terms. Few tokens an expert: bound by weights; some hundreds: last tiles half
// empty, and a share r of the weights of every expert but the first is waited for (its tiles start cold; the first is in
// the dense constants). r falls behind the products as 1/T, so thousands of tokens run at the dense rate.
//
// Invariants: a launch of one expert is gemm_time; never above the dense ceiling; never faster when m, n, k or B grow.
// Not modelled: routers that favour experts within a rank (expert_load of models/transformer is the rank's whole share),
// padding of counts to a capacity, kernels that are slow at any size (PyTorch's grouped product in 16 bit on B200: 0.73
// of this at 16k to 128k tokens an expert), untuned tiles of serving kernels (1.5 to 3 times longer).
//
// Source: r per GPU generation in models/hardware; largest of B normal draws: sqrt(2 ln B) deviations.
#pragma once

#include "models/compute/gemm.hpp"

namespace fabricast {

/// Burst time in seconds. `spread` is the variance of tokens over that of an even-handed router: 0 = equal counts.
double grouped_gemm_time(const GpuSpec& gpu, const Kernel& kernel, double peak, const Available& left,
                         double spread = 1);

}  // namespace fabricast
