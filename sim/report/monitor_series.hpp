// The samples of monitors as a file: CSV, or OpenMetrics text for `promtool tsdb create-blocks-from openmetrics`.
//
// Of a metric of peers there are two columns: the median, and the part at the bad end (lowest or highest, a part under a
// degradation where there is one). A value that is not there is an empty cell, or no line. Time is seconds of the run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/step/result.hpp"

namespace fabricast {

/// Endings of file names: .csv, .prom.
const std::vector<std::string_view>& series_endings();
/// Precondition: result.monitors is there, `path` has one of these endings.
std::string series_for(std::string_view path, const Result& result);

}  // namespace fabricast
