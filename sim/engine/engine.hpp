// The executor: runs a Program on links, in simulated time.
//
// Every rank has streams; each stream walks its lowered code (code.hpp). An operation at the head of its stream
// starts when its waits are met:
//   compute      runs for its cost class's work, slower while communication of other streams is on the rank
//   collective   arrives at its group; when the last member is there, the latency passes, then the activities of the
//                plan share the network; all members finish together with the slowest activity
//   p2p batch    posts its halves; a message starts when both sides are posted; the batch ends with its last message
//   transfer, host, timer   move bytes, pass a time, wait for an instant
//   step end     marks a boundary of the repeated step
//   fetch        takes the next item of a source, when it is made (engine_sources.cpp)
//
// Loop of run(): drain all events of an instant, solve the changed part of the network once, schedule finishes.
//
// The CPU issues the compute stream's work ahead of the GPU: its clock advances by a segment's `host` time, a segment
// cannot start before its first kernel nor end before its last kernel is issued, and a host_sync operation makes the
// CPU wait. What the GPU loses to that is Account::host_bound.
//
// The period of the step: if every rank ends step 1 at one instant with nothing in flight, the state equals the start
// and one step is the period. Otherwise steps run until two boundaries in a row show the same offsets between ranks,
// the same operations in flight for the same time, and CPUs that lead by the same time (or by more, where the lead
// already hides all of the CPU's time). Not compared: the progress of operations in flight.
//
// With a quantum (network.hpp) a step takes longer than exactly, by at most EngineResult::late:
//
//   the lateness of the operations on the chain of causes of the last step end (without it that chain is a lower limit
//   of the exact step, for operations that meet the same others)
//   + the longest time in which a link moves what was put off on it in the step (by which the others can have stayed)
//
// Not a theorem: where links are shared, an operation that ends earlier can slow a third one. On 300 random networks of
// tests/sim/engine/quantum_test.cpp it held each time, and none ended before the exact one. Whole programs may: with 1 us
// two of 13 shipped scenarios became 0.02 and 0.04 % shorter, because messages and compute then met at other moments.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/program/deciding_links.hpp"
#include "models/program/program.hpp"
#include "sim/engine/code.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/engine/islands.hpp"
#include "sim/engine/ledger.hpp"
#include "sim/engine/network.hpp"
#include "sim/engine/passage.hpp"
#include "sim/engine/timeline.hpp"
#include "topologies/graph/links.hpp"

