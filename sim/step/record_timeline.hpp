// Runs a step once more and keeps what its ranks did: engine records -> StepTimeline.
#pragma once

#include "sim/step/forecast.hpp"
#include "sim/step/step_timeline.hpp"

namespace fabricast {

/// Lanes of a request: ranks in ascending order. class_of: rank -> class; stage_of: rank -> stage.
std::vector<std::uint32_t> timeline_lanes(const TimelineRequest& request, const std::vector<std::uint32_t>& class_of,
                                          const std::vector<int>& stage_of);

/// Builds and runs the step anew; the forecast of the scenario is not touched. `fold` as in ForecastOptions. The forecast
/// must have ended well: throws std::logic_error when the run does not (our bug).
StepTimeline record_timeline(const Scenario& scenario, bool fold, const TimelineRequest& request);

/// Internal, between the files record_timeline.cpp and timeline_*.cpp.
struct TimelineSource {
    const program::Program* program = nullptr;  ///< whole: every rank with its peers, groups and links
    const Cluster* cluster = nullptr;
    std::vector<std::uint32_t> class_of;                   ///< rank -> row of the records
    std::vector<engine::Record> records;                   ///< of the rows
    std::vector<std::vector<std::uint32_t>> of_row;        ///< row -> its records, in order
    std::vector<std::vector<std::uint32_t>> of_operation;  ///< first_operation[row] + operation -> records, in order
    std::vector<std::size_t> first_operation;

    const program::Operation& operation(std::uint32_t rank, const engine::Record& record) const {
        return program->templates[program->ranks[rank].tmpl].operations[record.operation];
    }
    const std::vector<std::uint32_t>& runs_of(std::uint32_t rank, std::size_t operation) const {
        return of_operation[first_operation[class_of[rank]] + operation];
    }
};
void add_states(StepTimeline& timeline, const TimelineSource& source);
void add_memory(StepTimeline& timeline, const TimelineSource& source);
/// slice_of: lane and record -> slice or program::kNone, [lane][position in of_row].
void add_flows(StepTimeline& timeline, const TimelineSource& source,
               const std::vector<std::vector<std::uint32_t>>& slice_of);
void add_links(StepTimeline& timeline, const TimelineSource& source);

}  // namespace fabricast
