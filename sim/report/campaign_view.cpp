#include "sim/report/campaign_view.hpp"

#include <fmt/format.h>

namespace fabricast::report {
namespace {

using namespace campaign;

std::string_view mode_name(SaveMode mode) {
    switch (mode) {
        case SaveMode::none: return "none";
        case SaveMode::sync: return "sync";
        case SaveMode::async: return "async";
        case SaveMode::memory: return "memory";
    }
    return {};
}

}  // namespace

std::vector<CampaignFigure> campaign_figures(const CampaignReport& report, bool priced) {
    const CampaignResult& r = report.result;
    std::vector<CampaignFigure> all;
    const auto add = [&](const char* key, const char* text, auto figure) { all.push_back({key, text, r.of(figure)}); };
    add("days", "days", [&](const ReplicaResult& x) { return report.of(x).days; });
    add("ettr", "kept steps / wall time (ETTR)", [](const ReplicaResult& x) { return x.ettr(); });
    add("tokens", "tokens kept", [](const ReplicaResult& x) { return x.tokens; });
    add("gpu_hours", "GPU-hours billed", [&](const ReplicaResult& x) { return report.of(x).gpu_hours; });
    if (priced)
        add("cost", "cost", [&](const ReplicaResult& x) { return report.of(x).cost; });
    add("energy_mwh", "energy, MWh", [&](const ReplicaResult& x) { return report.of(x).energy_kwh / 1000; });
    add("stops", "stops by faults", [](const ReplicaResult& x) { return static_cast<double>(x.stops); });
    add("longest_run_h", "longest run without a stop, h",
        [](const ReplicaResult& x) { return seconds_of(x.longest_run) / 3600; });
    return all;
}

StopTimes stop_times(const CampaignReport& report) {
    const auto mean = [&](auto figure) {
        return report.result.of([&](const ReplicaResult& r) { return static_cast<double>(figure(r)); }).mean;
    };
    const auto spent = [](const ReplicaResult& r, Spent what) { return r.spent[static_cast<std::size_t>(what)]; };
    StopTimes t;
    t.stops = mean([](const ReplicaResult& r) { return r.recovered; });
    if (t.stops <= 0)
        return t;
    const auto each_s = [&](auto figure) { return mean(figure) / t.stops / static_cast<double>(kSecond); };
    t.detection_s = each_s([&](const ReplicaResult& r) { return spent(r, Spent::detection); });
    t.restart_s = each_s([&](const ReplicaResult& r) { return r.recovering - spent(r, Spent::detection); });
    t.lost_s = each_s([](const ReplicaResult& r) { return r.lost_to_faults; });
    return t;
}

std::string span_text(double s) {
    if (s < 100)
        return fmt::format("{:.3g} s", s);
    if (s < 100 * 60)
        return fmt::format("{:.3g} min", s / 60);
    if (s < 48 * 3600)
        return fmt::format("{:.3g} h", s / 3600);
    return fmt::format("{:.3g} d", s / 86400);
}

std::string incident_text(const CampaignSpec& spec, const Incident& incident) {
    using Kind = Incident::Kind;
    const auto component = [&] { return spec.fleet.components[incident.which].what; };
    const auto kind = [&] { return spec.conditions.degradations[incident.which].what.what; };
    switch (incident.kind) {
        case Kind::fault: return fmt::format("fault: {}, node {}", component(), incident.node);
        case Kind::recovered:
            return fmt::format("back after {}, {} steps lost", span_text(seconds_of(incident.lasted)),
                               incident.lost_steps);
        case Kind::degraded: return fmt::format("slower: {}", kind());
        case Kind::mended: return fmt::format("mended: {}", kind());
        case Kind::congested: return "congestion by neighbours begins";
        case Kind::cleared: return "congestion ends";
        case Kind::warning: return "step time passes the warning level";
        case Kind::critical: return "step time passes the critical level";
        case Kind::false_alarm: return "the watchdog takes a save for a hang";
        case Kind::maintenance: return "maintenance of the cluster";
        case Kind::limit: return "time limit of the job, queued again";
        case Kind::spare_fault: return fmt::format("spare node {} fails: {}", incident.node, component());
        case Kind::replica_left: return fmt::format("a replica leaves: {}, node {}", component(), incident.node);
        case Kind::replica_back: return "a replica is back";
        case Kind::silent_found: return fmt::format("silent corruption found, node {}", incident.node);
        case Kind::poisoned: return "loss is not a number: back to the last save, the sample is skipped";
        case Kind::from_zero: return "all that was trained is thrown away";
        case Kind::none_left: return "no spare is left: the job waits for a repair";
    }
    return {};
}

std::string checkpoint_text(const CampaignReport& report) {
    const CheckpointSpec& c = report.spec.checkpoint;
    if (c.mode == SaveMode::none)
        return "no checkpoints: every stop begins anew";
    const double interval = static_cast<double>(c.every_steps) * seconds_of(report.conditions.front().step);
    std::string text =
        fmt::format("{}, every {} ({} steps): {:.3g} TB, {} stop", mode_name(c.mode), span_text(interval),
                    c.every_steps, report.checkpoint_bytes / 1e12, span_text(seconds_of(c.block)));
    if (c.write > 0)
        text += fmt::format(", {} until it counts", span_text(seconds_of(c.write)));
    if (c.drag > 0)
        text += fmt::format(", steps {} longer in all meanwhile", span_text(seconds_of(c.drag)));
    text += fmt::format(", {} to load", span_text(seconds_of(c.load)));
    if (c.mode == SaveMode::memory)
        text += fmt::format("; copies on peers every {} steps, {} each", c.memory_every_steps,
                            span_text(seconds_of(c.memory_block)));
    return text;
}

std::string advice_text(const IntervalAdvice& a) {
    if (a.best <= 0)
        return {};
    return fmt::format("best interval {} (Young {}, Daly {}): ETTR {:.2f} % by formula, {:.2f} % at {}; one stop in {}",
                       span_text(a.best), span_text(a.young), span_text(a.daly), a.ettr_best * 100, a.ettr * 100,
                       span_text(a.interval), span_text(a.given.mttf));
}

}  // namespace fabricast::report
