#include "sim/step/time_outs.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

namespace fabricast {
namespace {

using engine::Standstill;

Picoseconds of_s(double s) { return picoseconds_from_s(s); }

std::string ranks_text(const std::vector<std::int64_t>& ranks) {
    std::string text;
    for (std::size_t i = 0; i < ranks.size();) {
        std::size_t end = i;
        while (end + 1 < ranks.size() && ranks[end + 1] == ranks[end] + 1)
            ++end;
        text += text.empty() ? "" : ", ";
        text += end > i ? fmt::format("{}-{}", ranks[i], ranks[end]) : fmt::format("{}", ranks[i]);
        i = end + 1;
    }
    return text;
}

class Teller {
public:
    Teller(const StandstillFacts& facts, JobResult& job, Result& result)
        : f_(facts), job_(job), result_(result), outs_(facts.scenario.time_outs) {}

    void tell() {
        if (f_.fatal && f_.fatal->kind == StepFault::Kind::crash)
            crash();
        else if (f_.run.outcome == engine::Outcome::transport)
            transport();
        else if (f_.fatal && f_.struck_at == 0 && !outs_.off)
            no_set_up();
        else if (outs_.off)
            endless();
        else
            time_out();
        std::stable_sort(job_.messages.begin(), job_.messages.end(),
                         [](const auto& a, const auto& b) { return a.at < b.at; });
        std::sort(job_.reporting.begin(), job_.reporting.end());
    }

private:
    void say(Picoseconds at, std::int64_t rank, std::string text) {
        job_.messages.push_back({at, rank, std::move(text)});
    }
    void launcher(Picoseconds at, const std::string& first) {
        say(at, -1, fmt::format("launcher: {}; the other processes are ended", first));
    }
    bool is_struck(std::uint32_t rank) const {
        return std::find(f_.struck.begin(), f_.struck.end(), rank) != f_.struck.end();
    }
    void fail(std::string verdict, Picoseconds at, std::string text) {
        job_.end = at;
        result_.verdict = std::move(verdict);
        result_.failure = std::move(text);
    }

    void crash() {
        for (const std::uint32_t rank : f_.struck) {
            say(f_.struck_at, rank, fmt::format("rank {}: CUDA error, the device is lost; process exits", rank));
            job_.reporting.push_back(rank);
        }
        launcher(f_.struck_at, fmt::format("rank {} exited with an error", f_.struck.front()));
        fail("crash", f_.struck_at,
             fmt::format(
                 "rank {} died {:.1f} s after the start ({}); its peers, which wait in their next collective, are "
                 "ended by the launcher",
                 f_.struck.front(), seconds(f_.struck_at), f_.fatal->text));
    }

    void no_set_up() {
        const Picoseconds at = of_s(outs_.hccl ? outs_.connect_s : outs_.collective_s);
        for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(f_.scenario.training.layout.world()); ++rank) {
            if (is_struck(rank)) {
                job_.silent.push_back(rank);
                continue;
            }
            job_.reporting.push_back(rank);
        }
        say(at, job_.reporting.front(),
            fmt::format("ranks {}: set-up of the communicator is not complete after {:.0f} s, rank {} does not answer",
                        ranks_text(job_.reporting), seconds(at), ranks_text(job_.silent)));
        fail("time-out", at,
             fmt::format("set-up of communicators timed out after {:.0f} s: rank {} never came", seconds(at),
                         ranks_text(job_.silent)));
    }

    std::optional<std::uint32_t> on_next_node(const std::vector<std::uint32_t>& members, std::size_t from,
                                              bool forward) const {
        const GpuId gpu{members[from]};
        std::optional<std::uint32_t> found;
        NodeId node{};
        for (std::size_t k = 1; k < members.size(); ++k) {
            const GpuId other{members[(from + (forward ? k : members.size() - k)) % members.size()]};
            if (f_.cluster.node_of(other) == f_.cluster.node_of(gpu))
                continue;
            if (!found)
                node = f_.cluster.node_of(other);
            else if (f_.cluster.node_of(other) != node)
                break;
            if (!found || f_.cluster.local_index(other) == f_.cluster.local_index(gpu))
                found = static_cast<std::uint32_t>(index(other));
        }
        return found;
    }

