#include "models/parallel/schedule.hpp"

#include <algorithm>

#include "models/parallel/placement.hpp"
#include "models/parallel/zero_bubble.hpp"

namespace fabricast {
namespace {

using Kind = ScheduleStep::Kind;

class Pipeline {
public:
    Pipeline(std::int64_t s, std::int64_t p, std::int64_t v, std::int64_t m, bool overlap)
        : s_(s), p_(p), v_(v), m_(m), total_(m * v), overlap_(overlap) {}

    std::vector<ScheduleStep> gpipe() {
        for (std::int64_t k = 0; k < total_; ++k) {
            exchange(false, needs_input(k), false, false);
            forward(k);
            exchange(sends_output(k), false, false, false);
        }
        for (std::int64_t k = 0; k < total_; ++k) {
            exchange(false, false, false, needs_gradient(k));
            backward(k);
            exchange(false, false, sends_gradient(k), false);
        }
        return std::move(steps_);
    }

    std::vector<ScheduleStep> one_f_one_b() {
        const std::int64_t warmup = std::min(m_, p_ - s_ - 1);
        for (std::int64_t k = 0; k < warmup; ++k) {
            exchange(false, needs_input(k), false, false);
            forward(k);
            exchange(sends_output(k), false, false, false);
        }
        if (warmup < m_)
            exchange(false, needs_input(warmup), false, false);
        for (std::int64_t k = warmup; k < m_; ++k) {
            forward(k);
            exchange(sends_output(k), false, false, needs_gradient(k - warmup));
            backward(k - warmup);
            const bool more = k + 1 < m_;
            exchange(false, more && needs_input(k + 1), sends_gradient(k - warmup), false);
        }
        for (std::int64_t k = m_ - warmup; k < m_; ++k) {
            exchange(false, false, false, needs_gradient(k));
            backward(k);
            exchange(false, false, sends_gradient(k), false);
        }
        return std::move(steps_);
    }

    std::vector<ScheduleStep> interleaved(bool forwards_first) {
        const std::int64_t warmup =
            forwards_first && m_ == p_ ? total_ : std::min(total_, (p_ - s_ - 1) * 2 + (v_ - 1) * p_);
        exchange(false, needs_input(0), false, false);
        for (std::int64_t k = 0; k < warmup; ++k) {
            forward(k);
            const bool next_input = k + 1 < total_ && needs_input(k + 1);
            const bool first_gradient = k + 1 == warmup && warmup < total_ && needs_gradient(0);
            exchange(sends_output(k), next_input, false, first_gradient);
        }
        if (warmup == total_)
            exchange(false, false, false, needs_gradient(0));
        for (std::int64_t k = 0; k + warmup < total_; ++k) {
            const std::int64_t f = k + warmup;
            forward(f);
            backward(k);
            const bool next_input = f + 1 < total_ && needs_input(f + 1);
            const bool next_gradient = k + 1 < total_ && needs_gradient(k + 1);
            exchange(sends_output(f), next_input, sends_gradient(k), next_gradient);
        }
        for (std::int64_t k = total_ - warmup; k < total_; ++k) {
            backward(k);
            const bool next_gradient = k + 1 < total_ && needs_gradient(k + 1);
            exchange(false, false, sends_gradient(k), next_gradient);
        }
        return std::move(steps_);
    }

private:
    std::int64_t forward_chunk(std::int64_t k) const { return k % (p_ * v_) / p_; }
    std::int64_t backward_chunk(std::int64_t k) const { return v_ - 1 - forward_chunk(k); }
    bool needs_input(std::int64_t k) const { return s_ > 0 || forward_chunk(k) > 0; }
    bool sends_output(std::int64_t k) const { return s_ < p_ - 1 || forward_chunk(k) < v_ - 1; }
    bool needs_gradient(std::int64_t k) const { return s_ < p_ - 1 || backward_chunk(k) < v_ - 1; }
    bool sends_gradient(std::int64_t k) const { return s_ > 0 || backward_chunk(k) > 0; }

