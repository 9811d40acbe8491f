// Records of operations and the chains of their causes. A record lives while a stream, a later record or a waiting
// message names it, so that the causes of everything in flight are at hand without keeping the whole run.
#include <algorithm>

#include "sim/engine/engine.hpp"

namespace fabricast::engine {

void Engine::hold_record(std::uint32_t record) {
    if (record != program::kNone)
        ++records_[record].holders;
}

void Engine::drop_record(std::uint32_t record) {
    while (record != program::kNone && --records_[record].holders == 0 && !options_.record_timeline) {
        free_records_.push_back(record);
        record = records_[record].cause;
    }
}

void Engine::set_cause(std::uint32_t record, std::uint32_t cause) {
    hold_record(cause);
    drop_record(records_[record].cause);
    records_[record].cause = cause;
}

std::uint32_t Engine::new_record() {
    if (free_records_.empty()) {
        records_.emplace_back();
        if (options_.quantum > 0)
            late_.push_back(0);
        return static_cast<std::uint32_t>(records_.size() - 1);
    }
    const std::uint32_t record = free_records_.back();
    free_records_.pop_back();
    return record;
}

// The trigger is held: what it releases may drop everybody else who names it.
void Engine::set_trigger(std::uint32_t record) {
    if (!recording_)
        return;
    hold_record(record);
    drop_record(trigger_);
    trigger_ = record;
}

// The stream now names the new record; the one before lives on if it caused something.
void Engine::begin_record(std::uint32_t rank, std::uint8_t stream, const Instruction& in) {
    hold_record(trigger_);
    Stream& s = stream_of(rank, stream);
    drop_record(s.record);
    s.record = new_record();
    records_[s.record] = {trigger_, 1, rank, in.operation << 5 | stream, now_, now_};
    if (options_.record_timeline)
        issued_.push_back(now_);
}

// Members that arrive at one instant released the collective together: the first of them stands for all, so that it does
// not matter how many they are.
void Engine::note_arrival(GroupState& state) {
    if (state.arrivals.size() > 1) {
        const Arrival& last = state.arrivals[state.last];
        if (stream_of(last.rank, last.stream).started == now_)
            return;
    }
    state.last = static_cast<std::uint32_t>(state.arrivals.size() - 1);
    hold_record(trigger_);
    drop_record(state.cause);
    state.cause = trigger_;
}

// All members of a collective move data for the same time from the same cause: they share one record.
void Engine::share_record(const GroupState& state) {
    const Arrival& last = state.arrivals[state.last];
    const std::uint32_t record = new_record();
    const Instruction& in = ranks_[last.rank].code->instructions[stream_of(last.rank, last.stream).counter];
    hold_record(state.cause);
    records_[record] = {state.cause, static_cast<std::uint32_t>(state.arrivals.size()),
                        last.rank,   in.operation << 5 | last.stream,
                        now_,        now_};
    for (const Arrival& arrival : state.arrivals) {
        Stream& s = stream_of(arrival.rank, arrival.stream);
        drop_record(s.record);
        s.record = record;
    }
}

Record Engine::record_of(std::uint32_t trace) const {
    Record record = record_of(records_[trace]);
    if (!issued_.empty())
        record.issued = issued_[trace];
    return record;
}

Record Engine::record_of(const Trace& t) const {
    const std::uint32_t operation = t.operation >> 5;
    const std::uint32_t label = program_.templates[program_.ranks[t.rank].tmpl].operations[operation].label;
    return {t.rank,    t.cause,   label,     operation, static_cast<std::uint8_t>(t.operation & 31u),
            t.started, t.started, t.finished};
}

void Engine::collect_path(EngineResult& out) const {
    const bool bounded = options_.quantum > 0 && recording_ && steps_done_ > 0 && !buffered_;
    out.late = options_.quantum > 0 && !bounded ? -1 : 0;
    if (!recording_ || steps_done_ == 0)
        return;
    const std::uint32_t last = boundaries_[steps_done_ - 1].last_record;
    out.path_end = records_[last].finished;
    out.path_begin = out.path_end - out.period;
    const auto add = [&](const Trace& trace) {
        out.path.push_back(record_of(trace));
        out.path.back().cause = static_cast<std::uint32_t>(out.path.size());
        return trace.started > out.path_begin;
    };
    bool before = true;  // the path begins before what was added last
    for (std::uint32_t at = last; at != program::kNone && before; at = records_[at].cause) {
        const Trace& trace = records_[at];
        if ((trace.operation & kPassageRecord) == 0) {
            before = add(trace);
            if (bounded)
                out.late += late_[at];
            continue;
        }
        const Island& island = islands_.list[islands_.of_rank[trace.rank]];
        for (const Recording::PathStep& step : passages_[trace.operation & ~kPassageRecord].path) {
            before = before && add({program::kNone, 0, island.ranks[step.place], step.operation,
                                    trace.started + step.started, trace.started + step.finished});
        }
    }
    out.path.back().cause = program::kNone;
    Picoseconds lost = 0;
    for (std::size_t l = 0; bounded && l < lost_.size(); ++l)
        lost = std::max(lost, lost_[l] - (lost_before_.empty() ? 0 : lost_before_[l]));
    out.late += lost;
}

}  // namespace fabricast::engine
