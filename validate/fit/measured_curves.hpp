// Measured collectives as cases that can be predicted: from measurement files, or straight from nccl-tests logs.
#pragma once

#include <string>
#include <vector>

#include "validate/measure/measurement.hpp"
#include "validate/score/run_case.hpp"

namespace fabricast {

/// Logs (and an index.csv beside its logs) as a measurement file; runs that cannot be used are told in `notes`. Throws
/// IngestError when nothing is left.
MeasurementFile measurement_of_logs(const std::vector<std::string>& arguments, const PlatformHint& hint);

/// Curves of GPUs with the machine each ran on. Curves of the host backend are left out. Throws IngestError for a curve
/// whose machine is not told, and for one faster than wires allow: refused_above_wires.
std::vector<RunCase> cases_of(const MeasurementFile& measurement, const PlatformHint& hint);

/// A sentence for a time that no link of the machine allows: a rank of n sends or receives (n-1)/n of the buffer at least,
/// over NVLink on one node and over its share of the adapters on several. Empty when possible.
std::string above_wires(const RunCase& run, std::int64_t bytes, double time_us);

}  // namespace fabricast
