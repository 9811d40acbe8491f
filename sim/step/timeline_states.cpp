// In which state a rank is at each instant, by the rule of the accounts (sim/engine/ledger.hpp), and what it holds in memory.
#include <algorithm>
#include <array>
#include <bit>

#include "sim/step/record_timeline.hpp"

namespace fabricast {
namespace {

using State = StepTimeline::State;

// A change of what a rank does: one more or one fewer of a kind.
struct Change {
    Picoseconds at;
    int by;
    LaneState state;
    Account account;
    std::uint32_t record;
};

// Counts of what is under way on a rank.
struct UnderWay {
    std::array<int, kAccountCount> moving = {};
    int members = 0, messages = 0;
    std::uint32_t computing = program::kNone;  ///< the record

    void apply(const Change& change) {
        switch (change.state) {
            case LaneState::computing: computing = change.by > 0 ? change.record : program::kNone; break;
            case LaneState::moving: moving[static_cast<std::size_t>(change.account)] += change.by; break;
            case LaneState::waiting_members: members += change.by; break;
            case LaneState::waiting_message: messages += change.by; break;
            case LaneState::idle: break;
        }
    }
};

bool same(const State& a, const State& b) {
    return a.state == b.state && a.account == b.account && a.phase == b.phase && a.micro_batch == b.micro_batch;
}

std::vector<Change> changes_of(const TimelineSource& source, std::uint32_t rank) {
    std::vector<Change> changes;
    for (const std::uint32_t i : source.of_row[source.class_of[rank]]) {
        const engine::Record& record = source.records[i];
        const program::Operation& op = source.operation(rank, record);
        if (op.kind == program::OpKind::step_end || record.finished == record.issued)
            continue;
        const Account account = source.program->labels[op.label].account;
        const bool computes = op.kind == program::OpKind::compute;
        const Picoseconds started = computes ? record.issued : record.started;
        const auto add = [&](Picoseconds from, Picoseconds to, LaneState state) {
            if (from >= to)
                return;
            changes.push_back({from, +1, state, account, i});
            changes.push_back({to, -1, state, account, i});
        };
        add(record.issued, started,
            op.kind == program::OpKind::collective ? LaneState::waiting_members : LaneState::waiting_message);
        add(started, record.finished, computes ? LaneState::computing : LaneState::moving);
    }
    // What ends at an instant before what begins then.
    std::stable_sort(changes.begin(), changes.end(),
                     [](const Change& a, const Change& b) { return a.at != b.at ? a.at < b.at : a.by < b.by; });
    return changes;
}

}  // namespace

void add_states(StepTimeline& timeline, const TimelineSource& source) {
    for (std::uint32_t n = 0; n < timeline.lanes.size(); ++n) {
        const StepTimeline::Lane& lane = timeline.lanes[n];
        const std::size_t first = timeline.states.size();
        UnderWay now;
        Picoseconds since = lane.begin;
        const auto charge = [&](Picoseconds until) {
            until = std::min(until, lane.end);
            if (until <= since)
                return;
            State state{.lane = n, .begin = since, .end = until};
            const auto moving = std::find_if(now.moving.begin(), now.moving.end(), [](int count) { return count > 0; });
            if (now.computing != program::kNone) {
                const engine::Record& record = source.records[now.computing];
                const program::Label& label = source.program->labels[source.operation(lane.rank, record).label];
                state.state = LaneState::computing;
                state.phase = label.phase;
                state.micro_batch = label.micro_batch;
            } else if (moving != now.moving.end()) {
                state.state = LaneState::moving;
                state.account = static_cast<Account>(moving - now.moving.begin());
            } else if (now.members > 0) {
                state.state = LaneState::waiting_members;
            } else if (now.messages > 0) {
                state.state = LaneState::waiting_message;
            }
            if (timeline.states.size() > first && same(timeline.states.back(), state))
                timeline.states.back().end = until;
            else
                timeline.states.push_back(state);
            since = until;
        };
        for (const Change& change : changes_of(source, lane.rank)) {
            charge(change.at);
            now.apply(change);
        }
        charge(lane.end);
    }
}

void add_memory(StepTimeline& timeline, const TimelineSource& source) {
    struct MemoryStep {
        Picoseconds at;
        MemoryCause cause;
        Bytes by;
    };
    for (std::uint32_t n = 0; n < timeline.lanes.size(); ++n) {
        const std::uint32_t rank = timeline.lanes[n].rank;
        std::vector<MemoryStep> steps;
        for (const std::uint32_t i : source.of_row[source.class_of[rank]]) {
            const engine::Record& record = source.records[i];
            for (const program::MemoryChange& change : source.operation(rank, record).memory)
                steps.push_back({change.bytes > 0 ? record.issued : record.finished, change.cause, change.bytes});
        }
        std::stable_sort(steps.begin(), steps.end(), [](const MemoryStep& a, const MemoryStep& b) {
            return a.at != b.at ? a.at < b.at : a.by < b.by;
        });
        auto held = source.program->templates[source.program->ranks[rank].tmpl].base_memory;
        std::array<bool, kMemoryCauseCount> changes = {};
        std::size_t at = 0;
        for (; at < steps.size() && steps[at].at <= timeline.begin; ++at)
            held[static_cast<std::size_t>(steps[at].cause)] += steps[at].by;
        for (std::size_t c = 0; c < kMemoryCauseCount; ++c)
            timeline.memory.push_back({n, static_cast<MemoryCause>(c), timeline.begin, held[c]});
        for (; at < steps.size() && steps[at].at <= timeline.end; ++at) {
            const auto cause = static_cast<std::size_t>(steps[at].cause);
            held[cause] += steps[at].by;
            changes[cause] = true;
            if (at + 1 == steps.size() || steps[at + 1].at != steps[at].at) {
                for (std::size_t c = 0; c < kMemoryCauseCount; ++c) {
                    if (changes[c])
                        timeline.memory.push_back({n, static_cast<MemoryCause>(c), steps[at].at, held[c]});
                }
                changes = {};
            }
        }
    }
}

}  // namespace fabricast
