#include "sim/campaign/progress.hpp"

#include <algorithm>
#include <cassert>

namespace fabricast::campaign {
namespace {

/// Multiples of `every` in [from, to); every 0: none.
std::int64_t multiples(std::int64_t from, std::int64_t to, std::int64_t every) {
    return every > 0 && to > from ? (to - 1) / every - (from - 1) / every : 0;
}

}  // namespace

Progress::Progress(const CheckpointSpec& c, const EventsSpec& e)
    : every_(c.mode == SaveMode::none ? 0 : c.every_steps),
      copy_every_(c.mode == SaveMode::memory ? c.memory_every_steps : 0),
      evaluate_every_(e.evaluate_every),
      block_(c.block + c.drag),
      write_(c.write),
      copy_(c.memory_block),
      evaluation_(e.evaluation),
      save_(block_) {}

Nanoseconds Progress::run(Nanoseconds now, Nanoseconds budget, Nanoseconds step, std::int64_t limit) {
    const Nanoseconds begin = now;
    save_ = block_ + (every_ > 0 ? std::max<Nanoseconds>(0, write_ - every_ * step) : 0);
    const auto pass = [&](Nanoseconds time) {
        now += time;
        budget -= time;
    };
    while (steps_ < limit) {
        if (in_step()) {
            const Nanoseconds rest = pause_ + length_ - into_, used = std::min(rest, budget);
            into_ += used;
            kept_ += used;
            pass(used);
            if (used < rest)
                break;
            ++steps_;
            begin_pause();
            continue;
        }
        if (into_ < pause_ || due_save_) {
            pass(pass_pause(now, budget));
            if (into_ < pause_)
                break;
        }
        if (budget == 0)
            break;
        jump(now, budget, step, limit);
    }
    return now - begin;
}

void Progress::begin_pause() {
    const auto due = [&](std::int64_t every) { return every > 0 && steps_ % every == 0; };
    due_copy_ = due(copy_every_);
    due_save_ = due(every_);
    due_evaluation_ = due(evaluate_every_);
    pause_ = (due_copy_ ? copy_ : 0) + (due_save_ ? save_ : 0) + (due_evaluation_ ? evaluation_ : 0);
    into_ = length_ = 0;
}

Nanoseconds Progress::pass_pause(Nanoseconds now, Nanoseconds budget) {
    const Nanoseconds used = std::min(pause_ - into_, budget);
    const Nanoseconds saves_end = pause_ - (due_evaluation_ ? evaluation_ : 0);
    const Nanoseconds saving = std::clamp<Nanoseconds>(saves_end - into_, 0, used);
    saving_ += saving;
    evaluating_ += used - saving;
    if (due_save_ && into_ + used >= saves_end) {
        due_save_ = false;
        ++saves_;
        saved(steps_, now + saves_end - into_, kept_);
    }
    into_ += used;
    return used;
}

Nanoseconds Progress::pauses(std::int64_t from, std::int64_t to) const {
    return multiples(from, to, copy_every_) * copy_ + multiples(from, to, every_) * save_ +
           multiples(from, to, evaluate_every_) * evaluation_;
}

// From behind the pause of a step to the boundary of the last step that ends in time; if there is none, into the next step.
void Progress::jump(Nanoseconds& now, Nanoseconds& budget, Nanoseconds step, std::int64_t limit) {
    const std::int64_t first = steps_;
    std::int64_t n = 0, most = std::min(limit - first, budget / step);
    while (n < most) {
        const std::int64_t middle = n + (most - n + 1) / 2;
        if (middle * step + pauses(first + 1, first + middle) <= budget)
            n = middle;
        else
            most = middle - 1;
    }
    if (n == 0) {
        length_ = step;
        into_ = pause_ + budget;
        kept_ += budget;
        now += budget;
        budget = 0;
        return;
    }
    const std::int64_t last = first + n;
    const std::int64_t copies = multiples(first + 1, last, copy_every_), saves = multiples(first + 1, last, every_);
    const std::int64_t evaluations = multiples(first + 1, last, evaluate_every_);
    const Nanoseconds used = n * step + copies * copy_ + saves * save_ + evaluations * evaluation_;
    now += used;
    budget -= used;
    kept_ += n * step;
    saving_ += copies * copy_ + saves * save_;
    evaluating_ += evaluations * evaluation_;
    saves_ += saves;
    if (saves > 0) {
        const std::int64_t save = (last - 1) / every_ * every_;
        if (saves > 1)
            saved(save - every_, now, kept_ - (last - save + every_) * step);
        const bool evaluated = evaluate_every_ > 0 && save % evaluate_every_ == 0;
        const Nanoseconds since = (last - save) * step + pauses(save + 1, last) + (evaluated ? evaluation_ : 0);
        saved(save, now - since, kept_ - (last - save) * step);
    }
    steps_ = last;
    begin_pause();
}

// A save begins when the one before is written.
void Progress::saved(std::int64_t step, Nanoseconds blocking_end, Nanoseconds kept_then) {
    durable_ = pending_;
    pending_ = {step, blocking_end + write_, kept_then};
}

std::int64_t Progress::saved_step(Nanoseconds now) const {
    return pending_.counts_from <= now ? pending_.step : durable_.step;
}

std::int64_t Progress::copied_step() const {
    if (copy_every_ == 0)
        return pending_.step;
    std::int64_t copy = steps_ / copy_every_ * copy_every_;
    if (copy == steps_ && due_copy_ && into_ < copy_)
        copy -= copy_every_;
    return std::max({copy, pending_.step, std::int64_t{0}});
}

void Progress::go_back(std::int64_t step, Nanoseconds kept_then) {
    lost_ += kept_ - kept_then;
    kept_ = kept_then;
    steps_ = step;
    pause_ = into_ = length_ = 0;
    due_copy_ = due_save_ = due_evaluation_ = false;
}

void Progress::back_to_save(Nanoseconds now, std::int64_t at_most) {
    Mark mark = pending_.counts_from <= now ? pending_ : durable_;
    if (mark.step > at_most) {  // an older one, whose time is told in proportion
        const std::int64_t step = every_ > 0 ? std::max<std::int64_t>(at_most, 0) / every_ * every_ : 0;
        mark.kept = static_cast<Nanoseconds>(static_cast<__int128>(mark.kept) * step / mark.step);
        mark.step = step;
    }
    go_back(mark.step, mark.kept);
    mark.counts_from = 0;
    durable_ = pending_ = mark;
}

void Progress::back_to_copy() {
    const std::int64_t step = copied_step();
    const Nanoseconds in_flight = in_step() ? into_ - pause_ : 0;
    const Nanoseconds done = kept_ - in_flight, since = done - pending_.kept;
    const std::int64_t steps = steps_ - pending_.step;
    const Nanoseconds redone =
        steps > 0 ? static_cast<Nanoseconds>(static_cast<__int128>(since) * (steps_ - step) / steps) : 0;
    go_back(step, done - redone);
}

void Progress::drop_step() {
    const Nanoseconds in_flight = in_step() ? into_ - pause_ : 0;
    kept_ -= in_flight;
    lost_ += in_flight;
    if (in_flight > 0)
        into_ = pause_;
    length_ = 0;
}

void Progress::save_here() {
    drop_step();
    go_back(steps_, kept_);
    durable_ = pending_ = {steps_, 0, kept_};
}

}  // namespace fabricast::campaign
