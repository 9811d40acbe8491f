// A processor without a GPU by a few constants: what the host backend of `measure` is for, the whole road without hardware.
//
//   gemm     t = t0 + 2 m n k / rate x (1 + small (1/m + 1/n + 1/k)) + 4 (m k + k n + m n) / bandwidth      fp32, one thread
//   memory   t = t0 + bytes / r,  1/r = f / cache + (1 - f) / memory,  f = min(1, cache_size / working set)
//   ring     t = 2 (n - 1) (hop + S / (n bandwidth))      all-reduce of n threads, or n processes over loopback
//
// bytes = read + written; copy and axpy move 2 and 3 bytes a byte of the vector. Bandwidth of a ring falls as its ranks share
// processors: it is a constant of the machine and its load, not of a wire. Robust least squares, free but for their signs.
// Cross-check: as fit_kernels.hpp. Source of the forms: roofline and Hockney's alpha-beta.
#pragma once

#include <string>
#include <vector>

#include "validate/fit/fit_curves.hpp"
#include "validate/measure/measurement.hpp"

namespace fabricast {

/// One measured thing of a host with its prediction.
struct HostPoint {
    std::string test, where;     ///< "gemm", "memory", "threads", "loopback"
    double a = 0, b = 0, c = 0;  ///< m n k | bytes moved, working set | ranks, bytes
    double measured_s = 0;
};
std::vector<HostPoint> host_points(const MeasurementFile& measurement);

/// Seconds by the constants of a calibration's host; 0 where it has none for this test.
double predicted_host_s(const HostPoint& point, const Calibration::Values& constants);

struct HostFit {
    Calibration::Values constants;
    std::vector<PartFit> parts;
};

HostFit fit_host(const MeasurementFile& measurement);

}  // namespace fabricast
