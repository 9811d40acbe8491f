#include "sim/campaign/campaign_report.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "sim/campaign/condition_steps.hpp"
#include "sim/step/storage_traffic.hpp"

namespace fabricast::campaign {
namespace {

FleetSpec fleet_spec(const Scenario& s) {
    const RunPlan::Faults& f = s.run.faults;
    FleetSpec fleet;
    fleet.nodes = s.nodes;
    fleet.spares = s.run.spares;
    fleet.gpus_per_node = s.node.gpus;
    fleet.components = f.components;
    fleet.node_spread = f.node_spread;
    fleet.lemons = {f.lemon_share, f.lemon_factor, f.lemon_cured};
    fleet.burst_cv = f.burst_cv;
    fleet.burst_gap_s = f.burst_gap_s;
    fleet.life_shape = f.life_shape;
    fleet.aged = !f.new_lives;
    fleet.infant = f.infant;
    fleet.strikes_while_down = f.while_down;
    return fleet;
}

ConditionSpec condition_spec(const Scenario& s) {
    const RunPlan::Faults& f = s.run.faults;
    ConditionSpec c;
    for (const faults::Degradation& d : f.degradations)
        c.degradations.push_back({d, f.drain});
    c.congestions_per_day = s.nodes > 1 ? f.episodes.congestions_per_day : 0;
    c.congestion_mean_s = f.episodes.congestion_mean_s;
    c.flaps_per_day = s.nodes > 1 ? f.episodes.flaps_per_link_month * s.nodes * s.node.nics / 30 : 0;
    c.flap_low_s = f.episodes.flap_low_s;
    c.flap_high_s = f.episodes.flap_high_s;
    c.leak = {nanoseconds(f.leak_free_s), f.leak_per_day};
    c.warning = f.warning;
    c.critical = f.critical;
    c.restart_when_critical = f.restart_when_critical;
    return c;
}

RecoverySpec recovery_spec(const Scenario& s) {
    const RunPlan::Recovery& r = s.run.recovery;
    RecoverySpec spec;
    spec.style = static_cast<Style>(r.style);
    spec.detect_crash = nanoseconds(r.crash_s);
    spec.detect_transport = nanoseconds(r.transport_s);
    spec.detect_hang = nanoseconds(s.run.watchdog.time_out_s);
    spec.detect_silent_mean_s = r.silent_s;
    spec.locate = nanoseconds(r.locate_s);
    spec.swap = nanoseconds(r.swap_s);
    spec.start = nanoseconds(r.start_s);
    spec.communicators = nanoseconds(r.communicators_s);
    spec.spread = r.spread;
    spec.membership = nanoseconds(r.membership_s);
    spec.replicas = static_cast<std::uint32_t>(s.training.layout.dp);
    return spec;
}

/// Byte/s of all adapters together.
double network_rate(const Scenario& s) {
    return s.nodes * s.node.nics * s.node.nic_bits_per_s / 8 * s.node.nic_efficiency;
}

// Synchronous: the whole state to storage. Otherwise: each GPU's share over PCIe to its host; the rest goes on beside the
// steps. Copies in memory go to a peer node over its adapters at once, and come back the same way. Storage on the job's network
// is reached through its adapters, too.
CheckpointSpec checkpoint_spec(const Scenario& s, double bytes) {
    const RunPlan::Checkpoint& c = s.run.checkpoint;
    CheckpointSpec spec;
    spec.mode = static_cast<SaveMode>(c.mode);
    if (spec.mode == SaveMode::none)
        return spec;
    const double gpus = static_cast<double>(s.nodes) * s.node.gpus;
    const double network = network_rate(s);
    const auto through = [&](double rate) { return c.on_job_network && network > 0 ? std::min(rate, network) : rate; };
    const Nanoseconds stored = nanoseconds(bytes / through(c.write_bytes_per_s));
    const Nanoseconds copied = nanoseconds(bytes / gpus / std::max(1.0, s.gpu.pcie_bytes_per_s));
    spec.block = spec.mode == SaveMode::sync ? stored : copied;
    spec.write = spec.mode == SaveMode::sync ? 0 : stored;
    spec.load = nanoseconds(bytes / through(c.read_bytes_per_s));
    spec.spread = c.spread;
    if (spec.mode == SaveMode::memory) {
        spec.memory_every_steps = c.copies_every;
        spec.memory_block = copied;
        spec.memory_load = copied + (network > 0 ? nanoseconds(bytes / network) : 0);
    }
    return spec;
}

/// Beside a write over the job's network steps take longer: so many of them as it takes to write all.
Nanoseconds drag(const Scenario& s, const CheckpointSpec& c, double bytes, Nanoseconds step) {
    if (!s.run.checkpoint.on_job_network || c.write == 0)
        return 0;
    const SavingStep saving = step_while_saving(under(s, {}), bytes, step * 1000);
    if (saving.bytes <= 0)
        return 0;
    return nanoseconds(bytes / saving.bytes * (seconds(saving.step) - seconds_of(step)));
}

EventsSpec events_spec(const Scenario& s) {
    const RunPlan& run = s.run;
    EventsSpec e;
    e.evaluate_every = run.evaluate_every;
    e.evaluation = nanoseconds(run.evaluation_s);
    if (run.maintenance_every_s > 0)
        e.maintenance_every = nanoseconds(run.maintenance_every_s);
    e.maintenance = nanoseconds(run.maintenance_s);
    if (run.limit_s > 0)
        e.time_limit = nanoseconds(run.limit_s);
    e.requeue = faults::exponential(run.requeue_s);
    e.final_save = run.final_save;
    return e;
}

std::vector<Phase> phases(const Scenario& s, const Result& result) {
    const auto count = [](double tokens, double a_step) {
        return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(tokens / a_step)));
    };
    constexpr std::int64_t kEndless = std::int64_t{1} << 40;
    std::vector<Phase> all;
    for (std::uint32_t i = 0; i < s.run.phases.size(); ++i) {
        const TrainingPlan plan = under(s, {i, 0}).training;
        const double tokens = static_cast<double>(plan.global_batch) * static_cast<double>(plan.sequence);
        all.push_back({count(s.run.phases[i].tokens, tokens), i, tokens});
    }
    if (!all.empty())
        return all;
    if (s.tokens == 0)
        return {{kEndless, 0, result.step.tokens}};
    const std::int64_t steps = count(s.tokens, result.step.tokens);
    const auto warming = static_cast<std::int64_t>(s.compression_warmup * static_cast<double>(steps));
    if (result.warmup_ps > 0 && warming > 0)
        all.push_back({warming, 1, result.step.tokens});
    if (steps > warming)
        all.push_back({steps - warming, 0, result.step.tokens});
    return all;
}