namespace fabricast::engine {

/// Something that happens to the machine at a time, whatever the program does.
struct Change {
    enum class Kind : std::uint8_t {
        capacity,  ///< of link `id` becomes `value`
        down,      ///< the same, and nothing moves: who uses the link from then on has `patience` until it is up again
        up,        ///< link `id` has `value` again
        slowness,  ///< of rank `id`, from its next segment on
        halt,      ///< rank `id` ends what is in flight and starts nothing more
    };
    Picoseconds at = 0;
    Kind kind = Kind::capacity;
    std::uint32_t id = 0;
    std::int64_t value = 0;
    Picoseconds patience = 0;  ///< down: of the transport
};

/// Operations that waited for somebody longer than EngineOptions::patience, or lost their transport.
struct Standstill {
    std::string what;                     ///< "gradient all-reduce"
    std::string group;                    ///< of a collective; empty: a message
    std::uint32_t call = program::kNone;  ///< of a collective
    struct Side {
        std::uint32_t rank = 0, step = 0;  ///< steps the rank had completed
        Picoseconds since = 0;
    };
    std::vector<Side> waiting;           ///< those who are there, first come first
    std::vector<std::uint32_t> missing;  ///< those who are not, or came too late
    std::vector<std::uint32_t> members;  ///< all, in the order of the group
};

struct EngineOptions {
    Picoseconds quantum = 0;         ///< links are solved at most so often, 0 = exact
    bool record_timeline = false;    ///< keep every record (56 bytes an operation)
    bool track_path = false;         ///< keep the chains of causes that are still alive: EngineResult::path
    bool stop_when_periodic = true;  ///< false: run the whole program
    bool fold_time = true;          ///< replay what recurs (passage.hpp), spare lone calls: the same, except for counts
    std::uint32_t window_from = 0;  ///< > 0: accounts and period of all steps behind so many, not of the last alone
    Picoseconds patience = 0;       ///< a wait for members or messages that lasts longer ends the run; 0: endless
    std::vector<Change> changes = {};  ///< in order of time; the program must not be folded
    bool keep_step_ends = false;       ///< EngineResult::step_ends
    /// Draws the time of every segment: work W has the standard deviation sigma sqrt(W), shared by ranks_together ranks in
    /// order. Nothing recurs then: fold_time is off.
    struct Noise {
        std::uint32_t sigma = 0;  ///< in sqrt(ps); 0: none
        std::uint32_t ranks_together = 1;
        std::uint64_t seed = 0;
        /// Standard normal, by seed, group of ranks and segment (models/compute/spread.hpp).
        double (*draw)(std::uint64_t seed, std::uint32_t group, std::uint64_t segment) = nullptr;
    } noise = {};
    /// Period and accounts alone: no fingerprint, and a step that ends with receives posted for the next, which nobody
    /// answers before, and otherwise idle, is as one from an idle start (where they are posted in its first instant).
    bool brief = false;
};

enum class Outcome : std::uint8_t { done, deadlock, mismatch, overdue, transport };

struct EngineResult {
    Outcome outcome = Outcome::done;
    std::string message;     ///< deadlock, mismatch: who waits for what
    Picoseconds end = 0;     ///< time of the last event
    Picoseconds period = 0;  ///< longest last complete step of any rank (0 when the program has no step end)
    Picoseconds window_begin = 0, window_end = 0;  ///< rank 0's last complete step
    bool periodic = false;
    std::uint32_t steps = 0;  ///< complete steps simulated
    std::vector<std::array<Picoseconds, kAccountCount>>
        accounts;  ///< by rank of the program, over its last complete step
                   ///< (whole run when there is no step end)
    std::uint64_t events = 0, fingerprint = 0, solves = 0, activities_touched = 0;
    std::uint64_t replays = 0;     ///< passages replayed
    std::vector<Record> timeline;  ///< with record_timeline
    std::vector<Record> path;  ///< with either: chain of causes of the last step end, latest first; cause = next entry
    Picoseconds path_begin = 0, path_end = 0;  ///< the last complete step of the rank that ended it last
    Batching batching;                         ///< what the quantum did
    Picoseconds late = 0;  ///< with a quantum: the step exactly is at most so much shorter; -1: not followed (no path
                           ///< asked for, or buffered channels)
    std::vector<Standstill> waits;  ///< deadlock and overdue: who waits for whom; transport: what was in flight
    std::uint32_t lost_link = 0;    ///< transport
    Picoseconds failed_at = 0;      ///< overdue: when the first lost its patience; deadlock, transport: the end
    std::vector<std::vector<Picoseconds>> step_ends;  ///< by rank, with keep_step_ends
};

class Engine {
public:
    /// Keeps references to both. The program must be valid (program::validate).
    Engine(const program::Program& program, std::span<const Rate> capacity, EngineOptions options = {});

