// Step boundaries: when the step repeats, and what a run amounts to.
#include <algorithm>

#include "sim/engine/engine.hpp"
#include "sim/engine/mixing.hpp"

namespace fabricast::engine {

void Engine::end_step(std::uint32_t rank) {
    RankState& r = ranks_[rank];
    const std::uint32_t step = r.step++;
    if (options_.keep_step_ends) {
        step_ends_.resize(ranks_.size());
        step_ends_[rank].push_back(now_);
    }
    if (boundaries_.size() <= step) {
        boundaries_.emplace_back();
        boundaries_.back().time.resize(ranks_.size());
        boundaries_.back().host_lead.resize(ranks_.size());
        boundaries_.back().in_flight.resize(ranks_.size());
        boundaries_.back().accounts.resize(ranks_.size());
    }
    StepBoundary& boundary = boundaries_[step];
    ledger_.charge(rank, now_);
    boundary.time[rank] = now_;
    // A side stream's wait across the boundary: the culprit is not yet known, this step keeps what it cost so far.
    ledger_.settle_waiting(rank, Account::straggler, INT64_MAX);
    const Ledger::Buckets& buckets = ledger_.buckets(rank);
    std::copy_n(buckets.begin(), kAccountCount, boundary.accounts[rank].begin());
    boundary.host_lead[rank] = r.host_clock - now_;
    boundary.in_flight[rank] = in_flight(rank);
    if (recording_ && boundary.last_time != now_) {  // of those that pass last the first
        boundary.last_time = now_;
        const std::uint32_t record = stream_of(rank, 0).record;
        hold_record(record);
        drop_record(boundary.last_record);
        boundary.last_record = record;
    }
    if (++boundary.passed == ranks_.size()) {
        steps_done_ = step + 1;
        if (options_.quantum > 0) {
            lost_before_ = std::move(lost_);
            lost_ = network_.lost_times();
        }
        if (step >= 2 && step - 1 != options_.window_from)
            boundaries_[step - 2].accounts = {};
        if (recording_ && step >= 1)
            drop_record(boundaries_[step - 1].last_record);
    }
}

// Hash of the operations in flight and the time each has been; 0 when there are none. A stream that starts one at this
// very instant but has not been looked at yet counts.
std::uint64_t Engine::in_flight(std::uint32_t rank) const {
    const RankState& r = ranks_[rank];
    std::uint64_t hash = 0;
    for (std::uint8_t stream = 0; stream < r.streams; ++stream) {
        const Stream& s = stream_of(rank, stream);
        const Instruction& in = r.code->instructions[s.counter];
        const bool starts =
            (r.wake & bit(stream)) != 0 && s.state == StreamState::blocked && unmet_wait(r, s, in).needed == 0;
        if (s.state != StreamState::active && !starts)
            continue;
        if (options_.brief && s.state == StreamState::active && awaits_first(rank, stream, in)) {
            awaited_first_ = true;
            continue;
        }
        const Picoseconds since = starts ? 0 : now_ - s.started;
        hash += mix(mix((static_cast<std::uint64_t>(stream) << 32 | in.operation) + 0x9e3779b97f4a7c15ull) ^
                    static_cast<std::uint64_t>(since));
    }
    return hash;
}

// A receive with which the stream begins a step, and that nobody has answered.
bool Engine::awaits_first(std::uint32_t rank, std::uint8_t stream, const Instruction& in) const {
    const Code& code = *ranks_[rank].code;
    if (replays_ > 0 || meetings_.size() >= kMostMeetings || in.kind != Instruction::Kind::p2p_batch ||
        in.wait_count != 0 || &in != &code.instructions[code.entry[stream]] ||
        program_.batches[in.payload].halves.empty())
        return false;
    for (const program::MessageHalf& half : program_.batches[in.payload].halves) {
        const std::uint32_t c = receive_channel_[first_peer_[rank] + half.peer_slot];
        if (half.is_send || c == program::kNone || channels_[c].slots > 0 ||
            channels_[c].receive.rank == program::kNone || channels_[c].send.rank != program::kNone)
            return false;
    }
    return true;
}

// Meetings without waiting move no time; they only begin anew what is told of the group, if anything moved since.
bool Engine::keeps_meeting(const GroupState& state) {
    if (!options_.brief || steps_done_ > 0 || replays_ > 0 || rehearsal_ || meetings_.size() >= kMostMeetings)
        return false;
    kept_meeting_.resize(groups_of_.size(), 0);
    kept_waiting_.resize(ranks_.size(), 0);
    bool kept = false;
    for (const Arrival& arrival : state.arrivals) {
        ledger_.charge(arrival.rank, now_);
        kept = kept || kept_meeting_[arrival.slot] <= kept_waiting_[arrival.rank] ||
               ledger_.waited(arrival.rank) != arrival.waited;
    }
    if (kept)
        meetings_.emplace_back();
    return kept;
}

void Engine::keep_meeting(const Arrival& arrival, Picoseconds waited) {
    if (waited != 0)
        kept_waiting_[arrival.rank] = meetings_.size();
    Meeting one;
    one.slot = arrival.slot;
    one.rank = arrival.rank & 0x7FFFFFFFu;
    one.last = stream_of(arrival.rank, arrival.stream).started == now_;
    one.waited = std::min(waited, ledger_.buckets(arrival.rank)[Ledger::kWaitingMembers]);
    one.bubble = arrival.bubble;
    meetings_.push_back(one);
    kept_meeting_[arrival.slot] = meetings_.size();
}

// The first step as the next one would be: who waited is told from the bubble since a group last met (settle_waits), and
// what the first step began with as none is what it leaves behind.
void Engine::as_if_repeated(EngineResult& out) const {
    std::vector<Picoseconds> more(ranks_.size(), 0);  // bubble, up to the meeting at hand
    std::vector<Picoseconds> met(groups_of_.size());  // `more` when the group last met
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
        const std::uint32_t end =
            rank + 1 < ranks_.size() ? first_group_[rank + 1] : static_cast<std::uint32_t>(groups_of_.size());
        for (std::uint32_t slot = first_group_[rank]; slot < end; ++slot)
            met[slot] = bubble_before_[slot] - ledger_.amount(rank, Account::bubble);
    }
    for (std::size_t at = 0; at < meetings_.size();) {
        std::size_t end = ++at;
        Picoseconds before = INT64_MAX, now = INT64_MAX;
        for (; end < meetings_.size() && meetings_[end].slot != program::kNone; ++end) {
            const Meeting& one = meetings_[end];
            if (!one.last)
                continue;
            before = std::min(before, one.bubble);
            now = std::min(now, one.bubble + more[one.rank] - met[one.slot]);
        }
        for (; at < end; ++at) {
            const Meeting& one = meetings_[at];
            const Picoseconds shift = std::min(now, one.waited) - std::min(before, one.waited);
            out.accounts[one.rank][static_cast<std::size_t>(Account::bubble)] += shift;
            out.accounts[one.rank][static_cast<std::size_t>(Account::straggler)] -= shift;
            more[one.rank] += shift;
            met[one.slot] = more[one.rank];
        }
    }
}

