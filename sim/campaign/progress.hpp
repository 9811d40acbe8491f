// Steps, saves and evaluations of a job that runs undisturbed: pure arithmetic, from any instant to any other.
//
// After step j the job pauses P(j) = memory copy (if memory_every divides j) + blocking save (if every divides j) + evaluation
// (if it is due), in this order; then step j+1 runs at the speed asked for at its start. So n steps from a boundary take
//   n s + sum of P(i), i = j .. j+n-1
// which grows with n: the step reached within a budget is found by halving, never step by step.
//
// What a write drags at the steps beside it is charged with the blocking part. A save counts from the end of its blocking
// part + `write`; the next one waits for it: its pause is longer by max(0, write - every s). Going back to a save moves the
// step time since then from kept to lost. Sums are exact.
#pragma once

#include "sim/campaign/campaign_spec.hpp"

namespace fabricast::campaign {

class Progress {
public:
    Progress() : Progress(CheckpointSpec{}, EventsSpec{}) {}
    Progress(const CheckpointSpec& checkpoint, const EventsSpec& events);

    /// Runs from `now` for at most `budget` at `step` a step, up to step `limit` (whose pause is then still due).
    /// Returns the time used. The step in flight keeps the speed it began with. budget >= 0, limit >= steps().
    Nanoseconds run(Nanoseconds now, Nanoseconds budget, Nanoseconds step, std::int64_t limit);

    /// Time until the step in flight ends (pause before it included); 0 at a boundary.
    Nanoseconds to_boundary() const { return in_step() ? pause_ + length_ - into_ : 0; }

    Nanoseconds since_boundary() const { return into_; }  ///< since the end of step steps(), pauses included
    std::int64_t steps() const { return steps_; }         ///< finished
    std::int64_t saves() const { return saves_; }         ///< blocking saves begun and ended
    Nanoseconds kept() const { return kept_; }            ///< time of steps, the one in flight included
    Nanoseconds lost() const { return lost_; }
    Nanoseconds saving() const { return saving_; }
    Nanoseconds evaluating() const { return evaluating_; }

    std::int64_t saved_step(Nanoseconds now) const;  ///< last save in storage that counts at `now`
    std::int64_t copied_step() const;                ///< last memory copy, or 0

    /// The job dies at `now` and comes back from a save in storage (not later than step `at_most`).
    void back_to_save(Nanoseconds now, std::int64_t at_most = INT64_MAX);
    void back_to_copy();  ///< from the memory copies
    void drop_step();     ///< only the step in flight is lost
    void save_here();     ///< a planned save at the last boundary counts at once; the step in flight is lost
    /// Step of the n-th blocking save from here on, n >= 1.
    std::int64_t save_step_after(std::int64_t n) const {
        return every_ > 0 ? (steps_ / every_ + n) * every_ : INT64_MAX;
    }

private:
    struct Mark {
        std::int64_t step = 0;
        Nanoseconds counts_from = 0;
        Nanoseconds kept = 0;  ///< kept_ at that step
    };
    bool in_step() const { return into_ > pause_ || (into_ == pause_ && length_ > 0); }
    Nanoseconds pauses(std::int64_t from, std::int64_t to) const;  ///< sum of P(i), from <= i < to
    void begin_pause();
    Nanoseconds pass_pause(Nanoseconds now, Nanoseconds budget);
    void jump(Nanoseconds& now, Nanoseconds& budget, Nanoseconds step, std::int64_t limit);
    void saved(std::int64_t step, Nanoseconds blocking_end, Nanoseconds kept_then);
    void go_back(std::int64_t step, Nanoseconds kept_then);

    std::int64_t every_, copy_every_, evaluate_every_;
    Nanoseconds block_, write_, copy_, evaluation_;
    Nanoseconds save_ = 0;  ///< block_ and the wait for the write before, at the present speed
    std::int64_t steps_ = 0, saves_ = 0;
    Nanoseconds into_ = 0;    ///< since the end of step steps_
    Nanoseconds pause_ = 0;   ///< P(steps_)
    Nanoseconds length_ = 0;  ///< of the step in flight; 0: not begun
    Nanoseconds kept_ = 0, lost_ = 0, saving_ = 0, evaluating_ = 0;
    Mark durable_, pending_;
    bool due_copy_ = false, due_save_ = false, due_evaluation_ = false;
};

}  // namespace fabricast::campaign