    EngineResult run();

private:
    static constexpr std::size_t kMaxStreams = 32;
    struct Stream {
        std::uint32_t counter = 0;  ///< program counter
        std::uint32_t record = program::kNone;
        std::int64_t completed = 0;
        std::array<std::uint32_t, kMaxDepth> loop = {};
        Picoseconds started = 0;
        std::uint32_t pending = 0;  ///< p2p batch: messages still to finish
        std::uint32_t waiters = 0;  ///< streams of the rank blocked until this one has completed more, bit mask
        std::int64_t needed = 0;    ///< blocked: completions of the other stream it waits for
        StreamState state = StreamState::ready;
    };
    struct RankState {
        const Code* code = nullptr;
        std::uint32_t first_stream = 0;
        std::uint8_t streams = 0;
        std::uint32_t wake = 0;    ///< streams to try, bit mask
        std::uint32_t active = 0;  ///< operations in flight, bit mask of streams
        // compute in flight
        Picoseconds begun = 0, compute_from = 0, updated = 0, host_floor = 0, work = 0, unfloored = 0;
        Picoseconds ends = 0, announced = 0;  ///< as things stand; the time of its event, not later
        __int128 remaining = 0;               ///< ps at 1/65536 speed
        std::uint32_t speed = program::kFullSpeed, version = 0, cost = 0, slowness = program::kFullSpeed;
        std::uint32_t segments = 0;  ///< begun, where their times are drawn
        std::uint32_t copies = 1;
        bool computing = false, dirty = false, halted = false;
        Picoseconds host_clock = 0;
        std::uint16_t kernels_waiting = 0, on_network = 0, on_nvlink = 0;  ///< communication of other streams
        std::uint32_t step = 0;                                            ///< steps completed
    };
    struct Arrival {
        std::uint32_t rank, label;
        std::uint32_t slot;  ///< first_group_[rank] + communicator slot
        std::uint8_t stream;
        Picoseconds waited;       ///< rank's waiting for members, all told, when it arrived
        Picoseconds bubble;       ///< bubble of the rank since the group last met
        Picoseconds exposed = 0;  ///< ledger amount of the call's account when data began to move
    };
    struct GroupState {
        std::vector<Arrival> arrivals;
        std::uint32_t call = 0, pending = 0;
        std::uint32_t cause = program::kNone;  ///< what released the first of the members that arrived last
        std::uint32_t last = 0;                ///< that member, an index into arrivals
        const program::Plan* plan = nullptr;
        Picoseconds moving_since = 0;
        Picoseconds late = 0;     ///< largest lateness of its activities
        Picoseconds latency = 0;  ///< the plan's, and what the last member is expected to be late
        bool slowed = false;
    };
    struct Half {
        std::uint32_t rank = program::kNone;  ///< kNone: not posted
        std::uint32_t label = 0;
        Bytes bytes = 0;
        std::uint8_t stream = 0;
        Picoseconds exposed = 0;
    };
    struct Channel {
        Half send, receive;
        std::uint32_t source = 0, target = 0, route = program::kNone;
        std::uint32_t cause = program::kNone;  ///< record that released the later side
        Picoseconds moving_since = 0;
        std::uint32_t slots = 0;                               ///< > 0: buffered
        std::uint64_t started = 0, arrived = 0, consumed = 0;  ///< messages of a buffered channel
        bool sending = false;
    };
    struct StepBoundary {
        std::vector<Picoseconds> time;         ///< by rank
        std::vector<Picoseconds> host_lead;    ///< by rank: CPU clock - time
        std::vector<std::uint64_t> in_flight;  ///< by rank: hash of what runs and since when; 0 = nothing
        std::vector<std::array<Picoseconds, kAccountCount>> accounts;  ///< by rank; empty two steps later
        Picoseconds last_time = -1;                                    ///< when a rank passed last
        std::uint32_t passed = 0;
        std::uint32_t last_record = program::kNone;  ///< step end of the rank that passed last
    };
    enum class Owner : std::uint8_t { group, channel, transfer };
    struct ActivityOwner {
        Owner kind = Owner::group;
        std::uint32_t id = 0;
        std::uint32_t place = 0;  ///< index into scheduled_
    };

