// "campaign" of result.json.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/report/campaign_json.hpp"
#include "sim/report/campaign_view.hpp"
#include "sim/report/course.hpp"

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
        rows.push_back({{"component", c.name},
                        {"what", c.what},
                        {"per_1000_node_days", c.rate * 1000},
                        {"mean", q.mean},
                        {"lost_fraction", report.result.mean_lost_by(i)}});
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
                        {"step", incident.step},
                        {"text", incident_text(report.spec, incident)}});
    }
    return rows;
}

ordered_json intervals_json(const IntervalTable& table) {
    if (table.rows.empty())
        return {};
    ordered_json rows = ordered_json::array(), stalls = ordered_json::array();
    for (const IntervalTable::Row& row : table.rows)
        rows.push_back({{"interval_s", row.interval},
                        {"every_steps", row.every_steps},
                        {"as_it_is", row.as_it_is},
                        {"ettr", row.simulated},
                        {"gain", row.gain},
                        {"gain_error", row.error},
                        {"ettr_by_formula", row.formula}});
    for (const IntervalTable::Stall& stall : table.stalls)
        stalls.push_back({{"block_s", stall.save}, {"best_s", stall.best}, {"ettr_by_formula", stall.formula}});
    return {{"lives", table.lives},         {"best_s", table.best},    {"few_stops", table.few_stops},
            {"restarts_s", table.restarts}, {"rows", std::move(rows)}, {"stalls", std::move(stalls)}};
}

/// One value a life, in the order of the lives: what distributions are drawn from.
ordered_json lives_json(const CampaignReport& report, bool priced) {
    ordered_json columns = ordered_json::object();
    const auto column = [&](const char* key, auto figure) {
        ordered_json values = ordered_json::array();
        for (const ReplicaResult& life : report.result.replicas)
            values.push_back(figure(life));
        columns[key] = std::move(values);
    };
    column("days", [&](const ReplicaResult& x) { return report.of(x).days; });
    column("ettr", [](const ReplicaResult& x) { return x.ettr(); });
    column("tokens", [](const ReplicaResult& x) { return x.tokens; });
    if (priced)
        column("cost", [&](const ReplicaResult& x) { return report.of(x).cost; });
    column("stops", [](const ReplicaResult& x) { return x.stops; });
    return columns;
}

// A thousandth of the run is less than a drawing shows.
ordered_json course_json(const CampaignReport& report) {
    ordered_json times = ordered_json::array(), steps = ordered_json::array();
    const std::vector<CourseMark> course = course_of(report.result.shown.stretches);
    std::int64_t most = 1;
    for (const CourseMark& mark : course)
        most = std::max(most, mark.steps);
    for (const CourseMark& mark : thinned(course, static_cast<double>(most) / 1000)) {
        times.push_back(seconds_of(mark.time));
        steps.push_back(mark.steps);
    }
    return {{"time_s", std::move(times)}, {"step", std::move(steps)}};
}

}  // namespace

ordered_json campaign_json(const Result& result) {
    if (!result.campaign)
        return {};
    const CampaignReport& report = *result.campaign;
    const CampaignResult& r = report.result;
    const CampaignSpec& spec = report.spec;
    ordered_json json = {{"replicas", spec.replicas}, {"nodes", spec.fleet.nodes}, {"spares", spec.fleet.spares}};
    const bool priced = result.scenario->price_per_gpu_hour > 0;
    for (const CampaignFigure& figure : campaign_figures(report, priced))
        json[figure.key] = quantiles(figure.value);
    json["lives"] = lives_json(report, priced);
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
    if (const StopTimes stop = stop_times(report); stop.stops > 0)
        json["stop"] = {{"detection_s", stop.detection_s}, {"restart_s", stop.restart_s}, {"lost_s", stop.lost_s}};
    else
        json["stop"] = ordered_json();
    const CheckpointSpec& c = spec.checkpoint;
    json["checkpoint"] = {{"text", checkpoint_text(report)},
                          {"every_steps", c.every_steps},
                          {"bytes", report.checkpoint_bytes},
                          {"block_s", seconds_of(c.block)},
                          {"write_s", seconds_of(c.write)},
                          {"drag_s", seconds_of(c.drag)},
                          {"load_s", seconds_of(c.load)},
                          {"interval_s", seconds_or_null(r.advice.interval)},
                          {"young_s", seconds_or_null(r.advice.young)},
                          {"daly_s", seconds_or_null(r.advice.daly)},
                          {"best_s", seconds_or_null(r.advice.best)},
                          {"mttf_s", seconds_or_null(r.advice.given.mttf)},
                          {"restart_s", seconds_or_null(r.advice.given.restart)},
                          {"ettr_by_formula", seconds_or_null(r.advice.ettr)},
                          {"ettr_at_best", seconds_or_null(r.advice.ettr_best)}};
    json["intervals"] = intervals_json(report.intervals);
    ordered_json conditions = ordered_json::array();
    for (const CampaignReport::ConditionRow& row : report.conditions)
        conditions.push_back({{"phase", row.phase}, {"condition", row.what}, {"step_s", seconds_of(row.step)}});
    json["conditions"] = std::move(conditions);
    json["shown"] = {{"replica", r.shown_index},
                     {"asked_for", result.scenario->run.shown.has_value()},
                     {"wall_s", seconds_of(r.shown.wall)},
                     {"stops", r.shown.stops},
                     {"steps", r.shown.steps},
                     {"course", course_json(report)},
                     {"incidents", incidents_json(report)}};
    json["definitions"] = {
        {"quantiles", "of the replicas; order statistics"},
        {"ettr",
         "time of steps that were kept / wall time; slow steps count; start-up, saves, hangs, replayed steps do not"},
        {"wall", "shares of the wall time of all replicas; shown_ns of the replica shown sum to its wall time exactly"},
        {"slow_fraction", "of the wall time what kept steps took beyond those of a healthy cluster"},
        {"stop",
         "mean over all faults that all processes came back from (no silent corruption, no replica that comes back by "
         "itself): until noticed; from then to the first new step; steps done and lost"},
        {"gpu_hours", "nodes and spares x GPUs x wall time"},
        {"energy_mwh", "GPUs at board power while steps run, idle otherwise, hosts throughout; without cooling"},
        {"intervals",
         "other checkpoint intervals: ettr is the mean of the first `lives` replicas with that interval, gain the "
         "difference to the interval as it is, life by life, with its standard error; ettr_by_formula "
         "that of exponential failures for a restart of each of restarts_s, the second of which is the job's; best_s "
         "is "
         "the least overhead by a fit of a / interval + b interval + c to the simulated rows, or where stops are few "
         "the formula's; stalls: if a save "
         "stopped "
         "the job for block_s, at the best interval then"},
        {"lives", "one value a replica, in their order"},
        {"lost_fraction",
         "of the wall time of all replicas: stops of this component, from the fault until steps go on, steps thrown "
         "away "
         "included; a fault during a recovery is on the account of the first"},
        {"shown",
         "the replica of median ETTR, or the one asked for; course: kept steps over time, thinned to a thousandth of "
         "the run"}};
    return json;
}

}  // namespace fabricast::report
