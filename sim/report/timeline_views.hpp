// Views of a step's timeline (sim/step/step_timeline.hpp).
//
// Traces, for ui.perfetto.dev or chrome://tracing: a process is a rank, its rows are
//   where the time goes      state of the rank at each instant, as the accounts of the step have it
//   compute, one row a stream   operations; inside one that waited or receives, a slice from when its data moved
//   memory by cause, use of each link   counters
// with arrows from sends to receives. Categories of slices are the accounts of result.json. Times count from the first
// operation shown, in whole nanoseconds (both ends rounded down, so that slices stay nested).
//
// An arrow needs a send that is issued before the receive's data move; batches of which another message moved first have none.
#pragma once

#include <string>
#include <string_view>

#include "sim/step/step_timeline.hpp"

namespace fabricast {

/// Perfetto protobuf: TracePacket records of one sequence, names interned, in order of time.
std::string perfetto_trace(const StepTimeline& timeline);
/// The JSON object format of Chrome's trace events, microseconds with three decimals.
std::string chrome_trace(const StepTimeline& timeline);

/// `result` (the text of result.json) with one more key, `timeline`: lanes, their states and the use of their links.
/// States shorter than a few thousandths of the step are merged so that each kind keeps its total.
std::string with_timeline(const std::string& result, const StepTimeline& timeline);

namespace report {

std::string lane_title(const StepTimeline::Lane& lane);  ///< "rank 12 · node 1 · pp 3 tp 4 · stands for 64 ranks"
std::string stream_title(const StepTimeline::Lane& lane, std::size_t stream);
std::string slice_title(const StepTimeline& timeline, const StepTimeline::Slice& slice);
std::string state_title(const StepTimeline::State& state);  ///< "forward", "gradient reduction", "waiting for members"
std::string_view phase_text(program::Phase phase);
/// Earliest instant anything shown was issued.
Picoseconds timeline_origin(const StepTimeline& timeline);
/// The receive's data move after the send was issued.
bool arrow_runs_forward(const StepTimeline& timeline, const StepTimeline::Flow& flow);

}  // namespace report
}  // namespace fabricast