    void bind(std::span<const Rate> capacity);
    bool next_instant();
    void run_instant();
    void bind_sources();
    void apply_change(std::uint32_t index);
    void watch_down(const std::vector<LinkUse>& demand);
    void start_transport_clock(std::uint32_t change);
    std::vector<Standstill> in_flight_over(std::uint32_t link) const;
    void check_patience(Picoseconds first);
    std::vector<Standstill> unmet(Picoseconds since_before) const;
    Standstill wait_of(std::uint32_t group) const;
    void fetch(std::uint32_t rank, std::uint8_t stream, const Instruction& in);
    void note_taken(std::uint32_t rank, const Instruction& in);
    bool stale(const Event& event) const;
    void put_off(const Event& event);
    void dispatch(const Event& event);
    void run_rank(std::uint32_t rank);
    void advance(std::uint32_t rank, std::uint8_t stream);
    struct UnmetWait {
        std::uint8_t stream = 0;
        std::int64_t needed = 0;  ///< 0: all waits are met
    };
    UnmetWait unmet_wait(const RankState& r, const Stream& s, const Instruction& in) const;
    void complete(std::uint32_t rank, std::uint8_t stream);

    void begin_record(std::uint32_t rank, std::uint8_t stream, const Instruction& in);
    std::uint32_t new_record();
    void set_trigger(std::uint32_t record);
    void note_arrival(GroupState& state);
    void share_record(const GroupState& state);
    void set_cause(std::uint32_t record, std::uint32_t cause);
    void hold_record(std::uint32_t record);
    void drop_record(std::uint32_t record);
    void collect_path(EngineResult& out) const;

    void start_compute(std::uint32_t rank, const Instruction& in);
    void end_compute(std::uint32_t rank);
    Picoseconds drawn_work(std::uint32_t rank, Picoseconds work);
    void update_speed(std::uint32_t rank);
    void update_speeds();
    void mark_dirty(std::uint32_t rank);

    void arrive(std::uint32_t rank, std::uint8_t stream, const Instruction& in);
    void start_moving(std::uint32_t group);
    void find_lone_groups();
    bool moves_alone(std::uint32_t group);
    bool followed(std::uint32_t group) const;
    void start_activities(std::uint32_t group);
    void finish_collective(std::uint32_t group);
    void settle_waits(const GroupState& state);

    void post(std::uint32_t rank, std::uint8_t stream, const Instruction& in);
    void match(std::uint32_t channel, bool is_send);
    void start_message(std::uint32_t channel);
    void finish_message(std::uint32_t channel);
    void post_buffered(std::uint32_t channel, bool is_send);
    void start_buffered(std::uint32_t channel);
    void finish_buffered(std::uint32_t channel);
    void deliver(std::uint32_t channel);
    void end_half(const Half& half);
    void finish_half(const Half& half, const program::Route& route, Picoseconds uncontended, Picoseconds excess);

    void charge_lateness(const Arrival& arrival, Account account, Picoseconds late);
    void charge_contention(std::uint32_t rank, Account account, Picoseconds exposed_before, Picoseconds uncontended,
                           Picoseconds excess);

    void start_transfer(std::uint32_t rank, std::uint8_t stream, const Instruction& in);
    static std::uint32_t delay_id(std::uint32_t rank, std::uint8_t stream) {
        return rank * static_cast<std::uint32_t>(kMaxStreams) + stream;
    }
    void end_delay(std::uint32_t rank, std::uint8_t stream);
    void communication_on(std::uint32_t rank, std::uint8_t stream, bool network, bool nvlink, int change);

    // folding in time, engine_replay.cpp
    bool replayed(std::uint32_t group);
    bool quiet(std::uint32_t group);
    StreamPoint stream_point(const RankState& r, std::uint8_t stream) const;
    Picoseconds bubble_since(const Island& island, std::size_t place, std::size_t group) const;
    void keep_moment(const Island& island, std::uint32_t group, QuietMoment& out) const;
    struct Kept {  ///< an island's state
        std::vector<RankState> ranks;
        std::vector<Ledger::Rank> accounts;
        std::vector<Stream> streams;
        std::vector<Picoseconds> bubbles;
        std::vector<GroupState> groups;
    };
    Kept keep(const Island& island);
    void put_back(const Island& island, Kept kept);
    bool rehearse(std::uint32_t group, Passage& out);
    void note_quiet_moment(std::uint32_t group);
    bool extend_path(std::uint32_t group);
    void follow_start(std::uint32_t rank, std::uint8_t stream, const Instruction& in);
    void follow_finish(std::uint32_t rank, const Stream& s, const Instruction& in);
    void follow_compute_start(std::uint32_t rank, const program::CostClass& cost);
    void follow_compute_end(std::uint32_t rank);
    void note_host(HostWatch& host, Picoseconds needed) const;
    HostWatch& host_watch(std::uint32_t rank) { return rehearsal_->seen.host[islands_.place[rank]]; }
    bool recurs(const Passage& passage, std::uint32_t group) const;
    bool streams_recur(const Passage& passage, const RankState& r) const;
    void replay(std::uint32_t passage, std::uint32_t group);
    void move_streams(const Passage& passage, const RankState& r);
    void add_marks(const Passage& passage, const Island& island, std::uint32_t group);
    void replay_record(std::uint32_t passage, const Arrival& any, const Instruction& in, Picoseconds end);

