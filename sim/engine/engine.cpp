#include "sim/engine/engine.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <tuple>

namespace fabricast::engine {
namespace {

std::uint64_t mix(std::uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

constexpr std::uint8_t bit(std::uint8_t stream) {
    return static_cast<std::uint8_t>(1u << stream);
}

}  // namespace

Engine::Engine(const program::Program& program, std::span<const Rate> capacity, EngineOptions options)
    : program_(program),
      options_(options),
      demands_(without_dominated_links(program.demands, capacity)),
      network_(capacity, options.quantum),
      ledger_(program.ranks.size()) {
    bind();
}

// Lowers the templates and resolves every slot to an index once, so that the loop only follows numbers.
void Engine::bind() {
    const std::size_t ranks = program_.ranks.size();
    std::map<std::pair<std::uint32_t, std::vector<std::int64_t>>, std::uint32_t> lowered;
    std::vector<std::uint32_t> code_of(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        const program::Rank& source = program_.ranks[rank];
        const auto [at, fresh] =
            lowered.try_emplace({source.tmpl, source.bindings}, static_cast<std::uint32_t>(codes_.size()));
        if (fresh) codes_.push_back(lower(program_, source.tmpl, source.bindings));
        code_of[rank] = at->second;
    }
    ranks_.resize(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        RankState& r = ranks_[rank];
        r.code = &codes_[code_of[rank]];
        r.first_stream = static_cast<std::uint32_t>(streams_.size());
        r.streams = static_cast<std::uint8_t>(r.code->entry.size());
        assert(r.streams <= kMaxStreams);
        r.slowness = program_.ranks[rank].slowness;
        for (const std::uint32_t entry : r.code->entry) streams_.emplace_back().counter = entry;
    }
    groups_.resize(program_.groups.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) groups_[g].arrivals.reserve(program_.groups[g].members.size());
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> channel_of;
    const auto channel = [&](std::uint32_t from, std::uint32_t to, std::uint32_t number) {
        const auto [at, fresh] = channel_of.try_emplace({from, to, number}, static_cast<std::uint32_t>(channels_.size()));
        if (fresh) {
            channels_.emplace_back();
            channels_.back().source = from;
            channels_.back().target = to;
        }
        return at->second;
    };
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        first_peer_.push_back(static_cast<std::uint32_t>(send_channel_.size()));
        first_group_.push_back(static_cast<std::uint32_t>(groups_of_.size()));
        groups_of_.insert(groups_of_.end(), program_.ranks[rank].groups.begin(), program_.ranks[rank].groups.end());
        for (const program::Peer& peer : program_.ranks[rank].peers) {
            if (peer.rank == program::kNone) {
                send_channel_.push_back(program::kNone);
                receive_channel_.push_back(program::kNone);
                continue;
            }
            send_channel_.push_back(channel(rank, peer.rank, peer.channel));
            receive_channel_.push_back(channel(peer.rank, rank, peer.channel));
            if (peer.send_route != program::kNone) channels_[send_channel_.back()].route = peer.send_route;
        }
    }
    bubble_before_.assign(groups_of_.size(), 0);
    for (const program::CostClass& cost : program_.costs) {
        first_part_.push_back(static_cast<std::uint32_t>(parts_.size()));
        for (std::size_t a = 0; a < kAccountCount; ++a) {
            if (cost.parts[a] != 0) parts_.push_back({static_cast<Account>(a), cost.parts[a]});
        }
    }
    first_part_.push_back(static_cast<std::uint32_t>(parts_.size()));
    for (const std::vector<LinkUse>& demand : demands_) alone_.push_back(network_.alone_rate(demand, 0));
    queue_.reserve(ranks * 2 + 1024);
}

EngineResult Engine::run() {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
        ranks_[rank].wake = static_cast<std::uint8_t>((1u << ranks_[rank].streams) - 1);
        run_rank(rank);
    }
    solve_network();
    update_speeds();
    while (outcome_ == Outcome::done && next_instant()) {
        do {
            const Event event = queue_.top();
            queue_.pop();
            if (!stale(event)) dispatch(event);
        } while (!queue_.empty() && queue_.top().time == now_);
        solve_network();
        update_speeds();
        if (settled()) return result();
    }
    if (outcome_ == Outcome::done) {
        for (const Stream& stream : streams_) {
            if (stream.state != StreamState::halted) {
                fail(Outcome::deadlock, deadlock_report());
                break;
            }
        }
    }
    return result();
}

