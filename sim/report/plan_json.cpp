// `fabricast plan --json`.
#include <nlohmann/json.hpp>

#include "sim/plan/bound.hpp"
#include "sim/report/plan_rows.hpp"
#include "sim/report/plan_views.hpp"
#include "sim/report/text.hpp"
#include "sim/scenario/calibration.hpp"

namespace fabricast {
namespace {

using nlohmann::ordered_json;
using plan::PlanResult;
using plan::PlanRow;

ordered_json figures_json(const plan::Figures& f, bool priced) {
    return {{"step_s", f.step_s},
            {"mfu", f.mfu},
            {"tokens_per_s", f.tokens_per_s},
            {"days", f.days},
            {"gpu_hours", f.gpu_hours},
            {"cost", priced ? ordered_json(f.cost) : ordered_json()},
            {"memory_gib", f.memory_gib},
            {"bubble", f.bubble},
            {"exposed_communication", f.exposed}};
}

ordered_json layout_json(const PlanResult& r, std::uint32_t cluster, const TrainingPlan& p) {
    return {{"layout", report::plan_layout_text(p)},
            {"cluster", r.space->value_text(plan::Dimension::cluster, cluster)},
            {"gpus", r.clusters[cluster]->gpus()},
            {"set", plan::plan_overrides(r, cluster, p)}};
}

ordered_json row_json(const PlanResult& r, const PlanRow& row) {
    ordered_json out = {{"index", row.index}};
    out.update(layout_json(r, row.cluster, row.plan));
    out.update(figures_json(row.figures, r.clusters[row.cluster]->price() > 0));
    out["step_ps"] = row.evaluation.step.ps;
    out["lower_bound_s"] = row.bound_s;
    const StepInterval interval = report::interval_of(r, row);
    if (interval.runs > 0)
        out["step_interval_s"] = {
            {"low", interval.low_s}, {"high", interval.high_s}, {"like", interval.like}, {"runs", interval.runs}};
    return out;
}

ordered_json class_json(const PlanResult& r, const plan::ClassLoss& c) {
    ordered_json out = {{"dimension", plan::dimension_name(c.dimension)},
                        {"value", r.space->value_text(c.dimension, c.value)},
                        {"layouts", c.layouts}};
    if (c.best) {
        out["best_index"] = r.rows()[*c.best].index;
        out["slower"] = c.slower;
        if (c.cause != Account::count)
            out["cause"] = {{"account", account_name(c.cause)}, {"share", c.cause_share}};
    }
    if (c.at_least > 0)
        out["cut_slower_at_least"] = c.at_least;
    if (!c.removed.empty())
        out["removed_most_by"] = {{"rule", c.removed}, {"layouts", c.by_rule}};
    return out;
}

}  // namespace

std::string plan_json(const PlanResult& r) {
    const Scenario& s = r.clusters.front()->scenario();
    ordered_json json;
    json["schema_version"] = 1;
    json["program"] = "fabricast";
    json["version"] = FABRICAST_VERSION;
    json["name"] = r.name;
    json["scenario"] = report::portable_path(r.source.file);
    json["calibration"] =
        r.source.calibration ? ordered_json(report::portable_path(r.source.calibration->file)) : ordered_json();
    json["tokens"] = s.tokens > 0 ? s.tokens : plan::kTokensWithoutRun;
    json["currency"] = plan::has_price(r) ? ordered_json(s.currency) : ordered_json();
    if (const std::string prices = plan::prices_text(r); !prices.empty())
        json["prices"] = prices;
    json["ranked_by"] = r.spec.by;
    ordered_json removed = ordered_json::array();
    for (const auto& [rule, gone] : r.found.removed)
        removed.push_back(
            {{"rule", rule}, {"means", plan::rule_text(rule)}, {"layouts", gone.count}, {"example", gone.example}});
    json["space"] = {{"layouts", r.found.size},  {"looked_at", r.found.looked_at},    {"simulated", r.rows().size()},
                     {"meet", r.ranking.size()}, {"cut_by_lower_bound", r.found.cut}, {"removed", removed}};
    if (r.found.cut > 0)
        json["space"]["lower_bound_assumes"] = plan::bound_assumptions();
    if (const std::string empty = plan::nothing_left(r); !empty.empty())
        json["nothing_left"] = empty;
    ordered_json ranking = ordered_json::array(), front = ordered_json::array();
    for (std::size_t i = 0; i < r.ranking.size() && i < static_cast<std::size_t>(r.spec.top); ++i) {
        ranking.push_back(row_json(r, r.rows()[r.ranking[i]]));
        ranking.back()["tie_with_first"] = report::is_tie(r, r.rows()[r.ranking.front()], r.rows()[r.ranking[i]]);
    }
    for (const std::size_t i : r.front)
        front.push_back(row_json(r, r.rows()[i]));
    json["ranking"] = std::move(ranking);
    json["front"] = std::move(front);
    if (r.yours) {
        const plan::Yours& y = *r.yours;
        ordered_json one;
        if (y.refused.empty()) {
            one = layout_json(r, y.cluster, y.plan);
            one["fits"] = y.evaluation.fits;
            if (!y.evaluation.fits) {
                one["stage"] = y.evaluation.stage;
                one["memory_gib"] = y.figures.memory_gib;
            } else if (!y.evaluation.ran()) {
                one["failure"] = y.evaluation.failure;
            } else {
                one.update(figures_json(y.figures, r.clusters[y.cluster]->price() > 0));
            }
            one["listed"] = y.listed;
            one["helps_most"] =
                y.change.empty() ? ordered_json() : ordered_json({{"change", y.change}, {"less_time", y.faster}});
        } else {
            one = {{"refused", y.refused}};
        }
        json["yours"] = std::move(one);
    }
    ordered_json classes = ordered_json::array(), sensitivity = ordered_json::array(), what_ifs = ordered_json::array();
    for (const plan::ClassLoss& c : r.classes)
        classes.push_back(class_json(r, c));
    for (const plan::Sensitivity& one : r.sensitivity) {
        ordered_json entry = {{"what", one.what}, {"low", one.low}, {"step_change_low", one.low_change}};
        if (!one.high.empty()) {
            entry["high"] = one.high;
            entry["step_change_high"] = one.high_change;
        }
        sensitivity.push_back(std::move(entry));
    }
    for (const plan::WhatIf& w : r.what_ifs) {
        ordered_json rows = ordered_json::array();
        for (std::size_t i = 0; i < w.rows.size(); ++i) {
            const PlanRow& row = r.rows()[w.rows[i].first];
            ordered_json one = {{"index", row.index}};
            one.update(figures_json(w.figures[i], plan::has_price(r)));
            one["step_change"] = w.figures[i].step_s / row.figures.step_s - 1;
            rows.push_back(std::move(one));
        }
        what_ifs.push_back({{"what_if", w.text}, {"ranking", rows}});
        ordered_json skipped = ordered_json::array();
        for (const std::uint32_t cluster : w.skipped)
            skipped.push_back(r.space->value_text(plan::Dimension::cluster, cluster));
        if (!skipped.empty())
            what_ifs.back()["not_asked_of"] = std::move(skipped);
    }
    json["classes"] = std::move(classes);
    json["sensitivity"] = std::move(sensitivity);
    json["what_ifs"] = std::move(what_ifs);
    return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace fabricast
