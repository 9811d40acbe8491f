// fabricast run: the road from scenario files to forecasts. Nothing is simulated before every file has been
// read and every output is known to be writable.
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <charconv>
#include <chrono>
#include <cstdio>

#include "sim/cli/command_line.hpp"
#include "sim/cli/run_stats.hpp"
#include "sim/report/atomic_file.hpp"
#include "sim/report/expectation.hpp"
#include "sim/report/views.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/forecast.hpp"

namespace fabricast::cli {
namespace {

namespace po = boost::program_options;

struct RunOptions {
    std::vector<std::string> files, overrides;
    bool json = false, full = false, quiet = false, no_color = false;
    std::string output, stats;
};

Options description() {
    Options options;
    options.usage = "fabricast run FILE... [option]...";
    options.named.add_options()("set", po::value<std::vector<std::string>>()->value_name("key=value"),
                                "override one key of the scenario; repeatable")(
        "seed", po::value<std::string>()->value_name("N"), "seed of everything random; the same as --set seed=N")(
        "json", "print result.json instead of the screen")("full", "print all tables instead of one screen")(
        "output", po::value<std::string>()->value_name("FILE"),
        "also write a file: .json (result) or .txt (all tables)")("stats", po::value<std::string>()->value_name("FILE"),
                                                                  "write what the simulation itself took, as JSON")(
        "quiet", "nothing on stderr but errors")("no-color", "no colour, as with NO_COLOR set");
    options.hidden.add_options()("file", po::value<std::vector<std::string>>());
    options.positional.add("file", -1);
    options.examples =
        "examples\n"
        "  fabricast run my.yaml\n"
        "  fabricast run my.yaml --set training.layout.tp=4 --set training.layout.dp=2 --full\n"
        "  fabricast run my.yaml --json | jq .step.mfu\n"
        "  fabricast run before.yaml after.yaml\n\n"
        "With several files --json prints an array. Exit codes: 0 done, 1 an `expect:` failed,\n"
        "2 bad input, 3 the simulated job failed (out of memory, deadlock).\n";
    return options;
}

bool ends_with(const std::string& path, std::string_view ending) {
    return path.size() > ending.size() && path.ends_with(ending);
}

void check_seed(const std::string& text) {
    std::uint64_t seed = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
    if (error != std::errc() || end != text.data() + text.size()) {
        throw ScenarioError(fmt::format("fabricast run: --seed {}: a seed is a whole number from 0", text));
    }
}

void check_options(const RunOptions& options) {
    if (options.files.empty()) {
        throw ScenarioError(
            "fabricast run: no scenario file given; `fabricast presets --scenario llama3.1-8b` writes one");
    }
    if (options.json && options.full)
        throw ScenarioError("fabricast run: --json and --full exclude each other");
    if (!options.output.empty()) {
        if (!ends_with(options.output, ".json") && !ends_with(options.output, ".txt")) {
            throw ScenarioError(fmt::format(
                "fabricast run: --output {}: the ending decides the format; known are .json and .txt", options.output));
        }
        if (options.files.size() > 1) {
            throw ScenarioError(
                fmt::format("fabricast run: --output takes one scenario, {} were given", options.files.size()));
        }
        if (options.output == options.stats)
            throw ScenarioError("fabricast run: --output and --stats name the same file");
        check_writable(options.output);
    }
    if (!options.stats.empty())
        check_writable(options.stats);
}

RunOptions parse_run(const Arguments& arguments, bool& help) {
    const po::variables_map values = parse(description(), arguments, help);
    RunOptions options;
    const auto text = [&](const char* name) {
        return values.count(name) ? values[name].as<std::string>() : std::string();
    };
    const auto list = [&](const char* name) {
        return values.count(name) ? values[name].as<std::vector<std::string>>() : std::vector<std::string>();
    };
    options.files = list("file");
    options.overrides = list("set");
    if (values.count("seed")) {
        check_seed(text("seed"));
        options.overrides.push_back("seed=" + text("seed"));
    }
    options.json = values.count("json") > 0;
    options.full = values.count("full") > 0;
    options.quiet = values.count("quiet") > 0;
    options.no_color = values.count("no-color") > 0;
    options.output = text("output");
    options.stats = text("stats");
    for (const char* name : {"output", "stats"}) {
        if (values.count(name) && text(name).empty())
            throw ScenarioError(fmt::format("fabricast run: --{} needs a file name", name));
    }
    if (!help)
        check_options(options);
    return options;
}

std::vector<Scenario> load_all(const RunOptions& options) {
    std::vector<Scenario> scenarios;
    for (const std::string& file : options.files)
        scenarios.push_back(load_scenario(file, options.overrides));
    return scenarios;
}

/// Where stdout holds JSON, the outcome is told on stderr.
void tell_outcome(const Result& result) {
    const std::string& name = result.scenario->name;
    if (!result.failure.empty())
        std::fprintf(stderr, "%s: %s\n", name.c_str(), result.failure.c_str());
    for (const ExpectationOutcome& outcome : check_expectations(result)) {
        std::fprintf(stderr, "%s: %s: %s\n", name.c_str(), outcome.met ? "expected" : "NOT expected",
                     describe(outcome).c_str());
    }
}

void write_output(const RunOptions& options, const Result& result) {
    if (options.output.empty())
        return;
    write_file_atomically(options.output,
                          ends_with(options.output, ".json") ? result_json(result) : full_text(result, false));
}

int exit_code(const Result& result) {
    if (failed_unexpectedly(result))
        return kJobFailed;
    const std::vector<ExpectationOutcome> outcomes = check_expectations(result);
    const bool met = std::all_of(outcomes.begin(), outcomes.end(), [](const ExpectationOutcome& o) { return o.met; });
    return met ? kDone : kExpectFailed;
}

}  // namespace

int run(const Arguments& arguments) {
    bool help = false;
    const RunOptions options = parse_run(arguments, help);
    if (help)
        return kDone;

    RunStats stats;
    const std::vector<Scenario> scenarios = load_all(options);
    const Terminal terminal = stdout_terminal(options.no_color);
    const bool several = scenarios.size() > 1;
    int code = kDone;
    for (std::size_t i = 0; i < scenarios.size(); ++i) {
        stats.start_forecast();
        const Result result = forecast(scenarios[i]);
        stats.end_forecast(scenarios[i].name, result.events);
        code = std::max(code, exit_code(result));
        write_output(options, result);
        if (options.json) {
            const bool last = i + 1 == scenarios.size();
            if (several)
                print_result(i == 0 ? "[\n" : ",\n");
            print_result(result_json(result));
            if (several && last)
                print_result("]\n");
            if (!options.quiet)
                tell_outcome(result);
        } else {
            if (i > 0)
                print_result("\n");
            print_result(options.full ? full_text(result, terminal.color, terminal.unicode)
                                      : first_screen(result, terminal.color, terminal.unicode));
        }
    }
    if (!options.stats.empty())
        write_file_atomically(options.stats, stats.json());
    if (!options.quiet)
        std::fputs(stats.sentence().c_str(), stderr);
    return code;
}

}  // namespace fabricast::cli
