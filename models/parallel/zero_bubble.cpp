#include "models/parallel/zero_bubble.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include "models/parallel/step_list.hpp"

namespace fabricast {
namespace {

// ahead: forwards before the first backward; lag: rounds after which weight gradients follow.
std::vector<ScheduleStep> straight(Schedule schedule, std::int64_t s, std::int64_t p, std::int64_t m,
                                   std::int64_t ahead, std::int64_t lag) {
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

// Runs the lists with passes of one unit and messages that take no time, and sets `ahead` of every step that receives.
class MessagePlan {
public:
    MessagePlan(Schedule schedule, std::vector<std::vector<ScheduleStep>>& lists)
        : schedule_(schedule), lists_(lists) {}

    void run() {
        const std::size_t stages = lists_.size();
        std::vector<std::size_t> at(stages, 0);
        std::vector<std::int64_t> free(stages, 0);
        starts_.resize(stages);
        done_.resize(stages);
        for (auto& chunks : done_)
            chunks.resize(2);
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t s = 0; s < stages; ++s) {
                while (at[s] < lists_[s].size() && advance(s, at[s], free[s]))
                    moved = true;
            }
        }
    }

private:
    using Ends = std::vector<std::int64_t>;  ///< by micro-batch
    struct Done {
        Ends forward, backward;
    };

    // The stage and chunk a step's input comes from.
    std::pair<std::size_t, std::size_t> source(std::size_t s, const ScheduleStep& step) const {
        const bool forward = step.kind == ScheduleStep::Kind::forward;
        const bool down = runs_up(schedule_, step.chunk) != forward;
        return {static_cast<std::size_t>(static_cast<std::int64_t>(s) + (down ? -1 : 1)),
                static_cast<std::size_t>(step.chunk)};
    }
    // When the input of a step is there; negative: nobody sent it yet.
    std::int64_t arrival(std::size_t s, const ScheduleStep& step) const {
        if (!step.receives_forward && !step.receives_backward)
            return 0;
        const bool forward = step.kind == ScheduleStep::Kind::forward;
        const auto [from, of] = source(s, step);
        const Ends& made = ends(from, of, forward);
        const std::size_t n = ends(s, of, forward).size();
        return n < made.size() ? made[n] : -1;
    }
    const Ends& ends(std::size_t s, std::size_t chunk, bool forward) const {
        return forward ? done_[s][chunk].forward : done_[s][chunk].backward;
    }
    // A step, or a pair as one piece: both inputs before, both outputs behind.
    bool advance(std::size_t s, std::size_t& at, std::int64_t& free) {
        const std::size_t stop = at + (lists_[s][at].paired ? 2 : 1);
        std::int64_t start = free, length = 0;
        for (std::size_t i = at; i < stop; ++i) {
            const std::int64_t there = arrival(s, lists_[s][i]);
            if (there < 0)
                return false;
            start = std::max(start, there);
            length += lists_[s][i].kind == ScheduleStep::Kind::backward ? 2 : 1;
        }
        free = start + length;
        for (std::size_t i = at; i < stop; ++i) {
            ScheduleStep& step = lists_[s][i];
            const auto first = std::lower_bound(starts_[s].begin(), starts_[s].end(), arrival(s, step));
            if (step.receives_forward || step.receives_backward)
                step.ahead = static_cast<std::int16_t>(starts_[s].end() - first);
        }
        for (; at < stop; ++at) {
            const ScheduleStep& step = lists_[s][at];
            starts_[s].push_back(start);
            Done& done = done_[s][static_cast<std::size_t>(step.chunk)];
            if (step.kind == ScheduleStep::Kind::forward)
                done.forward.push_back(free);
            else if (step.kind != ScheduleStep::Kind::backward_weight)
                done.backward.push_back(free);
        }
        return true;
    }

    Schedule schedule_;
    std::vector<std::vector<ScheduleStep>>& lists_;
    std::vector<std::vector<std::int64_t>> starts_;  ///< of the steps of a stage
    std::vector<std::vector<Done>> done_;            ///< stage, chunk
};

}  // namespace

std::vector<std::vector<ScheduleStep>> split_schedule(Schedule schedule, std::int64_t p, std::int64_t m) {
    std::vector<std::vector<ScheduleStep>> lists;
    for (std::int64_t s = 0; s < p; ++s) {
        switch (schedule) {
            case Schedule::zb_h1: lists.push_back(straight(schedule, s, p, m, p - s, s)); break;
            case Schedule::zb_h2: lists.push_back(straight(schedule, s, p, m, 2 * (p - s) - 1, 2 * s)); break;
            case Schedule::zb_v: lists.push_back(folded(s, p, m)); break;
            case Schedule::dual_pipe: lists.push_back(Bidirectional(s, p, m).run()); break;
            case Schedule::gpipe:
            case Schedule::one_f_one_b:
            case Schedule::interleaved: break;
        }
    }
    MessagePlan(schedule, lists).run();
    return lists;
}

}  // namespace fabricast
