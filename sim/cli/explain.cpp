// fabricast explain: the forecast of one scenario, and the re-runs that say why it takes what it takes.
#include <fmt/format.h>

#include <cstdio>

#include "sim/cli/forecast_options.hpp"
#include "sim/cli/run_stats.hpp"
#include "sim/report/atomic_file.hpp"
#include "sim/report/explain_views.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/explain.hpp"

namespace fabricast::cli {
namespace {

Options description() {
    Options options;
    options.usage = "fabricast explain FILE [option]...";
    add_forecast_options(options);
    options.examples =
        "A table of causes that adds up to the step, communication exposed and hidden, pipeline stages,\n"
        "the critical path, and ceilings: re-runs in which one cause is free.\n\n"
        "examples\n"
        "  fabricast explain my.yaml\n"
        "  fabricast explain my.yaml --json | jq '.explain.ceilings[] | {ceiling, time_s, mfu}'\n"
        "  fabricast explain my.yaml --measured mfu=0.30\n\n"
        "Exit codes: 0 done, 1 an `expect:` failed, 2 bad input, 3 the simulated job failed (out of memory, "
        "deadlock).\n";
    return options;
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
    if (!options.output.empty())
        check_writable(options.output);

    RunStats stats;
    Scenario scenario = load_scenario(options.files.front(), options.overrides, Scope::step, options.calibration);
    for (const std::string& fault : options.injected)
        inject_fault(scenario, fault);
    const std::vector<Measurement> measured = checked_measurements(options.measured, scenario);
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