// True when what the event announced was put off, or happened, since.
bool Engine::stale(const Event& event) const {
    if (event.kind() == EventClass::compute_end) return !ranks_[event.id()].computing || ranks_[event.id()].version != event.version();
    return event.kind() == EventClass::activity_end && network_.version(event.id()) != event.version();
}

// Moves the clock to the next event that still holds; false when there is none.
bool Engine::next_instant() {
    while (!queue_.empty() && stale(queue_.top())) queue_.pop();
    if (queue_.empty()) return false;
    now_ = queue_.top().time;
    return true;
}

void Engine::dispatch(const Event& event) {
    ++events_;
    trigger_ = program::kNone;
    switch (event.kind()) {
        case EventClass::compute_end: end_compute(event.id()); break;
        case EventClass::latency_end: start_activities(event.id()); break;
        case EventClass::message_latency_end: start_message(event.id()); break;
        case EventClass::activity_end: end_activity(event.id()); break;
        case EventClass::delay_end: {
            const auto rank = static_cast<std::uint32_t>(event.id() / kMaxStreams);
            const auto stream = static_cast<std::uint8_t>(event.id() % kMaxStreams);
            const Stream& s = stream_of(rank, stream);
            const Instruction& in = ranks_[rank].code->instructions[s.counter];
            if (in.kind == Instruction::Kind::transfer) {  // latency passed: the data move
                const program::Transfer& transfer = program_.transfers[in.payload];
                if (transfer.bytes == 0) {
                    end_delay(rank, stream);
                    break;
                }
                const program::Route& route = program_.routes[program_.ranks[rank].transfer_routes[transfer.route_slot]];
                const Network::Id id = network_.start(demands_[route.demand], transfer.bytes, 1, route.cap,
                                                      alone_[route.demand], now_);
                if (owners_.size() <= id) owners_.resize(id + 1);
                owners_[id] = {Owner::transfer, event.id()};
                break;
            }
            end_delay(rank, stream);
            break;
        }
    }
}

void Engine::run_rank(std::uint32_t rank) {
    RankState& r = ranks_[rank];
    while (r.wake != 0) {
        const auto stream = static_cast<std::uint8_t>(std::countr_zero(r.wake));
        r.wake = static_cast<std::uint8_t>(r.wake & ~bit(stream));
        advance(rank, stream);
    }
}

bool Engine::waits_met(const RankState& r, const Stream& s, const Instruction& in) const {
    const Wait* wait = r.code->waits.data() + in.waits;
    for (int n = 0; n < in.wait_count; ++n, ++wait) {
        if (wait->skip_first >= 0 && s.loop[static_cast<std::size_t>(wait->skip_first)] == 0) continue;
        std::int64_t needed = wait->base;
        for (std::size_t level = 0; level < kMaxDepth; ++level) needed += wait->stride[level] * s.loop[level];
        if (streams_[r.first_stream + wait->stream].completed < needed) return false;
    }
    return true;
}

