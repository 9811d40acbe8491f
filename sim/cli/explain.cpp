// fabricast explain: the forecast of one scenario, and the re-runs that say why it takes what it takes.
#include <fmt/format.h>

#include <cstdio>

#include <boost/program_options/value_semantic.hpp>

#include "sim/cli/forecast_options.hpp"
#include "sim/cli/run_stats.hpp"
#include "sim/diagnose/diagnosis.hpp"
#include "sim/observed/ingest_error.hpp"
#include "sim/observed/step_series.hpp"
#include "sim/report/atomic_file.hpp"
#include "sim/report/explain_views.hpp"
#include "sim/report/interval.hpp"
#include "sim/report/network_views.hpp"
#include "sim/report/observed_views.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/explain.hpp"
#include "sim/step/network_need.hpp"

namespace fabricast::cli {
namespace {

Options description() {
    Options options;
    options.usage = "fabricast explain FILE [option]...";
    add_forecast_options(options);
    options.named.add_options()("observed", boost::program_options::value<std::string>()->value_name("LOG"),
                                "a log of the real run, of Megatron or a .csv with steps and step times: what is to be "
                                "seen in it, and which faults, simulated, look like that")(
        "network",
        "instead: the bytes a step sends, and the bandwidth at which its communication hides behind compute, against "
        "the micro-batch; by simulating steps with other adapters");
    options.examples =
        "A table of causes that adds up to the step, communication exposed and hidden, pipeline stages,\n"
        "the critical path, and ceilings: re-runs in which one cause is free.\n\n"
        "examples\n"
        "  fabricast explain my.yaml\n"
        "  fabricast explain my.yaml --json | jq '.explain.ceilings[] | {ceiling, time_s, mfu}'\n"
        "  fabricast explain my.yaml --measured mfu=0.30\n"
        "  fabricast explain my.yaml --observed train.log\n"
        "  fabricast explain my.yaml --network\n\n"
        "Exit codes: 0 done, 1 an `expect:` failed, 2 bad input, 3 the simulated job failed (out of memory, "
        "deadlock).\n";
    return options;
}

/// The network that the step needs; the step is not taken apart.
int explain_network(const Scenario& scenario, const ForecastArguments& options) {
    const std::vector<Measurement> measured = checked_measurements(options.measured, scenario);
    RunStats stats;
    stats.start_forecast();
    const NetworkNeed need = network_need(scenario, {.fold = options.fold, .fold_time = options.fold_time});
    stats.end_forecast(scenario.name, need.events);
    const auto json = [&] { return with_measurements(network_json(need), measured, need.run); };
    const auto text = [&](bool color, bool unicode) {
        return network_text(need, color, unicode) + measured_text(measured, need.run);
    };
    if (!options.output.empty())
        write_file_atomically(options.output, wants_json(options.output) ? json() : text(false, true));
    if (options.json) {
        print_result(json());
        if (!options.quiet)
            tell_outcome(need.run);
    } else {
        const Terminal terminal = stdout_terminal(options.no_color);
        print_result(text(terminal.color, terminal.unicode));
    }
    if (!options.quiet)
        std::fputs(stats.sentence().c_str(), stderr);
    return exit_code(need.run);
}

/// The log against the forecast of the scenario; the step is not taken apart.
int explain_log(const Scenario& scenario, const ForecastArguments& options, const std::string& log) {
    StepSeries series;
    try {
        series = read_step_series(log);
    } catch (const IngestError& error) {
        throw ScenarioError(error.what());
    }
    RunStats stats;
    stats.start_forecast();
    const Result result =
        forecast(scenario, {.critical_path = false, .fold = options.fold, .fold_time = options.fold_time});
    if (!result.failure.empty()) {
        if (!options.quiet)
            tell_outcome(result);
        throw ScenarioError(fmt::format("{}: the forecast of the scenario fails ({}), so no log can be held against it",
                                        scenario.file, result.verdict));
    }
    const StepInterval interval = step_interval(scenario, seconds(result.step.ps));
    Diagnosis diagnosis;
    try {
        diagnosis = diagnose(scenario, result, {interval.low_s, interval.high_s, interval.like}, series, log);
    } catch (const IngestError& error) {
        throw ScenarioError(error.what());
    }
    stats.end_forecast(scenario.name, result.events + diagnosis.events);
    const auto text = [&](bool color, bool unicode) { return observed_text(diagnosis, result, log, color, unicode); };
    if (!options.output.empty())
        write_file_atomically(options.output,
                              wants_json(options.output) ? observed_json(diagnosis, result, log) : text(false, true));
    if (options.json) {
        print_result(observed_json(diagnosis, result, log));
    } else {
        const Terminal terminal = stdout_terminal(options.no_color);
        print_result(text(terminal.color, terminal.unicode));
    }
    if (!options.quiet)
        std::fputs(stats.sentence().c_str(), stderr);
    return exit_code(result);
}

}  // namespace

Options explain_options() { return description(); }

int explain(const Arguments& arguments) {
    bool help = false;
    const auto values = parse(description(), arguments, help);
    const ForecastArguments options = read_forecast_options("explain", values);
    if (help)
        return kDone;
    if (options.files.empty())
        throw ScenarioError("fabricast explain: no scenario file given");
    if (options.files.size() > 1) {
        throw ScenarioError(
            fmt::format("fabricast explain: takes one scenario, {} were given; `fabricast compare` "
                        "takes two",
                        options.files.size()));
    }
    if (values.count("observed") && values.count("network"))
        throw ScenarioError("fabricast explain: --observed and --network answer different questions; leave one out");
    if (!options.output.empty())
        check_writable(options.output);

    Scenario scenario = load_scenario(options.files.front(), options.overrides, Scope::step, options.calibration);
    for (const std::string& fault : options.injected)
        inject_fault(scenario, fault);
    if (values.count("observed")) {
        if (!options.measured.empty())
            throw ScenarioError(
                "fabricast explain: --observed and --measured say how long steps took twice; leave one out");
        return explain_log(scenario, options, values["observed"].as<std::string>());
    }
    if (values.count("network"))
        return explain_network(scenario, options);
    const std::vector<Measurement> measured = checked_measurements(options.measured, scenario);
    RunStats stats;
    stats.start_forecast();
    const Explanation explanation =
        fabricast::explain(scenario, {.fold = options.fold, .fold_time = options.fold_time});
    stats.end_forecast(scenario.name, explanation.events);

    const auto json = [&] { return with_measurements(explain_json(explanation), measured, explanation.run); };
    const auto text = [&](bool color, bool unicode) {
        return explain_text(explanation, color, unicode) + measured_text(measured, explanation.run);
    };
    if (!options.output.empty())
        write_file_atomically(options.output, wants_json(options.output) ? json() : text(false, true));
    if (options.json) {
        print_result(json());
        if (!options.quiet)
            tell_outcome(explanation.run);
    } else {
        const Terminal terminal = stdout_terminal(options.no_color);
        print_result(text(terminal.color, terminal.unicode));
    }
    if (!options.quiet)
        std::fputs(stats.sentence().c_str(), stderr);
    return exit_code(explanation.run);
}

}  // namespace fabricast::cli
