// GPUs of one kind are not equally fast: each gets a slowness, drawn once from the scenario's seed.
//
//   slowness = 1 + sigma max(0, z - z8),  z standard normal by GPU, z8 = 1.4236 = mean maximum of 8 draws
//
// The rates of the catalogue come from steps of whole nodes, which wait for their slowest GPU: the slowest of 8 is what they
// call nominal, so a GPU counts only where it is slower than that. The slowest of n GPUs gates a step, so the loss grows
// with the number of GPUs as the distribution of a maximum does, and no formula of n is needed.
//
// Drawn GPU by GPU all ranks differ and each is simulated. A forecast takes the expected draw instead: of n GPUs one is as
// slow as the slowest of n is in the mean, the others are nominal. It differs from the mean over draws where several GPUs
// matter at once, in the fill of a pipeline whose slowest stage is not the only slow one.
// Only compute is slowed. Not modelled: nodes that are warm as a whole.
//
// Kernels do not take the same time twice either. The time of T seconds of kernels on 8 GPUs, which wait for each other,
// has the mean T and the standard deviation
//
//   sigma = kernel_jitter sqrt(T)
//
// as many independent disturbances add up, and what 8 GPUs lose to each other is in the rates of the catalogue already. n such
// eights that meet after T seconds, and only then, go on when the last has come, in the mean
//
//   kernel_jitter sqrt(T) E max(z_1 .. z_n)
//
// later than alone. Over a step it averages out; who meets after every pass of a micro-batch pays it every time.
//
// Source of sigma: GPUs of one node differ by 5 % and more between fastest and slowest (FIELD measurements collected in the
// machine-learning engineering open book, MAMF benchmark); the mean range of 8 normal draws is 2.847 sigma.
// kernel_jitter is fitted: least squares of the growth of the step over 31 weak-scaling ladders, bf16 and fp8, 8 to 2304 GPUs
// (NVIDIA/dgxc-benchmarking, tags 24.11 to 25.05). It rests on the ladders in fp8, whose replicas meet after every pass.
#pragma once

#include <cstdint>

namespace fabricast {

inline constexpr double kGpuSpread = 0.05 / 2.847;  ///< sigma, share of a GPU's speed

inline constexpr double kKernelJitter = 0.0022;  ///< in sqrt(s)
inline constexpr std::uint32_t kJitterGpus = 8;  ///< GPUs whose loss to each other the catalogue holds

/// Mean of the maximum of n standard normal draws, n >= 1.
double mean_maximum(std::int64_t n);

/// Standard normal draw of the `count`-th segment of kernels on a group of 8 GPUs.
double kernel_noise(std::uint64_t seed, std::uint32_t eight, std::uint64_t count);

/// In 1/65536, at least 65536. sigma >= 0.
std::uint32_t gpu_slowness(double sigma, std::uint64_t seed, std::uint32_t gpu);

/// Mean over draws of the slowness of the slowest of `gpus`, in 1/65536: 1 + sigma E max(0, z_max - z8).
std::uint32_t expected_slowest(double sigma, std::int64_t gpus);

/// Quantile of the standard normal distribution, 0 < p < 1; relative error below 2e-9.
double normal_quantile(double p);

}  // namespace fabricast
