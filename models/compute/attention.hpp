// Time of a fused attention kernel (forward or backward).
//
//   scores = sq sk, causal: sq (sk - sq/2) for sq <= sk (rows aligned at the end, so s^2/2 when square)
//            packed, D tokens a document: sq D / 2, with a window w < D sq (w - w^2 / 2 D)
//            balanced (a context-parallel rank's rows): sq sk / 2; a window of w keys: at most sq w - w^2/2 sq/sk
//   flops  = 4 batch heads scores d                      backward 2.5 times (five products for two); d is the mean of
//                                                        query and value head where they differ
//   keys   = scores / sq                                 mean length of a row
//   rate   = P e(d) min(1, blocks/S) S/S0 keys / (keys + s0/2)
//   t_c    = max(flops / rate, one block of 128 rows with all its keys on one SM)
//   t_m    = 2 (2 heads sq + 2 kv_heads sk) batch d / (BW bw)         backward twice
//   time   = t0 + max(t_c, t_m) + 0.3 min(t_c, t_m)
//
// e(d) = e128 from d = 128 on, e64 up to 64, linear between; blocks = batch heads ceil(sq/128); S free SMs of
// S0. For a causal square the length term is s/(s+s0), as the constants are stated; an unmasked row is twice
// as long on average, which explains the smaller s0 found there. Backward multiplies e by backward_rate and
// doubles s0. P is the 16-bit peak: attention cores stay in 16 bits in fp8 training.
//
// Not modelled: deterministic backward (6-14 % more), power.
//
// Source: form and constants fitted on public kernel tables, see models/hardware; start time and bandwidth for
// training kernels, which write no cache.
#pragma once

#include "models/compute/interference.hpp"
#include "models/compute/kernel.hpp"

namespace fabricast {

/// FLOP of one launch as executed: causal halves, backward 2.5 times.
double attention_flops(const Kernel& kernel);

/// Seconds of one launch; `peak` is the dense FLOP/s the efficiencies refer to.
double attention_time(const GpuSpec& gpu, const AttentionConstants& c, const Kernel& kernel, double peak,
                      const Available& left);

}  // namespace fabricast