// Walks a stream until an operation is in flight, waits, or the code ends.
void Engine::advance(std::uint32_t rank, std::uint8_t stream) {
    RankState& r = ranks_[rank];
    Stream& s = streams_[r.first_stream + stream];
    if (s.state == StreamState::active || s.state == StreamState::halted) return;
    for (;;) {
        const Instruction& in = r.code->instructions[s.counter];
        if (in.kind == Instruction::Kind::loop_end) {
            if (++s.loop[in.level] < in.operation) {
                s.counter = in.payload;
            } else {
                s.loop[in.level] = 0;
                ++s.counter;
            }
            continue;
        }
        if (in.kind == Instruction::Kind::halt) {
            s.state = StreamState::halted;
            r.blocked = static_cast<std::uint8_t>(r.blocked & ~bit(stream));
            return;
        }
        if (in.wait_count != 0 && !waits_met(r, s, in)) {
            s.state = StreamState::blocked;
            r.blocked |= bit(stream);
            return;
        }
        r.blocked = static_cast<std::uint8_t>(r.blocked & ~bit(stream));
        s.state = StreamState::active;
        s.started = now_;
        r.active |= bit(stream);
        if (options_.record_timeline) begin_record(rank, stream, in);
        switch (in.kind) {
            case Instruction::Kind::compute: start_compute(rank, in); return;
            case Instruction::Kind::collective: arrive(rank, stream, in); return;
            case Instruction::Kind::p2p_batch: post(rank, stream, in); return;
            case Instruction::Kind::transfer: start_transfer(rank, stream, in); return;
            case Instruction::Kind::host:
            case Instruction::Kind::timer: {
                const Picoseconds value = program_.durations[in.payload];
                const Picoseconds until = in.kind == Instruction::Kind::host ? now_ + value : std::max(now_, value);
                ledger_.moving(rank, account_of(in.label), +1, now_);
                queue_.push({until, EventClass::delay_end, delay_id(rank, stream)});
                return;
            }
            case Instruction::Kind::step_end:
                complete(rank, stream);
                end_step(rank);
                r.wake = static_cast<std::uint8_t>(r.wake & ~bit(stream));
                break;
            case Instruction::Kind::loop_end:
            case Instruction::Kind::halt: break;
        }
    }
}

void Engine::begin_record(std::uint32_t rank, std::uint8_t stream, const Instruction& in) {
    stream_of(rank, stream).record = static_cast<std::uint32_t>(records_.size());
    records_.push_back({rank, trigger_, in.label, in.operation, stream, now_, now_, now_});
}

// The operation at the head of a stream is over: count it, let the streams that may wait for it look again.
void Engine::complete(std::uint32_t rank, std::uint8_t stream) {
    RankState& r = ranks_[rank];
    Stream& s = streams_[r.first_stream + stream];
    const Instruction& in = r.code->instructions[s.counter];
    if (step_fingerprint_.size() <= r.step) step_fingerprint_.resize(r.step + 1, 0);
    const std::uint64_t id = (static_cast<std::uint64_t>(r.code->tmpl) << 32) | in.operation;
    step_fingerprint_[r.step] += mix(id * 0x9e3779b97f4a7c15ull + static_cast<std::uint64_t>(s.started) * 0xd1342543de82ef95ull +
                                     static_cast<std::uint64_t>(now_) * 0xaf251af3b0f025b5ull);
    if (options_.record_timeline) {
        records_[s.record].finished = now_;
        trigger_ = s.record;
    }
    if (in.host_sync) r.host_clock = std::max(r.host_clock, now_);
    ++s.completed;
    ++s.counter;
    s.state = StreamState::ready;
    r.active = static_cast<std::uint8_t>(r.active & ~bit(stream));
    r.wake |= static_cast<std::uint8_t>(bit(stream) | r.blocked);
}

// ---- compute -------------------------------------------------------------------------------------------------------

void Engine::start_compute(std::uint32_t rank, const Instruction& in) {
    RankState& r = ranks_[rank];
    const program::CostClass& cost = program_.costs[in.payload];
    r.cost = in.payload;
    r.begun = now_;
    r.compute_from = std::max(now_, r.host_clock + cost.host_first);
    r.host_clock += cost.host;
    r.host_floor = cost.host > 0 ? r.host_clock + cost.tail : 0;
    r.work = static_cast<Picoseconds>((static_cast<__int128>(cost.work) * r.slowness) >> 16);
    r.remaining = static_cast<__int128>(r.work) << 16;
    r.updated = r.compute_from;
    r.computing = true;
    r.speed = 0;
    r.unfloored = INT64_MAX;
    ledger_.computing(rank, true, now_);
    update_speed(rank);
}

