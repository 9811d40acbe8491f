#include "sim/plan/pass_path.hpp"

#include <algorithm>

namespace fabricast::plan {
namespace {

using Kind = ScheduleStep::Kind;

/// When the sides of the messages of one direction between two neighbours were there; the i-th send meets the i-th receive.
struct Channel {
    std::vector<double> sent, awaited;
    std::size_t taken = 0;
};

class Walk {
public:
    Walk(const PassLists& lists, const PassTimes& times)
        : lists_(lists),
          t_(times),
          stages_(lists.stages()),
          down_(stages_),
          up_(stages_),
          at_(stages_),
          posted_(stages_),
          clock_(times.start),
          whole_(stages_),
          last_backward_(times.chunks.front().size()) {
        for (std::size_t s = 0; s < stages_; ++s)
            at_[s] = lists_.begin(s);
    }

    PassPath run() {
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t s = 0; s < stages_; ++s)
                moved = advance(s) || moved;
        }
        return {clock_, last_backward_};
    }

private:
    std::size_t next(std::size_t s) const { return s + 1 == stages_ ? 0 : s + 1; }
    std::size_t before(std::size_t s) const { return s == 0 ? stages_ - 1 : s - 1; }

    bool advance(std::size_t s) {
        const PassLists::Step* const first = at_[s];
        while (at_[s] != lists_.end(s) && (at_[s]->exchange ? exchange(s, *at_[s]) : pass(s, *at_[s])))
            ++at_[s];
        return at_[s] != first;
    }

    bool pass(std::size_t s, const PassLists::Step& step) {
        if (step.receives_forward && !arrives(down_[before(s)], t_.message_down[before(s)], s))
            return false;
        if (step.receives_backward && !arrives(up_[next(s)], t_.message_up[next(s)], s))
            return false;
        const auto c = static_cast<std::size_t>(step.chunk);
        const PassTimes::Chunk& chunk = t_.chunks[s][c];
        if (step.backward && s == 0)
            last_backward_[c] = clock_[s];
        if (step.beside)
            clock_[s] += step.backward ? chunk.backward_beside : chunk.forward_beside;
        else
            clock_[s] += step.backward ? chunk.backward : chunk.forward;
        if (!step.backward && c + 1 == t_.chunks[s].size() && !whole_[s]) {
            whole_[s] = true;
            clock_[s] = std::max(clock_[s], t_.whole[s]);
        }
        if (step.sends_forward)
            down_[s].sent.push_back(clock_[s]);
        if (step.sends_backward)
            up_[s].sent.push_back(clock_[s]);
        return true;
    }
    bool arrives(Channel& channel, double message, std::size_t s) {
        if (channel.taken == channel.sent.size())
            return false;
        clock_[s] = std::max(clock_[s], channel.sent[channel.taken++] + message);
        return true;
    }

    bool exchange(std::size_t s, const PassLists::Step& step) {
        if (posted_[s] != &step)
            post(s, step);
        Channel &from_above = down_[before(s)], &from_below = up_[next(s)];
        const bool all = (!step.sends_forward || down_[s].awaited.size() >= down_[s].sent.size()) &&
                         (!step.sends_backward || up_[s].awaited.size() >= up_[s].sent.size()) &&
                         (!step.receives_forward || from_above.sent.size() >= from_above.awaited.size()) &&
                         (!step.receives_backward || from_below.sent.size() >= from_below.awaited.size());
        if (!all)
            return false;
        double end = clock_[s];
        const auto wait = [&](const Channel& channel, std::size_t number, double message) {
            end = std::max(end, std::max(channel.sent[number], channel.awaited[number]) + message);
        };
        if (step.sends_forward)
            wait(down_[s], down_[s].sent.size() - 1, t_.message_down[s]);
        if (step.sends_backward)
            wait(up_[s], up_[s].sent.size() - 1, t_.message_up[s]);
        if (step.receives_forward)
            wait(from_above, from_above.awaited.size() - 1, t_.message_down[before(s)]);
        if (step.receives_backward)
            wait(from_below, from_below.awaited.size() - 1, t_.message_up[next(s)]);
        clock_[s] = end;
        return true;
    }

    void post(std::size_t s, const PassLists::Step& step) {
        posted_[s] = &step;
        if (step.sends_forward)
            down_[s].sent.push_back(clock_[s]);
        if (step.sends_backward)
            up_[s].sent.push_back(clock_[s]);
        if (step.receives_forward)
            down_[before(s)].awaited.push_back(clock_[s]);
        if (step.receives_backward)
            up_[next(s)].awaited.push_back(clock_[s]);
    }

    const PassLists& lists_;
    const PassTimes& t_;
    std::size_t stages_;
    std::vector<Channel> down_, up_;  ///< by sender
    std::vector<const PassLists::Step*> at_, posted_;
    std::vector<double> clock_;
    std::vector<bool> whole_;
    std::vector<double> last_backward_;
};

}  // namespace

PassLists::PassLists(Schedule schedule, std::int64_t pp, std::int64_t vpp, std::int64_t micro_batches, bool overlap,
                     bool forwards_first) {
    begin_.push_back(0);
    for (std::int64_t s = 0; s < pp; ++s) {
        for (const ScheduleStep& step : schedule_steps(schedule, s, pp, vpp, micro_batches, overlap, forwards_first))
            steps_.push_back({step.kind == Kind::backward, step.kind == Kind::exchange, step.sends_forward,
                              step.receives_forward, step.sends_backward, step.receives_backward, false, step.chunk});
        bool posted = false;
        for (std::size_t i = steps_.size(); overlap && i-- > begin_.back();) {
            steps_[i].beside = posted;
            posted = posted || steps_[i].receives_forward || steps_[i].receives_backward;
        }
        begin_.push_back(steps_.size());
    }
}

PassPath longest_path(const PassLists& lists, const PassTimes& times) { return Walk(lists, times).run(); }

}  // namespace fabricast::plan
