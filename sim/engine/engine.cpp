#include "sim/engine/engine.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <tuple>

#include "sim/engine/mixing.hpp"

namespace fabricast::engine {

Engine::Engine(const program::Program& program, std::span<const Rate> capacity, EngineOptions options)
    : program_(program),
      options_(options),
      demands_(options.changes.empty() ? program::deciding_links(program.demands, capacity) : program.demands),
      network_(capacity, options.quantum),
      ledger_(program.ranks.size()),
      recording_(options.record_timeline || options.track_path) {
    bind(capacity);
}

// Lowers the templates and resolves every slot to an index once, so that the loop only follows numbers.
void Engine::bind(std::span<const Rate> capacity) {
    const std::size_t ranks = program_.ranks.size();
    std::map<std::pair<std::uint32_t, std::vector<std::int64_t>>, std::uint32_t> lowered;
    std::vector<std::uint32_t> code_of(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        const program::Rank& source = program_.ranks[rank];
        const auto [at, fresh] =
            lowered.try_emplace({source.tmpl, source.bindings}, static_cast<std::uint32_t>(codes_.size()));
        if (fresh)
            codes_.push_back(lower(program_, source.tmpl, source.bindings));
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
        r.copies = program_.ranks[rank].copies;
        for (const std::uint32_t entry : r.code->entry)
            streams_.emplace_back().counter = entry;
    }
    groups_.resize(program_.groups.size());
    for (std::size_t g = 0; g < groups_.size(); ++g)
        groups_[g].arrivals.reserve(program_.groups[g].members.size());
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> channel_of;
    const auto channel = [&](std::uint32_t from, std::uint32_t to, std::uint32_t number) {
        const auto [at, fresh] =
            channel_of.try_emplace({from, to, number}, static_cast<std::uint32_t>(channels_.size()));
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
            receive_channel_.push_back(
                channel(peer.rank, rank, peer.receive_channel == program::kNone ? peer.channel : peer.receive_channel));
            if (peer.send_route != program::kNone) {
                channels_[send_channel_.back()].route = peer.send_route;
                channels_[send_channel_.back()].slots = peer.slots;
                buffered_ = buffered_ || peer.slots > 0;
            }
        }
    }
    bubble_before_.assign(groups_of_.size(), 0);
    for (const program::CostClass& cost : program_.costs) {
        first_part_.push_back(static_cast<std::uint32_t>(parts_.size()));
        for (std::size_t a = 0; a < kAccountCount; ++a) {
            if (cost.parts[a] != 0)
                parts_.push_back({static_cast<Account>(a), cost.parts[a]});
        }
    }
    first_part_.push_back(static_cast<std::uint32_t>(parts_.size()));
    alone_ = program_.alone;
    for (std::size_t d = alone_.size(); d < demands_.size(); ++d)
        alone_.push_back(network_.alone_rate(demands_[d], 0));
    std::vector<std::uint32_t> most;  // activities of a call, by shape
    for (const std::vector<program::Plan>& shapes : program_.plans) {
        most.resize(std::max(most.size(), shapes.size()), 0);
        for (std::size_t shape = 0; shape < shapes.size(); ++shape)
            most[shape] = std::max(most[shape], static_cast<std::uint32_t>(shapes[shape].activities.size()));
    }
    for (const program::Group& group : program_.groups) {
        first_scheduled_.push_back(first_channel_);
        first_channel_ += group.shape < most.size() ? most[group.shape] : 0;
    }
    first_transfer_ = first_channel_ + static_cast<std::uint32_t>(channels_.size());
    scheduled_.resize(first_transfer_ + streams_.size());
    find_lone_groups();
    queue_.reserve(ranks * 2 + 1024);
    bind_sources();
    for (std::uint32_t c = 0; c < options_.changes.size(); ++c)
        queue_.push({options_.changes[c].at, EventClass::change, c});
    if (options_.fold_time && !options_.record_timeline && options_.quantum == 0 && options_.changes.empty() &&
        options_.noise.sigma == 0 && options_.patience == 0 && options_.window_from == 0 && !options_.keep_step_ends &&
        program_.sources.empty()) {
        std::vector<const Code*> code;
        for (const RankState& r : ranks_)
            code.push_back(r.code);
        islands_ = find_islands(program_, code, demands_, capacity, alone_);
    }
}

