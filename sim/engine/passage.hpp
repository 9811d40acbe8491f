// Folding in time: what an island (islands.hpp) goes through between two quiet moments, seen once and replayed.
//
// A quiet moment of an island is the instant at which the latency of a call of an inner group has passed when nothing else
// is in flight on its ranks. From there on, until an operation that concerns others starts (a message, a transfer, a
// timer, a call of another group, the end of a step) or a stream goes round a loop, what happens is decided by the
// island's own state, relative to the instant:
//
//   - the instructions its streams stand at, which of them wait, and for how many completions more;
//   - the CPU's lead, where it delayed a segment; where it delayed none, any lead as long or longer does the same;
//   - of the call under way: how much of it was exposed so far; the bubble since each inner group last met.
//
// Nothing else is read: links are the island's alone (islands.hpp), speeds depend on the communication of its own ranks,
// durations are integers, and the accounts are sums of differences. A passage is that course from the first quiet moment
// to the last one before it is cut, with every figure relative to its beginning. It is replayed when the state at a quiet
// moment is the one above, and
//
//   - streams that stood still in it stand still again: they wait for completions that it does not bring;
//   - waits ask for what they asked for: those that were met at the beginning are met; those for what comes later ask for
//     the same, as the loops and the completions of the streams have advanced by matching numbers; and first iterations
//     are first iterations.
//
// Then the island's state is set to that of the end, and the next thing that happens to it is the end of the latency of
// the call at the end. No message can arrive in between, because none was asked for; so nothing is ever taken back.
//
// Where a quiet moment has no passage yet, the island rehearses: it runs alone, ahead of the others and on an event queue
// of its own, until the course is cut; then its state is put back, and it replays like all others of its kind.
//
//   fingerprint of an operation   mix(c + T k), c of the passage, T its beginning, k a constant (mixing.hpp)
//
// A passage serves all islands of a kind. It is not made where completions are batched (a quantum above 0) or every
// record is kept.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/program/account.hpp"
#include "models/program/program.hpp"
#include "sim/engine/code.hpp"
#include "topologies/graph/units.hpp"

namespace fabricast::engine {

/// A stream at a quiet moment.
struct StreamPoint {
    StreamState state = StreamState::ready;
    std::uint8_t waits_on = 0;  ///< blocked: stream
    std::uint32_t counter = 0;
    std::int64_t missing = 0;  ///< blocked: completions of that stream still to come
    bool operator==(const StreamPoint&) const = default;
};

/// How far a stream has come: both grow from one round of a loop to the next.
struct StreamCount {
    std::int64_t completed = 0;
    std::array<std::uint32_t, kMaxDepth> loop = {};
    bool operator==(const StreamCount&) const = default;
};

/// All that is kept of an island at a quiet moment. Streams: [rank of the island][stream].
struct QuietMoment {
    struct Member {
        Picoseconds host_clock = 0, started = 0, exposed = 0, waited = 0;
        std::array<Picoseconds, kAccountCount> accounts = {};
    };
    Picoseconds time = 0;
    std::uint32_t group = 0;           ///< inner group whose call is under way
    std::uint8_t stream = 0;           ///< its stream
    std::vector<std::uint32_t> order;  ///< its members as they arrived, places in the island
    std::uint32_t last = 0;            ///< the first of those that arrived last, an index into order
    std::vector<Member> members;
    std::vector<StreamPoint> points;
    std::vector<StreamCount> counts;
    std::vector<Picoseconds> bubble;  ///< [rank of the island][inner group]: bubble since the group last met
};

/// What the CPU had to do with a course: `exact` where it delayed something, else at least `slack` was left.
struct HostWatch {
    bool exact = false;
    bool synced = false;       ///< the CPU waited for an operation: its clock follows from the course
    bool floor_given = false;  ///< of the segment under way: its CPU time lies on that clock
    Picoseconds slack = INT64_MAX;
};

/// An island that runs ahead of the others, to see what it goes through. What lies behind the latest quiet moment is
/// dropped in the end.
struct Recording {
    struct Finished {
        std::uint32_t place, operation;
        Picoseconds started, finished;
    };
    struct PathStep {
        std::uint32_t place, operation;  ///< operation << 5 | stream
        Picoseconds started, finished;
    };
    struct Seen {  ///< up to a moment
        std::size_t finished = 0, waits = 0;
        std::uint32_t touched = 0;  ///< streams that were looked at, bit mask
        std::uint32_t met = 0;      ///< inner groups that met, bit mask
        std::vector<HostWatch> host;
    };
    std::uint32_t island = 0;
    std::uint32_t quiet_moments = 0;        ///< after the first
    bool over = false;                      ///< something came that is not the island's alone
    std::vector<std::uint32_t> activities;  ///< started on the network
    QuietMoment first, latest;
    std::vector<Finished> finished;
    std::vector<std::pair<std::uint8_t, std::uint32_t>> waits;  ///< (stream, wait of the code) that were met
    std::vector<PathStep> path;             ///< chain of causes up to the latest moment, oldest first
    std::uint32_t record = program::kNone;  ///< of the call at the latest moment
    Seen seen, kept;                        ///< now; at the latest moment
};

struct Passage {
    struct Member {
        bool exact = false, synced = false;
        Picoseconds lead = 0;       ///< CPU clock - beginning: this (exact) or at most this
        Picoseconds host = 0;       ///< added to the CPU clock; synced: CPU clock - beginning at the end
        Picoseconds exposed = 0;    ///< of the call at the beginning, so far
        Picoseconds started = 0;    ///< of the call at the end, since the beginning
        Picoseconds exposed_after;  ///< of the call at the end, so far
        Picoseconds waited = 0;     ///< for members of collectives
        std::vector<std::pair<Account, Picoseconds>> charges;
    };
    struct StreamCourse {
        std::uint8_t stream = 0;
        StreamPoint before, after;
        StreamCount count;           ///< when it was recorded
        std::int64_t completes = 0;  ///< operations
    };
    /// A wait that was met, or that a stream stands at in the end.
    struct WaitCheck {
        std::uint8_t stream = 0;
        bool skipped = false;  ///< first iteration of the loop it skips
        bool inside = false;   ///< for what comes in the passage; otherwise it is met at the beginning
        std::uint32_t wait = 0;
    };
    /// Operations that the same members finish at the same times.
    struct Marks {
        std::vector<std::uint32_t> places;
        std::vector<std::uint64_t> constants;
    };

    std::uint32_t touched = 0;  ///< streams it moves, bit mask
    std::vector<StreamCourse> streams;
    std::vector<WaitCheck> waits;
    std::vector<Member> members;
    std::vector<std::uint32_t> met;                        ///< inner groups
    std::vector<Picoseconds> bubble_before, bubble_after;  ///< [rank of the island][of met]: since the group last met

    Picoseconds length = 0, first_end = 0;  ///< first_end: of the call at the beginning
    std::uint32_t group_after = 0;          ///< inner group of the call at the end
    std::uint8_t stream_after = 0;
    std::vector<std::uint32_t> order;
    std::uint32_t last = 0;
    std::vector<Marks> marks;  ///< without the call at the beginning: when it started is the island's affair
    std::vector<Recording::PathStep> path;  ///< between the two calls, latest first, since the beginning
};

/// The passage of a recording up to its latest quiet moment. False when ranks of the island went apart in it, so that it
/// cannot be told by streams. code: of the island's ranks.
bool make_passage(const Recording& recording, const Code& code, Passage& out);

}  // namespace fabricast::engine