    /// Behind the adapter of the lost link and its neighbours in the order of the group.
    std::vector<std::uint32_t> ends_of(const Standstill& wait) const {
        const std::vector<std::uint32_t>& members = wait.members;
        if (wait.group.empty())
            return members;
        std::set<std::uint32_t> out;
        for (std::size_t i = 0; i < members.size(); ++i) {
            const GpuId gpu{members[i]};
            bool behind = false;
            for (const NicId nic : f_.cluster.nics_of(gpu))
                behind |= index(f_.cluster.nic_up(nic)) == f_.run.lost_link ||
                          index(f_.cluster.nic_down(nic)) == f_.run.lost_link;
            if (!behind)
                continue;
            out.insert(members[i]);
            // The node before and the one behind in the order of the group, there the GPU of the same rail.
            for (const bool forward : {true, false}) {
                const std::optional<std::uint32_t> other = on_next_node(members, i, forward);
                if (other)
                    out.insert(*other);
            }
        }
        if (out.empty())  // a link of the fabric: whoever sends over it
            out.insert(members.begin(), members.end());
        return {out.begin(), out.end()};
    }

    void transport() {
        const Picoseconds at = f_.real(f_.run.failed_at);
        std::set<std::uint32_t> ranks;
        for (const Standstill& wait : f_.run.waits) {
            for (const std::uint32_t rank : ends_of(wait))
                ranks.insert(rank);
        }
        const std::string& link = f_.cluster.links().name[f_.run.lost_link];
        const std::string what = f_.run.waits.empty() ? "traffic" : f_.run.waits.front().what;
        for (const std::uint32_t rank : ranks) {
            job_.reporting.push_back(rank);
            say(at, rank,
                fmt::format("rank {}: network error in {}: work request failed, transport retries exceeded (time-out "
                            "exponent {}, {} retries, {:.1f} s)",
                            rank, what, outs_.ib_exponent, outs_.ib_retries, outs_.transport_s));
        }
        launcher(at, fmt::format("rank {} exited with an error", ranks.empty() ? 0 : *ranks.begin()));
        fail("transport error", at,
             fmt::format(
                 "{} was down longer than the {:.1f} s that the transport tries: ranks {} report retries exceeded "
                 "{:.1f} s after the start, the others wait until the launcher ends them",
                 link, outs_.transport_s, ranks_text(job_.reporting), seconds(at)));
    }

    Picoseconds first_wait() const {
        Picoseconds first = INT64_MAX;
        for (const Standstill& wait : f_.run.waits) {
            for (const Standstill::Side& side : wait.waiting)
                first = std::min(first, f_.real(side.since));
        }
        return first == INT64_MAX ? f_.real(f_.run.end) : first;
    }

    std::vector<std::int64_t> waited_for() const {
        std::set<std::int64_t> waiting, missing;
        for (const Standstill& wait : f_.run.waits) {
            for (const Standstill::Side& side : wait.waiting)
                waiting.insert(side.rank);
            missing.insert(wait.missing.begin(), wait.missing.end());
        }
        std::vector<std::int64_t> out;
        for (const std::int64_t rank : missing) {
            if (!waiting.contains(rank) || is_struck(static_cast<std::uint32_t>(rank)))
                out.push_back(rank);
        }
        return out;
    }

    void endless() {
        job_.stalled_at = f_.real(f_.run.end);
        job_.silent = waited_for();
        for (const Standstill& wait : f_.run.waits)
            tell_wait(wait, job_.stalled_at, " and waits without end");
        fail("hang", job_.stalled_at,
             fmt::format(
                 "nothing moves from {:.1f} s on, and no time-out ends it: GPU_UTIL reads 100 % on the ranks whose "
                 "kernels wait, their network carries nothing, no rank reports; {}",
                 seconds(job_.stalled_at), waiting_text()));
    }