EngineResult Engine::run() {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
        ranks_[rank].wake = static_cast<std::uint32_t>((1ull << ranks_[rank].streams) - 1);
        run_rank(rank);
    }
    solve_network();
    update_speeds();
    while (outcome_ == Outcome::done && next_instant()) {
        run_instant();
        if (settled())
            return result();
    }
    if (outcome_ == Outcome::done) {
        for (const Stream& stream : streams_) {
            if (stream.state != StreamState::halted) {
                fail(Outcome::deadlock, deadlock_report());
                failed_at_ = now_;
                waits_ = unmet(INT64_MAX);
                break;
            }
        }
    }
    return result();
}

void Engine::run_instant() {
    do {
        const Event event = queue_.top();
        queue_.pop();
        if (stale(event))
            put_off(event);
        else
            dispatch(event);
    } while (!queue_.empty() && queue_.top().time == now_);
    solve_network();
    update_speeds();
}

// True when what the event announced was put off, or happened, since.
bool Engine::stale(const Event& event) const {
    if (event.kind() == EventClass::compute_end)
        return !ranks_[event.id()].computing || ranks_[event.id()].version != event.version() ||
               ranks_[event.id()].ends > event.time;
    if (event.kind() != EventClass::activity_end)
        return false;
    if (event.id() == Network::kTick)
        return network_.version(Network::kTick) != event.version();
    const Scheduled& at = scheduled_[event.id()];
    if (at.activity == kLone)
        return at.version != event.version();
    return at.version != event.version() || network_.version(at.activity) != at.seen;
}

// Moves the clock to the next event that still holds; false when there is none.
bool Engine::next_instant() {
    while (!queue_.empty()) {
        const Event event = queue_.top();
        if (!stale(event)) {
            now_ = event.time;
            return true;
        }
        queue_.pop();
        put_off(event);
    }
    return false;
}

// A segment that was slowed ends later than its event says; where it was slowed and sped up again, once for all of that.
void Engine::put_off(const Event& event) {
    if (event.kind() != EventClass::compute_end)
        return;
    RankState& r = ranks_[event.id()];
    if (!r.computing || r.version != event.version())
        return;
    r.announced = r.ends;
    queue_.push({r.ends, EventClass::compute_end, event.id(), r.version});
}

void Engine::dispatch(const Event& event) {
    ++events_;
    ending_late_ = 0;
    set_trigger(program::kNone);
    switch (event.kind()) {
        case EventClass::compute_end: end_compute(event.id()); break;
        case EventClass::latency_end:
            if (!replayed(event.id()))
                start_activities(event.id());
            break;
        case EventClass::message_latency_end: start_message(event.id()); break;
        case EventClass::activity_end:
            if (event.id() == Network::kTick)
                network_.come_back();
            else
                end_activity(event.id());
            break;
        case EventClass::change: apply_change(event.id()); break;
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
                const program::Route& route =
                    program_.routes[program_.ranks[rank].transfer_routes[transfer.route_slot]];
                const Network::Id id =
                    network_.start(demands_[route.demand], transfer.bytes, 1, route.cap, alone_[route.demand], now_);
                own(id, {Owner::transfer, event.id(), first_transfer_ + ranks_[rank].first_stream + stream});
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
        r.wake = r.wake & ~bit(stream);
        advance(rank, stream);
    }
}

// The first wait of the instruction that does not hold yet.
Engine::UnmetWait Engine::unmet_wait(const RankState& r, const Stream& s, const Instruction& in) const {
    const Wait* wait = r.code->waits.data() + in.waits;
    for (int n = 0; n < in.wait_count; ++n, ++wait) {
        if (wait->skip_first >= 0 && s.loop[static_cast<std::size_t>(wait->skip_first)] == 0)
            continue;
        std::int64_t needed = wait->base;
        for (std::size_t level = 0; level < kMaxDepth; ++level)
            needed += wait->stride[level] * s.loop[level];
        if (streams_[r.first_stream + wait->stream].completed < needed)
            return {wait->stream, needed};
    }
    return {};
}