std::string condition_name(const Scenario& s, std::uint32_t degraded) {
    std::string name;
    const auto& kinds = s.run.faults.degradations;
    for (std::size_t i = 0; i <= kinds.size(); ++i)
        if (degraded >> i & 1)
            name += (name.empty() ? "" : " + ") + (i < kinds.size() ? kinds[i].what : "congestion by neighbours");
    return name.empty() ? "healthy" : name;
}

void tell_stuck(Result& result, const CampaignReport& report) {
    const auto stuck = std::count_if(report.result.replicas.begin(), report.result.replicas.end(),
                                     [](const ReplicaResult& r) { return r.outcome == Outcome::stuck; });
    if (2 * stuck <= static_cast<std::ptrdiff_t>(report.result.replicas.size()))
        return;
    result.verdict = "stuck";
    result.failure = fmt::format(
        "the run makes no progress: {} of {} lives restart from one and the same checkpoint for ever (step {} of the "
        "one "
        "shown); saves are too rare, or longer than the watchdog waits",
        stuck, report.result.replicas.size(), report.result.shown.steps);
}

}  // namespace

CampaignSpec campaign_spec(const Scenario& s, const Result& result, StepTimes& steps) {
    CampaignSpec spec;
    spec.fleet = fleet_spec(s);
    spec.conditions = condition_spec(s);
    spec.recovery = recovery_spec(s);
    spec.checkpoint = checkpoint_spec(s, static_cast<double>(result.checkpoint_bytes));
    spec.events = events_spec(s);
    spec.phases = phases(s, result);
    for (const RunPlan::Faults::Event& event : s.run.faults.events)
        spec.scheduled.push_back({.time = nanoseconds(event.at_s),
                                  .kind = static_cast<ScheduledFault::Kind>(event.kind),
                                  .which = static_cast<std::uint32_t>(event.which),
                                  .node = event.node,
                                  .lasts = nanoseconds(event.lasts_s)});
    if (s.run.watchdog.watches_saves)
        spec.watchdog = {nanoseconds(s.run.watchdog.time_out_s), nanoseconds(s.run.watchdog.save_grace_s)};
    if (s.run.days > 0)
        spec.horizon = nanoseconds(s.run.days * 86400);
    spec.replicas = s.run.replicas;
    spec.seed = s.seed;
    const double step = seconds_of(steps.step({spec.phases.front().key, 0}));
    if (s.run.watchdog.time_out_s < step)
        throw ScenarioError(
            fmt::format("{}: run.watchdog.time_out: {:.4g} s is shorter than a step ({:.4g} s): the job would "
                        "be killed in each",
                        s.run.watchdog.where, s.run.watchdog.time_out_s, step));
    CheckpointSpec& c = spec.checkpoint;
    if (c.mode == SaveMode::none)
        return spec;
    c.drag = drag(s, c, static_cast<double>(result.checkpoint_bytes), nanoseconds(step));
    c.every_steps = s.run.checkpoint.every_steps;
    if (c.every_steps == 0) {
        double every = s.run.checkpoint.every_s;
        if (every == 0) {
            c.every_steps = 1;
            const IntervalAdvice advice = advise(spec, nanoseconds(step));
            every = std::max(advice.best > 0 ? advice.best : 3600.0, seconds_of(c.write));
        }
        c.every_steps = std::max<std::int64_t>(1, std::llround(every / step));
    }
    return spec;
}

