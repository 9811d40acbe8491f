// fabricast compare: two scenarios forecast and set side by side.
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <cstdio>

#include "sim/cli/forecast_options.hpp"
#include "sim/cli/run_stats.hpp"
#include "sim/monitor/monitor.hpp"
#include "sim/report/atomic_file.hpp"
#include "sim/report/comparison.hpp"
#include "sim/scenario/differences.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/forecast.hpp"

namespace fabricast::cli {
namespace {

namespace po = boost::program_options;
using Texts = std::vector<std::string>;

Options description() {
    Options options;
    options.usage = "fabricast compare A.yaml B.yaml [option]...";
    add_forecast_options(options);
    options.named.add_options()("set-b", po::value<Texts>()->value_name("key=value"),
                                "override one key of B alone; --set and --seed act on both");
    options.examples =
        "One file with --set-b is compared with itself changed. --measured is of A; write b:figure=value for B.\n\n"
        "examples\n"
        "  fabricast compare before.yaml after.yaml\n"
        "  fabricast compare my.yaml --set-b training.micro_batch=2\n"
        "  fabricast compare before.yaml after.yaml --measured step_s=9.1 --measured b:step_s=6.2\n\n"
        "Exit codes: 0 done, 1 an `expect:` failed, 2 bad input, 3 a simulated job failed (out of memory, deadlock).\n";
    return options;
}

struct CompareOptions : ForecastArguments {
    Texts overrides_b, measured_b;
};

CompareOptions parse_compare(const Arguments& arguments, bool& help) {
    const po::variables_map values = parse(description(), arguments, help);
    CompareOptions options;
    static_cast<ForecastArguments&>(options) = read_forecast_options("compare", values);
    options.overrides_b = options.overrides;
    if (values.count("set-b")) {
        const auto changed = values["set-b"].as<Texts>();
        options.overrides_b.insert(options.overrides_b.end(), changed.begin(), changed.end());
        if (options.files.size() == 1)
            options.files.push_back(options.files.front());
    }
    Texts of_a;
    for (const std::string& text : options.measured) {
        if (text.starts_with("b:"))
            options.measured_b.push_back(text.substr(2));
        else
            of_a.push_back(text.starts_with("a:") ? text.substr(2) : text);
    }
    options.measured = of_a;
    if (help)
        return options;
    if (options.files.size() != 2) {
        throw ScenarioError(fmt::format(
            "fabricast compare: takes two scenarios, {} were given; one with --set-b is compared with itself changed",
            options.files.size()));
    }
    if (!options.output.empty())
        check_writable(options.output);
    return options;
}

}  // namespace

Options compare_options() { return description(); }

int compare(const Arguments& arguments) {
    bool help = false;
    const CompareOptions options = parse_compare(arguments, help);
    if (help)
        return kDone;

    RunStats stats;
    const Scenario a = load_scenario(options.files[0], options.overrides, Scope::step, options.calibration);
    Scenario b = load_scenario(options.files[1], options.overrides_b, Scope::step, options.calibration);
    for (const std::string& fault : options.injected)  // the difference
        inject_fault(b, fault);
    const std::vector<Measurement> measured_a = checked_measurements(options.measured, a);
    const std::vector<Measurement> measured_b = checked_measurements(options.measured_b, b);
    const auto run = [&](const Scenario& scenario) {
        stats.start_forecast();
        Result result = forecast(scenario, {.fold = options.fold, .fold_time = options.fold_time});
        monitor::add_campaign(scenario, result);
        stats.end_forecast(scenario.name, result.events);
        return result;
    };
    const Result result_a = run(a);
    const Result result_b = run(b);
    Comparison comparison = fabricast::compare(
        result_a, result_b, differing_keys(options.files[0], options.overrides, options.files[1], options.overrides_b));
    comparison.measured_a = measured_a;
    comparison.measured_b = measured_b;

    if (!options.output.empty()) {
        write_file_atomically(options.output, wants_json(options.output) ? comparison_json(comparison)
                                                                         : comparison_text(comparison, false));
    }
    if (options.json) {
        print_result(comparison_json(comparison));
        if (!options.quiet) {
            tell_outcome(result_a);
            tell_outcome(result_b);
        }
    } else {
        const Terminal terminal = stdout_terminal(options.no_color);
        print_result(comparison_text(comparison, terminal.color, terminal.unicode));
    }
    if (!options.quiet)
        std::fputs(stats.sentence().c_str(), stderr);
    return std::max(exit_code(result_a), exit_code(result_b));
}

}  // namespace fabricast::cli
