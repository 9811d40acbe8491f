// What is assumed of a job that is well: how much its steps vary, and how its hosts are filled.
//
// Noise of a step, standard deviation as a share: 3079 jobs of 128 and more GPUs (arXiv:2505.05713), the time of a step over
// the job's mean has median 1.00 and P90 1.06; ln 1.06 / 1.2816. A mean over n steps has kStepNoise / sqrt(n). The same is
// taken for the time of one rank and of one collective.
// Host memory: assumed; four fifths free at the start of a job, a fiftieth is what the kernel keeps.
// Cooling that fails: assumed, three times the resistance; what holds the GPU then is its own slowdown.
#pragma once

namespace fabricast::monitors {

inline constexpr double kStepNoise = 0.0455;
inline constexpr double kFreeAtStart = 0.8, kFreeAtLeast = 0.02;
inline constexpr double kFailedCooling = 3;

}  // namespace fabricast::monitors
