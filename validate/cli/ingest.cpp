// fabricast-validate ingest KIND FILE... --output FILE.json: logs that are there -> a measurement file.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "sim/observed/ingest_error.hpp"
#include "sim/observed/step_log.hpp"
#include "sim/observed/text.hpp"
#include "sim/scenario/scenario.hpp"
#include "validate/cli/verb_options.hpp"
#include "validate/fit/measured_adapters.hpp"
#include "validate/fit/measured_curves.hpp"

namespace fabricast::validate_cli {
namespace {

MeasurementFile ingest_steps(const std::vector<std::string>& files, const VerbOptions& options) {
    const std::string scenario_file = options.text("scenario");
    if (scenario_file.empty() || files.size() != 1)
        throw UsageError("fabricast-validate ingest steps: one log and its --scenario are needed");
    const Scenario scenario = load_scenario(scenario_file, {});
    const StepLog log = read_step_log(files.front());
    if (log.global_batch && *log.global_batch != scenario.training.global_batch) {
        throw IngestError(files.front(), 0,
                          fmt::format("the log has a global batch of {} sequences, the scenario {}", *log.global_batch,
                                      scenario.training.global_batch));
    }
    MeasurementFile out;
    out.backend = "logs";
    out.date = utc_now();
    out.method =
        fmt::format("{}: median of {} iterations after warm-up, P10 {:.4g} s, P90 {:.4g} s",
                    std::filesystem::path(files.front()).filename().string(), log.iterations, log.p10_s, log.p90_s);
    out.steps.push_back(
        {scenario.name, scenario.model.name, read_text_file(scenario_file), log.step_s, log.iterations});
    return out;
}

}  // namespace

int ingest(const Arguments& arguments) {
    namespace po = boost::program_options;
    constexpr std::string_view kUsage = "ingest nccl-tests|perftest|steps FILE... --output FILE.json [option]...";
    po::options_description named("options");
    named.add_options()("output", po::value<std::string>()->value_name("FILE"), "the measurement file to write")(
        "scenario", po::value<std::string>()->value_name("FILE"), "steps: the job that was measured");
    add_platform_options(named);
    const VerbOptions options = parse_verb(
        kUsage, named, arguments,
        "\nnccl-tests: logs in any layout, or an index.csv beside its logs. perftest: ib_write_bw and its siblings; "
        "they\n"
        "do not tell the line rate: --network \"RoCE 200G\" does, or an index.csv with columns file, tool, link.\n"
        "steps: a Megatron log (elapsed time per iteration) or a CSV with a column step_s.\n");
    if (options.help)
        return kDone;
    const std::string kind = options.files.empty() ? "" : options.files.front();
    if (kind != "nccl-tests" && kind != "perftest" && kind != "steps") {
        throw UsageError(
            fmt::format("fabricast-validate ingest: {}; known are nccl-tests, perftest and steps; usage: "
                        "fabricast-validate {}",
                        kind.empty() ? "what to ingest is missing" : "unknown kind `" + kind + "`", kUsage));
    }
    const std::vector<std::string> files(options.files.begin() + 1, options.files.end());
    if (files.empty() || options.text("output").empty())
        throw UsageError(fmt::format("fabricast-validate ingest {}: files and --output are needed", kind));
    MeasurementFile out = kind == "nccl-tests" ? measurement_of_logs(files, read_platform("ingest", options))
                          : kind == "perftest" ? measurement_of_perftest(files, read_platform("ingest", options))
                                               : ingest_steps(files, options);
    out.tool = "fabricast-validate " FABRICAST_VERSION;
    write_measurement(out, options.text("output"));
    for (const std::string& note : out.notes)
        std::fprintf(stderr, "%s\n", note.c_str());
    print_result(fmt::format("{}: {} curves, {} points, {} steps\n", options.text("output"), out.curves.size(),
                             out.points.size(), out.steps.size()));
    return kDone;
}

}  // namespace fabricast::validate_cli