    void own(Network::Id id, const ActivityOwner& owner);
    void schedule(Network::Id id);
    void end_activity(std::uint32_t place);
    void end_step(std::uint32_t rank);
    /// A member of a collective as it met the others in the first step; a border between two collectives has no slot.
    struct Meeting {
        std::uint32_t slot = program::kNone;
        std::uint32_t rank : 31 = 0, last : 1 = 0;  ///< last: arrived last
        Picoseconds waited = 0;                     ///< that settle_waits put into an account
        Picoseconds bubble = 0;                     ///< of the rank since the group last met
    };
    static constexpr std::size_t kMostMeetings = 4'000'000;
    bool keeps_meeting(const GroupState& state);
    void keep_meeting(const Arrival& arrival, Picoseconds waited);
    void as_if_repeated(EngineResult& out) const;
    std::uint64_t in_flight(std::uint32_t rank) const;
    bool awaits_first(std::uint32_t rank, std::uint8_t stream, const Instruction& in) const;
    bool host_repeats(std::uint32_t rank, const StepBoundary* before, const StepBoundary& after) const;
    bool settled();
    void solve_network();
    void fail(Outcome outcome, std::string message);
    std::string describe(std::uint32_t rank, std::uint8_t stream) const;
    std::string deadlock_report() const;
    EngineResult result();

    Stream& stream_of(std::uint32_t rank, std::uint8_t stream) { return streams_[ranks_[rank].first_stream + stream]; }
    const Stream& stream_of(std::uint32_t rank, std::uint8_t stream) const {
        return streams_[ranks_[rank].first_stream + stream];
    }
    Account account_of(std::uint32_t label) const { return program_.labels[label].account; }

