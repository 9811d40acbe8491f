// --series and --replica of `run`: the samples of one life of a campaign as a file.
#pragma once

#include <boost/program_options/variables_map.hpp>
#include <string>
#include <vector>

#include "sim/cli/command_line.hpp"
#include "sim/step/result.hpp"

namespace fabricast::cli {

void add_series_options(Options& options);

/// File of --series, empty without; --replica becomes an override of `run.shown`. Throws ScenarioError for an ending that is no format and a file that cannot be written.
std::string read_series_options(const boost::program_options::variables_map& values,
                                std::vector<std::string>& overrides);

/// Throws ScenarioError where there is no campaign to sample.
void write_series(const std::string& file, const Result& result);

}  // namespace fabricast::cli