void add_campaign(const Scenario& s, Result& result, CampaignOptions options) {
    if (!s.run.given || !result.failure.empty() || result.step.ps <= 0)
        return;
    Watcher* watcher = options.watcher;
    StepSeen seen;
    RunOne run = run_replica;
    if (watcher) {
        seen = [watcher](const Condition& c, const Scenario& scenario, const Result& r) {
            watcher->step_seen(c, scenario, r);
        };
        run = [watcher](const CampaignSpec& spec, StepTimes& steps, std::uint32_t index, bool record) {
            return watcher->run(spec, steps, index, record);
        };
    }
    StepTimes steps = condition_steps(s, result, options.memo, seen);
    auto report = std::make_shared<CampaignReport>();
    report->spec = campaign_spec(s, result, steps);
    if (watcher)
        watcher->begins(report->spec, steps);
    report->result = run_campaign(report->spec, steps, run, s.run.shown);
    if (options.intervals)
        report->intervals = interval_table(report->spec, steps, report->result.advice, run);
    report->prices = {s.price_per_gpu_hour, s.power_limit_w > 0 ? s.power_limit_w : s.gpu.power_w};
    report->checkpoint_bytes = static_cast<double>(result.checkpoint_bytes);
    for (const auto& [condition, step] : steps.known())
        report->conditions.push_back({condition_name(s, condition.degraded), condition.key, step});
    tell_stuck(result, *report);
    if (watcher)
        watcher->ended(*report, steps);
    result.campaign = std::move(report);
}

}  // namespace fabricast::campaign
