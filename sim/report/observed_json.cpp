// `fabricast explain --observed --json`: result.json of the forecast and the key `observed`.
#include <nlohmann/json.hpp>

#include "sim/report/observed_views.hpp"
#include "sim/report/views.hpp"

namespace fabricast {
namespace {

using nlohmann::ordered_json;

ordered_json explained_json(const Explained& e, const Diagnosis& d) {
    const Pattern& p = e.pattern;
    ordered_json out = {{"pattern", e.against_forecast ? "offset" : std::string(pattern_name(p.kind))},
                        {"sentence", pattern_sentence(e, d)},
                        {"size", e.seen},
                        {"error", p.error},
                        {"gain", p.gain}};
    if (!e.against_forecast && !d.step.empty()) {
        out["first_step"] = d.step[std::min(p.begin, d.step.size() - 1)];
        out["last_step"] = d.step[std::min(p.end > 0 ? p.end - 1 : 0, d.step.size() - 1)];
        out["from_s"] = d.picture.time_s[std::min(p.begin, d.step.size() - 1)];
        out["ends"] = p.ends;
    }
    if (p.bursts.size() > 1)
        out["bursts"] = p.bursts.size();
    if (p.kind == PatternKind::periodic) {
        out["period_steps"] = p.period * static_cast<double>(d.every) * static_cast<double>(d.picture.group);
        out["raised"] = p.raised;
    }
    if (p.kind == PatternKind::spikes)
        out["spikes"] = p.rows.size();
    if (p.kind == PatternKind::periodic || p.kind == PatternKind::spikes)
        out["excess_s"] = e.excess_s;
    ordered_json causes = ordered_json::array();
    for (const Cause& c : e.causes) {
        causes.push_back({{"cause", c.what->name},
                          {"what", c.what->what},
                          {"probability", c.probability},
                          {"severity", c.severity},
                          {"simulated_size", c.predicted != 0 ? ordered_json(c.predicted) : ordered_json()},
                          {"fit", c.fit},
                          {"inject", c.inject.empty() ? ordered_json() : ordered_json(c.inject)},
                          {"look", c.what->look},
                          {"source", c.what->source}});
    }
    out["causes"] = std::move(causes);
    out["something_else"] = e.something_else;
    out["alike"] = e.alike;
    return out;
}

}  // namespace

std::string observed_json(const Diagnosis& d, const Result& result, const std::string& log) {
    ordered_json whole = ordered_json::parse(result_json(result));
    ordered_json observed = {
        {"file", log},
        {"rows", d.rows},
        {"steps_a_row", d.every},
        {"failed", d.failed},
        {"forecast", {{"step_s", d.forecast_s}, {"p10_s", d.low_s}, {"p90_s", d.high_s}, {"like", d.like}}},
        {"median_s", d.median_s},
        {"p10_s", d.p10_s},
        {"p90_s", d.p90_s},
        {"inside", d.inside},
        {"healthy_s", d.base_s},
        {"offset", d.offset},
        {"noise", d.noise},
        {"other_scenario", d.other_scenario},
        {"nothing_found", d.nothing_found},
        {"verdict", observed_verdict(d)}};
    ordered_json stretches = ordered_json::array();
    for (const Diagnosis::Stretch& s : d.stretches)
        stretches.push_back({{"first_step", s.first},
                             {"last_step", s.last},
                             {"median_s", s.median_s},
                             {"p10_s", s.p10_s},
                             {"p90_s", s.p90_s},
                             {"inside", s.inside}});
    observed["stretches"] = std::move(stretches);
    observed["findings"] = ordered_json::array();
    for (const Explained& e : d.findings)
        observed["findings"].push_back(explained_json(e, d));
    observed["from_the_start"] = ordered_json::array();
    for (const Explained& e : d.from_start)
        observed["from_the_start"].push_back(explained_json(e, d));
    if (!d.failure.empty())
        observed["failure"] = d.failure;
    observed["notes"] = d.notes;
    observed["steps_simulated"] = d.simulated;
    whole["observed"] = std::move(observed);
    return whole.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace fabricast
