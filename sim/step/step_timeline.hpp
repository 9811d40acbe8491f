// One settled step as it ran, for the ranks somebody looks at: operations of every stream, who sent to whom, memory and
// link use over time, and in which state each rank was.
//
// Ranks that do the same at the same instants are simulated once (models/program/fold.hpp), so a lane stands for `copies`
// ranks, and any rank can be shown: it has the times of its class and peers, groups and links of its own. The window is
// from the earliest begin to the latest end of the lanes' last complete steps; what overlaps it is kept whole.
//
//   state    at each instant, as the accounts of a step have it: computing, else moving data (of several kinds the first
//            Account), else waiting for members of a collective, else waiting for a message, else idle
//   memory   base of the template, + allocations when an operation is issued, - frees when it ends; tensors as the program
//            names them. Peaks of the verdict differ: they add what an allocator keeps and what lies outside tensors
//   link     bytes an operation moves over a link / (its moving time x capacity), summed over all operations of the job
//            that use the link: means, so where operations overlap the sum may pass 1; such a sample is shown as 1
//
// A batch of messages is taken as one: waiting until its last message moves, then moving. Not shown: an operation that had
// not ended when the run stopped, beyond that instant.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/program/account.hpp"
#include "models/program/program.hpp"
#include "topologies/graph/units.hpp"

namespace fabricast {

enum class LaneState : std::uint8_t { computing, moving, waiting_members, waiting_message, idle };

struct StepTimeline {
    struct Lane {
        std::uint32_t rank = 0;
        std::uint32_t copies = 1;  ///< ranks of its class, itself included
        std::uint32_t node = 0;
        int stage = 0;
        std::string place;                          ///< "pp 3 tp 4 dp 0"
        std::vector<std::vector<Account>> streams;  ///< what each carries, in Account order; the first computes
        Picoseconds begin = 0, end = 0;             ///< its last complete step
    };
    struct Slice {
        std::uint32_t lane = 0;
        std::uint8_t stream = 0;
        program::OpKind kind = program::OpKind::compute;
        program::Phase phase = program::Phase::none;
        Account account = Account::idle;  ///< compute: its largest part
        std::uint32_t name = 0;           ///< index into names
        std::int32_t micro_batch = -1;
        std::int16_t layer = -1;
        Picoseconds issued = 0, started = 0, finished = 0;  ///< waiting until started
        Bytes bytes = 0;                                    ///< moved by this rank's call, as the operation counts them
    };
    struct Flow {
        std::uint32_t from = 0, to = 0;  ///< slices: the send and its receive
    };
    struct State {
        std::uint32_t lane = 0;
        LaneState state = LaneState::idle;
        Account account = Account::idle;              ///< moving: which traffic
        program::Phase phase = program::Phase::none;  ///< computing
        std::int32_t micro_batch = -1;                ///< computing
        Picoseconds begin = 0, end = 0;
    };
    struct Memory {
        std::uint32_t lane = 0;
        MemoryCause cause = MemoryCause::weights;
        Picoseconds at = 0;
        Bytes bytes = 0;
    };
    struct Link {
        std::uint32_t lane = 0;  ///< the GPU's own, or its adapter's
        std::string name;        ///< "node 0 gpu 3 nvlink up"
        std::string place;       ///< "NVLink inside the node"
        Rate capacity = 0;
        double mean = 0;  ///< of the lane's step, 0..1
        struct Sample {
            Picoseconds at = 0;
            double use = 0;  ///< from here on
        };
        std::vector<Sample> samples;
    };

    Picoseconds begin = 0, end = 0;  ///< of the window
    std::uint32_t classes = 0;       ///< of ranks in the whole job
    std::vector<std::string> names;
    std::vector<Lane> lanes;
    std::vector<Slice> slices;  ///< by lane and stream, in order of time
    std::vector<Flow> flows;
    std::vector<State> states;   ///< by lane, in order of time, without gaps over the lane's step
    std::vector<Memory> memory;  ///< by lane, in order of time: the new value of one cause
    std::vector<Link> links;     ///< by lane
};

/// Which ranks to show. Default: the first rank of each class, but kMostLanes or one of each stage, whichever is more.
struct TimelineRequest {
    static constexpr std::size_t kMostLanes = 16;
    bool all = false;
    std::vector<std::uint32_t> ranks;  ///< these, where not empty; each < ranks of the job
};

}  // namespace fabricast
