// The options of `fabricast plan`, and the request they make.
#pragma once

#include <string>
#include <vector>

#include "sim/cli/command_line.hpp"
#include "sim/plan/plan.hpp"

namespace fabricast::cli {

/// Of the scenario, the conditions, the threads; without the file.
plan::PlanRequest plan_request(const boost::program_options::variables_map& values);

/// The same as words of a command line, paths in full: "--where", "tp <= 8". Without file, store and threads.
std::vector<std::string> plan_words(const boost::program_options::variables_map& values);

/// "3/200": shard 3 of 200. Throws ScenarioError.
void read_shard(const std::string& text, plan::SearchOptions& out);

}  // namespace fabricast::cli
