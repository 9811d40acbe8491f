// Items made ahead of who takes them (program::Source).
//
//   begun(j) = max(free of maker j mod makers, taken(j - makers x ahead))     ready(j) = begun(j) + times[j]
//
// Everything this needs has happened when item j is asked for, so nothing is simulated between: a maker costs no event.
#include <algorithm>

#include "sim/engine/engine.hpp"

namespace fabricast::engine {

void Engine::bind_sources() {
    for (const program::Rank& rank : program_.ranks) {
        first_source_.push_back(static_cast<std::uint32_t>(sources_.size()));
        for (const std::uint32_t index : rank.sources) {
            const program::Source& source = program_.sources[index];
            SourceState& state = sources_.emplace_back();
            state.free.assign(source.makers, source.start);
            state.taken.assign(std::size_t{source.makers} * source.ahead, 0);
        }
    }
}

void Engine::fetch(std::uint32_t rank, std::uint8_t stream, const Instruction& in) {
    const program::Fetch& fetch = program_.fetches[in.payload];
    const program::Source& source = program_.sources[program_.ranks[rank].sources[fetch.slot]];
    SourceState& state = sources_[first_source_[rank] + fetch.slot];
    Picoseconds ready = now_;
    if (fetch.restart) {
        std::fill(state.free.begin(), state.free.end(), now_ + source.start);
        std::fill(state.taken.begin(), state.taken.end(), now_);
    } else {
        const Picoseconds time = source.times[std::min<std::size_t>(state.next, source.times.size() - 1)];
        if (source.makers == 0) {
            ready = now_ + time;
        } else {
            Picoseconds& free = state.free[state.next % source.makers];
            free = std::max(free, state.taken[state.next % state.taken.size()]) + time;
            ready = std::max(now_, free);
        }
    }
    ledger_.moving(rank, account_of(in.label), +1, now_);
    queue_.push({ready, EventClass::delay_end, delay_id(rank, stream)});
}

void Engine::note_taken(std::uint32_t rank, const Instruction& in) {
    const program::Fetch& fetch = program_.fetches[in.payload];
    if (fetch.restart)
        return;
    SourceState& state = sources_[first_source_[rank] + fetch.slot];
    if (!state.taken.empty())
        state.taken[state.next % state.taken.size()] = now_;
    ++state.next;
}

}  // namespace fabricast::engine
