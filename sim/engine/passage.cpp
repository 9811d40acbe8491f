#include "sim/engine/passage.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "sim/engine/mixing.hpp"

namespace fabricast::engine {
namespace {

using WaitKey = std::tuple<std::uint8_t, std::uint8_t, std::int8_t, std::array<std::int64_t, kMaxDepth>, std::int64_t>;

class Maker {
public:
    Maker(const Recording& recording, const Code& code, Passage& out)
        : recording_(recording),
          code_(code),
          out_(out),
          streams_(code.entry.size()),
          begin_(recording.first.time),
          touched_(recording.kept.touched) {}

    bool make() {
        if (!together() || !stream_courses())
            return false;
        const QuietMoment& latest = recording_.latest;
        out_.touched = touched_;
        out_.length = latest.time - begin_;
        out_.group_after = latest.group;
        out_.stream_after = latest.stream;
        out_.order = latest.order;
        out_.last = latest.last;
        member_courses();
        bubbles();
        checks();
        for (auto step = recording_.path.rbegin(); step != recording_.path.rend(); ++step)
            out_.path.push_back({step->place, step->operation, step->started - begin_, step->finished - begin_});
        return marks();
    }

private:
    std::size_t at(std::size_t place, std::size_t stream) const { return place * streams_ + stream; }

    template <typename Do>
    void for_touched(Do what) const {
        for (std::uint32_t left = touched_; left != 0; left &= left - 1)
            what(static_cast<std::uint8_t>(std::countr_zero(left)));
    }

    // All ranks of the island stand alike at both moments, and no loop went round.
    bool together() const {
        bool equal = true;
        for (const QuietMoment* moment : {&recording_.first, &recording_.latest}) {
            for (std::size_t place = 1; place < moment->members.size(); ++place) {
                for_touched([&](std::uint8_t s) {
                    equal &= moment->points[at(place, s)] == moment->points[s] &&
                             moment->counts[at(place, s)] == moment->counts[s];
                });
            }
        }
        for_touched(
            [&](std::uint8_t s) { equal &= recording_.first.counts[s].loop == recording_.latest.counts[s].loop; });
        return equal;
    }

    // False when a stream it moves waits for one that it does not move.
    bool stream_courses() {
        bool inside = true;
        for_touched([&](std::uint8_t s) {
            Passage::StreamCourse course;
            course.stream = s;
            course.before = recording_.first.points[s];
            course.after = recording_.latest.points[s];
            course.count = recording_.first.counts[s];
            course.completes = recording_.latest.counts[s].completed - course.count.completed;
            for (const StreamPoint& point : {course.before, course.after})
                inside &= point.state != StreamState::blocked || (touched_ & bit(point.waits_on)) != 0;
            out_.streams.push_back(course);
        });
        return inside;
    }

    void member_courses() {
        for (std::size_t place = 0; place < recording_.first.members.size(); ++place) {
            const QuietMoment::Member& before = recording_.first.members[place];
            const QuietMoment::Member& after = recording_.latest.members[place];
            const HostWatch& host = recording_.kept.host[place];
            Passage::Member& member = out_.members.emplace_back();
            member.exact = host.exact;
            member.synced = host.synced;
            member.lead = before.host_clock - begin_;
            if (!host.exact)  // as much less lead as nobody would have felt
                member.lead = host.slack == INT64_MAX ? INT64_MAX : member.lead + host.slack;
            member.host = after.host_clock - (host.synced ? begin_ : before.host_clock);
            member.exposed = before.exposed;
            member.started = after.started - begin_;
            member.exposed_after = after.exposed;
            member.waited = after.waited - before.waited;
            for (std::size_t a = 0; a < kAccountCount; ++a) {
                if (after.accounts[a] != before.accounts[a])
                    member.charges.push_back({static_cast<Account>(a), after.accounts[a] - before.accounts[a]});
            }
        }
    }

    void bubbles() {
        const std::size_t groups = recording_.first.bubble.size() / recording_.first.members.size();
        for (std::uint32_t g = 0; g < groups; ++g) {
            if ((recording_.kept.met & (1u << g)) != 0)
                out_.met.push_back(g);
        }
        for (std::size_t place = 0; place < recording_.first.members.size(); ++place) {
            for (const std::uint32_t g : out_.met) {
                out_.bubble_before.push_back(recording_.first.bubble[place * groups + g]);
                out_.bubble_after.push_back(recording_.latest.bubble[place * groups + g]);
            }
        }
    }