// True when the CPU delays the next step as it did this one: it leads by the same time, or its lead grew and already
// cost nothing.
bool Engine::host_repeats(std::uint32_t rank, const StepBoundary* before, const StepBoundary& after) const {
    constexpr auto kHost = static_cast<std::size_t>(Account::host_bound);
    const Picoseconds lead = before ? before->host_lead[rank] : 0;
    const Picoseconds lost = after.accounts[rank][kHost] - (before ? before->accounts[rank][kHost] : 0);
    return after.host_lead[rank] == lead || (after.host_lead[rank] < lead && lost == 0);
}

// True when the step repeats and the run may stop.
bool Engine::settled() {
    if (steps_done_ == steps_checked_ || periodic_)
        return false;
    steps_checked_ = steps_done_;
    const std::uint32_t last = steps_done_ - 1;
    const StepBoundary& boundary = boundaries_[last];
    const StepBoundary* before = last > 0 ? &boundaries_[last - 1] : nullptr;  // none: the idle start
    const Picoseconds period = boundary.time.front() - (before ? before->time.front() : 0);
    periodic_ = true;
    for (std::uint32_t rank = 0; rank < ranks_.size() && periodic_; ++rank) {
        periodic_ = boundary.time[rank] - (before ? before->time[rank] : 0) == period &&
                    boundary.in_flight[rank] == (before ? before->in_flight[rank] : 0) &&
                    host_repeats(rank, before, boundary);
    }
    return periodic_ && options_.stop_when_periodic;
}

EngineResult Engine::result() {
    EngineResult out;
    out.outcome = outcome_;
    out.message = message_;
    out.end = now_;
    out.events = events_;
    out.solves = network_.solves();
    out.replays = replays_;
    out.activities_touched = network_.activities_touched();
    out.batching = network_.batching();
    out.steps = steps_done_;
    out.periodic = periodic_;
    out.accounts.resize(ranks_.size());
    out.waits = waits_;
    out.failed_at = failed_at_;
    out.lost_link = lost_link_;
    out.step_ends = std::move(step_ends_);
    if (steps_done_ > 0) {
        const StepBoundary& last = boundaries_[steps_done_ - 1];
        const std::uint32_t from =
            options_.window_from > 0 && options_.window_from < steps_done_ ? options_.window_from : steps_done_ - 1;
        const StepBoundary* before = from > 0 ? &boundaries_[from - 1] : nullptr;
        out.window_begin = before ? before->time.front() : 0;
        out.window_end = last.time.front();
        out.period = out.window_end - out.window_begin;
        for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
            // All windows are equal when the step repeats; otherwise the longest stands for the step.
            out.period = std::max(out.period, last.time[rank] - (before ? before->time[rank] : 0));
            for (std::size_t a = 0; a < kAccountCount; ++a) {
                out.accounts[rank][a] = last.accounts[rank][a] - (before ? before->accounts[rank][a] : 0);
            }
        }
        if (awaited_first_ && steps_done_ == 1 && periodic_)
            as_if_repeated(out);
    } else {
        for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
            ledger_.charge(rank, now_);
            const Ledger::Buckets& buckets = ledger_.buckets(rank);
            std::copy_n(buckets.begin(), kAccountCount, out.accounts[rank].begin());
            out.accounts[rank][static_cast<std::size_t>(Account::straggler)] += buckets[Ledger::kWaitingMembers];
        }
        out.window_end = now_;
    }
    const std::size_t counted =
        steps_done_ > 0 ? std::min<std::size_t>(steps_done_, step_fingerprint_.size()) : step_fingerprint_.size();
    for (std::size_t step = 0; step < counted; ++step)
        out.fingerprint += step_fingerprint_[step];
    collect_path(out);
    if (options_.record_timeline) {
        out.timeline.reserve(records_.size());
        for (std::uint32_t trace = 0; trace < records_.size(); ++trace)
            out.timeline.push_back(record_of(trace));
    }
    return out;
}

}  // namespace fabricast::engine
