// What happens to the machine from outside the program, and who loses patience.
//
// A link that is down keeps a 2^20th of its capacity, so that nothing divides by zero: data that were in flight wait. The
// transport's patience runs from the first use of the link while it is down; the run ends when it is over, on those whose
// data were in flight (Outcome::transport).
//
// A wait for members of a collective, or for the other side of a message, that lasts longer than EngineOptions::patience ends
// the run when it is noticed: when the one who was missing comes, or when nothing more can happen. By then others may have
// waited longer; `failed_at` is when the first of all of them lost its patience.
#include <algorithm>

#include "sim/engine/engine.hpp"

namespace fabricast::engine {

void Engine::apply_change(std::uint32_t c) {
    const Change& change = options_.changes[c];
    switch (change.kind) {
        case Change::Kind::capacity: network_.set_capacity(LinkId{change.id}, change.value); break;
        case Change::Kind::slowness: ranks_[change.id].slowness = static_cast<std::uint32_t>(change.value); break;
        case Change::Kind::halt: ranks_[change.id].halted = true; break;
        case Change::Kind::up:
            network_.set_capacity(LinkId{change.id}, change.value);
            std::erase_if(down_, [&](std::uint32_t d) { return options_.changes[d].id == change.id; });
            if (lost_link_ == change.id)  // in time
                lost_link_ = program::kNone;
            break;
        case Change::Kind::down:
            if (std::find(down_.begin(), down_.end(), c) == down_.end() && now_ == change.at) {
                network_.set_capacity(LinkId{change.id}, change.value);
                down_.push_back(c);
                if (lost_link_ == program::kNone && !in_flight_over(change.id).empty())
                    start_transport_clock(c);
            } else if (lost_link_ == change.id && now_ == transport_ends_) {
                failed_at_ = now_;
                waits_ = in_flight_over(change.id);
                fail(Outcome::transport, "the transport over a link that is down gave up");
            }
            break;
    }
}

void Engine::start_transport_clock(std::uint32_t c) {
    lost_link_ = options_.changes[c].id;
    transport_ends_ = now_ + options_.changes[c].patience;
    queue_.push({transport_ends_, EventClass::change, c});
}

namespace {

bool uses(const std::vector<LinkUse>& demand, std::uint32_t link) {
    return std::any_of(demand.begin(), demand.end(), [&](const LinkUse& use) { return index(use.link) == link; });
}

}  // namespace

// Data start to move.
void Engine::watch_down(const std::vector<LinkUse>& demand) {
    if (lost_link_ != program::kNone)
        return;
    for (const std::uint32_t c : down_) {
        if (uses(demand, options_.changes[c].id))
            return start_transport_clock(c);
    }
}

std::vector<Standstill> Engine::in_flight_over(std::uint32_t link) const {
    std::vector<Standstill> out;
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
        const GroupState& state = groups_[g];
        if (state.pending == 0)
            continue;
        const bool stuck = std::any_of(
            state.plan->activities.begin(), state.plan->activities.end(), [&](const program::Activity& activity) {
                return activity.work > 0 && uses(demands_[program_.groups[g].demands[activity.demand_class]], link);
            });
        if (stuck)
            out.push_back(wait_of(g));
    }
    for (const Channel& channel : channels_) {
        const bool moves = channel.slots > 0
                               ? channel.sending
                               : channel.send.rank != program::kNone && channel.receive.rank != program::kNone;
        if (!moves || !uses(demands_[program_.routes[channel.route].demand], link))
            continue;
        Standstill wait;
        wait.what = program_.names[program_.labels[channel.send.label].name];
        wait.members = {channel.source, channel.target};
        wait.waiting = {{channel.source, ranks_[channel.source].step, channel.moving_since}};
        out.push_back(std::move(wait));
    }
    return out;
}

Standstill Engine::wait_of(std::uint32_t g) const {
    const GroupState& state = groups_[g];
    const program::Group& group = program_.groups[g];
    Standstill wait;
    wait.what = program_.names[program_.labels[state.arrivals.front().label].name];
    wait.group = group.name;
    wait.call = state.call;
    wait.members = group.members;
    for (const Arrival& arrival : state.arrivals) {
        const Picoseconds since = stream_of(arrival.rank, arrival.stream).started;
        wait.waiting.push_back({arrival.rank, ranks_[arrival.rank].step, since});
    }
    for (const std::uint32_t member : group.members) {
        const bool here = std::any_of(wait.waiting.begin(), wait.waiting.end(),
                                      [&](const Standstill::Side& side) { return side.rank == member; });
        if (!here)
            wait.missing.push_back(member);
    }
    return wait;
}

// Groups and messages that somebody waits in since before `before`.
std::vector<Standstill> Engine::unmet(Picoseconds before) const {
    std::vector<Standstill> out;
    for (std::uint32_t g = 0; g < groups_.size(); ++g) {
        const GroupState& state = groups_[g];
        if (state.arrivals.empty() || state.pending > 0)
            continue;
        const Arrival& first = state.arrivals.front();
        if (stream_of(first.rank, first.stream).started >= before)
            continue;
        Standstill wait = wait_of(g);
        // Who came just now came too late.
        if (wait.missing.empty()) {
            const Picoseconds last = wait.waiting.back().since;
            if (last != now_)
                continue;  // latency passes
            while (!wait.waiting.empty() && wait.waiting.back().since == last) {
                wait.missing.push_back(wait.waiting.back().rank);
                wait.waiting.pop_back();
            }
        }
        if (!wait.waiting.empty())
            out.push_back(std::move(wait));
    }
    for (const Channel& channel : channels_) {
        const bool sends = channel.send.rank != program::kNone, receives = channel.receive.rank != program::kNone;
        if (!sends && !receives)
            continue;
        const Half& half = sends ? channel.send : channel.receive;
        const Half& other = sends ? channel.receive : channel.send;
        if (sends && receives && stream_of(half.rank, half.stream).started != now_ &&
            stream_of(other.rank, other.stream).started != now_)
            continue;  // moves
        const bool late = sends && receives && stream_of(half.rank, half.stream).started == now_;
        const Half& waits = late ? other : half;
        const Picoseconds since = stream_of(waits.rank, waits.stream).started;
        if (since >= before)
            continue;
        Standstill wait;
        wait.what = program_.names[program_.labels[waits.label].name];
        wait.members = {channel.source, channel.target};
        wait.waiting = {{waits.rank, ranks_[waits.rank].step, since}};
        wait.missing = {waits.rank == channel.source ? channel.target : channel.source};
        out.push_back(std::move(wait));
    }
    return out;
}

// first: since when the first of those who meet now has waited.
void Engine::check_patience(Picoseconds first) {
    if (outcome_ != Outcome::done || now_ - first <= options_.patience)
        return;
    waits_ = unmet(now_ - options_.patience);
    failed_at_ = now_;
    for (const Standstill& wait : waits_)
        failed_at_ = std::min(failed_at_, wait.waiting.front().since + options_.patience);
    fail(Outcome::overdue, "a wait lasted longer than its time-out");
}

}  // namespace fabricast::engine
