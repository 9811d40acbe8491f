// monitors: what watches the run, by shipped rules and the scenario's own.
#include <fmt/format.h>

#include <algorithm>

#include "models/monitors/shipped_rules.hpp"
#include "models/monitors/thermal.hpp"
#include "sim/scenario/fill.hpp"
#include "sim/scenario/nearest.hpp"

namespace fabricast {
namespace {

using monitors::kNoLevel;
using monitors::Of;
using monitors::Rule;

/// Sentence on what is wrong with a rule as a whole, and the key to blame; empty: nothing.
struct Wrong {
    const char* key;
    std::string why;
};

std::vector<std::string> names_of_peers() {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < monitors::kMetricCount; ++i)
        if (const monitors::MetricInfo& one = monitors::info(static_cast<monitors::Metric>(i)); one.of_peers)
            names.emplace_back(one.name);
    return names;
}

Wrong wrong_rule(const Rule& r, bool has_drift) {
    const bool peers = of_peers(r);
    const bool both = r.warning != kNoLevel && r.critical != kNoLevel;
    if (r.warning == kNoLevel && r.critical == kNoLevel)
        return {"", "a rule needs a level: give warning, critical or both"};
    const bool cusum = r.test == monitors::Test::cusum;
    if (both && (r.below && !cusum ? r.critical > r.warning : r.critical < r.warning))
        return {"critical",
                fmt::format("critical {:.6g} is {} warning {:.6g}; a rule that looks {} reaches its warning "
                            "first",
                            r.critical, r.below && !cusum ? "above" : "below", r.warning,
                            r.below && !cusum ? "below" : "above")};
    if (peers && !monitors::info(r.metric).of_peers)
        return {"of", fmt::format("{} is one number of the whole job and has no peers; peers have: {}",
                                  monitors::info(r.metric).name, listed(names_of_peers()))};
    if (cusum && (r.of == Of::value || r.of == Of::peers_difference))
        return {"test", "cusum sums deviations from 1; hold the value against base, baseline or peers"};
    if (cusum && !has_drift)
        return {"", "drift is missing; cusum needs it: half of the smallest change that matters, such as 0.025"};
    if (!cusum && has_drift)
        return {"drift", "drift is a parameter of test: cusum"};
    if (r.action == monitors::Action::throttle && (r.metric != monitors::Metric::gpu_temp || r.of != Of::value))
        return {"action", "throttle holds a GPU at a temperature; it needs metric: gpu_temp, of: value"};
    if (r.action == monitors::Action::throttle && r.below)
        return {"when", "throttle holds a GPU that is too hot; it needs when: above"};
    const double acts_at = r.critical != kNoLevel ? r.critical : r.warning;
    if (r.action == monitors::Action::throttle && acts_at >= monitors::kSlowdownC)
        return {r.critical != kNoLevel ? "critical" : "warning",
                fmt::format("throttle never acts: at {:.4g} C a GPU's own clock holds it; give less",
                            monitors::kSlowdownC)};
    if (r.action == monitors::Action::restart && r.metric == monitors::Metric::job_up)
        return {"action", "restart never acts: a job that is down is on its way back, and started it is up"};
    return {nullptr, {}};
}

template <typename Enum>
Enum word(const Answer* answer, std::initializer_list<std::pair<std::string_view, Enum>> words, Enum otherwise) {
    if (answer)
        for (const auto& [name, value] : words)
            if (name == answer->text)
                return value;
    return otherwise;
}

void fill_rule(const Answers& answers, const std::string& path, Scenario& s, Diagnostics& diagnostics) {
    const auto given = [&](const char* key) { return answers.given(path + "." + key); };
    const auto number = [&](const char* key, double otherwise) {
        const Answer* answer = given(key);
        return answer ? answer->number : otherwise;
    };
    const Answer* metric = given("metric");
    if (!metric) {
        missing(answers, path + ".metric", "; what is measured?", diagnostics);
        return;
    }
    const std::vector<std::string> names = monitors::metric_names();
    const std::optional<monitors::Metric> found = monitors::find_metric(metric->text);
    if (!found) {
        diagnostics.error(metric->place, fmt::format("{}.metric: nothing called `{}` is measured; known: {}{}", path,
                                                     metric->text, listed(names), did_you_mean(metric->text, names)));
        return;
    }
    Rule r;
    r.set = "own";
    r.name = given("name") ? given("name")->text : metric->text;
    r.metric = *found;
    r.of = word(given("of"),
                {{"base", Of::base},
                 {"baseline", Of::baseline},
                 {"peers", Of::peers},
                 {"peers_difference", Of::peers_difference}},
                Of::value);
    r.test = word(given("test"), {{"cusum", monitors::Test::cusum}}, monitors::Test::threshold);
    r.below = given("when") && given("when")->text == "below";
    r.warning = number("warning", kNoLevel);
    r.critical = number("critical", kNoLevel);
    r.hold_s = number("hold", 0);
    r.keep_s = number("keep", 0);
    r.window_s = number("window", 0);
    r.memory_s = number("memory", r.memory_s);
    r.drift = number("drift", 0);
    r.action = word(given("action"), {{"throttle", monitors::Action::throttle}, {"restart", monitors::Action::restart}},
                    monitors::Action::inquire);
    const auto [key, why] = wrong_rule(r, given("drift") != nullptr);
    if (key)
        diagnostics.error(answers.place(*key ? path + "." + key : path),
                          fmt::format("{}{}{}: {}", path, *key ? "." : "", key, why));
    const auto same = std::find_if(s.run.monitors.rules.begin(), s.run.monitors.rules.end(),
                                   [&](const Rule& other) { return other.set == "own" && other.name == r.name; });
    if (same != s.run.monitors.rules.end())
        diagnostics.error(answers.place(path + ".name"),
                          fmt::format("{}: another rule is called `{}`; give each a name", path, r.name));
    s.run.monitors.rules.push_back(std::move(r));
}

}  // namespace

void fill_monitors(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    RunPlan::Monitors& m = s.run.monitors;
    if (const Answer* shown = answers.given("run.shown")) {
        s.run.shown = static_cast<std::uint32_t>(shown->integer);
        if (*s.run.shown >= s.run.replicas)
            diagnostics.error(shown->place,
                              fmt::format("run.shown: there is no life {}; {} are simulated, numbered from 0",
                                          *s.run.shown, s.run.replicas));
    }
    m.given = answers.given("monitor") != nullptr;
    if (!m.given)
        return;
    if (!s.run.given)
        s.notes.push_back("monitor: its rules watch a campaign; give faults, and run.tokens or run.days");
    m.interval_s = answers.get("monitor.interval").number;
    const std::string sets = answers.get("monitor.rules").text;
    const auto add = [&](std::vector<Rule> rules) { m.rules.insert(m.rules.end(), rules.begin(), rules.end()); };
    if (sets == "default" || sets == "all")
        add(monitors::default_rules());
    if (sets == "case-a" || sets == "all")
        add(monitors::case_a_rules());
    if (const Answer* list = answers.given("monitor.own"))
        for (std::int64_t i = 0; i < list->integer; ++i)
            fill_rule(answers, fmt::format("monitor.own[{}]", i), s, diagnostics);
    if (m.rules.empty())
        s.notes.push_back("monitor: no rules; only the series can be written");
}

}  // namespace fabricast
