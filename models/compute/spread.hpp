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
// Only compute is slowed. Not modelled: slowness that changes with time, nodes that are warm as a whole.
//
// Source of sigma: GPUs of one node differ by 5 % and more between fastest and slowest (FIELD measurements collected in the
// machine-learning engineering open book, MAMF benchmark); the mean range of 8 normal draws is 2.847 sigma.
#pragma once

#include <cstdint>

namespace fabricast {

inline constexpr double kGpuSpread = 0.05 / 2.847;  ///< sigma, share of a GPU's speed

/// In 1/65536, at least 65536. sigma >= 0.
std::uint32_t gpu_slowness(double sigma, std::uint64_t seed, std::uint32_t gpu);

/// Mean over draws of the slowness of the slowest of `gpus`, in 1/65536: 1 + sigma E max(0, z_max - z8).
std::uint32_t expected_slowest(double sigma, std::int64_t gpus);

/// Quantile of the standard normal distribution, 0 < p < 1; relative error below 2e-9.
double normal_quantile(double p);

}  // namespace fabricast