void Engine::update_speed(std::uint32_t rank) {
    RankState& r = ranks_[rank];
    r.dirty = false;
    if (!r.computing || now_ >= r.unfloored) return;  // all work done: only the CPU is waited for
    const std::size_t state = r.on_network != 0 ? (r.on_nvlink != 0 ? 4 : 2)
                                                : (r.on_nvlink != 0 ? 3 : (r.kernels_waiting != 0 ? 1 : 0));
    const std::uint32_t speed = program_.costs[r.cost].speed[state];
    if (speed == r.speed) return;
    if (now_ > r.updated) {
        r.remaining -= static_cast<__int128>(now_ - r.updated) * r.speed;
        if (r.remaining < 0) r.remaining = 0;
        r.updated = now_;
    }
    r.speed = speed;
    const __int128 left = r.remaining + speed - 1;
    r.unfloored = r.updated + static_cast<Picoseconds>(speed == program::kFullSpeed ? left >> 16 : left / speed);
    queue_.push({std::max(r.unfloored, r.host_floor), EventClass::compute_end, rank, ++r.version});
}

void Engine::update_speeds() {
    for (const std::uint32_t rank : dirty_ranks_) update_speed(rank);
    dirty_ranks_.clear();
}

void Engine::mark_dirty(std::uint32_t rank) {
    RankState& r = ranks_[rank];
    if (r.dirty || !r.computing) return;
    r.dirty = true;
    dirty_ranks_.push_back(rank);
}

// Splits the segment's time: what its kernels take alone, what the CPU cost, what concurrent communication cost.
void Engine::end_compute(std::uint32_t rank) {
    RankState& r = ranks_[rank];
    const program::CostClass& cost = program_.costs[r.cost];
    r.computing = false;
    ledger_.computing(rank, false, now_);
    const Picoseconds duration = now_ - r.begun;
    const Picoseconds host = (r.compute_from - r.begun) + std::max<Picoseconds>(0, now_ - r.unfloored);
    ledger_.add_computing(rank, -duration);
    for (std::uint32_t part = first_part_[r.cost]; part < first_part_[r.cost + 1]; ++part) {
        ledger_.add(rank, parts_[part].account, parts_[part].time);
    }
    ledger_.add(rank, Account::host_bound, host);
    ledger_.add(rank, Account::straggler, r.work - cost.work);
    ledger_.add(rank, Account::interference, duration - r.work - host);
    complete(rank, 0);
    run_rank(rank);
}

// Communication of a stream beside the compute stream comes or goes on a rank.
void Engine::communication_on(std::uint32_t rank, std::uint8_t stream, bool network, bool nvlink, int change) {
    if (stream == 0) return;
    RankState& r = ranks_[rank];
    if (network) r.on_network = static_cast<std::uint16_t>(r.on_network + change);
    if (nvlink) r.on_nvlink = static_cast<std::uint16_t>(r.on_nvlink + change);
    mark_dirty(rank);
}

// ---- collectives ---------------------------------------------------------------------------------------------------

void Engine::arrive(std::uint32_t rank, std::uint8_t stream, const Instruction& in) {
    const program::Call& call = program_.calls[in.payload];
    const std::uint32_t slot = first_group_[rank] + call.slot;
    const std::uint32_t g = groups_of_[slot];
    GroupState& state = groups_[g];
    if (state.arrivals.empty()) {
        state.call = in.payload;
    } else if (state.call != in.payload && (program_.calls[state.call].kind != call.kind ||
                                            program_.calls[state.call].bytes != call.bytes)) {
        fail(Outcome::mismatch, "members of group " + program_.groups[g].name + " call different collectives: " +
                                    describe(state.arrivals.front().rank, state.arrivals.front().stream) + "; " +
                                    describe(rank, stream));
        return;
    }
    ledger_.waiting_members(rank, +1, now_);
    if (stream != 0) {
        ++ranks_[rank].kernels_waiting;
        mark_dirty(rank);
    }
    const Picoseconds bubble = ledger_.amount(rank, Account::bubble) - bubble_before_[slot];
    state.arrivals.push_back({rank, in.label, slot, stream, ledger_.waited(rank), bubble});
    if (state.arrivals.size() == program_.groups[g].members.size()) {
        state.cause = trigger_;
        settle_waits(state);
        start_moving(g);
    }
}