// Walks a stream until an operation is in flight, waits, or the code ends.
void Engine::advance(std::uint32_t rank, std::uint8_t stream) {
    RankState& r = ranks_[rank];
    Stream& s = streams_[r.first_stream + stream];
    if (s.state == StreamState::active || s.state == StreamState::halted || r.halted)
        return;
    if (rehearsal_)
        rehearsal_->seen.touched |= bit(stream);
    for (;;) {
        const Instruction& in = r.code->instructions[s.counter];
        if (in.kind == Instruction::Kind::loop_end) {
            if (rehearsal_) {
                rehearsal_->over = true;
                return;
            }
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
            return;
        }
        if (in.wait_count != 0) {
            const UnmetWait wait = unmet_wait(r, s, in);
            if (wait.needed > 0) {
                s.state = StreamState::blocked;
                s.needed = wait.needed;
                streams_[r.first_stream + wait.stream].waiters |= bit(stream);
                return;
            }
        }
        if (rehearsal_) {
            follow_start(rank, stream, in);
            if (rehearsal_->over)
                return;
        }
        s.state = StreamState::active;
        s.started = now_;
        r.active |= bit(stream);
        if (recording_ && (options_.record_timeline || in.kind != Instruction::Kind::collective))
            begin_record(rank, stream, in);
        switch (in.kind) {
            case Instruction::Kind::compute: start_compute(rank, in); return;
            case Instruction::Kind::collective: arrive(rank, stream, in); return;
            case Instruction::Kind::p2p_batch: post(rank, stream, in); return;
            case Instruction::Kind::transfer: start_transfer(rank, stream, in); return;
            case Instruction::Kind::fetch: fetch(rank, stream, in); return;
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
                r.wake = r.wake & ~bit(stream);
                break;
            case Instruction::Kind::loop_end:
            case Instruction::Kind::halt: break;
        }
    }
}

// The operation at the head of a stream is over: count it, let the streams that waited for it look again.
void Engine::complete(std::uint32_t rank, std::uint8_t stream) {
    RankState& r = ranks_[rank];
    Stream& s = streams_[r.first_stream + stream];
    const Instruction& in = r.code->instructions[s.counter];
    if (!options_.brief) {
        if (step_fingerprint_.size() <= r.step)
            step_fingerprint_.resize(r.step + 1, 0);
        step_fingerprint_[r.step] += r.copies * mix(finish_constant(r.code->tmpl, in.operation, s.started, now_));
    }
    if (rehearsal_)
        follow_finish(rank, s, in);
    if (recording_) {
        records_[s.record].finished = now_;
        if (options_.quantum > 0)
            late_[s.record] = in.kind == Instruction::Kind::step_end ? 0 : ending_late_;
        set_trigger(s.record);
    }
    if (in.host_sync &&
        (in.kind != Instruction::Kind::fetch || s.started < now_))  // an item that is there holds up nobody
        r.host_clock = std::max(r.host_clock, now_);
    ++s.completed;
    ++s.counter;
    s.state = StreamState::ready;
    r.active = r.active & ~bit(stream);
    r.wake |= bit(stream);
    for (std::uint32_t waiters = s.waiters; waiters != 0; waiters &= waiters - 1) {
        const auto waiter = static_cast<std::uint8_t>(std::countr_zero(waiters));
        if (s.completed < streams_[r.first_stream + waiter].needed)
            continue;
        s.waiters &= ~bit(waiter);
        r.wake |= bit(waiter);
    }
}

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
    if (in.kind == Instruction::Kind::fetch)
        note_taken(rank, in);
    complete(rank, stream);
    run_rank(rank);
}

void Engine::own(Network::Id id, const ActivityOwner& owner) {
    if (owners_.size() <= id)
        owners_.resize(id + 1);
    owners_[id] = owner;
    scheduled_[owner.place].activity = id;
    if (network_.solve_alone(id, now_))
        schedule(id);
}

void Engine::schedule(Network::Id id) {
    Scheduled& at = scheduled_[owners_[id].place];
    at.seen = network_.version(id);
    queue_.push({network_.finish(id), EventClass::activity_end, owners_[id].place, ++at.version});
}

void Engine::end_activity(std::uint32_t place) {
    const Network::Id id = scheduled_[place].activity;
    ++scheduled_[place].version;
    if (id == kLone) {
        finish_collective(scheduled_[place].group);
        return;
    }
    const ActivityOwner owner = owners_[id];
    const bool slowed = network_.was_slowed(id);
    ending_late_ = network_.lateness(id);
    network_.remove(id);
    switch (owner.kind) {
        case Owner::group: {
            GroupState& state = groups_[owner.id];
            state.slowed = state.slowed || slowed;
            state.late = ending_late_ = std::max(state.late, ending_late_);
            if (--state.pending == 0)
                finish_collective(owner.id);
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
    if (!network_.needs_solve())
        return;
    for (const Network::Id id : network_.solve(now_)) {
        if (id == Network::kTick) {
            queue_.push({network_.finish(id), EventClass::activity_end, id, network_.version(id)});
            continue;
        }
        schedule(id);
    }
#ifndef NDEBUG
    const std::string broken = network_.validate();
    assert(broken.empty());
#endif
}

}  // namespace fabricast::engine
