// Pipeline schedules as the order of work on one stage.
//
// A schedule is a list of steps: run the forward or backward of a model chunk for one micro-batch, a half of the
// backward, or exchange messages with the neighbour stages. Which chunks a stage holds: placement.hpp; the k-th forward
// of an interleaved stage works on chunk (k mod p v) / p, backward in reverse chunk order.
//
//   GPipe         m forwards, then m backwards
//   1F1B          min(m, p - s - 1) forwards first, then forward and backward alternate, then the backwards left
//   interleaved   2 (p - s - 1) + (v - 1) p forwards first (on request all of them when m = p), then the same
//   ZB-H1, ZB-H2, ZB-V, DualPipe: zero_bubble.hpp
//
// Messages: blocking steps carry the sends and receives that a library launches together after a piece of work
// (Megatron's order); with overlap every send and receive is a step of its own on its own stream and the work that
// needs it waits. The schedules that cut the backward always do the latter. Equal runs of steps are folded into repeats, first and last micro-batch kept apart.
#pragma once

#include <cstdint>
#include <vector>

#include "models/parallel/layout.hpp"

namespace fabricast {

struct ScheduleStep {
    enum class Kind : std::uint8_t {
        forward,
        backward,         ///< whole
        backward_input,   ///< gradients of the input alone
        backward_weight,  ///< gradients of the weights, any time after
        exchange
    } kind = Kind::forward;
    std::int16_t chunk = 0;
    bool first = false;   ///< forward: first micro-batch of this chunk in the step; builders may mark others
    bool last = false;    ///< backward, backward_weight: last micro-batch of this chunk in the step
    bool paired = false;  ///< forward: may overlap the backward that follows
    // forward, backward, backward_input: where the input comes from and the output goes; exchange: what is moved
    bool receives_forward = false, sends_forward = false, receives_backward = false, sends_backward = false;
    std::int16_t ahead = 0;  ///< steps of the stage that may still run when its receive is posted
    bool operator==(const ScheduleStep&) const = default;
};

/// A run of steps executed `count` times.
struct ScheduleBlock {
    std::int64_t count = 1;
    std::vector<ScheduleStep> steps;
};

/// The lists of all p stages, v chunks a stage, m micro-batches. With overlap no exchange steps occur and the flags of
/// forward and backward steps say what is received before and sent after them; a chunk that runs up (placement.hpp)
/// exchanges with the other neighbour. forwards_first: interleaved with m = p runs all forwards, then all backwards.
std::vector<std::vector<ScheduleStep>> pipeline_steps(Schedule schedule, std::int64_t p, std::int64_t v, std::int64_t m,
                                                      bool overlap, bool forwards_first = true);
/// The list of stage s alone.
std::vector<ScheduleStep> schedule_steps(Schedule schedule, std::int64_t s, std::int64_t p, std::int64_t v,
                                         std::int64_t m, bool overlap, bool forwards_first = true);

/// Folds repeated runs of the given period (in steps); exact: unfolding gives the list back.
std::vector<ScheduleBlock> fold(const std::vector<ScheduleStep>& steps, std::int64_t p, std::int64_t v);

/// Most micro-batches of all chunks whose activations are held at once; those whose weight gradients are missing count.
std::int64_t most_in_flight(const std::vector<ScheduleStep>& steps);

}  // namespace fabricast
