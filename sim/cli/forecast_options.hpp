// What the verbs that forecast scenarios share: options, checks before anything is simulated, exit codes.
#pragma once

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/variables_map.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cli/command_line.hpp"
#include "sim/report/measured.hpp"
#include "sim/step/result.hpp"

namespace fabricast {
struct Calibration;
}

namespace fabricast::cli {

struct ForecastArguments {
    std::vector<std::string> files, overrides, measured, injected;
    bool json = false, fold = true, fold_time = true, memo = true, quiet = false, no_color = false;
    std::string output;
    std::shared_ptr<const Calibration> calibration;  ///< of --calibration
};

/// --set, --inject, --calibration, --seed, --quantum, --json, --output, --measured, --no-fold, --no-time-fold, --no-memo,
/// --quiet, --no-color and FILE...
void add_forecast_options(Options& options);

/// Throws ScenarioError for a seed that is no number and an --output that cannot be written or has another ending than
/// .json and .txt. `verb`: "run".
ForecastArguments read_forecast_options(const std::string& verb, const boost::program_options::variables_map& values);

bool wants_json(const std::string& output);  ///< the ending decides

/// Where stdout holds JSON, the outcome is told on stderr.
void tell_outcome(const Result& result);

int exit_code(const Result& result);

/// Warnings go to stderr at once, before the simulation. Throws ScenarioError for a figure that no GPU can reach.
std::vector<Measurement> checked_measurements(const std::vector<std::string>& texts, const Scenario& scenario);

}  // namespace fabricast::cli
