#include "sim/monitor/truth.hpp"

#include <algorithm>
#include <optional>

#include "models/monitors/xid.hpp"

namespace fabricast::monitor {
namespace {

using campaign::Incident;
using campaign::Spent;
using campaign::Stretch;
using Kind = Truth::Kind;

/// Ends the oldest open one of its sort; none: nothing.
void close(std::vector<Truth>& all, Kind kind, std::uint32_t which, Nanoseconds time) {
    for (Truth& t : all)
        if (t.kind == kind && t.which == which && t.end == campaign::kNever) {
            t.end = time;
            return;
        }
}

/// When the job goes on after it stood.
Nanoseconds next_step(const campaign::ReplicaResult& replica, Nanoseconds time) {
    for (const Stretch& s : replica.stretches)
        if (s.begin >= time && s.why == Spent::steps)
            return s.begin;
    return replica.wall;
}

void flaps_of(const campaign::ReplicaResult& replica, std::vector<Truth>& all) {
    Nanoseconds end = -1;  // of the stall before
    for (const Stretch& s : replica.stretches) {
        if (s.why != Spent::stall || s.membership)
            continue;
        if (s.begin == end)
            all.back().end = s.end;
        else
            all.push_back({Kind::flap, 0, s.begin, s.end});
        end = s.end;
    }
}

void leaks_of(const campaign::CampaignSpec& spec, const campaign::ReplicaResult& replica, std::vector<Truth>& all) {
    if (spec.conditions.leak.per_day <= 0)
        return;
    Nanoseconds job = -1;  // start of the one that leaks
    for (const Stretch& s : replica.stretches) {
        const Nanoseconds shows = s.job_start + spec.conditions.leak.free_for;
        if (s.why != Spent::steps || s.end <= shows)
            continue;
        if (s.job_start != job)
            all.push_back({Kind::leak, 0, shows, s.end, shows - s.job_start});
        job = s.job_start;
        all.back().end = s.end;
    }
}

/// Metrics of a job that does no steps.
bool shows_standing(Metric m) {
    return m == Metric::job_up || m == Metric::since_step || m == Metric::io_wait ||
           (follows_step(m) && m != Metric::step_time && m != Metric::mfu && m != Metric::tokens_per_s);
}

/// Whether the driver's metrics show it; nothing for the other metrics.
std::optional<bool> driver_tells(const faults::Component& component, Metric m) {
    const monitors::DriverReport told = monitors::driver_report(component.name);
    if (m == Metric::xid)
        return told.xid > 0;
    if (m == Metric::ecc_uncorrectable)
        return told.uncorrectable;
    return std::nullopt;
}

}  // namespace

std::vector<Truth> truths_of(const campaign::CampaignSpec& spec, const campaign::ReplicaResult& replica) {
    std::vector<Truth> all, others;
    bool down = false;
    for (const Incident& incident : replica.incidents) {
        const auto until_it_runs = [&](Kind kind) {
            const Nanoseconds end = next_step(replica, incident.time);
            return Truth{kind, 0, incident.time, std::max(end, incident.time + campaign::kMinute)};
        };
        switch (incident.kind) {
            case Incident::Kind::fault: {
                const bool silent = spec.fleet.components[incident.which].shows == faults::Shows::silent;
                all.push_back({Kind::stop, incident.which, incident.time, campaign::kNever, 0, !silent && down});
                down = down || !silent;
                break;
            }
            case Incident::Kind::recovered:  // and replicas that were away start with the others
                down = false;
                for (Truth& t : all)
                    if (t.end == campaign::kNever &&
                        (t.kind == Kind::departure ||
                         (t.kind == Kind::stop && spec.fleet.components[t.which].shows != faults::Shows::silent)))
                        t.end = incident.time;
                break;
            case Incident::Kind::replica_left:
                all.push_back({.kind = Kind::departure,
                               .which = incident.which,
                               .begin = incident.time,
                               .end = campaign::kNever,
                               .replica = incident.node % spec.recovery.replicas});
                break;
            case Incident::Kind::replica_back:
                for (Truth& t : all)
                    if (t.kind == Kind::departure && t.replica == incident.which && t.end == campaign::kNever)
                        t.end = next_step(replica, incident.time);
                break;
            case Incident::Kind::silent_found:
                close(all, Kind::stop, incident.which, incident.time);
                all.push_back(until_it_runs(Kind::undone));
                break;
            case Incident::Kind::degraded:
                all.push_back({Kind::degradation, incident.which, incident.time, campaign::kNever});
                break;
            case Incident::Kind::mended: close(all, Kind::degradation, incident.which, incident.time); break;
            case Incident::Kind::congested:
                all.push_back({Kind::congestion, 0, incident.time, campaign::kNever});
                break;
            case Incident::Kind::cleared: close(all, Kind::congestion, 0, incident.time); break;
            case Incident::Kind::poisoned: all.push_back(until_it_runs(Kind::poisoned)); break;
            case Incident::Kind::from_zero: all.push_back(until_it_runs(Kind::from_zero)); break;
            case Incident::Kind::false_alarm: all.push_back(until_it_runs(Kind::false_alarm)); break;
            default: break;
        }
    }
    flaps_of(replica, others);
    all.insert(all.end(), others.begin(), others.end());
    others.clear();
    leaks_of(spec, replica, others);
    all.insert(all.end(), others.begin(), others.end());
    for (Truth& t : all)
        t.end = std::min(t.end, replica.wall);
    std::stable_sort(all.begin(), all.end(), [](const Truth& a, const Truth& b) { return a.begin < b.begin; });
    return all;
}

std::string truth_text(const campaign::CampaignSpec& spec, const Truth& t) {
    switch (t.kind) {
        case Kind::stop: return spec.fleet.components[t.which].what;
        case Kind::departure: return spec.fleet.components[t.which].what + ": a replica away";
        case Kind::undone: return "silent corruption undone";
        case Kind::degradation: return spec.conditions.degradations[t.which].what.what;
        case Kind::congestion: return "congestion by neighbours";
        case Kind::flap: return "link flap";
        case Kind::leak: return "leak";
        case Kind::poisoned: return "loss not a number";
        case Kind::from_zero: return "training begun anew";
        case Kind::false_alarm: return "save taken for a hang";
    }
    return {};
}

bool follows_step(Metric m) {
    return m == Metric::step_time || m == Metric::mfu || m == Metric::tokens_per_s || m == Metric::tensor_active ||
           m == Metric::nvlink_bw || m == Metric::ib_bw || m == Metric::power || m == Metric::gpu_util;
}

bool moves(const campaign::CampaignSpec& spec, const Truth& t, Metric m, int part) {
    const bool of_peers = monitors::info(m).of_peers;
    switch (t.kind) {
        case Kind::degradation: {
            if (of_peers && part != static_cast<int>(t.which))
                return false;
            const std::string& name = spec.conditions.degradations[t.which].what.name;
            const bool gpu = name == "slow_gpu" || name == "hot_gpu";
            switch (m) {
                case Metric::port_rate: return name == "nic_half";
                case Metric::ib_busbw: return name == "nic_half" || name == "pcie_width";
                case Metric::nvlink_busbw: return name == "nvlink_lane";
                case Metric::collective_time:
                case Metric::compute_time: return gpu;
                case Metric::gpu_temp:
                case Metric::sm_clock: return name == "hot_gpu";
                default: return follows_step(m) && m != Metric::gpu_util;
            }
        }
        case Kind::congestion: return m == Metric::ib_busbw ? part < 0 : follows_step(m) && m != Metric::gpu_util;
        case Kind::leak:
            return m == Metric::data_wait || m == Metric::io_wait || m == Metric::host_memory_free ||
                   (follows_step(m) && !of_peers);
        case Kind::flap: return m == Metric::link_downed || m == Metric::since_step || follows_step(m);
        case Kind::undone:
        case Kind::from_zero:
        case Kind::false_alarm: return shows_standing(m);
        case Kind::poisoned: return m == Metric::loss_is_nan || m == Metric::grad_norm_event || shows_standing(m);
        case Kind::departure:
            return driver_tells(spec.fleet.components[t.which], m).value_or(m == Metric::since_step || follows_step(m));
        case Kind::stop: {
            const faults::Component& c = spec.fleet.components[t.which];
            if (c.shows == faults::Shows::silent)
                return false;
            return driver_tells(c, m).value_or(!t.while_down && shows_standing(m));
        }
    }
    return false;
}

}  // namespace fabricast::monitor