    void forward(std::int64_t k) {
        ScheduleStep step;
        step.kind = Kind::forward;
        step.chunk = static_cast<std::int16_t>(forward_chunk(k));
        step.first = std::find(begun_.begin(), begun_.end(), step.chunk) == begun_.end();
        if (step.first)
            begun_.push_back(step.chunk);
        if (overlap_) {
            step.receives_forward = needs_input(k);
            step.sends_forward = sends_output(k);
        }
        steps_.push_back(step);
    }
    void backward(std::int64_t k) {
        ScheduleStep step;
        step.kind = Kind::backward;
        step.chunk = static_cast<std::int16_t>(backward_chunk(k));
        done_.resize(static_cast<std::size_t>(v_), 0);
        step.last = ++done_[static_cast<std::size_t>(step.chunk)] == m_;
        if (overlap_) {
            step.receives_backward = needs_gradient(k);
            step.sends_backward = sends_gradient(k);
        }
        steps_.push_back(step);
    }
    void exchange(bool send_forward, bool receive_forward, bool send_backward, bool receive_backward) {
        if (overlap_ || p_ == 1 || !(send_forward || receive_forward || send_backward || receive_backward))
            return;
        ScheduleStep step;
        step.kind = Kind::exchange;
        step.sends_forward = send_forward;
        step.receives_forward = receive_forward;
        step.sends_backward = send_backward;
        step.receives_backward = receive_backward;
        steps_.push_back(step);
    }

    std::int64_t s_, p_, v_, m_, total_;
    bool overlap_;
    std::vector<ScheduleStep> steps_;
    std::vector<std::int16_t> begun_;
    std::vector<std::int64_t> done_;
};

}  // namespace

std::vector<ScheduleStep> schedule_steps(Schedule schedule, std::int64_t s, std::int64_t p, std::int64_t v,
                                         std::int64_t m, bool overlap, bool forwards_first) {
    Pipeline pipeline(s, p, v, m, overlap && p > 1);
    switch (schedule) {
        case Schedule::gpipe: return pipeline.gpipe();
        case Schedule::one_f_one_b: return pipeline.one_f_one_b();
        case Schedule::interleaved: return pipeline.interleaved(forwards_first);
        case Schedule::zb_h1:
        case Schedule::zb_h2:
        case Schedule::zb_v:
        case Schedule::dual_pipe: return split_schedule(schedule, p, m)[static_cast<std::size_t>(s)];
    }
    return {};
}

std::vector<std::vector<ScheduleStep>> pipeline_steps(Schedule schedule, std::int64_t p, std::int64_t v, std::int64_t m,
                                                      bool overlap, bool forwards_first) {
    if (splits_backward(schedule))
        return split_schedule(schedule, p, m);
    std::vector<std::vector<ScheduleStep>> lists;
    for (std::int64_t s = 0; s < p; ++s)
        lists.push_back(schedule_steps(schedule, s, p, v, m, overlap, forwards_first));
    return lists;
}

std::vector<ScheduleBlock> fold(const std::vector<ScheduleStep>& steps, std::int64_t p, std::int64_t v) {
    // Periods that schedules have: single work with its messages (up to 4 steps) and a whole round of chunks.
    std::vector<std::size_t> periods = {1, 2, 3, 4};
    for (std::size_t factor = 1; factor <= 3; ++factor)
        periods.push_back(factor * static_cast<std::size_t>(p * v));
    const bool cut = std::any_of(steps.begin(), steps.end(),
                                 [](const ScheduleStep& step) { return step.kind == Kind::backward_weight; });
    if (cut)
        periods.push_back(6);  // two chunks, three passes
    std::vector<ScheduleBlock> blocks;
    const auto add_single = [&](const ScheduleStep& step) {
        if (blocks.empty() || blocks.back().count != 1)
            blocks.push_back({1, {}});
        blocks.back().steps.push_back(step);
    };
    for (std::size_t at = 0; at < steps.size();) {
        std::size_t best_period = 0, best_count = 1;
        for (const std::size_t period : periods) {
            if (at + period > steps.size() || steps[at + period - 1].paired || (at > 0 && steps[at - 1].paired))
                continue;  // pairs stay together
            std::size_t count = 1;
            while (at + (count + 1) * period <= steps.size() &&
                   std::equal(steps.begin() + static_cast<long>(at), steps.begin() + static_cast<long>(at + period),
                              steps.begin() + static_cast<long>(at + count * period))) {
                ++count;
            }
            if (count > 1 && count * period > best_count * best_period) {
                best_period = period;
                best_count = count;
            }
        }
        if (best_count == 1) {
            add_single(steps[at++]);
            continue;
        }
        blocks.push_back(
            {static_cast<std::int64_t>(best_count),
             {steps.begin() + static_cast<long>(at), steps.begin() + static_cast<long>(at + best_period)}});
        at += best_period * best_count;
    }
    return blocks;
}

std::int64_t most_in_flight(const std::vector<ScheduleStep>& steps) {
    std::int64_t now = 0, most = 0;
    for (const ScheduleStep& step : steps) {
        if (step.kind == Kind::forward)
            most = std::max(most, ++now);
        if (step.kind == Kind::backward || step.kind == Kind::backward_weight)
            --now;
    }
    return most;
}

}  // namespace fabricast
