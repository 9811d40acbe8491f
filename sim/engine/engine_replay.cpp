// Folding in time: islands are followed from quiet moment to quiet moment, and what was seen before is replayed
// (passage.hpp).
#include <algorithm>
#include <bit>
#include <cassert>

#include "sim/engine/engine.hpp"
#include "sim/engine/mixing.hpp"

namespace fabricast::engine {
namespace {

constexpr std::size_t kVariants = 8;  ///< passages from one instruction, at most
constexpr std::uint32_t kVain = 2;    ///< rehearsals without a passage after which no more are made there
constexpr std::size_t kInnerGroups = 32;
// Looking costs an event a call: given up where so many moments an island led to less than one replay in so many.
constexpr std::uint64_t kPatience = 2048, kWorthwhile = 32;

}  // namespace

// ---- quiet moments -------------------------------------------------------------------------------------------------

// Calls of group g may stand at quiet moments, and moments like these led to something so far.
bool Engine::followed(std::uint32_t g) const {
    if (islands_.list.empty())
        return false;
    const std::uint32_t i = islands_.of_group[g];
    if (i == program::kNone || islands_.list[i].groups.size() > kInnerGroups)
        return false;
    const std::uint32_t kind = islands_.list[i].kind;
    return rehearsal_ || kind >= looked_.size() || looked_[kind].moments < kPatience * islands_.of_kind[kind] ||
           looked_[kind].replays * kWorthwhile >= looked_[kind].moments;
}

// The latency of a call of group g has passed. True when what follows was replayed and the call is over.
bool Engine::replayed(std::uint32_t g) {
    if (!followed(g))
        return false;
    const std::uint32_t i = islands_.of_group[g];
    const Arrival& any = groups_[g].arrivals.front();
    const std::uint32_t kind = islands_.list[i].kind, counter = stream_of(any.rank, any.stream).counter;
    // Worth it where it will come by again: on islands like this one, or in the next round of a loop inside the step.
    const bool again = islands_.of_kind[kind] > 1 || ranks_[any.rank].code->recurs[counter];
    if (!rehearsal_) {
        looked_.resize(islands_.of_kind.size());
        ++looked_[kind].moments;
    }
    if (!again || !quiet(g))
        return false;
    if (rehearsal_) {
        if (!rehearsal_->over)  // what else happens in the instant of the cut leaves streams half way
            note_quiet_moment(g);
        return false;
    }
    PassageList& list = passages_from_[{kind, counter}];
    for (const std::uint32_t passage : list.passages) {
        if (!recurs(passages_[passage], g))
            continue;
        ++looked_[kind].replays;
        replay(passage, g);
        return true;
    }
    if (list.vain == kVain || list.passages.size() == kVariants)
        return false;
    Passage passage;
    if (!rehearse(g, passage)) {
        ++list.vain;
        return false;
    }
    list.passages.push_back(static_cast<std::uint32_t>(passages_.size()));
    passages_.push_back(std::move(passage));
    assert(recurs(passages_.back(), g));
    ++looked_[kind].replays;
    replay(list.passages.back(), g);
    return true;
}

// Nothing but the call of g is in flight on its members, and they stand at one place of one step.
bool Engine::quiet(std::uint32_t g) {
    const GroupState& state = groups_[g];
    const Arrival& first = state.arrivals.front();
    const std::uint32_t step = ranks_[first.rank].step;
    const std::uint32_t counter = stream_of(first.rank, first.stream).counter;
    for (const Arrival& arrival : state.arrivals) {
        const RankState& r = ranks_[arrival.rank];
        if (r.active != bit(arrival.stream) || arrival.stream != first.stream || r.step != step ||
            stream_of(arrival.rank, arrival.stream).counter != counter)
            return false;
        // What a call began to cost before the step did is settled by absolute figures (charge_contention).
        if (step > 0 && boundaries_[step - 1].time[arrival.rank] > state.moving_since)
            return false;
        ledger_.charge(arrival.rank, now_);
        if (ledger_.buckets(arrival.rank)[Ledger::kWaitingMembers] != 0)
            return false;
    }
    return true;
}

StreamPoint Engine::stream_point(const RankState& r, std::uint8_t stream) const {
    const Stream& s = streams_[r.first_stream + stream];
    StreamPoint point;
    point.state = s.state;
    point.counter = s.counter;
    if (s.state == StreamState::blocked) {
        while ((streams_[r.first_stream + point.waits_on].waiters & bit(stream)) == 0) {
            ++point.waits_on;
            assert(point.waits_on < r.streams && "who waits is listed where it waits");
        }
        point.missing = s.needed - streams_[r.first_stream + point.waits_on].completed;
    }
    return point;
}

// Bubble of a rank since an inner group last met; 0 where the rank is not in it.
Picoseconds Engine::bubble_since(const Island& island, std::size_t place, std::size_t group) const {
    const std::uint32_t slot = island.slots[place * island.groups.size() + group];
    if (slot == program::kNone)
        return 0;
    const std::uint32_t rank = island.ranks[place];
    return ledger_.amount(rank, Account::bubble) - bubble_before_[first_group_[rank] + slot];
}

void Engine::keep_moment(const Island& island, std::uint32_t g, QuietMoment& out) const {
    const GroupState& state = groups_[g];
    const std::size_t groups = island.groups.size();
    out.time = now_;
    out.group =
        static_cast<std::uint32_t>(std::find(island.groups.begin(), island.groups.end(), g) - island.groups.begin());
    out.stream = state.arrivals.front().stream;
    out.last = state.last;
    out.order.clear();
    out.members.resize(island.ranks.size());
    out.points.clear();
    out.counts.clear();
    out.bubble.clear();
    for (const Arrival& arrival : state.arrivals) {
        const std::uint32_t place = islands_.place[arrival.rank];
        out.order.push_back(place);
        out.members[place].exposed = ledger_.amount(arrival.rank, account_of(arrival.label)) - arrival.exposed;
        out.members[place].started = stream_of(arrival.rank, arrival.stream).started;
    }
    for (std::size_t place = 0; place < island.ranks.size(); ++place) {
        const std::uint32_t rank = island.ranks[place];
        const RankState& r = ranks_[rank];
        QuietMoment::Member& member = out.members[place];
        member.host_clock = r.host_clock;
        member.waited = ledger_.waited(rank);
        std::copy_n(ledger_.buckets(rank).begin(), kAccountCount, member.accounts.begin());
        for (std::uint8_t s = 0; s < r.streams; ++s) {
            out.points.push_back(stream_point(r, s));
            const Stream& stream = streams_[r.first_stream + s];
            out.counts.push_back({stream.completed, stream.loop});
        }
        for (std::size_t group = 0; group < groups; ++group)
            out.bubble.push_back(bubble_since(island, place, group));
    }
}

// ---- replay --------------------------------------------------------------------------------------------------------

// The state of the island is the one at the beginning of the passage.
bool Engine::recurs(const Passage& p, std::uint32_t g) const {
    const GroupState& state = groups_[g];
    const Island& island = islands_.list[islands_.of_group[g]];
    for (const Arrival& arrival : state.arrivals) {
        const RankState& r = ranks_[arrival.rank];
        const std::uint32_t place = islands_.place[arrival.rank];
        const Passage::Member& member = p.members[place];
        const Picoseconds lead = r.host_clock - now_;
        if (member.exact ? lead != member.lead : lead > member.lead)
            return false;
        if (ledger_.amount(arrival.rank, account_of(arrival.label)) - arrival.exposed != member.exposed)
            return false;
        for (std::size_t met = 0; met < p.met.size(); ++met) {
            if (bubble_since(island, place, p.met[met]) != p.bubble_before[place * p.met.size() + met])
                return false;
        }
        if (!streams_recur(p, r))
            return false;
    }
    return true;
}

bool Engine::streams_recur(const Passage& p, const RankState& r) const {
    std::array<std::int64_t, kMaxStreams> ahead;  // completions of a stream beyond those when it was recorded
    for (const Passage::StreamCourse& course : p.streams) {
        if (stream_point(r, course.stream) != course.before)
            return false;
        const Stream& s = streams_[r.first_stream + course.stream];
        ahead[course.stream] = s.completed - course.count.completed;
        for (std::uint32_t others = s.waiters & ~p.touched; others != 0; others &= others - 1) {
            if (streams_[r.first_stream + static_cast<std::size_t>(std::countr_zero(others))].needed <=
                s.completed + course.completes)
                return false;
        }
    }
    for (const Passage::WaitCheck& check : p.waits) {
        const Wait& wait = r.code->waits[check.wait];
        const Stream& s = streams_[r.first_stream + check.stream];
        if (wait.skip_first >= 0 && (s.loop[static_cast<std::size_t>(wait.skip_first)] == 0) != check.skipped)
            return false;
        if (check.skipped)
            continue;
        std::int64_t grown = 0, needed = wait.base;
        const auto course =
            std::find_if(p.streams.begin(), p.streams.end(), [&](const auto& c) { return c.stream == check.stream; });
        for (std::size_t level = 0; level < kMaxDepth; ++level) {
            grown += wait.stride[level] *
                     (static_cast<std::int64_t>(s.loop[level]) - static_cast<std::int64_t>(course->count.loop[level]));
            needed += wait.stride[level] * s.loop[level];
        }
        if (check.inside ? grown != ahead[wait.stream] : streams_[r.first_stream + wait.stream].completed < needed)
            return false;
    }
    return true;
}

// Sets the island to the state at the end of the passage; the latency of the call there passes at that time.
void Engine::replay(std::uint32_t passage, std::uint32_t g) {
    const Passage& p = passages_[passage];
    const Island& island = islands_.list[islands_.of_group[g]];
    const std::uint32_t after = island.groups[p.group_after];
    const Picoseconds end = now_ + p.length;
    ++replays_;
    add_marks(p, island, g);

    finishing_.clear();
    finishing_.swap(groups_[g].arrivals);
    const program::Plan& plan_before = *groups_[g].plan;
    GroupState& state = groups_[after];
    const RankState& any = ranks_[island.ranks.front()];
    const auto at_end = [&](const Passage::StreamCourse& course) { return course.stream == p.stream_after; };
    const auto course_after = std::find_if(p.streams.begin(), p.streams.end(), at_end);
    const Instruction& in = any.code->instructions[course_after->after.counter];
    state.call = in.payload;
    state.plan = &program_.plans[state.call][program_.groups[after].shape];
    state.latency = state.plan->latency + in.late;
    state.moving_since = end - state.latency;
    state.pending = 0;
    state.slowed = false;
    state.last = p.last;

    for (const Arrival& arrival : finishing_) {
        const std::uint32_t rank = arrival.rank, place = islands_.place[rank];
        const Passage::Member& member = p.members[place];
        RankState& r = ranks_[rank];
        r.host_clock = member.synced ? now_ + member.host : r.host_clock + member.host;
        for (const auto& [account, time] : member.charges)
            ledger_.add(rank, account, time);
        ledger_.jump(rank, account_of(arrival.label), account_of(in.label), member.waited, end);
        communication_on(rank, arrival.stream, plan_before.uses_network, plan_before.uses_nvlink, -1);
        communication_on(rank, p.stream_after, state.plan->uses_network, state.plan->uses_nvlink, +1);
        r.active = bit(p.stream_after);
        move_streams(p, r);
        stream_of(rank, p.stream_after).started = now_ + member.started;
        for (std::size_t met = 0; met < p.met.size(); ++met) {
            const std::uint32_t slot = island.slots[place * island.groups.size() + p.met[met]];
            bubble_before_[first_group_[rank] + slot] =
                ledger_.amount(rank, Account::bubble) - p.bubble_after[place * p.met.size() + met];
        }
    }
    const std::uint32_t slot = program_.calls[state.call].slot;
    for (const std::uint32_t place : p.order) {
        const std::uint32_t rank = island.ranks[place];
        const Picoseconds amount = ledger_.amount(rank, account_of(in.label));
        state.arrivals.push_back({rank, in.label, first_group_[rank] + slot, p.stream_after, ledger_.waited(rank), 0,
                                  amount - p.members[place].exposed_after});
    }
    if (recording_)
        replay_record(passage, finishing_.front(), in, end);
    queue_.push({end, EventClass::latency_end, after});
}

void Engine::move_streams(const Passage& p, const RankState& r) {
    for (const Passage::StreamCourse& course : p.streams) {
        Stream& s = streams_[r.first_stream + course.stream];
        s.counter = course.after.counter;
        s.state = course.after.state;
        s.completed += course.completes;
        s.waiters &= ~p.touched;
    }
    for (const Passage::StreamCourse& course : p.streams) {
        if (course.after.state != StreamState::blocked)
            continue;
        Stream& awaited = streams_[r.first_stream + course.after.waits_on];
        awaited.waiters |= bit(course.stream);
        streams_[r.first_stream + course.stream].needed = awaited.completed + course.after.missing;
    }
}

void Engine::add_marks(const Passage& p, const Island& island, std::uint32_t g) {
    if (options_.brief)
        return;
    const Arrival& any = groups_[g].arrivals.front();
    const RankState& r = ranks_[any.rank];
    const std::uint32_t operation = r.code->instructions[stream_of(any.rank, any.stream).counter].operation;
    if (step_fingerprint_.size() <= r.step)
        step_fingerprint_.resize(r.step + 1, 0);
    std::uint64_t& sum = step_fingerprint_[r.step];
    for (const Arrival& arrival : groups_[g].arrivals) {
        sum += ranks_[arrival.rank].copies *
               mix(finish_constant(r.code->tmpl, operation, stream_of(arrival.rank, arrival.stream).started,
                                   now_ + p.first_end));
    }
    const std::uint64_t shift = finish_shift(now_);
    for (const Passage::Marks& marks : p.marks) {
        std::uint64_t copies = 0, one = 0;
        for (const std::uint32_t place : marks.places)
            copies += ranks_[island.ranks[place]].copies;
        for (const std::uint64_t constant : marks.constants)
            one += mix(constant + shift);
        sum += copies * one;
    }
}

// One record stands for the chain of causes inside the passage, one for the call at its end.
void Engine::replay_record(std::uint32_t passage, const Arrival& any, const Instruction& in, Picoseconds end) {
    const Passage& p = passages_[passage];
    const Island& island = islands_.list[islands_.of_rank[any.rank]];
    const std::uint32_t before = stream_of(any.rank, any.stream).record;
    records_[before].finished = now_ + p.first_end;
    hold_record(before);
    const std::uint32_t inside = new_record();
    records_[inside] = {before, 1, any.rank, kPassageRecord | passage, now_, end};
    const std::uint32_t record = new_record();
    const GroupState& state = groups_[groups_of_[first_group_[any.rank] + program_.calls[in.payload].slot]];
    records_[record] = {inside,
                        static_cast<std::uint32_t>(island.ranks.size()),
                        state.arrivals[state.last].rank,
                        in.operation << 5 | p.stream_after,
                        state.moving_since,
                        state.moving_since};
    for (const Arrival& arrival : finishing_) {
        Stream& from = stream_of(arrival.rank, arrival.stream);
        drop_record(from.record);
        from.record = program::kNone;
        Stream& to = stream_of(arrival.rank, p.stream_after);
        drop_record(to.record);
        to.record = record;
    }
}

}  // namespace fabricast::engine
