#include "sim/cli/forecast_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <charconv>
#include <cstdint>
#include <cstdio>

#include "sim/report/atomic_file.hpp"
#include "sim/report/expectation.hpp"
#include "sim/report/result_views.hpp"
#include "sim/scenario/calibration.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast::cli {
namespace {

namespace po = boost::program_options;
using Texts = std::vector<std::string>;

bool ends_with(const std::string& path, std::string_view ending) {
    return path.size() > ending.size() && path.ends_with(ending);
}

void check_seed(const std::string& verb, const std::string& text) {
    std::uint64_t seed = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
    if (error != std::errc() || end != text.data() + text.size()) {
        throw ScenarioError(fmt::format("fabricast {}: --seed {}: a seed is a whole number from 0", verb, text));
    }
}

// A run has views that other verbs do not have.
void check_ending(const std::string& verb, const std::string& output) {
    std::vector<std::string> known = {".json", ".txt"};
    if (verb == "run") {
        for (const std::string_view ending : result_view_endings())
            known.emplace_back(ending);
    } else if (verb == "compare") {
        known.insert(known.end(), {".html", ".md"});
    }
    if (std::any_of(known.begin(), known.end(), [&](const std::string& ending) { return ends_with(output, ending); }))
        return;
    throw ScenarioError(fmt::format("fabricast {}: --output {}: the ending decides the format; known are {} and {}",
                                    verb, output, fmt::join(known.begin(), known.end() - 1, ", "), known.back()));
}

}  // namespace

void add_forecast_options(Options& options) {
    options.named.add_options()("set", po::value<Texts>()->value_name("key=value"),
                                "override one key of the scenario; repeatable")(
        "inject", po::value<Texts>()->value_name("FAULT"),
        "something that goes wrong, such as \"gpu 29.2 clock 1200 MHz at 2 h\"; repeatable")(
        "calibration", po::value<std::string>()->value_name("FILE"),
        "constants of your site in place of the catalogue's, written by `fabricast-validate fit`")(
        "seed", po::value<std::string>()->value_name("N"), "seed of everything random; the same as --set seed=N")(
        "json", "print JSON instead of text")(
        "output", po::value<std::string>()->value_name("FILE"),
        "also write a file, its ending decides: .json or .txt (all tables); of a run also "
        "a page, .html, and .md, .csv, .prom, of a comparison .html and .md")(
        "measured", po::value<Texts>()->value_name("figure=value"),
        "hold a measured figure against the forecast: step_s, tokens_per_s_per_gpu, mfu or tflops_per_gpu; refused "
        "above the dense peak")("no-fold", "simulate every rank, also those that do the same; the result is the same")(
        "no-time-fold", "simulate also what recurs inside a step, each time; the result is the same")(
        "no-memo",
        "simulate also steps that were simulated before: of a job that repeats itself, of a run of weeks under the "
        "same "
        "condition; the result is the same")(
        "quantum", po::value<std::string>()->value_name("TIME"),
        "solve the network at most so often, such as 1us; 0 s = exactly; the same as --set simulation.quantum=TIME")(
        "quiet", "nothing on stderr but errors")("no-color", "no colour, as with NO_COLOR set");
    options.hidden.add_options()("file", po::value<Texts>());
    options.positional.add("file", -1);
}

ForecastArguments read_forecast_options(const std::string& verb, const po::variables_map& values) {
    ForecastArguments arguments;
    const auto list = [&](const char* name) { return values.count(name) ? values[name].as<Texts>() : Texts(); };
    arguments.files = list("file");
    arguments.overrides = list("set");
    arguments.measured = list("measured");
    arguments.injected = list("inject");
    arguments.fold = values.count("no-fold") == 0;
    arguments.fold_time = values.count("no-time-fold") == 0;
    arguments.memo = values.count("no-memo") == 0;
    if (values.count("calibration")) {
        arguments.calibration =
            std::make_shared<const Calibration>(read_calibration(values["calibration"].as<std::string>()));
    }
    if (values.count("seed")) {
        const auto seed = values["seed"].as<std::string>();
        check_seed(verb, seed);
        arguments.overrides.push_back("seed=" + seed);
    }
    if (values.count("quantum"))
        arguments.overrides.push_back("simulation.quantum=" + values["quantum"].as<std::string>());
    arguments.json = values.count("json") > 0;
    arguments.quiet = values.count("quiet") > 0;
    arguments.no_color = values.count("no-color") > 0;
    if (values.count("output")) {
        arguments.output = values["output"].as<std::string>();
        if (arguments.output.empty())
            throw ScenarioError(fmt::format("fabricast {}: --output needs a file name", verb));
        check_ending(verb, arguments.output);
    }
    return arguments;
}

bool wants_json(const std::string& output) { return ends_with(output, ".json"); }

void tell_outcome(const Result& result) {
    const std::string& name = result.scenario->name;
    if (!result.failure.empty())
        std::fprintf(stderr, "%s: %s\n", name.c_str(), result.failure.c_str());
    for (const ExpectationOutcome& outcome : check_expectations(result)) {
        std::fprintf(stderr, "%s: %s: %s\n", name.c_str(), outcome.met ? "expected" : "NOT expected",
                     describe(outcome).c_str());
    }
}

int exit_code(const Result& result) {
    if (failed_unexpectedly(result))
        return kJobFailed;
    const std::vector<ExpectationOutcome> outcomes = check_expectations(result);
    const bool met = std::all_of(outcomes.begin(), outcomes.end(), [](const ExpectationOutcome& o) { return o.met; });
    return met ? kDone : kExpectFailed;
}

std::vector<Measurement> checked_measurements(const std::vector<std::string>& texts, const Scenario& scenario) {
    std::vector<Measurement> measurements;
    for (const std::string& text : texts) {
        measurements.push_back(parse_measurement(text, scenario));
        if (const std::string warning = doubt(measurements.back(), scenario); !warning.empty())
            std::fprintf(stderr, "warning: %s\n", warning.c_str());
    }
    return measurements;
}

}  // namespace fabricast::cli
