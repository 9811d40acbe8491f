// "campaign" of result.json.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/report/campaign_json.hpp"
#include "sim/report/campaign_view.hpp"

namespace fabricast::report {
namespace {

using namespace campaign;
using nlohmann::ordered_json;

ordered_json quantiles(const Quantiles& q) {
    return {{"p10", q.p10}, {"p50", q.p50}, {"p90", q.p90}, {"mean", q.mean}};
}

ordered_json seconds_or_null(double s) { return s > 0 ? ordered_json(s) : ordered_json(); }

ordered_json wall_json(const CampaignResult& r) {
    ordered_json rows = ordered_json::array();
    for (std::size_t i = 0; i < kSpentCount; ++i) {
        const auto spent = static_cast<Spent>(i);
        rows.push_back(
            {{"what", spent_name(spent)}, {"fraction", r.mean_spent(spent)}, {"shown_ns", r.shown.spent[i]}});
    }
    return rows;
}

ordered_json stops_json(const CampaignReport& report) {
    ordered_json rows = ordered_json::array();
    for (std::size_t i = 0; i < report.spec.fleet.components.size(); ++i) {
        const faults::Component& c = report.spec.fleet.components[i];
        const Quantiles q =
            report.result.of([&](const ReplicaResult& r) { return static_cast<double>(r.stops_by[i]); });
        rows.push_back({{"component", c.name}, {"per_1000_node_days", c.rate * 1000}, {"mean", q.mean}});
    }
    return rows;
}

ordered_json incidents_json(const CampaignReport& report) {
    ordered_json rows = ordered_json::array();
    for (const Incident& incident : report.result.shown.incidents) {
        rows.push_back({{"time_s", seconds_of(incident.time)},
                        {"kind", incident_name(incident.kind)},
                        {"node", incident.node == UINT32_MAX ? ordered_json() : ordered_json(incident.node)},
                        {"lasted_s", seconds_or_null(seconds_of(incident.lasted))},
                        {"lost_steps", incident.lost_steps},
                        {"text", incident_text(report.spec, incident)}});
    }
    return rows;
}

}  // namespace

ordered_json campaign_json(const Result& result) {
    if (!result.campaign)
        return {};
    const CampaignReport& report = *result.campaign;
    const CampaignResult& r = report.result;
    const CampaignSpec& spec = report.spec;
    ordered_json json = {{"replicas", spec.replicas}, {"nodes", spec.fleet.nodes}, {"spares", spec.fleet.spares}};
    for (const CampaignFigure& figure : campaign_figures(report, result.scenario->price_per_gpu_hour > 0))
        json[figure.key] = quantiles(figure.value);
    const auto mean = [&](auto figure) { return r.of(figure).mean; };
    json["wall"] = wall_json(r);
    json["slow_fraction"] = mean([](const ReplicaResult& x) {
        return x.wall > 0 ? static_cast<double>(x.slow) / static_cast<double>(x.wall) : 0.0;
    });
    json["stops_by"] = stops_json(report);
    json["counts"] = {
        {"recurred", mean([](const ReplicaResult& x) { return static_cast<double>(x.recurred); })},
        {"spare_faults", mean([](const ReplicaResult& x) { return static_cast<double>(x.spare_faults); })},
        {"planned_stops", mean([](const ReplicaResult& x) { return static_cast<double>(x.planned_stops); })},
        {"false_alarms", mean([](const ReplicaResult& x) { return static_cast<double>(x.false_alarms); })},
        {"degradations", mean([](const ReplicaResult& x) { return static_cast<double>(x.degradations); })},
        {"saves", mean([](const ReplicaResult& x) { return static_cast<double>(x.saves); })},
        {"warnings", mean([](const ReplicaResult& x) { return static_cast<double>(x.warnings); })},
        {"criticals", mean([](const ReplicaResult& x) { return static_cast<double>(x.criticals); })},
        {"stuck", mean([](const ReplicaResult& x) { return x.outcome == Outcome::stuck ? 1.0 : 0.0; })}};
    const CheckpointSpec& c = spec.checkpoint;
    json["checkpoint"] = {{"text", checkpoint_text(report)},
                          {"every_steps", c.every_steps},
                          {"bytes", report.checkpoint_bytes},
                          {"block_s", seconds_of(c.block)},
                          {"write_s", seconds_of(c.write)},
                          {"load_s", seconds_of(c.load)},
                          {"interval_s", seconds_or_null(r.advice.interval)},
                          {"young_s", seconds_or_null(r.advice.young)},
                          {"daly_s", seconds_or_null(r.advice.daly)},
                          {"best_s", seconds_or_null(r.advice.best)},
                          {"mttf_s", seconds_or_null(r.advice.given.mttf)},
                          {"restart_s", seconds_or_null(r.advice.given.restart)},
                          {"ettr_by_formula", seconds_or_null(r.advice.ettr)},
                          {"ettr_at_best", seconds_or_null(r.advice.ettr_best)}};
    ordered_json conditions = ordered_json::array();
    for (const CampaignReport::ConditionRow& row : report.conditions)
        conditions.push_back({{"phase", row.phase}, {"condition", row.what}, {"step_s", seconds_of(row.step)}});
    json["conditions"] = std::move(conditions);
    json["shown"] = {{"replica", r.shown_index},
                     {"wall_s", seconds_of(r.shown.wall)},
                     {"stops", r.shown.stops},
                     {"incidents", incidents_json(report)}};
    json["definitions"] = {
        {"quantiles", "of the replicas; order statistics"},
        {"ettr",
         "time of steps that were kept / wall time; slow steps count; start-up, saves, hangs, replayed steps do not"},
        {"wall", "shares of the wall time of all replicas; shown_ns of the replica shown sum to its wall time exactly"},
        {"slow_fraction", "of the wall time what kept steps took beyond those of a healthy cluster"},
        {"gpu_hours", "nodes and spares x GPUs x wall time"},
        {"energy_mwh", "GPUs at board power while steps run, idle otherwise, hosts throughout; without cooling"},
        {"shown", "the replica of median ETTR, or the one asked for"}};
    return json;
}

}  // namespace fabricast::report
