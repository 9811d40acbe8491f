#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/report/text.hpp"
#include "sim/report/timeline_views.hpp"

namespace fabricast::report {

std::string lane_title(const StepTimeline::Lane& lane) {
    std::string text = fmt::format("rank {} · node {}", lane.rank, lane.node);
    if (!lane.place.empty())
        text += " · " + lane.place;
    if (lane.copies > 1)
        text += fmt::format(" · stands for {} ranks", lane.copies);
    return text;
}

std::string stream_title(const StepTimeline::Lane& lane, std::size_t stream) {
    if (stream == 0)
        return "compute";
    std::string text;
    for (const Account account : lane.streams[stream])
        text += (text.empty() ? "" : ", ") + std::string(account_text(account));
    // Siblings of equal name would be merged by viewers.
    return fmt::format("stream {}: {}", stream, text.empty() ? "empty" : text);
}

std::string_view phase_text(program::Phase phase) {
    static constexpr std::array<std::string_view, 9> kTexts = {
        "other compute", "forward", "backward", "recomputation", "reduction", "optimizer", "gather", "load", "save"};
    return kTexts[static_cast<std::size_t>(phase)];
}

std::string slice_title(const StepTimeline& timeline, const StepTimeline::Slice& slice) {
    const std::string& name = timeline.names[slice.name];
    return slice.micro_batch < 0 ? name : fmt::format("{} mb {}", name, slice.micro_batch);
}

std::string state_title(const StepTimeline::State& state) {
    switch (state.state) {
        case LaneState::computing: return std::string(phase_text(state.phase));
        case LaneState::moving: return std::string(account_text(state.account));
        case LaneState::waiting_members: return "waiting for members of a collective";
        case LaneState::waiting_message: return "waiting for a message";
        case LaneState::idle: break;
    }
    return "idle";
}

Picoseconds timeline_origin(const StepTimeline& timeline) {
    Picoseconds origin = timeline.begin;
    for (const StepTimeline::Slice& slice : timeline.slices)
        origin = std::min(origin, slice.issued);
    return origin;
}

bool arrow_runs_forward(const StepTimeline& timeline, const StepTimeline::Flow& flow) {
    return timeline.slices[flow.from].issued <= timeline.slices[flow.to].started;
}

}  // namespace fabricast::report
