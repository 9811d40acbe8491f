// The longest path through the passes of a pipeline, every piece at its quickest.
//
//   pass        begins when the one before on its stage has ended and its input is there
//   exchange    (blocking stacks) begins when the pass before has ended, a message of it when both sides are there; it ends
//               with the last of its messages
//   message     takes a fixed time; where messages run beside passes it leaves when its pass has ended. Receives of a stage
//               follow each other on their stream without a pause, so that one waits or moves until the last is there: the
//               passes before that share the GPU with it
//
// No run of the same lists ends earlier, because whatever contends for links or for the GPU, or comes late, only adds.
// Seconds.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/parallel/layout.hpp"
#include "models/parallel/schedule.hpp"

namespace fabricast::plan {

/// Steps of all stages, packed: gpipe, 1F1B and interleaved.
class PassLists {
public:
    PassLists(Schedule schedule, std::int64_t pp, std::int64_t vpp, std::int64_t micro_batches, bool overlap,
              bool forwards_first);
    struct Step {
        bool backward = false, exchange = false;
        bool sends_forward = false, receives_forward = false, sends_backward = false, receives_backward = false;
        bool beside = false;  ///< a receive of a later step waits or moves all the while
        std::int16_t chunk = 0;
    };
    std::size_t stages() const { return begin_.size() - 1; }
    const Step* begin(std::size_t stage) const { return steps_.data() + begin_[stage]; }
    const Step* end(std::size_t stage) const { return steps_.data() + begin_[stage + 1]; }

private:
    std::vector<Step> steps_;
    std::vector<std::size_t> begin_;  ///< by stage, and the end
};

struct PassTimes {
    struct Chunk {
        double forward = 0, backward = 0;
        double forward_beside = 0, backward_beside = 0;  ///< while a receive is posted
    };
    std::vector<std::vector<Chunk>> chunks;  ///< [stage][chunk]
    std::vector<double> start;               ///< by stage: before its first pass
    std::vector<double>
        whole;  ///< by stage: when all its parameters are there, before the last chunk's first pass can end
    std::vector<double> message_down, message_up;  ///< from stage s to the next, and to the one before (round the ring)
};

struct PassPath {
    std::vector<double> end;            ///< by stage
    std::vector<double> last_backward;  ///< by chunk of stage 0: begin of its last backward pass
};

PassPath longest_path(const PassLists& lists, const PassTimes& times);

}  // namespace fabricast::plan