    const program::Program& program_;
    EngineOptions options_;
    std::vector<std::vector<LinkUse>> demands_;  ///< as program_.demands, without the links that never decide
    Network network_;
    EventQueue queue_;
    Ledger ledger_;
    Picoseconds now_ = 0;
    std::vector<Code> codes_;
    std::vector<RankState> ranks_;
    std::vector<Stream> streams_;
    std::vector<GroupState> groups_;
    std::vector<Channel> channels_;
    std::vector<std::uint32_t> send_channel_, receive_channel_;  ///< first_peer_[rank] + peer slot -> channel
    std::vector<std::uint32_t> first_peer_, first_group_;
    std::vector<std::uint32_t> groups_of_;    ///< first_group_[rank] + communicator slot -> group
    std::vector<Picoseconds> bubble_before_;  ///< first_group_[rank] + slot: rank's bubble when the group last met
    struct Part {
        Account account;
        Picoseconds time;
    };
    std::vector<Part> parts_;  ///< non-zero parts of cost class c from first_part_[c] on
    std::vector<std::uint32_t> first_part_;
    std::vector<Rate> alone_;            ///< by demand
    std::vector<ActivityOwner> owners_;  ///< by network activity
    /// Activities by what they belong to: of each group, of each channel, of each stream. Events name these, because numbers
    /// of the network depend on all that moved before.
    struct Scheduled {
        Network::Id activity = 0;
        std::uint32_t version = 0;  ///< of the event that holds
        std::uint32_t seen = 0;     ///< version of the activity when that event was made
        std::uint32_t group = 0;    ///< of kLone
    };
    std::vector<Scheduled> scheduled_;
    /// Groups whose links are theirs alone: a call with one activity takes what it takes, and the network need not know.
    static constexpr Network::Id kLone = ~Network::Id{0};
    static constexpr Picoseconds kNotYet = -1;
    std::vector<bool> lone_;                           ///< by group
    std::vector<std::vector<Picoseconds>> lone_time_;  ///< [group][call], once it is known
    std::vector<std::uint32_t> first_scheduled_;       ///< by group
    std::uint32_t first_channel_ = 0, first_transfer_ = 0;
    std::vector<std::uint32_t> dirty_ranks_;
    std::vector<StepBoundary> boundaries_;
    std::uint32_t steps_done_ = 0, steps_checked_ = 0;
    std::vector<Arrival> finishing_;  ///< scratch of finish_collective and replay
    struct PassageList {
        std::vector<std::uint32_t> passages;
        std::uint32_t vain = 0;  ///< rehearsals that gave none
    };
    Islands islands_;                       ///< none: nothing is replayed
    std::unique_ptr<Recording> rehearsal_;  ///< of the island that runs ahead of the others
    std::vector<Passage> passages_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, PassageList> passages_from_;  ///< (kind, instruction of the call)
    std::uint64_t replays_ = 0;
    struct Looked {
        std::uint64_t moments = 0, replays = 0;
    };
    std::vector<Looked> looked_;  ///< by kind of island
    bool periodic_ = false;
    std::vector<std::uint64_t> step_fingerprint_;
    std::vector<Meeting> meetings_;                         ///< with `brief`
    std::vector<std::size_t> kept_meeting_, kept_waiting_;  ///< by slot, by rank: of meetings_, the latest + 1
    mutable bool awaited_first_ = false;                    ///< some receive was taken as one of the idle start
    std::uint64_t events_ = 0;
    std::uint32_t trigger_ = program::kNone;  ///< record whose end is being processed
    bool recording_ = false;                  ///< causes are followed at all
    struct SourceState {
        std::uint64_t next = 0;          ///< item
        std::vector<Picoseconds> free;   ///< by maker: when it has made its last one
        std::vector<Picoseconds> taken;  ///< by item mod makers x ahead
    };
    std::vector<SourceState> sources_;  ///< first_source_[rank] + slot
    std::vector<std::uint32_t> first_source_;
    std::vector<std::uint32_t> down_;           ///< changes whose links are down
    std::uint32_t lost_link_ = program::kNone;  ///< the first that somebody uses while it is down
    Picoseconds transport_ends_ = -1;
    Picoseconds failed_at_ = 0;
    std::vector<Standstill> waits_;
    std::vector<std::vector<Picoseconds>> step_ends_;
    struct Trace {  ///< a record while the run goes on: two to a cache line
        std::uint32_t cause = program::kNone;
        std::uint32_t holders = 0;  ///< streams, causes and channels that name it
        std::uint32_t rank = 0;
        std::uint32_t operation = 0;  ///< operation << 5 | stream
        Picoseconds started = 0, finished = 0;
    };
    /// Trace::operation of a record that stands for a passage, with its number.
    static constexpr std::uint32_t kPassageRecord = 1u << 31;
    Record record_of(std::uint32_t trace) const;
    Record record_of(const Trace& trace) const;
    std::vector<Trace> records_;
    std::vector<Picoseconds> issued_;              ///< by record, with record_timeline
    std::vector<Picoseconds> late_;                ///< by record, with a quantum
    Picoseconds ending_late_ = 0;                  ///< of what ends now
    std::vector<Picoseconds> lost_before_, lost_;  ///< by link, at the last two step boundaries
    bool buffered_ = false;                        ///< there are buffered channels
    std::vector<std::uint32_t> free_records_;      ///< nobody names them (never with record_timeline)
    Outcome outcome_ = Outcome::done;
    std::string message_;
};

}  // namespace fabricast::engine