// Who waited for the last member waited for its work (straggler) or for what it had itself waited for since the group
// last met (bubble). Of members that arrive last together the one with the least bubble counts, whatever their order.
void Engine::settle_waits(const GroupState& state) {
    Picoseconds bubble = INT64_MAX;
    for (const Arrival& arrival : state.arrivals) {
        if (stream_of(arrival.rank, arrival.stream).started == now_) bubble = std::min(bubble, arrival.bubble);
    }
    for (const Arrival& arrival : state.arrivals) {
        ledger_.charge(arrival.rank, now_);
        const Picoseconds waited = ledger_.waited(arrival.rank) - arrival.waited;
        if (waited != 0) {
            const Picoseconds of_bubble = ledger_.settle_waiting(arrival.rank, Account::bubble, std::min(waited, bubble));
            ledger_.settle_waiting(arrival.rank, Account::straggler, waited - of_bubble);
        }
        bubble_before_[arrival.slot] = ledger_.amount(arrival.rank, Account::bubble);
    }
}

void Engine::start_moving(std::uint32_t g) {
    GroupState& state = groups_[g];
    state.plan = &program_.plans[state.call][program_.groups[g].shape];
    state.moving_since = now_;
    state.slowed = false;
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
            Record& record = records_[stream_of(arrival.rank, arrival.stream).record];
            record.started = now_;
            record.cause = state.cause;
        }
    }
    queue_.push({now_ + state.plan->latency, EventClass::latency_end, g});
}

void Engine::start_activities(std::uint32_t g) {
    GroupState& state = groups_[g];
    const program::Group& group = program_.groups[g];
    state.pending = 0;
    for (const program::Activity& activity : state.plan->activities) {
        if (activity.work == 0) continue;
        const std::uint32_t demand = group.demands[activity.demand_class];
        const Rate alone = activity.cap > 0 ? std::min(activity.cap, alone_[demand]) : alone_[demand];
        const Network::Id id =
            network_.start(demands_[demand], activity.work, activity.weight, activity.cap, alone, now_);
        if (owners_.size() <= id) owners_.resize(id + 1);
        owners_[id] = {Owner::group, g};
        ++state.pending;
    }
    if (state.pending == 0) finish_collective(g);
}

void Engine::finish_collective(std::uint32_t g) {
    GroupState& state = groups_[g];
    const program::Group& group = program_.groups[g];
    Picoseconds excess = 0;
    if (state.slowed) {
        Picoseconds slowest = 0;
        for (const program::Activity& activity : state.plan->activities) {
            if (activity.work == 0) continue;
            const Rate alone = alone_[group.demands[activity.demand_class]];
            slowest = std::max(slowest, Network::duration(activity.work, activity.cap > 0 ? std::min(activity.cap, alone) : alone));
        }
        excess = now_ - state.moving_since - state.plan->latency - slowest;
    }
    // First all members, then their streams: a member's next call may be on this group again.
    finishing_.clear();
    finishing_.swap(state.arrivals);
    const Picoseconds uncontended = now_ - state.moving_since - excess;
    for (const Arrival& arrival : finishing_) {
        const Account account = account_of(arrival.label);
        ledger_.moving(arrival.rank, account, -1, now_);
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
        const Half& other = half.is_send ? channels_[c].receive : channels_[c].send;
        if (other.rank != program::kNone) match(c);
    }
}

