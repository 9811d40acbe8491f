#include <fmt/format.h>
#include <boost/program_options.hpp>

#include <sstream>

#include "sim/observed/csv.hpp"
#include "sim/observed/ingest_error.hpp"
#include "validate/cli/command_line.hpp"
#include "validate/score/kernel_table.hpp"
#include "validate/score/score_report.hpp"

namespace fabricast::validate_cli {
namespace {

namespace po = boost::program_options;

constexpr const char* kUsage = "fabricast-validate score nccl LOG... | index.csv | TABLE.csv [option]...";

bool is_table(const std::string& file) {
    return file.ends_with(".csv") && Csv::read(file).has("latency_us") && Csv::read(file).has("ngpus");
}

void score_logs(const std::vector<std::string>& files, const PlatformHint& hint, bool loo, bool json, bool points) {
    const RunCases cases = read_cases(files, hint);
    const NcclScore result = score_nccl(cases, loo);
    // A single log that cannot be scored is an error of the call, not a row of a table.
    if (result.curves.empty() && !cases.refused.empty() && files.size() == 1 && !files.front().ends_with(".csv") &&
        !cases.refused.front().failed) {
        throw PlatformError(fmt::format("{}: {}", files.front(), cases.refused.front().reason));
    }
    print_result(json ? score_json(result).dump(2) + "\n" : score_text(result, {.points = points}));
}

}  // namespace

int score(const Arguments& arguments) {
    if (!arguments.empty() && arguments.front() == "runs")
        return score_runs(Arguments(arguments.begin() + 1, arguments.end()));
    if (!arguments.empty() && arguments.front() == "memory")
        return score_memory(Arguments(arguments.begin() + 1, arguments.end()));
    if (!arguments.empty() && arguments.front() == "measured")
        return score_measured(Arguments(arguments.begin() + 1, arguments.end()));
    if (!arguments.empty() && (arguments.front() == "gemm" || arguments.front() == "attention"))
        return score_kernels(arguments.front(), Arguments(arguments.begin() + 1, arguments.end()));
    po::options_description named("options");
    named.add_options()("json", "everything, for programs")(
        "loo", "constants from the other logs of the call, never from the scored one")("summary", "no line per size")(
        "node", po::value<std::string>(), "machine, a preset of the catalogue (`fabricast presets`)")(
        "nodes", po::value<int>(), "how many of them")("help,h", "this text");
    po::options_description hidden;
    hidden.add_options()("words", po::value<std::vector<std::string>>());
    po::positional_options_description positional;
    positional.add("words", -1);
    po::options_description all;
    all.add(named).add(hidden);
    po::variables_map values;
    try {
        const int style = int{po::command_line_style::unix_style} & ~int{po::command_line_style::allow_guessing};
        po::store(po::command_line_parser(arguments).options(all).positional(positional).style(style).run(), values);
    } catch (const po::error& error) {
        throw UsageError(fmt::format("fabricast-validate score: {}; usage: {}", error.what(), kUsage));
    }
    if (values.count("help") > 0) {
        std::ostringstream text;
        text << "usage: " << kUsage << "\n\n"
             << named
             << "\nLOG is output of nccl-tests in any layout; index.csv lists logs beside it (columns file, hardware, "
                "network, nodes,\n"
                "gpus, shows); TABLE.csv has columns gpu, op, ngpus, dtype, bytes, latency_us (one node).\n";
        print_result(text.str());
        return kDone;
    }
    const auto words =
        values.count("words") > 0 ? values["words"].as<std::vector<std::string>>() : std::vector<std::string>();
    if (words.empty() || words.front() != "nccl") {
        throw UsageError(fmt::format(
            "fabricast-validate score: {}; known are nccl, runs, memory, gemm, attention and measured; usage: {}",
            words.empty() ? "what to score is missing" : "unknown kind `" + words.front() + "`", kUsage));
    }
    const std::vector<std::string> files(words.begin() + 1, words.end());
    if (files.empty()) {
        throw UsageError(fmt::format("fabricast-validate score nccl: no file given; usage: {}", kUsage));
    }
    PlatformHint hint;
    if (values.count("node") > 0)
        hint.preset = values["node"].as<std::string>();
    if (values.count("nodes") > 0) {
        hint.nodes = values["nodes"].as<int>();
        if (*hint.nodes < 1)
            throw UsageError(fmt::format("fabricast-validate score: --nodes {} must be 1 or more", *hint.nodes));
    }
    const bool json = values.count("json") > 0;
    if (files.size() == 1 && is_table(files.front())) {
        const TableScore result = score_table(files.front());
        print_result(json ? table_json(result).dump(2) + "\n" : table_text(result));
        return kDone;
    }
    score_logs(files, hint, values.count("loo") > 0, json, values.count("summary") == 0);
    return kDone;
}

}  // namespace fabricast::validate_cli
