// Folding in time: an island runs ahead of the others, to see what it goes through (passage.hpp). What it replays then is
// engine_replay.cpp.
#include <algorithm>

#include "sim/engine/engine.hpp"
#include "sim/engine/mixing.hpp"

namespace fabricast::engine {

// Runs the island of g alone from here until its course is cut, and puts everything back. False when there was no other
// quiet moment.
bool Engine::rehearse(std::uint32_t g, Passage& out) {
    const std::uint32_t i = islands_.of_group[g];
    const Island& island = islands_.list[i];
    const Arrival any = groups_[g].arrivals.front();
    const std::uint32_t step = ranks_[any.rank].step;
    const Picoseconds begin = now_;
    Kept kept = keep(island);
    if (step_fingerprint_.size() <= step)
        step_fingerprint_.resize(step + 1, 0);
    const std::uint64_t fingerprint = step_fingerprint_[step];
    EventQueue queue;
    std::swap(queue, queue_);
    std::vector<std::uint32_t> dirty_ranks;
    dirty_ranks.swap(dirty_ranks_);
    Network::Pending pending = network_.take_pending();

    rehearsal_ = std::make_unique<Recording>();
    rehearsal_->island = i;
    rehearsal_->seen.host.resize(island.ranks.size());
    rehearsal_->seen.touched = bit(any.stream);
    rehearsal_->record = stream_of(any.rank, any.stream).record;
    keep_moment(island, g, rehearsal_->first);
    start_activities(g);
    solve_network();
    update_speeds();
    while (!rehearsal_->over && outcome_ == Outcome::done && next_instant())
        run_instant();
    const bool made = rehearsal_->quiet_moments > 0 && make_passage(*rehearsal_, *ranks_[any.rank].code, out);

    for (const Network::Id id : rehearsal_->activities) {
        if (network_.alive(id))
            network_.remove(id);
    }
    rehearsal_.reset();
    network_.put_back(std::move(pending));
    dirty_ranks_.swap(dirty_ranks);
    std::swap(queue, queue_);
    step_fingerprint_[step] = fingerprint;
    outcome_ = Outcome::done;  // what failed ahead of its time will fail in its time
    message_.clear();
    now_ = begin;
    put_back(island, std::move(kept));
    return made;
}

Engine::Kept Engine::keep(const Island& island) {
    Kept kept;
    for (const std::uint32_t rank : island.ranks) {
        const RankState& r = ranks_[rank];
        kept.ranks.push_back(r);
        kept.accounts.push_back(ledger_.rank(rank));
        for (std::uint8_t s = 0; s < r.streams; ++s) {
            kept.streams.push_back(stream_of(rank, s));
            if (recording_)
                hold_record(kept.streams.back().record);
        }
        const std::size_t slots = program_.ranks[rank].groups.size();
        const auto first = bubble_before_.begin() + first_group_[rank];
        kept.bubbles.insert(kept.bubbles.end(), first, first + static_cast<std::ptrdiff_t>(slots));
    }
    for (const std::uint32_t inner : island.groups)
        kept.groups.push_back(groups_[inner]);
    return kept;
}

void Engine::put_back(const Island& island, Kept kept) {
    set_trigger(program::kNone);
    auto stream = kept.streams.cbegin();
    auto bubble = kept.bubbles.cbegin();
    for (std::size_t place = 0; place < island.ranks.size(); ++place) {
        const std::uint32_t rank = island.ranks[place];
        ranks_[rank] = kept.ranks[place];
        ledger_.set_rank(rank, kept.accounts[place]);
        for (std::uint8_t s = 0; s < ranks_[rank].streams; ++s, ++stream) {
            if (recording_)
                drop_record(stream_of(rank, s).record);
            stream_of(rank, s) = *stream;
        }
        const auto slots = static_cast<std::ptrdiff_t>(program_.ranks[rank].groups.size());
        std::copy_n(bubble, slots, bubble_before_.begin() + first_group_[rank]);
        bubble += slots;
    }
    for (std::size_t inner = 0; inner < island.groups.size(); ++inner) {
        if (recording_)
            drop_record(groups_[island.groups[inner]].cause);
        groups_[island.groups[inner]] = std::move(kept.groups[inner]);
    }
}

void Engine::note_quiet_moment(std::uint32_t g) {
    Recording& recording = *rehearsal_;
    if (recording_ && !extend_path(g)) {
        recording.over = true;
        return;
    }
    ++recording.quiet_moments;
    keep_moment(islands_.list[recording.island], g, recording.latest);
    recording.seen.finished = recording.finished.size();
    recording.seen.waits = recording.waits.size();
    recording.kept = recording.seen;
}

// The causes of the call at hand back to the call at the quiet moment before; false when they do not lead there.
bool Engine::extend_path(std::uint32_t g) {
    Recording& recording = *rehearsal_;
    const Arrival& any = groups_[g].arrivals.front();
    const std::uint32_t record = stream_of(any.rank, any.stream).record;
    const auto step_of = [&](std::uint32_t at) {
        const Trace& t = records_[at];
        return Recording::PathStep{islands_.place[t.rank], t.operation, t.started, t.finished};
    };
    const std::size_t before = recording.path.size();
    std::uint32_t at = records_[record].cause;
    for (; at != program::kNone && at != recording.record; at = records_[at].cause) {
        if (islands_.of_rank[records_[at].rank] != recording.island)
            return false;
        recording.path.push_back(step_of(at));
    }
    if (at == program::kNone)
        return false;
    if (recording.quiet_moments > 0)
        recording.path.push_back(step_of(at));
    std::reverse(recording.path.begin() + static_cast<std::ptrdiff_t>(before), recording.path.end());
    recording.record = record;
    return true;
}

// Inside a passage is what concerns the island alone and does not depend on the time of day.
void Engine::follow_start(std::uint32_t rank, std::uint8_t stream, const Instruction& in) {
    Recording& recording = *rehearsal_;
    const Island& island = islands_.list[recording.island];
    bool inside = in.kind == Instruction::Kind::compute || in.kind == Instruction::Kind::host;
    if (in.kind == Instruction::Kind::collective) {
        const std::uint32_t g = groups_of_[first_group_[rank] + program_.calls[in.payload].slot];
        for (std::uint32_t inner = 0; inner < island.groups.size(); ++inner) {
            if (island.groups[inner] != g)
                continue;
            inside = true;
            recording.seen.met |= 1u << inner;
        }
    }
    recording.over = recording.over || !inside;
    if (rank != island.ranks.front())
        return;  // its waits are those of all
    for (std::uint32_t wait = in.waits; wait < in.waits + in.wait_count; ++wait)
        recording.waits.emplace_back(stream, wait);
}

void Engine::follow_finish(std::uint32_t rank, const Stream& s, const Instruction& in) {
    rehearsal_->finished.push_back({islands_.place[rank], in.operation, s.started, now_});
    if (in.host_sync) {
        HostWatch& host = host_watch(rank);
        note_host(host, ranks_[rank].host_clock);
        host.synced = true;
    }
}

// The course needs the CPU at `needed`.
void Engine::note_host(HostWatch& host, Picoseconds needed) const {
    if (host.synced)
        return;
    host.exact = host.exact || needed > now_;
    host.slack = std::min(host.slack, now_ - needed);
}

void Engine::follow_compute_start(std::uint32_t rank, const program::CostClass& cost) {
    HostWatch& host = host_watch(rank);
    note_host(host, ranks_[rank].host_clock + cost.host_first);
    host.floor_given = host.synced;
}

void Engine::follow_compute_end(std::uint32_t rank) {
    const RankState& r = ranks_[rank];
    HostWatch& host = host_watch(rank);
    if (host.floor_given)
        return;
    host.exact = host.exact || now_ > r.unfloored;
    host.slack = std::min(host.slack, now_ - r.host_floor);
}

}  // namespace fabricast::engine
