#include "models/parallel/zero_bubble.hpp"

#include <algorithm>
#include <deque>

#include "models/parallel/step_list.hpp"

namespace fabricast {
namespace {

std::vector<ScheduleStep> straight(Schedule schedule, std::int64_t s, std::int64_t p, std::int64_t m) {
    const bool wide = schedule == Schedule::zb_h2;
    const std::int64_t ahead = wide ? 2 * (p - s) - 1 : p - s;
    const std::int64_t lag = wide ? 2 * s : s;
    StepList list(schedule, s, p, 1, m);
    for (std::int64_t k = 0; k < ahead; ++k)
        list.forward(0);
    for (std::int64_t k = 0; k < m; ++k) {
        list.backward_input(0);
        if (k >= lag)
            list.backward_weight(0);
        list.forward(0);
    }
    while (list.backward_weight(0)) {
    }
    return list.take();
}

std::vector<ScheduleStep> folded(std::int64_t s, std::int64_t p, std::int64_t m) {
    StepList list(Schedule::zb_v, s, p, 2, m);
    const auto round = [&](std::int64_t chunk) {
        list.forward(chunk);
        list.backward_input(chunk);
        list.backward_weight(chunk);
    };
    for (std::int64_t k = 0; k < 2 * (p - s) - 1; ++k)
        list.forward(0);
    for (std::int64_t k = 0; k < s; ++k) {
        list.forward(1);
        list.forward(0);
    }
    for (std::int64_t k = 0; k < p - s; ++k)
        round(1);
    while (list.forwards(0) < m || list.forwards(1) < m) {
        round(0);
        round(1);
    }
    for (std::int64_t k = 0; k < s; ++k) {
        list.backward_input(0);
        list.backward_input(1);
    }
    for (std::int64_t k = 0; k < p - s; ++k) {
        list.backward_input(0);
        if (!list.backward_weight(1))
            list.backward_weight(0);
    }
    for (const std::int64_t chunk : {0, 1}) {  // few micro-batches: what the rounds left
        while (list.backward_input(chunk)) {
        }
    }
    for (const std::int64_t chunk : {1, 0}) {
        while (list.backward_weight(chunk)) {
        }
    }
    return list.take();
}

// The list of a stage of the lower half; the upper half sees it with the chunks exchanged.
class Bidirectional {
public:
    Bidirectional(std::int64_t s, std::int64_t p, std::int64_t m)
        : list_(Schedule::dual_pipe, s, p, 2, m / 2),
          upper_(s >= p / 2),
          depth_(std::min(s, p - 1 - s)),
          half_(p / 2),
          rounds_(m / 2 - p + depth_ + 1) {}

    std::vector<ScheduleStep> run() {
        const std::int64_t outer = half_ - depth_ - 1;  // stages between this one and the middle
        for (std::int64_t k = 0; k < 2 * outer; ++k)
            forward(0);
        for (std::int64_t k = 0; k <= depth_; ++k) {
            forward(0);
            forward(1);
        }
        for (std::int64_t k = 0; k < outer; ++k) {
            split(1);
            weight();
            forward(1);
        }
        for (std::int64_t k = 0; k < rounds_; ++k) {
            // The first pair of the middle stages is not overlapped, which shortens the bubble.
            pair(0, 1, k > 0 || outer > 0);
            pair(1, 0, true);
        }
        for (std::int64_t k = 0; k < outer; ++k) {
            whole(1);
            pair(1, 0, true);
        }
        // The second half of the last backwards of the stage leave their weight gradients for the gaps behind.
        for (std::int64_t k = 0; k < 2 * (depth_ + 1); ++k) {
            const std::int64_t chunk = k % 2 == 0 ? 1 : 0;
            if (k > depth_)
                split(chunk);
            else
                whole(chunk);
        }
        for (std::int64_t k = 0; k < outer; ++k) {
            weight();
            split(0);
        }
        while (!pending_.empty())
            weight();
        return list_.take();
    }

private:
    std::int64_t side(std::int64_t phase) const { return upper_ ? 1 - phase : phase; }
    void forward(std::int64_t phase) { list_.forward(side(phase)); }
    void whole(std::int64_t phase) { list_.backward(side(phase)); }
    void pair(std::int64_t ahead, std::int64_t back, bool overlapped) {
        list_.forward(side(ahead), overlapped);
        whole(back);
    }
    void split(std::int64_t phase) {
        list_.backward_input(side(phase));
        pending_.push_back(side(phase));
    }
    void weight() {
        list_.backward_weight(pending_.front());
        pending_.pop_front();
    }

    StepList list_;
    bool upper_;
    std::int64_t depth_, half_, rounds_;
    std::deque<std::int64_t> pending_;  ///< chunks of weight gradients left for later
};

}  // namespace

std::vector<ScheduleStep> zero_bubble_steps(Schedule schedule, std::int64_t s, std::int64_t p, std::int64_t m) {
    return schedule == Schedule::zb_v ? folded(s, p, m) : straight(schedule, s, p, m);
}

std::vector<ScheduleStep> dual_pipe_steps(std::int64_t s, std::int64_t p, std::int64_t m) {
    return Bidirectional(s, p, m).run();
}

}  // namespace fabricast
