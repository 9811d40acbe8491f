// Collectives, messages, transfers: rendezvous, moving data, who waited for whom.
#include <algorithm>
#include <cassert>

#include "sim/engine/engine.hpp"

namespace fabricast::engine {

// ---- collectives ---------------------------------------------------------------------------------------------------

void Engine::arrive(std::uint32_t rank, std::uint8_t stream, const Instruction& in) {
    const program::Call& call = program_.calls[in.payload];
    const std::uint32_t slot = first_group_[rank] + call.slot;
    const std::uint32_t g = groups_of_[slot];
    GroupState& state = groups_[g];
    if (state.arrivals.empty()) {
        state.call = in.payload;
        state.latency = in.late;
    } else if (state.call != in.payload &&
               (program_.calls[state.call].kind != call.kind || program_.calls[state.call].bytes != call.bytes)) {
        fail(Outcome::mismatch, "members of group " + program_.groups[g].name + " call different collectives: " +
                                    describe(state.arrivals.front().rank, state.arrivals.front().stream) + "; " +
                                    describe(rank, stream));
        return;
    }
    state.latency = std::max(state.latency, in.late);
    ledger_.waiting_members(rank, +1, now_);
    if (stream != 0) {
        ++ranks_[rank].kernels_waiting;
        mark_dirty(rank);
    }
    const Picoseconds bubble = ledger_.amount(rank, Account::bubble) - bubble_before_[slot];
    state.arrivals.push_back({rank, in.label, slot, stream, ledger_.waited(rank), bubble});
    if (recording_)
        note_arrival(state);
    if (state.arrivals.size() == program_.groups[g].members.size()) {
        if (options_.patience > 0)
            check_patience(stream_of(state.arrivals.front().rank, state.arrivals.front().stream).started);
        settle_waits(state);
        start_moving(g);
    }
}

// Who waited for the last member waited for its work (straggler) or for what it had itself waited for since the group
// last met (bubble). Of members that arrive last together the one with the least bubble counts, whatever their order.
void Engine::settle_waits(const GroupState& state) {
    Picoseconds bubble = INT64_MAX;
    for (const Arrival& arrival : state.arrivals) {
        if (stream_of(arrival.rank, arrival.stream).started == now_)
            bubble = std::min(bubble, arrival.bubble);
    }
    const bool kept = keeps_meeting(state);
    for (const Arrival& arrival : state.arrivals) {
        ledger_.charge(arrival.rank, now_);
        const Picoseconds waited = ledger_.waited(arrival.rank) - arrival.waited;
        if (kept)
            keep_meeting(arrival, waited);
        if (waited != 0) {
            const Picoseconds of_bubble =
                ledger_.settle_waiting(arrival.rank, Account::bubble, std::min(waited, bubble));
            ledger_.settle_waiting(arrival.rank, Account::straggler, waited - of_bubble);
        }
        bubble_before_[arrival.slot] = ledger_.amount(arrival.rank, Account::bubble);
    }
}

void Engine::start_moving(std::uint32_t g) {
    GroupState& state = groups_[g];
    state.plan = &program_.plans[state.call][program_.groups[g].shape];
    state.latency += state.plan->latency;
    state.moving_since = now_;
    state.slowed = false;
    state.late = 0;
    for (Arrival& arrival : state.arrivals) {
        ledger_.waiting_members(arrival.rank, -1, now_);
        const Account account = account_of(arrival.label);
        ledger_.moving(arrival.rank, account, +1, now_);
        arrival.exposed = ledger_.amount(arrival.rank, account);
        if (arrival.stream != 0) {
            --ranks_[arrival.rank].kernels_waiting;
            communication_on(arrival.rank, arrival.stream, state.plan->uses_network, state.plan->uses_nvlink, +1);
        }
        if (options_.record_timeline) {
            const std::uint32_t record = stream_of(arrival.rank, arrival.stream).record;
            records_[record].started = now_;
            set_cause(record, state.cause);
        }
    }
    if (recording_) {
        if (!options_.record_timeline)
            share_record(state);
        drop_record(state.cause);
        state.cause = program::kNone;
    }
    if (!moves_alone(g))
        queue_.push({now_ + state.latency, EventClass::latency_end, g});
}

void Engine::find_lone_groups() {
    lone_.assign(program_.groups.size(), false);
    if (!options_.fold_time || options_.quantum > 0 || options_.patience > 0 || !options_.changes.empty())
        return;
    constexpr std::uint32_t kShared = program::kNone - 1;
    std::vector<std::uint32_t> user;  // by link: the group, kShared, or kNone
    const auto use = [&](std::uint32_t demand, std::uint32_t who) {
        for (const LinkUse& one : demands_[demand]) {
            if (user.size() <= index(one.link))
                user.resize(index(one.link) + 1, program::kNone);
            std::uint32_t& known = user[index(one.link)];
            known = known == program::kNone || known == who ? who : kShared;
        }
    };
    for (std::uint32_t g = 0; g < program_.groups.size(); ++g) {
        for (const std::uint32_t demand : program_.groups[g].demands)
            use(demand, g);
    }
    for (const program::Route& route : program_.routes)
        use(route.demand, kShared);
    for (std::uint32_t g = 0; g < program_.groups.size(); ++g) {
        const std::vector<std::uint32_t>& own = program_.groups[g].demands;
        lone_[g] = std::all_of(own.begin(), own.end(), [&](std::uint32_t demand) {
            return std::all_of(demands_[demand].begin(), demands_[demand].end(),
                               [&](const LinkUse& one) { return user[index(one.link)] == g; });
        });
    }
    lone_time_.resize(program_.groups.size());
}

// Where nothing else can be on the links of a group, and nobody looks at the moment at which its data begin to move, the
// end of a call is known when it begins.
bool Engine::moves_alone(std::uint32_t g) {
    GroupState& state = groups_[g];
    if (!lone_[g] || state.plan->activities.size() != 1 || state.plan->activities.front().work == 0 || followed(g))
        return false;
    std::vector<Picoseconds>& times = lone_time_[g];
    if (times.empty())
        times.resize(program_.calls.size(), kNotYet);
    Picoseconds& time = times[state.call];
    if (time == kNotYet) {
        const program::Activity& activity = state.plan->activities.front();
        time = Network::duration(activity.work,
                                 network_.lone_rate(demands_[program_.groups[g].demands[activity.demand_class]],
                                                    activity.weight, activity.cap));
    }
    const std::uint32_t place = first_scheduled_[g];
    Scheduled& at = scheduled_[place];
    at.activity = kLone;
    at.group = g;
    state.pending = 1;
    queue_.push({now_ + state.latency + time, EventClass::activity_end, place, ++at.version});
    return true;
}

void Engine::start_activities(std::uint32_t g) {
    GroupState& state = groups_[g];
    const program::Group& group = program_.groups[g];
    state.pending = 0;
    std::uint32_t place = first_scheduled_[g];
    for (const program::Activity& activity : state.plan->activities) {
        ++place;
        if (activity.work == 0)
            continue;
        const std::uint32_t demand = group.demands[activity.demand_class];
        const Rate alone = activity.cap > 0 ? std::min(activity.cap, alone_[demand]) : alone_[demand];
        watch_down(demands_[demand]);
        const Network::Id id =
            network_.start(demands_[demand], activity.work, activity.weight, activity.cap, alone, now_);
        own(id, {Owner::group, g, place - 1});
        if (rehearsal_)
            rehearsal_->activities.push_back(id);
        ++state.pending;
    }
    if (state.pending == 0)
        finish_collective(g);
}

void Engine::finish_collective(std::uint32_t g) {
    GroupState& state = groups_[g];
    const program::Group& group = program_.groups[g];
    Picoseconds excess = 0;
    if (state.slowed) {
        Picoseconds slowest = 0;
        for (const program::Activity& activity : state.plan->activities) {
            if (activity.work == 0)
                continue;
            const Rate alone = alone_[group.demands[activity.demand_class]];
            slowest = std::max(
                slowest, Network::duration(activity.work, activity.cap > 0 ? std::min(activity.cap, alone) : alone));
        }
        excess = now_ - state.moving_since - state.latency - slowest;
    }
    // First all members, then their streams: a member's next call may be on this group again.
    finishing_.clear();
    finishing_.swap(state.arrivals);
    const Picoseconds late = state.latency - state.plan->latency,
                      uncontended = now_ - state.moving_since - excess - late;
    for (const Arrival& arrival : finishing_) {
        const Account account = account_of(arrival.label);
        ledger_.moving(arrival.rank, account, -1, now_);
        charge_lateness(arrival, account, late);
        communication_on(arrival.rank, arrival.stream, state.plan->uses_network, state.plan->uses_nvlink, -1);
        charge_contention(arrival.rank, account, arrival.exposed, uncontended, excess);
    }
    for (const Arrival& arrival : finishing_) {
        complete(arrival.rank, arrival.stream);
        run_rank(arrival.rank);
    }
}

// ---- point to point ------------------------------------------------------------------------------------------------

void Engine::post(std::uint32_t rank, std::uint8_t stream, const Instruction& in) {
    const program::Batch& batch = program_.batches[in.payload];
    stream_of(rank, stream).pending = static_cast<std::uint32_t>(batch.halves.size());
    if (batch.halves.empty()) {
        queue_.push({now_, EventClass::delay_end, delay_id(rank, stream)});
        ledger_.moving(rank, account_of(in.label), +1, now_);
        return;
    }
    for (const program::MessageHalf& half : batch.halves) {
        const std::uint32_t slot = first_peer_[rank] + half.peer_slot;
        const std::uint32_t c = half.is_send ? send_channel_[slot] : receive_channel_[slot];
        Half& side = half.is_send ? channels_[c].send : channels_[c].receive;
        assert(side.rank == program::kNone && "two messages of one direction in flight on a channel");
        side = {rank, in.label, half.bytes, stream, 0};
        ledger_.waiting_message(rank, +1, now_);
        if (stream != 0) {
            ++ranks_[rank].kernels_waiting;
            mark_dirty(rank);
        }
        if (channels_[c].slots > 0) {
            post_buffered(c, half.is_send);
            continue;
        }
        const Half& other = half.is_send ? channels_[c].receive : channels_[c].send;
        if (other.rank != program::kNone)
            match(c, half.is_send);
    }
}

// is_send: the side posted just now.
void Engine::match(std::uint32_t c, bool is_send) {
    Channel& channel = channels_[c];
    if (channel.send.bytes != channel.receive.bytes) {
        fail(Outcome::mismatch, "sizes of a message differ: " + std::to_string(channel.send.bytes) + " bytes sent by " +
                                    describe(channel.send.rank, channel.send.stream) + ", " +
                                    std::to_string(channel.receive.bytes) + " expected by " +
                                    describe(channel.receive.rank, channel.receive.stream));
        return;
    }
    const program::Route& route = program_.routes[channel.route];
    channel.moving_since = now_;
    if (options_.patience > 0) {
        const Half& waited = is_send ? channel.receive : channel.send;
        check_patience(stream_of(waited.rank, waited.stream).started);
    }
    if (recording_) {
        channel.cause = trigger_;
        // Of sides posted at one instant the first counts.
        const Half& first = is_send ? channel.receive : channel.send;
        const Stream& other = stream_of(first.rank, first.stream);
        if (other.started == now_)
            channel.cause = records_[other.record].cause;
        hold_record(channel.cause);
    }
    for (Half* half : {&channel.send, &channel.receive}) {
        ledger_.waiting_message(half->rank, -1, now_);
        if (half->stream != 0)
            --ranks_[half->rank].kernels_waiting;
        ledger_.moving(half->rank, account_of(half->label), +1, now_);
        half->exposed = ledger_.amount(half->rank, account_of(half->label));
        communication_on(half->rank, half->stream, route.uses_network, route.uses_nvlink, +1);
    }
    queue_.push({now_ + route.latency, EventClass::message_latency_end, c});
}

// A buffered channel: the sender goes on when its data have left, the data arrive a latency later, and no more than
// `slots` messages are sent ahead of the receiver.
void Engine::post_buffered(std::uint32_t c, bool is_send) {
    const Channel& channel = channels_[c];
    if (is_send && channel.started - channel.consumed < channel.slots)
        start_buffered(c);
    if (!is_send && channel.arrived > channel.consumed)
        deliver(c);
}

void Engine::start_buffered(std::uint32_t c) {
    Channel& channel = channels_[c];
    const program::Route& route = program_.routes[channel.route];
    ++channel.started;
    channel.sending = true;
    channel.moving_since = now_;
    Half& half = channel.send;
    ledger_.waiting_message(half.rank, -1, now_);
    if (half.stream != 0)
        --ranks_[half.rank].kernels_waiting;
    ledger_.moving(half.rank, account_of(half.label), +1, now_);
    half.exposed = ledger_.amount(half.rank, account_of(half.label));
    communication_on(half.rank, half.stream, route.uses_network, route.uses_nvlink, +1);
    const Rate alone = route.cap > 0 ? std::min(route.cap, alone_[route.demand]) : alone_[route.demand];
    const Network::Id id =
        network_.start(demands_[route.demand], std::max<Bytes>(half.bytes, 1), 1, route.cap, alone, now_);
    own(id, {Owner::channel, c, first_channel_ + c});
}

void Engine::finish_buffered(std::uint32_t c) {
    Channel& channel = channels_[c];
    const program::Route& route = program_.routes[channel.route];
    const Half send = channel.send;
    const Rate alone = route.cap > 0 ? std::min(route.cap, alone_[route.demand]) : alone_[route.demand];
    const Picoseconds uncontended = Network::duration(std::max<Bytes>(send.bytes, 1), alone);
    channel.send = {};
    channel.sending = false;
    queue_.push({now_ + route.latency, EventClass::message_latency_end, c});
    finish_half(send, route, uncontended, now_ - channel.moving_since - uncontended);
    end_half(send);
    run_rank(send.rank);
}

// The oldest message that arrived meets the receive that is posted.
void Engine::deliver(std::uint32_t c) {
    Channel& channel = channels_[c];
    const Half receive = channel.receive;
    channel.receive = {};
    ++channel.consumed;
    ledger_.waiting_message(receive.rank, -1, now_);
    if (receive.stream != 0)
        --ranks_[receive.rank].kernels_waiting;
    if (channel.send.rank != program::kNone && !channel.sending)
        start_buffered(c);
    end_half(receive);
}

void Engine::end_half(const Half& half) {
    if (--stream_of(half.rank, half.stream).pending == 0)
        complete(half.rank, half.stream);
}

void Engine::start_message(std::uint32_t c) {
    if (channels_[c].slots > 0) {  // the data arrive
        ++channels_[c].arrived;
        const std::uint32_t receiver = channels_[c].receive.rank;
        if (receiver == program::kNone)
            return;
        deliver(c);
        run_rank(receiver);
        return;
    }
    const Channel& channel = channels_[c];
    if (channel.send.bytes == 0) {
        finish_message(c);
        return;
    }
    const program::Route& route = program_.routes[channel.route];
    const Rate alone = route.cap > 0 ? std::min(route.cap, alone_[route.demand]) : alone_[route.demand];
    watch_down(demands_[route.demand]);
    const Network::Id id = network_.start(demands_[route.demand], channel.send.bytes, 1, route.cap, alone, now_);
    own(id, {Owner::channel, c, first_channel_ + c});
}

void Engine::finish_message(std::uint32_t c) {
    Channel& channel = channels_[c];
    if (channel.slots > 0) {
        finish_buffered(c);
        return;
    }
    const program::Route& route = program_.routes[channel.route];
    const Half send = channel.send, receive = channel.receive;
    Picoseconds uncontended = route.latency;
    if (send.bytes > 0) {
        const Rate alone = route.cap > 0 ? std::min(route.cap, alone_[route.demand]) : alone_[route.demand];
        uncontended += Network::duration(send.bytes, alone);
    }
    const Picoseconds moving_since = channel.moving_since;
    const std::uint32_t cause = channel.cause;
    channel.send = {};
    channel.receive = {};
    const Picoseconds excess = now_ - moving_since - uncontended;
    finish_half(send, route, uncontended, excess);
    finish_half(receive, route, uncontended, excess);
    for (const Half& half : {send, receive}) {
        if (--stream_of(half.rank, half.stream).pending != 0)
            continue;
        if (recording_) {  // the message that ends last tells what the batch waited for
            const std::uint32_t record = stream_of(half.rank, half.stream).record;
            records_[record].started = moving_since;
            if (stream_of(half.rank, half.stream).started != moving_since)
                set_cause(record, cause);  // the other side came later
        }
        complete(half.rank, half.stream);
        run_rank(half.rank);
    }
    if (recording_)
        drop_record(cause);
}

void Engine::finish_half(const Half& half, const program::Route& route, Picoseconds uncontended, Picoseconds excess) {
    const Account account = account_of(half.label);
    ledger_.moving(half.rank, account, -1, now_);
    communication_on(half.rank, half.stream, route.uses_network, route.uses_nvlink, -1);
    charge_contention(half.rank, account, half.exposed, uncontended, excess);
}

// A member that is expected late was waited for: of what the call cost this rank, as much as that.
void Engine::charge_lateness(const Arrival& arrival, Account account, Picoseconds late) {
    if (late <= 0)
        return;
    const Picoseconds exposed = ledger_.amount(arrival.rank, account) - arrival.exposed;
    const Picoseconds waited = std::clamp<Picoseconds>(exposed, 0, late);
    ledger_.add(arrival.rank, account, -waited);
    ledger_.add(arrival.rank, Account::straggler, waited);
}

// Exposed time beyond the uncontended is contention; what an earlier step was charged stays there.
void Engine::charge_contention(std::uint32_t rank, Account account, Picoseconds exposed_before, Picoseconds uncontended,
                               Picoseconds excess) {
    if (excess <= 0)
        return;
    const std::uint32_t step = ranks_[rank].step;
    const Picoseconds amount = ledger_.amount(rank, account);
    const Picoseconds earlier = step > 0 ? boundaries_[step - 1].accounts[rank][static_cast<std::size_t>(account)] : 0;
    const Picoseconds exposed = std::min(amount - earlier, amount - exposed_before - uncontended);
    const Picoseconds contention = std::clamp<Picoseconds>(exposed, 0, excess);
    ledger_.add(rank, account, -contention);
    ledger_.add(rank, Account::contention, contention);
}

}  // namespace fabricast::engine
