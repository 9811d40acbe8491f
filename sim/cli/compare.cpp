// fabricast compare: two or three scenarios forecast and set side by side.
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <cstdio>
#include <utility>

#include "sim/cli/forecast_options.hpp"
#include "sim/cli/run_stats.hpp"
#include "sim/monitor/monitor.hpp"
#include "sim/report/atomic_file.hpp"
#include "sim/report/comparison.hpp"
#include "sim/report/result_views.hpp"
#include "sim/scenario/differences.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/forecast.hpp"

namespace fabricast::cli {
namespace {

namespace po = boost::program_options;
using Texts = std::vector<std::string>;

Options description() {
    Options options;
    options.usage = "fabricast compare A.yaml B.yaml [C.yaml] [option]...";
    add_forecast_options(options);
    options.named.add_options()("set-b", po::value<Texts>()->value_name("key=value"),
                                "override one key of B alone; --set and --seed act on all")(
        "set-c", po::value<Texts>()->value_name("key=value"), "override one key of C alone");
    options.examples =
        "A file left out is A again: one file with --set-b is compared with itself changed. B and C are each held "
        "against "
        "A.\n--measured is of A; write b:figure=value for B, c: for C. --output takes .html, .md, .json and .txt.\n\n"
        "examples\n"
        "  fabricast compare before.yaml after.yaml\n"
        "  fabricast compare my.yaml --set-b training.micro_batch=2\n"
        "  fabricast compare before.yaml after.yaml --output compare.html      a page to mail\n"
        "  fabricast compare my.yaml --set-b training.micro_batch=2 --set-c training.micro_batch=4\n"
        "  fabricast compare before.yaml after.yaml --measured step_s=9.1 --measured b:step_s=6.2\n\n"
        "Exit codes: 0 done, 1 an `expect:` failed, 2 bad input, 3 a simulated job failed (out of memory, deadlock).\n";
    return options;
}

/// A, B and perhaps C: what is theirs alone.
struct Side {
    std::string file;
    Texts overrides, measured;
};

struct CompareOptions : ForecastArguments {
    std::vector<Side> sides;
    std::string command;  ///< as it was typed
};

// "b:mfu=0.4" is of the second side; without a letter it is of the first.
void deal_measurements(const Texts& texts, std::vector<Side>& sides) {
    for (const std::string& text : texts) {
        const bool lettered = text.size() > 1 && text[1] == ':' && text[0] >= 'a' && text[0] <= 'c';
        const std::size_t side = lettered ? static_cast<std::size_t>(text[0] - 'a') : 0;
        if (side >= sides.size())
            throw ScenarioError(fmt::format("fabricast compare: --measured {}: there is no scenario C", text));
        sides[side].measured.push_back(lettered ? text.substr(2) : text);
    }
}

std::string command_line(const CompareOptions& options, const Texts& given, const Texts& of_b, const Texts& of_c) {
    std::string text = "fabricast compare";
    for (const std::string& file : options.files)
        text += " " + shell_word(file.substr(file.rfind('/') + 1));
    const auto add = [&](const char* option, const Texts& values) {
        for (const std::string& value : values)
            text += fmt::format(" {} {}", option, shell_word(value));
    };
    add("--set", given);
    add("--set-b", of_b);
    add("--set-c", of_c);
    add("--inject", options.injected);
    return text;
}

CompareOptions parse_compare(const Arguments& arguments, bool& help) {
    const po::variables_map values = parse(description(), arguments, help);
    CompareOptions options;
    static_cast<ForecastArguments&>(options) = read_forecast_options("compare", values);
    const auto list = [&](const char* name) { return values.count(name) ? values[name].as<Texts>() : Texts(); };
    const Texts of_b = list("set-b"), of_c = list("set-c");
    options.command = command_line(options, options.overrides, of_b, of_c);
    if (help)
        return options;
    const std::size_t wanted = !of_c.empty() ? 3 : !of_b.empty() ? 2 : options.files.size();
    if (options.files.empty() || options.files.size() > 3 || std::max(wanted, options.files.size()) < 2) {
        throw ScenarioError(fmt::format(
            "fabricast compare: takes two or three scenarios, {} were given; one with --set-b is compared with itself "
            "changed",
            options.files.size()));
    }
    for (std::size_t i = 0; i < std::max(wanted, options.files.size()); ++i)
        options.sides.push_back(
            {i < options.files.size() ? options.files[i] : options.files.front(), options.overrides, {}});
    for (const auto& [side, changed] : {std::pair{std::size_t{1}, &of_b}, {std::size_t{2}, &of_c}}) {
        if (side < options.sides.size())
            options.sides[side].overrides.insert(options.sides[side].overrides.end(), changed->begin(), changed->end());
    }
    deal_measurements(options.measured, options.sides);
    if (!options.output.empty())
        check_writable(options.output);
    return options;
}

std::string text_of(const std::vector<Comparison>& against_a, bool color, bool unicode) {
    std::string text;
    for (const Comparison& comparison : against_a)
        text += (text.empty() ? "" : "\n") + comparison_text(comparison, color, unicode);
    return text;
}

void write_output(const CompareOptions& options, const std::string& json, const std::vector<Comparison>& against_a) {
    const std::string& output = options.output;
    if (output.empty())
        return;
    if (wants_json(output))
        write_file_atomically(output, json);
    else if (output.ends_with(".html") || output.ends_with(".md"))
        write_file_atomically(output, view_for(output, with_text(json, "command", options.command)));
    else
        write_file_atomically(output, text_of(against_a, false, true));
}

}  // namespace

Options compare_options() { return description(); }

int compare(const Arguments& arguments) {
    bool help = false;
    const CompareOptions options = parse_compare(arguments, help);
    if (help)
        return kDone;

    RunStats stats;
    std::vector<Scenario> scenarios;
    std::vector<std::vector<Measurement>> measured;
    for (const Side& side : options.sides) {
        scenarios.push_back(load_scenario(side.file, side.overrides, Scope::step, options.calibration));
        if (scenarios.size() > 1) {
            for (const std::string& fault : options.injected)  // the difference
                inject_fault(scenarios.back(), fault);
        }
        measured.push_back(checked_measurements(side.measured, scenarios.back()));
    }
    std::vector<Result> results;
    for (const Scenario& scenario : scenarios) {
        stats.start_forecast();
        results.push_back(
            forecast(scenario, {.fold = options.fold, .fold_time = options.fold_time, .memo = options.memo}));
        monitor::add_campaign(scenario, results.back(), {.memo = options.memo});
        stats.end_forecast(scenario.name, results.back().events);
    }
    std::vector<Comparison> against_a;
    for (std::size_t i = 1; i < results.size(); ++i) {
        const Side &a = options.sides[0], &b = options.sides[i];
        against_a.push_back(
            fabricast::compare(results[0], results[i], differing_keys(a.file, a.overrides, b.file, b.overrides)));
        against_a.back().letter = i == 1 ? "B" : "C";
        against_a.back().measured_a = measured[0];
        against_a.back().measured_b = measured[i];
    }
    const std::string json = comparison_json(against_a[0], against_a.size() > 1 ? &against_a[1] : nullptr);
    write_output(options, json, against_a);
    if (options.json) {
        print_result(json);
        if (!options.quiet) {
            for (const Result& result : results)
                tell_outcome(result);
        }
    } else {
        const Terminal terminal = stdout_terminal(options.no_color);
        print_result(text_of(against_a, terminal.color, terminal.unicode));
    }
    if (!options.quiet)
        std::fputs(stats.sentence().c_str(), stderr);
    int code = kDone;
    for (const Result& result : results)
        code = std::max(code, exit_code(result));
    return code;
}

}  // namespace fabricast::cli
