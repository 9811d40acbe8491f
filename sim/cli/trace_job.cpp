#include "sim/cli/trace_job.hpp"

#include <fmt/format.h>

#include <boost/program_options/value_semantic.hpp>
#include <cstdio>

#include "sim/cli/forecast_options.hpp"
#include "sim/cli/run_stats.hpp"
#include "sim/report/atomic_file.hpp"
#include "sim/report/text.hpp"
#include "sim/report/trace_views.hpp"
#include "sim/scenario/scenario.hpp"
#include "topologies/importers/import_error.hpp"

namespace fabricast::cli {
namespace {

namespace po = boost::program_options;

/// Options that belong to a trace job, with their fields.
struct FileOption {
    const char* name;
    std::string traces::TraceArguments::*field;
};
constexpr FileOption kFiles[] = {
    {"chakra", &traces::TraceArguments::chakra},   {"simai", &traces::TraceArguments::simai},
    {"network", &traces::TraceArguments::network}, {"system", &traces::TraceArguments::system},
    {"groups", &traces::TraceArguments::groups},   {"remote-memory", &traces::TraceArguments::memory}};

[[noreturn]] void refuse(const std::string& sentence) { throw ScenarioError("fabricast run: " + sentence); }

}  // namespace

void add_trace_options(Options& options) {
    const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
    options.named.add_options()("chakra", text("PREFIX"),
                                "run Chakra execution traces PREFIX.0.et, PREFIX.1.et ... instead of a scenario")(
        "simai", text("FILE"), "run a SimAI or ASTRA-sim 1.0 workload text instead of a scenario")(
        "network", text("FILE"), "their network: ASTRA-sim analytical network, YAML")(
        "system", text("FILE"), "their collectives: ASTRA-sim system layer, JSON")(
        "groups", text("FILE"), "their communicator groups, JSON")("remote-memory", text("FILE"),
                                                                   "their memory nodes: ASTRA-sim remote memory, JSON")(
        "serial-communication", "a rank has one communication node under way at a time, as in ASTRA-sim");
}

std::optional<traces::TraceArguments> read_trace_options(const po::variables_map& values) {
    traces::TraceArguments arguments;
    const bool given = values.count("chakra") > 0 || values.count("simai") > 0;
    for (const FileOption& option : kFiles) {
        if (values.count(option.name) == 0)
            continue;
        if (!given)
            refuse(fmt::format("--{} goes with --chakra or --simai", option.name));
        arguments.*option.field = values[option.name].as<std::string>();
        if ((arguments.*option.field).empty())
            refuse(fmt::format("--{} needs a name", option.name));
    }
    arguments.serial_communication = values.count("serial-communication") > 0;
    if (!given) {
        if (arguments.serial_communication)
            refuse("--serial-communication goes with --chakra or --simai");
        return std::nullopt;
    }
    if (!arguments.chakra.empty() && !arguments.simai.empty())
        refuse("--chakra and --simai exclude each other");
    if (arguments.network.empty())
        refuse("traces need a network: --network FILE, an ASTRA-sim analytical network");
    for (const char* other : {"file", "set", "seed", "measured", "trace", "trace-ranks"}) {
        if (values.count(other) > 0) {
            refuse(fmt::format("{} belongs to scenarios; traces take none",
                               std::string(other) == "file" ? "a FILE" : fmt::format("--{}", other)));
        }
    }
    if (!arguments.simai.empty() && !arguments.groups.empty())
        refuse("--groups goes with --chakra: a workload text says its groups itself");
    return arguments;
}

int run_trace_job(const traces::TraceArguments& arguments, const TraceOutput& output) {
    if (output.json && output.full)
        refuse("--json and --full exclude each other");
    for (const std::string* file : {&output.output, &output.stats}) {
        if (!file->empty())
            check_writable(*file);
    }
    RunStats stats;
    stats.start_forecast();
    traces::TraceResult result;
    try {
        result = traces::run_trace(arguments);
    } catch (const importers::ImportError& error) {
        throw ScenarioError(error.what());
    }
    stats.end_forecast(result.source, result.events);
    if (!output.output.empty()) {
        write_file_atomically(output.output,
                              wants_json(output.output) ? trace_json(result) : trace_text(result, true, false));
    }
    const Terminal terminal = stdout_terminal(output.no_color);
    print_result(output.json ? trace_json(result) : trace_text(result, output.full, terminal.color, terminal.unicode));
    if (output.json && !output.quiet && !result.failure.empty())
        std::fprintf(stderr, "%s: %s\n", report::clean(result.source).c_str(), report::clean(result.failure).c_str());
    if (!output.stats.empty())
        write_file_atomically(output.stats, stats.json());
    if (!output.quiet)
        std::fputs(stats.sentence().c_str(), stderr);
    return result.failure.empty() ? kDone : kJobFailed;
}

}  // namespace fabricast::cli