    void check(std::uint8_t stream, std::uint32_t wait) {
        const Wait& w = code_.waits[wait];
        Passage::WaitCheck made;
        made.stream = stream;
        made.wait = wait;
        made.skipped =
            w.skip_first >= 0 && recording_.first.counts[stream].loop[static_cast<std::size_t>(w.skip_first)] == 0;
        made.inside =
            !made.skipped && needed(w, recording_.first.counts[stream]) > recording_.first.counts[w.stream].completed;
        // Of waits for what comes in the passage only the way they grow with the loops matters.
        const std::int64_t base = made.inside || made.skipped ? 0 : w.base;
        if (!known_.insert({WaitKey{stream, w.stream, w.skip_first, w.stride, base}, true}).second)
            return;
        out_.waits.push_back(made);
    }

    void checks() {
        for (std::size_t i = 0; i < recording_.kept.waits; ++i)
            check(recording_.waits[i].first, recording_.waits[i].second);
        // Streams that wait in the end, up to the wait that is not met.
        for (const Passage::StreamCourse& course : out_.streams) {
            if (course.after.state != StreamState::blocked)
                continue;
            const Instruction& in = code_.instructions[course.after.counter];
            for (std::uint32_t n = 0; n < in.wait_count; ++n) {
                check(course.stream, in.waits + n);
                const Wait& w = code_.waits[in.waits + n];
                if (w.stream == course.after.waits_on && needed(w, course.count) > completed_after(w.stream))
                    break;
            }
        }
    }
    static std::int64_t needed(const Wait& wait, const StreamCount& count) {
        if (wait.skip_first >= 0 && count.loop[static_cast<std::size_t>(wait.skip_first)] == 0)
            return 0;
        std::int64_t sum = wait.base;
        for (std::size_t level = 0; level < kMaxDepth; ++level)
            sum += wait.stride[level] * count.loop[level];
        return sum;
    }
    std::int64_t completed_after(std::uint8_t stream) const { return recording_.latest.counts[stream].completed; }

    // Every rank's first is the call at the beginning, which ends for all at once.
    bool marks() {
        std::vector<std::tuple<std::uint32_t, Picoseconds, Picoseconds, std::uint32_t>> all;
        std::vector<bool> begun(recording_.first.members.size(), false);
        Picoseconds first_end = -1;
        for (std::size_t i = 0; i < recording_.kept.finished; ++i) {
            const Recording::Finished& f = recording_.finished[i];
            if (begun[f.place]) {
                all.push_back({f.operation, f.started - begin_, f.finished - begin_, f.place});
                continue;
            }
            begun[f.place] = true;
            if (first_end >= 0 && first_end != f.finished - begin_)
                return false;
            first_end = f.finished - begin_;
        }
        if (std::find(begun.begin(), begun.end(), false) != begun.end())
            return false;
        out_.first_end = first_end;
        std::sort(all.begin(), all.end());
        std::map<std::vector<std::uint32_t>, std::vector<std::uint64_t>> by_places;
        for (std::size_t i = 0; i < all.size();) {
            const auto& [operation, started, finished, first] = all[i];
            std::vector<std::uint32_t> places;
            std::size_t next = i;
            for (; next < all.size() && std::get<0>(all[next]) == operation && std::get<1>(all[next]) == started &&
                   std::get<2>(all[next]) == finished;
                 ++next)
                places.push_back(std::get<3>(all[next]));
            by_places[std::move(places)].push_back(finish_constant(code_.tmpl, operation, started, finished));
            i = next;
        }
        for (auto& [places, constants] : by_places)
            out_.marks.push_back({places, std::move(constants)});
        return true;
    }

    const Recording& recording_;
    const Code& code_;
    Passage& out_;
    std::size_t streams_;
    Picoseconds begin_;
    std::uint32_t touched_;
    std::map<WaitKey, bool> known_;
};

}  // namespace

bool make_passage(const Recording& recording, const Code& code, Passage& out) {
    return Maker(recording, code, out).make();
}

}  // namespace fabricast::engine
