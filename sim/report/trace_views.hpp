// Views of a job given as traces: JSON (schema_version 1 of its own kind) and text.
#pragma once

#include <string>

#include "sim/traces/run_trace.hpp"

namespace fabricast {

/// Keys in fixed order, trailing newline.
std::string trace_json(const traces::TraceResult& result);

/// At most 100 columns. `full`: all rows, else the first screen's.
std::string trace_text(const traces::TraceResult& result, bool full, bool color, bool unicode = true);

}  // namespace fabricast