void Engine::match(std::uint32_t c) {
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
    channel.cause = trigger_;
    for (Half* half : {&channel.send, &channel.receive}) {
        ledger_.waiting_message(half->rank, -1, now_);
        if (half->stream != 0) --ranks_[half->rank].kernels_waiting;
        ledger_.moving(half->rank, account_of(half->label), +1, now_);
        half->exposed = ledger_.amount(half->rank, account_of(half->label));
        communication_on(half->rank, half->stream, route.uses_network, route.uses_nvlink, +1);
    }
    queue_.push({now_ + route.latency, EventClass::message_latency_end, c});
}

void Engine::start_message(std::uint32_t c) {
    const Channel& channel = channels_[c];
    if (channel.send.bytes == 0) {
        finish_message(c);
        return;
    }
    const program::Route& route = program_.routes[channel.route];
    const Rate alone = route.cap > 0 ? std::min(route.cap, alone_[route.demand]) : alone_[route.demand];
    const Network::Id id = network_.start(demands_[route.demand], channel.send.bytes, 1, route.cap, alone, now_);
    if (owners_.size() <= id) owners_.resize(id + 1);
    owners_[id] = {Owner::channel, c};
}

void Engine::finish_message(std::uint32_t c) {
    Channel& channel = channels_[c];
    const program::Route& route = program_.routes[channel.route];
    const Half send = channel.send, receive = channel.receive;
    Picoseconds uncontended = route.latency;
    if (send.bytes > 0) {
        const Rate alone = route.cap > 0 ? std::min(route.cap, alone_[route.demand]) : alone_[route.demand];
        uncontended += Network::duration(send.bytes, alone);
    }
    channel.send = {};
    channel.receive = {};
    const Picoseconds excess = now_ - channel.moving_since - uncontended;
    finish_half(send, route, uncontended, excess);
    finish_half(receive, route, uncontended, excess);
    for (const Half& half : {send, receive}) {
        if (--stream_of(half.rank, half.stream).pending != 0) continue;
        if (options_.record_timeline) {  // the message that ends last tells what the batch waited for
            Record& record = records_[stream_of(half.rank, half.stream).record];
            record.started = channel.moving_since;
            if (record.issued != channel.moving_since) record.cause = channel.cause;  // the other side came later
        }
        complete(half.rank, half.stream);
        run_rank(half.rank);
    }
}

void Engine::finish_half(const Half& half, const program::Route& route, Picoseconds uncontended, Picoseconds excess) {
    const Account account = account_of(half.label);
    ledger_.moving(half.rank, account, -1, now_);
    communication_on(half.rank, half.stream, route.uses_network, route.uses_nvlink, -1);
    charge_contention(half.rank, account, half.exposed, uncontended, excess);
}

// Exposed time beyond the uncontended is contention; what an earlier step was charged stays there.
void Engine::charge_contention(std::uint32_t rank, Account account, Picoseconds exposed_before, Picoseconds uncontended,
                               Picoseconds excess) {
    if (excess <= 0) return;
    const std::uint32_t step = ranks_[rank].step;
    const Picoseconds amount = ledger_.amount(rank, account);
    const Picoseconds earlier = step > 0 ? boundaries_[step - 1].accounts[rank][static_cast<std::size_t>(account)] : 0;
    const Picoseconds exposed = std::min(amount - earlier, amount - exposed_before - uncontended);
    const Picoseconds contention = std::clamp<Picoseconds>(exposed, 0, excess);
    ledger_.add(rank, account, -contention);
    ledger_.add(rank, Account::contention, contention);
}

// ---- transfers, network, steps -------------------------------------------------------------------------------------

void Engine::start_transfer(std::uint32_t rank, std::uint8_t stream, const Instruction& in) {
    const program::Transfer& transfer = program_.transfers[in.payload];
    const program::Route& route = program_.routes[program_.ranks[rank].transfer_routes[transfer.route_slot]];
    ledger_.moving(rank, account_of(in.label), +1, now_);
    queue_.push({now_ + route.latency, EventClass::delay_end, delay_id(rank, stream)});
}

