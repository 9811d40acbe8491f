// The Program: what every rank does, in order. The one language between "what to do" and "when".
//
// Ranks that do the same share a template. A template is a tree of repeat and block over operations, kept in
// pre-order. Rules, checked by validate():
//   - an operation runs on one stream of its rank; operations of a stream run in program order;
//   - `waits` name operations of the same template on other streams. Inside a common repeat a wait on an
//     operation earlier in program order means this iteration's instance, on a later one the previous
//     iteration's (none in the first);
//   - all calls of a rank on one communicator slot come from one stream; members meet call by call;
//   - a send meets the receive of the same order on (source, destination, channel); sizes are equal;
//   - within one p2p batch a (peer slot, direction) occurs once, and all its messages come from one stream;
//   - compute, step ends and collectives that expect a late member are on stream 0;
//   - a rank has a group in one slot only; demands name a link once.
// Numbers are integers: picoseconds, bytes, and prices from models/compute and models/collectives rounded once
// when the program is built. Nothing here knows of transformers or of a clock.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/program/account.hpp"
#include "topologies/graph/links.hpp"
#include "topologies/graph/units.hpp"

namespace fabricast::program {

inline constexpr std::uint32_t kNone = 0xFFFFFFFFu;
inline constexpr std::size_t kSpeedStates = 5;  ///< alone, kernel waiting, network, nvlink, both
inline constexpr std::uint32_t kFullSpeed = 1u << 16;

enum class OpKind : std::uint8_t { compute, collective, p2p_batch, transfer, host, timer, step_end, fetch };
enum class Phase : std::uint8_t { none, forward, backward, recompute, reduce, optimizer, gather, load, save };

/// What an operation is, for accounts, timelines and error texts.
struct Label {
    std::uint32_t name = 0;           ///< index into Program::names
    Account account = Account::idle;  ///< communication kind of collectives, p2p and transfers
    Phase phase = Phase::none;
    std::int16_t stage = -1;
    std::int16_t layer = -1;
    std::int32_t micro_batch = -1;
};

/// A priced run of kernels between two synchronisation points.
struct CostClass {
    Picoseconds work = 0;        ///< alone, GPU time
    Picoseconds host = 0;        ///< time the CPU needs to issue all of it
    Picoseconds host_first = 0;  ///< until its first kernel is issued
    Picoseconds tail = 0;        ///< GPU time of the last kernel
    std::array<std::uint32_t, kSpeedStates> speed = {kFullSpeed, kFullSpeed, kFullSpeed, kFullSpeed, kFullSpeed};
    std::array<Picoseconds, kAccountCount> parts = {};  ///< sums to work
};

struct MemoryChange {
    MemoryCause cause;
    Bytes bytes;  ///< > 0 allocated when the operation starts, < 0 freed when it ends
};

/// One message of a p2p batch.
struct MessageHalf {
    std::uint16_t peer_slot;
    bool is_send;
    Bytes bytes;
};

struct Operation {
    OpKind kind = OpKind::compute;
    std::uint8_t stream = 0;
    bool host_sync = false;            ///< the CPU waits for this operation before it issues more
    std::uint32_t payload = 0;         ///< compute: cost class; collective: call; p2p_batch: batch; transfer: transfer;
                                       ///< host, timer: index into durations; fetch: index into fetches
    std::uint32_t label = 0;           ///< index into Program::labels
    std::vector<std::uint32_t> waits;  ///< node indices of operations in this template
    std::vector<MemoryChange> memory;
    Picoseconds late = 0;  ///< collective on stream 0: how much behind the others the last member is expected; waiting
};

/// A node of the template tree. A repeat or block spans nodes [this + 1, end).
struct Node {
    enum class Kind : std::uint8_t { block, repeat, operation } kind = Kind::operation;
    std::uint32_t end = 0;        ///< one past the last node of the subtree
    std::int64_t count = 1;       ///< repeat: iterations, unless bound
    std::uint32_t bound = kNone;  ///< repeat: index into Rank::bindings instead of count
    std::uint32_t operation = kNone;
};

struct Template {
    std::string name;
    std::uint8_t streams = 1;  ///< stream 0 is the compute stream
    std::vector<Node> nodes;
    std::vector<Operation> operations;
    std::array<Bytes, kMemoryCauseCount> base_memory = {};
};

/// A collective as every member calls it. What it costs on a group of a shape is in Program::plans.
struct Call {
    std::uint16_t slot = 0;  ///< communicator slot of the rank
    std::uint8_t kind = 0;   ///< opaque to the engine; mismatching kinds or bytes of members are an error
    Bytes bytes = 0;
};

struct Activity {
    Bytes work = 0;
    std::uint32_t weight = 1;
    Rate cap = 0;                    ///< 0 = none
    std::uint32_t demand_class = 0;  ///< index into Group::demands
};

/// Price of one call on the groups of one shape.
struct Plan {
    Picoseconds latency = 0;
    std::vector<Activity> activities;
    bool uses_nvlink = false, uses_network = false;
};

struct Group {
    std::string name;                    ///< "tp 17"
    std::vector<std::uint32_t> members;  ///< ranks
    std::uint32_t shape = 0;
    std::vector<std::uint32_t> demands;  ///< demand_class -> index into Program::demands
};

struct Batch {
    std::vector<MessageHalf> halves;
};

/// Where the messages of a (source, destination, channel) go.
struct Peer {
    std::uint32_t rank = kNone;
    std::uint32_t channel = 0;         ///< distinguishes streams of messages between the same two ranks
    std::uint32_t send_route = kNone;  ///< index into Program::routes; kNone when the slot never sends
    std::uint32_t slots = 0;           ///< sender's side: 0 = rendezvous; else a buffer of so many messages: a send
                                       ///< starts without its receive, ends when the data have left, and the data
                                       ///< arrive after the route's latency (sizes are not compared)
    std::uint32_t receive_channel = kNone;  ///< of the messages from this peer; kNone: as `channel`
};

struct Route {
    Picoseconds latency = 0;
    std::uint32_t demand = 0;  ///< index into Program::demands
    Rate cap = 0;
    bool uses_nvlink = false, uses_network = false;
};

struct Transfer {
    std::uint16_t route_slot = 0;  ///< slot into Rank::transfer_routes
    Bytes bytes = 0;
};

/// Items that are made ahead of who takes them. Item j is made by maker j mod makers in times[j] (the last one for all
/// beyond) and begun when that maker has made its one before and its `ahead`-th before has been taken.
struct Source {
    std::uint32_t makers = 1;        ///< 0: made when asked for, so that the taker waits for all of it
    std::uint32_t ahead = 1;         ///< items of a maker that nobody has taken, at least 1
    Picoseconds start = 0;           ///< of the makers, at the beginning and after a restart
    std::vector<Picoseconds> times;  ///< not empty
};

/// Takes the next item of a source, or (restart) throws away what is made and starts the makers anew.
struct Fetch {
    std::uint16_t slot = 0;  ///< into Rank::sources
    bool restart = false;
};

struct Rank {
    std::uint32_t tmpl = 0;
    std::vector<std::uint32_t> groups;           ///< communicator slot -> group; kNone where unused
    std::vector<Peer> peers;                     ///< peer slot -> peer
    std::vector<std::uint32_t> transfer_routes;  ///< slot -> route
    std::vector<std::int64_t> bindings;          ///< bound repeat counts
    std::vector<std::uint32_t> sources;          ///< slot -> source
    std::uint32_t slowness = kFullSpeed;         ///< compute work is multiplied by slowness / 65536, >= 1
    std::uint32_t copies = 1;                    ///< ranks this one stands for (fold.hpp)
};

struct Program {
    std::vector<Template> templates;
    std::vector<Rank> ranks;
    std::vector<CostClass> costs;
    std::vector<Call> calls;
    std::vector<std::vector<Plan>> plans;  ///< [call][shape]
    std::vector<Group> groups;
    std::vector<Batch> batches;
    std::vector<Route> routes;
    std::vector<Transfer> transfers;
    std::vector<Picoseconds> durations;
    std::vector<Source> sources;
    std::vector<Fetch> fetches;
    std::vector<std::vector<LinkUse>> demands;
    std::vector<Rate> alone;  ///< by demand: its rate on an empty network; empty: as its links say (fold.hpp)
    std::vector<Label> labels;
    std::vector<std::string> names;
};

/// First broken rule as a sentence naming template, rank and operation; empty when the program is sound.
std::string validate(const Program& program);

/// Peak of memory over one pass through the template in program order, by cause at the moment of the peak. Repeats
/// bound per rank run as `bindings` say, once where it is silent.
struct MemoryPeak {
    Bytes total = 0;
    std::array<Bytes, kMemoryCauseCount> parts = {};
};
MemoryPeak peak_memory(const Template& tmpl, const std::vector<std::int64_t>& bindings = {});

/// How often each operation of a template runs in one step; the outermost repeat is the step itself. Repeats bound per
/// rank count as in peak_memory.
std::vector<std::int64_t> executions(const Template& tmpl, const std::vector<std::int64_t>& bindings = {});

}  // namespace fabricast::program
