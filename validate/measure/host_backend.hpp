// Measures the processor it runs on: no GPU, the same files. Matrix products (Eigen, fp32, one thread), copy and axpy over
// memory, ring all-reduce between threads and between processes over loopback TCP.
//
// Every result is checked: entries of products against sums in double, vectors element by element, and the all-reduce by the
// exact sum of small whole numbers on every rank. A wrong result is an error, never a number.
// Sizes of all-reduce are nccl-tests': the whole buffer of a rank. Times: wall clock of rank 0, between barriers.
#pragma once

#include "validate/measure/session.hpp"

namespace fabricast {

/// Throws MeasureError for a wrong result and where sockets or processes cannot be had.
MeasurementFile measure_host(const MeasureOptions& options);

/// Median us of one all-reduce of `bytes` (a multiple of 4 ranks) by a ring of threads, checked.
Samples ring_of_threads(const MeasureSession& session, int ranks, std::int64_t bytes);
/// Same between processes: one fork for all sizes; nothing is kept of it.
std::vector<Samples> ring_of_processes(const MeasureSession& session, int ranks,
                                       const std::vector<std::int64_t>& sizes);

}  // namespace fabricast
