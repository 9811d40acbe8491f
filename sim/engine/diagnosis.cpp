// Why a run cannot go on: who waits for whom, in the words of the program's labels.
#include <algorithm>
#include <string>

#include "sim/engine/engine.hpp"

namespace fabricast::engine {

void Engine::fail(Outcome outcome, std::string message) {
    if (outcome_ != Outcome::done)
        return;
    outcome_ = outcome;
    message_ = std::move(message);
}

std::string Engine::describe(std::uint32_t rank, std::uint8_t stream) const {
    const Stream& s = stream_of(rank, stream);
    const Instruction& in = ranks_[rank].code->instructions[s.counter];
    const program::Label& label = program_.labels[in.label];
    std::string text = "rank " + std::to_string(rank) + " in " + program_.names[label.name];
    if (label.stage >= 0)
        text += ", stage " + std::to_string(label.stage);
    if (label.layer >= 0)
        text += ", layer " + std::to_string(label.layer);
    if (label.micro_batch >= 0)
        text += ", micro-batch " + std::to_string(label.micro_batch);
    if (ranks_[rank].step > 0)
        text += ", step " + std::to_string(ranks_[rank].step);
    return text;
}

std::string Engine::deadlock_report() const {
    constexpr std::size_t kShown = 5;
    std::string text = "deadlock at " + std::to_string(static_cast<double>(now_) * 1e-12) + " s: ";
    std::size_t shown = 0, waiting = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        const GroupState& state = groups_[g];
        const program::Group& group = program_.groups[g];
        if (state.arrivals.empty() || state.arrivals.size() == group.members.size())
            continue;
        ++waiting;
        if (shown == kShown)
            continue;
        if (shown++ != 0)
            text += "; ";
        text += describe(state.arrivals.front().rank, state.arrivals.front().stream) + " waits in group " + group.name +
                " (" + std::to_string(state.arrivals.size()) + " of " + std::to_string(group.members.size()) +
                " members arrived; missing rank";
        std::size_t listed = 0;
        for (const std::uint32_t member : group.members) {
            const bool here = std::any_of(state.arrivals.begin(), state.arrivals.end(),
                                          [&](const Arrival& a) { return a.rank == member; });
            if (here)
                continue;
            if (listed++ < 4)
                text += " " + std::to_string(member);
        }
        if (listed > 4)
            text += " and " + std::to_string(listed - 4) + " more";
        text += ")";
    }
    for (const Channel& channel : channels_) {
        const bool sends = channel.send.rank != program::kNone, receives = channel.receive.rank != program::kNone;
        if (sends == receives)
            continue;
        ++waiting;
        if (shown == kShown)
            continue;
        if (shown++ != 0)
            text += "; ";
        const Half& half = sends ? channel.send : channel.receive;
        text += describe(half.rank, half.stream) +
                (sends ? " waits for rank " + std::to_string(channel.target) + " to receive"
                       : " waits for rank " + std::to_string(channel.source) + " to send");
    }
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
        for (std::uint8_t stream = 0; stream < ranks_[rank].streams; ++stream) {
            const Stream& s = stream_of(rank, stream);
            // The end of a step waits for everything before it: what holds that up is told already.
            if (s.state != StreamState::blocked ||
                ranks_[rank].code->instructions[s.counter].kind == Instruction::Kind::step_end)
                continue;
            ++waiting;
            if (shown == kShown)
                continue;
            if (shown++ != 0)
                text += "; ";
            text += describe(rank, stream) + " waits for another stream of its rank";
        }
    }
    if (waiting > shown)
        text += "; and " + std::to_string(waiting - shown) + " more";
    return text;
}

}  // namespace fabricast::engine