    std::string waiting_text() const {
        if (f_.run.waits.empty())
            return "nobody waits in a collective";
        // The largest wait first.
        const auto most = std::max_element(
            f_.run.waits.begin(), f_.run.waits.end(),
            [](const Standstill& a, const Standstill& b) { return a.waiting.size() < b.waiting.size(); });
        std::vector<std::int64_t> missing(most->missing.begin(), most->missing.end());
        return fmt::format("{} of {} ranks of {} are in {}, missing rank {}", most->waiting.size(),
                           most->members.size(), most->group.empty() ? "a message" : most->group, most->what,
                           ranks_text(missing));
    }

    void tell_wait(const Standstill& wait, Picoseconds at, const std::string& end) {
        std::vector<std::int64_t> ranks, missing(wait.missing.begin(), wait.missing.end());
        for (const Standstill::Side& side : wait.waiting)
            ranks.push_back(side.rank);
        std::sort(ranks.begin(), ranks.end());
        say(at, ranks.front(),
            fmt::format("rank {}: in {} (step {}){}; missing rank {}", ranks_text(ranks), wait.what,
                        f_.real_step(wait.waiting.front().step) + 1, end, ranks_text(missing)));
    }

    void time_out() {
        const Picoseconds limit = of_s(outs_.collective_s), first = first_wait() + limit;
        std::set<std::int64_t> reporting;
        // Ranks of one call that report at one moment say the same.
        for (const Standstill& wait : f_.run.waits) {
            std::map<Picoseconds, std::vector<std::int64_t>> by_time;
            for (const Standstill::Side& side : wait.waiting) {
                const Picoseconds at = f_.real(side.since) + limit;
                if (at > first + kLauncherGrace || is_struck(side.rank) || !reporting.insert(side.rank).second)
                    continue;
                by_time[at].push_back(side.rank);
            }
            std::vector<std::int64_t> missing(wait.missing.begin(), wait.missing.end());
            for (auto& [at, ranks] : by_time) {
                std::sort(ranks.begin(), ranks.end());
                say(at, ranks.front(), report(wait, ranks, missing));
            }
        }
        job_.reporting.assign(reporting.begin(), reporting.end());
        for (const std::int64_t rank : waited_for()) {
            if (!reporting.contains(rank))
                job_.silent.push_back(rank);
        }
        launcher(first, "a process was ended by its watchdog");
        std::string who = fmt::format("ranks {} report it", ranks_text(job_.reporting));
        if (!job_.silent.empty())
            who += fmt::format(", rank {} for which they waited reports nothing", ranks_text(job_.silent));
        fail("time-out", first,
             fmt::format(
                 "collective time-out {:.1f} s after the start, {:.0f} s after the first rank began to wait: {}; {}",
                 seconds(first), outs_.collective_s, waiting_text(), who));
    }

    std::string report(const Standstill& wait, const std::vector<std::int64_t>& ranks,
                       const std::vector<std::int64_t>& missing) const {
        const std::string who = ranks.size() > 1 ? "ranks " : "rank ";
        const std::string of = wait.group.empty() ? "" : " on group " + wait.group;
        if (outs_.hccl)
            return fmt::format(
                "{}{}: EI0002: wait for the notification of {}{} exceeded {:.0f} s; a rank died or is too slow, "
                "sample counts differ between ranks, or a link is lost (no signal from rank {})",
                who, ranks_text(ranks), wait.what, of, outs_.collective_s, ranks_text(missing));
        return fmt::format(
            "{}{}: watchdog: {}{}, step {}, is older than its limit of {:.0f} ms; the communicator is aborted "
            "and the process ends (not seen there: rank {})",
            who, ranks_text(ranks), wait.what, of, f_.real_step(wait.waiting.front().step) + 1,
            outs_.collective_s * 1e3, ranks_text(missing));
    }

    const StandstillFacts& f_;
    JobResult& job_;
    Result& result_;
    const TimeOuts& outs_;
};

}  // namespace

void tell_standstill(const StandstillFacts& facts, JobResult& job, Result& result) {
    Teller(facts, job, result).tell();
}

}  // namespace fabricast
