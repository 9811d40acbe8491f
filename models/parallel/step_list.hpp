// Internal: writes the list of a stage for schedules whose messages ride on the steps.
//
// Counts what every chunk has done, sets first and last, and names the messages of a step from where its chunk sits.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "models/parallel/placement.hpp"
#include "models/parallel/schedule.hpp"

namespace fabricast {

class StepList {
public:
    /// chunks: held by the stage; m: micro-batches that pass each of them.
    StepList(Schedule schedule, std::int64_t s, std::int64_t p, std::int64_t chunks, std::int64_t m)
        : schedule_(schedule), s_(s), p_(p), m_(m), counts_(static_cast<std::size_t>(chunks)) {}

    // Each returns false and writes nothing when no micro-batch is left for it.
    bool forward(std::int64_t chunk, bool paired = false) {
        Counts& n = counts(chunk);
        if (n.forward == m_)
            return false;
        ScheduleStep step = at(ScheduleStep::Kind::forward, chunk);
        step.first = n.forward++ == 0;
        step.paired = paired;
        step.receives_forward = linked_before(chunk);
        step.sends_forward = linked_behind(chunk);
        steps_.push_back(step);
        return true;
    }
    bool backward(std::int64_t chunk) {
        Counts& n = counts(chunk);
        if (n.backward == n.forward)
            return false;
        ScheduleStep step = gradient(ScheduleStep::Kind::backward, chunk);
        ++n.backward;
        step.last = ++n.weight == m_;
        steps_.push_back(step);
        return true;
    }
    bool backward_input(std::int64_t chunk) {
        Counts& n = counts(chunk);
        if (n.backward == n.forward)
            return false;
        steps_.push_back(gradient(ScheduleStep::Kind::backward_input, chunk));
        ++n.backward;
        return true;
    }
    bool backward_weight(std::int64_t chunk) {
        Counts& n = counts(chunk);
        if (n.weight == n.backward)
            return false;
        ScheduleStep step = at(ScheduleStep::Kind::backward_weight, chunk);
        step.last = ++n.weight == m_;
        steps_.push_back(step);
        return true;
    }

    std::int64_t forwards(std::int64_t chunk) const { return counts_[static_cast<std::size_t>(chunk)].forward; }
    std::vector<ScheduleStep> take() { return std::move(steps_); }

private:
    struct Counts {
        std::int64_t forward = 0, backward = 0, weight = 0;
    };
    Counts& counts(std::int64_t chunk) { return counts_[static_cast<std::size_t>(chunk)]; }
    // The turn of the V stays on its stage.
    bool turns(std::int64_t chunk, std::int64_t upper) const {
        return schedule_ == Schedule::zb_v && s_ == p_ - 1 && chunk == upper;
    }
    std::int64_t place(std::int64_t chunk) const { return virtual_stage(schedule_, p_, s_, chunk); }
    std::int64_t end() const { return (schedule_ == Schedule::zb_v ? 2 * p_ : p_) - 1; }
    bool linked_before(std::int64_t chunk) const { return place(chunk) > 0 && !turns(chunk, 1); }
    bool linked_behind(std::int64_t chunk) const { return place(chunk) < end() && !turns(chunk, 0); }
    static ScheduleStep at(ScheduleStep::Kind kind, std::int64_t chunk) {
        ScheduleStep step;
        step.kind = kind;
        step.chunk = static_cast<std::int16_t>(chunk);
        return step;
    }
    ScheduleStep gradient(ScheduleStep::Kind kind, std::int64_t chunk) const {
        ScheduleStep step = at(kind, chunk);
        step.receives_backward = linked_behind(chunk);
        step.sends_backward = linked_before(chunk);
        return step;
    }

    Schedule schedule_;
    std::int64_t s_, p_, m_;
    std::vector<Counts> counts_;
    std::vector<ScheduleStep> steps_;
};

}  // namespace fabricast
