// The clock at which a GPU's dense peak holds: peak / (FLOP of a streaming multiprocessor and clock x multiprocessors).
//
// Dense bf16 FLOP of a streaming multiprocessor and clock: white papers of the generations; the clock that matches the dense
// peak is then 1410 MHz on A100 and 1830 MHz on H100.
#pragma once

#include "models/hardware/catalogue.hpp"

namespace fabricast {

/// MHz; 0: not known. Chips of a generation that are built or held otherwise (no HBM, H20) give no clock.
inline double nominal_clock_mhz(const GpuSpec& gpu) {
    double each = 0;
    switch (gpu.generation) {
        case GpuGeneration::volta: each = 1024; break;
        case GpuGeneration::ampere: each = 2048; break;
        case GpuGeneration::hopper: each = 4096; break;
        case GpuGeneration::blackwell: each = 8192; break;
    }
    const double mhz = gpu.peak_bf16 / (each * gpu.sms) / 1e6;
    return gpu.hbm_bytes_per_s > 0.9e12 && mhz > 1000 && mhz < 2600 ? mhz : 0;
}

}  // namespace fabricast
