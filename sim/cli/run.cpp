// fabricast run: the road from scenario files to forecasts. Nothing is simulated before every file has been
// read and every output is known to be writable.
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <cstdio>
#include <optional>

#include "sim/cli/command_line.hpp"
#include "sim/cli/forecast_options.hpp"
#include "sim/cli/run_stats.hpp"
#include "sim/cli/series_options.hpp"
#include "sim/cli/timeline_options.hpp"
#include "sim/cli/trace_job.hpp"
#include "sim/monitor/monitor.hpp"
#include "sim/report/atomic_file.hpp"
#include "sim/report/result_views.hpp"
#include "sim/report/timeline_views.hpp"
#include "sim/report/views.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/forecast.hpp"
#include "sim/step/record_timeline.hpp"

namespace fabricast::cli {
namespace {

namespace po = boost::program_options;

struct RunOptions : ForecastArguments {
    bool full = false;
    std::string stats, series;
    TimelineArguments timeline;
    std::optional<traces::TraceArguments> traces;  ///< instead of files
};

Options description() {
    Options options;
    options.usage = "fabricast run FILE... [option]...";
    add_forecast_options(options);
    options.named.add_options()("full", "print all tables instead of one screen")(
        "stats", po::value<std::string>()->value_name("FILE"), "write what the simulation itself took, as JSON");
    add_timeline_options(options);
    add_series_options(options);
    add_trace_options(options);
    options.examples =
        "examples\n"
        "  fabricast run my.yaml\n"
        "  fabricast run my.yaml --set training.layout.tp=4 --set training.layout.dp=2 --full\n"
        "  fabricast run my.yaml --json | jq .step.mfu\n"
        "  fabricast run my.yaml --measured tokens_per_s_per_gpu=1900\n"
        "  fabricast run my.yaml --output report.html            a page to mail; also .md, .csv, .prom\n"
        "  fabricast run my.yaml --trace step.pftrace            open it in ui.perfetto.dev\n"
        "  fabricast run campaign.yaml --series life.csv --replica 7    what monitors read, minute by minute\n"
        "  fabricast run before.yaml after.yaml\n"
        "  fabricast run my.yaml --inject 'gpu 0.3 clock 1200 MHz' --inject 'nic 3.2 flap at 10 s for 5 s'\n"
        "  fabricast run --chakra traces/step --network net.yml --system system.json --groups groups.json\n\n"
        "With several files --json prints an array. Exit codes: 0 done, 1 an `expect:` failed,\n"
        "2 bad input, 3 the simulated job failed (out of memory, deadlock, time-out).\n";
    return options;
}

void check_options(const RunOptions& options) {
    if (options.files.empty()) {
        throw ScenarioError(
            "fabricast run: no scenario file given; `fabricast presets --scenario llama3.1-8b` writes one");
    }
    if (options.json && options.full)
        throw ScenarioError("fabricast run: --json and --full exclude each other");
    if (!options.measured.empty() && options.files.size() > 1) {
        throw ScenarioError(
            fmt::format("fabricast run: --measured takes one scenario, {} were given", options.files.size()));
    }
    if (!options.output.empty()) {
        if (options.files.size() > 1) {
            throw ScenarioError(
                fmt::format("fabricast run: --output takes one scenario, {} were given", options.files.size()));
        }
        if (options.output == options.stats)
            throw ScenarioError("fabricast run: --output and --stats name the same file");
        check_writable(options.output);
    }
    if (options.timeline.stored && !wants_json(options.output))
        throw ScenarioError("fabricast run: --with-timeline needs --output FILE.json to put it in");
    if (!options.stats.empty())
        check_writable(options.stats);
    if (!options.timeline.trace.empty() && options.files.size() > 1)
        throw ScenarioError(
            fmt::format("fabricast run: --trace takes one scenario, {} were given", options.files.size()));
    if (!options.series.empty() && options.files.size() > 1)
        throw ScenarioError(
            fmt::format("fabricast run: --series takes one scenario, {} were given", options.files.size()));
    for (const std::string* other : {&options.output, &options.stats, &options.timeline.trace})
        if (!options.series.empty() && options.series == *other)
            throw ScenarioError("fabricast run: --series and another option name the same file");
    for (const std::string* other : {&options.output, &options.stats}) {
        if (!options.timeline.trace.empty() && options.timeline.trace == *other)
            throw ScenarioError("fabricast run: --trace and another option name the same file");
    }
}

RunOptions parse_run(const Arguments& arguments, bool& help) {
    const po::variables_map values = parse(description(), arguments, help);
    RunOptions options;
    static_cast<ForecastArguments&>(options) = read_forecast_options("run", values);
    options.full = values.count("full") > 0;
    if (values.count("stats")) {
        options.stats = values["stats"].as<std::string>();
        if (options.stats.empty())
            throw ScenarioError("fabricast run: --stats needs a file name");
    }
    options.traces = read_trace_options(values);
    options.timeline = read_timeline_options(values);
    options.series = read_series_options(values, options.overrides);
    if (!help && !options.traces)
        check_options(options);
    return options;
}

std::vector<Scenario> load_all(const RunOptions& options) {
    std::vector<Scenario> scenarios;
    for (const std::string& file : options.files)
        scenarios.push_back(load_scenario(file, options.overrides, Scope::step, options.calibration));
    for (Scenario& scenario : scenarios) {
        for (const std::string& fault : options.injected)
            inject_fault(scenario, fault);
    }
    return scenarios;
}

bool wants_view(const std::string& output) {
    const auto& endings = result_view_endings();
    return std::any_of(endings.begin(), endings.end(),
                       [&](std::string_view ending) { return output.ends_with(ending); });
}

// As the user typed it, so that another can.
std::string command_line(const RunOptions& options) {
    std::string text = "fabricast run";
    for (const std::string& file : options.files)
        text += " " + shell_word(file.substr(file.rfind('/') + 1));
    for (const std::string& override : options.overrides)
        text += " --set " + shell_word(override);
    for (const std::string& fault : options.injected)
        text += " --inject " + shell_word(fault);
    return text;
}

void write_output(const RunOptions& options, const Result& result, const std::vector<Measurement>& measured,
                  const std::optional<StepTimeline>& timeline) {
    if (options.output.empty())
        return;
    if (!wants_json(options.output) && !wants_view(options.output)) {
        write_file_atomically(options.output, full_text(result, false) + measured_text(measured, result));
        return;
    }
    std::string json = with_measurements(result_json(result), measured, result);
    if (wants_view(options.output) || options.timeline.stored) {
        json = with_text(json, "command", command_line(options));
        if (timeline)
            json = with_timeline(json, *timeline);
    }
    if (wants_view(options.output))
        json = view_for(options.output, json);
    write_file_atomically(options.output, json);
}

// The step run once more, where a view shows what ranks did.
std::optional<StepTimeline> timeline_of(const RunOptions& options, const Scenario& scenario, const Result& result) {
    const bool wanted = !options.timeline.trace.empty() || options.output.ends_with(".html") || options.timeline.stored;
    if (!wanted || result.step.ps <= 0)
        return std::nullopt;
    return record_timeline(scenario, options.fold, options.timeline.request);
}

void write_trace_file(const RunOptions& options, const std::optional<StepTimeline>& timeline) {
    if (options.timeline.trace.empty())
        return;
    if (timeline)
        write_trace(options.timeline.trace, *timeline);
    else if (!options.quiet)
        std::fprintf(stderr, "no timeline written: the job did not run\n");
}

}  // namespace

Options run_options() { return description(); }

int run(const Arguments& arguments) {
    bool help = false;
    const RunOptions options = parse_run(arguments, help);
    if (help)
        return kDone;

    if (options.traces) {
        return run_trace_job(*options.traces, {options.json, options.full, options.quiet, options.no_color,
                                               options.output, options.stats});
    }
    RunStats stats;
    const std::vector<Scenario> scenarios = load_all(options);
    const Terminal terminal = stdout_terminal(options.no_color);
    const bool several = scenarios.size() > 1;
    check_ranks(options.timeline.request, scenarios.front());
    const std::vector<Measurement> measured = checked_measurements(options.measured, scenarios.front());
    int code = kDone;
    for (std::size_t i = 0; i < scenarios.size(); ++i) {
        stats.start_forecast();
        Result result = forecast(
            scenarios[i],
            {.split_waiting = true, .fold = options.fold, .fold_time = options.fold_time, .memo = options.memo});
        monitor::add_campaign(scenarios[i], result, {.memo = options.memo});
        stats.end_forecast(scenarios[i].name, result.events + (result.waiting ? result.waiting->events : 0));
        code = std::max(code, exit_code(result));
        const std::optional<StepTimeline> timeline = timeline_of(options, scenarios[i], result);
        write_output(options, result, measured, timeline);
        write_trace_file(options, timeline);
        if (!options.series.empty())
            write_series(options.series, result);
        if (options.json) {
            const bool last = i + 1 == scenarios.size();
            if (several)
                print_result(i == 0 ? "[\n" : ",\n");
            print_result(with_measurements(result_json(result), measured, result));
            if (several && last)
                print_result("]\n");
            if (!options.quiet)
                tell_outcome(result);
        } else {
            if (i > 0)
                print_result("\n");
            print_result(options.full ? full_text(result, terminal.color, terminal.unicode)
                                      : first_screen(result, terminal.color, terminal.unicode) +
                                            campaign_text(result, false, terminal.color, terminal.unicode));
            print_result(measured_text(measured, result));
        }
    }
    if (!options.stats.empty())
        write_file_atomically(options.stats, stats.json());
    if (!options.quiet)
        std::fputs(stats.sentence().c_str(), stderr);
    return code;
}

}  // namespace fabricast::cli
