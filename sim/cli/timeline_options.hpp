// --trace, --trace-ranks and --with-timeline of `fabricast run`: a timeline of the step for a trace viewer.
#pragma once

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/variables_map.hpp>
#include <string>

#include "sim/cli/command_line.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/step_timeline.hpp"

namespace fabricast::cli {

struct TimelineArguments {
    std::string trace;    ///< file; empty: none
    bool stored = false;  ///< in result.json
    TimelineRequest request;
};

void add_timeline_options(Options& options);

/// Throws ScenarioError for ranks that are no numbers and a file that cannot be written.
TimelineArguments read_timeline_options(const boost::program_options::variables_map& values);

/// Throws ScenarioError for a rank the job does not have.
void check_ranks(const TimelineRequest& request, const Scenario& scenario);

/// Perfetto protobuf, or Chrome JSON where the name ends in .json.
void write_trace(const std::string& file, const StepTimeline& timeline);

}  // namespace fabricast::cli
