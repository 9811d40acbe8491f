// How much of a GPU a kernel finds while communication runs beside it.
//
//   SMs left       S - n          n = SMs held by the communication kernel
//   bandwidth left BW - k r       r = wire rate of the traffic, k = HBM bytes moved per wire byte
//
// The kernel models are evaluated again with what is left; the result is kept between 1 and kMaxSlowdown
// times the undisturbed time.
//
// n and k come from public reports, not from a fit: NCCL runs 16 to 32 channels of one block each on NVLink
// and 2 to 8 on network-only paths; maintainers state that 300 GB/s of link traffic cost two to three times
// that in HBM traffic (NCCL issue 1428). Within those ranges the values below reproduce the surveyed mean of
// 19 % (A100, H100, MI200; GPT and LLaMA; arXiv 2507.03114) over the kernels of a transformer layer under
// NVLink collectives and about 5 % under network-only ones. A GEMM of exactly one wave can double (NVIDIA
// developer forum, thread 337991), which is where the bound comes from.
//
// A kernel that waits for its peers spins on its SMs and moves nothing. Which traffic it waits for is not
// known when the compute kernel is priced; the smaller (network) footprint is taken, so that
// alone <= kernel_waiting <= network <= nvlink <= both holds for every kernel.
//
// Not modelled: communication slowed by compute, clocks lowered by the power that communication draws.
#pragma once

#include "models/compute/kernel.hpp"
#include "models/hardware/catalogue.hpp"

namespace fabricast {

inline constexpr double kNvlinkSms = 18;                ///< within NCCL's 16-32 channels
inline constexpr double kNetworkSms = 6;                ///< of 2-8
inline constexpr double kHbmBytesPerWireByte = 2.5;     ///< all-reduce 3, all-gather and p2p 2
inline constexpr double kNetworkBytesPerSecond = 46e9;  ///< one 400 Gb/s adapter per GPU at 0.92 of line rate
inline constexpr double kMaxSlowdown = 2;

/// What a kernel can use.
struct Available {
    double sms;
    double hbm_bytes_per_s;
};

Available available(const GpuSpec& gpu, Interference state);

}  // namespace fabricast
