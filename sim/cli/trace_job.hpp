// fabricast run --chakra, --simai: a job given as traces instead of a scenario.
#pragma once

#include <boost/program_options/variables_map.hpp>
#include <optional>
#include <string>

#include "sim/cli/command_line.hpp"
#include "sim/traces/run_trace.hpp"

namespace fabricast::cli {

/// --chakra, --simai, --network, --system, --groups, --remote-memory, --serial-communication.
void add_trace_options(Options& options);

/// What they say; nothing when neither --chakra nor --simai is given. Throws ScenarioError for options that do not go
/// together.
std::optional<traces::TraceArguments> read_trace_options(const boost::program_options::variables_map& values);

struct TraceOutput {
    bool json = false, full = false, quiet = false, no_color = false;
    std::string output, stats;
};
/// Returns an ExitCode. Throws ScenarioError for files that cannot be used.
int run_trace_job(const traces::TraceArguments& arguments, const TraceOutput& output);

}  // namespace fabricast::cli