// End of an operation of one rank alone: host work, timer, transfer, empty batch.
void Engine::end_delay(std::uint32_t rank, std::uint8_t stream) {
    const Instruction& in = ranks_[rank].code->instructions[stream_of(rank, stream).counter];
    ledger_.moving(rank, account_of(in.label), -1, now_);
    complete(rank, stream);
    run_rank(rank);
}

void Engine::end_activity(Network::Id id) {
    const ActivityOwner owner = owners_[id];
    const bool slowed = network_.was_slowed(id);
    network_.remove(id);
    switch (owner.kind) {
        case Owner::group: {
            GroupState& state = groups_[owner.id];
            state.slowed = state.slowed || slowed;
            if (--state.pending == 0) finish_collective(owner.id);
            break;
        }
        case Owner::channel: finish_message(owner.id); break;
        case Owner::transfer: {
            const auto rank = static_cast<std::uint32_t>(owner.id / kMaxStreams);
            end_delay(rank, static_cast<std::uint8_t>(owner.id % kMaxStreams));
            break;
        }
    }
}

void Engine::solve_network() {
    if (!network_.needs_solve()) return;
    for (const Network::Id id : network_.solve(now_)) {
        queue_.push({network_.finish(id), EventClass::activity_end, id, network_.version(id)});
    }
#ifndef NDEBUG
    const std::string broken = network_.validate();
    assert(broken.empty());
#endif
}

void Engine::end_step(std::uint32_t rank) {
    RankState& r = ranks_[rank];
    const std::uint32_t step = r.step++;
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
    if (++boundary.passed == ranks_.size()) {
        steps_done_ = step + 1;
        if (step >= 2) boundaries_[step - 2].accounts = {};
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
        const bool starts = (r.wake & bit(stream)) != 0 && s.state == StreamState::blocked && waits_met(r, s, in);
        if (s.state != StreamState::active && !starts) continue;
        const Picoseconds since = starts ? 0 : now_ - s.started;
        hash += mix(mix((static_cast<std::uint64_t>(stream) << 32 | in.operation) + 0x9e3779b97f4a7c15ull) ^
                    static_cast<std::uint64_t>(since));
    }
    return hash;
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
    if (steps_done_ == steps_checked_ || periodic_) return false;
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
    out.activities_touched = network_.activities_touched();
    out.steps = steps_done_;
    out.periodic = periodic_;
    out.accounts.resize(ranks_.size());
    if (steps_done_ > 0) {
        const StepBoundary& last = boundaries_[steps_done_ - 1];
        const StepBoundary* before = steps_done_ > 1 ? &boundaries_[steps_done_ - 2] : nullptr;
        out.window_begin = before ? before->time.front() : 0;
        out.window_end = last.time.front();
        out.period = out.window_end - out.window_begin;
        for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
            for (std::size_t a = 0; a < kAccountCount; ++a) {
                out.accounts[rank][a] = last.accounts[rank][a] - (before ? before->accounts[rank][a] : 0);
            }
        }
    } else {
        for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
            ledger_.charge(rank, now_);
            const Ledger::Buckets& buckets = ledger_.buckets(rank);
            std::copy_n(buckets.begin(), kAccountCount, out.accounts[rank].begin());
            out.accounts[rank][static_cast<std::size_t>(Account::straggler)] += buckets[Ledger::kWaitingMembers];
        }
        out.window_end = now_;
    }
    const std::size_t counted = steps_done_ > 0 ? std::min<std::size_t>(steps_done_, step_fingerprint_.size()) : step_fingerprint_.size();
    for (std::size_t step = 0; step < counted; ++step) out.fingerprint += step_fingerprint_[step];
    out.timeline = std::move(records_);
    return out;
}

}  // namespace fabricast::engine
