#include "validate/cli/command_line.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace fabricast::validate_cli {
namespace {

std::string main_help() {
    return fmt::format(
        "fabricast-validate {} compares predictions with measurements\n\n"
        "usage: fabricast-validate VERB [option]...\n\n"
        "  measure  runs kernels and collectives on this machine's GPUs, or on its processor\n"
        "  ingest   logs that are there: nccl-tests, perftest, step times\n"
        "  fit      constants of a site from its measurements, with their errors\n"
        "  score    predicted against measured, healthy or sick, and why\n\n"
        "  --help     this text; `fabricast-validate VERB --help` says more\n"
        "  --version  version of the program\n\n"
        "examples\n"
        "  fabricast-validate measure --output node17.json\n"
        "  fabricast-validate ingest nccl-tests *.log --node hgx-h100 --output fabric.json\n"
        "  fabricast-validate fit node17.json fabric.json --output mysite.yaml\n"
        "  fabricast-validate fit runs.csv --lomo\n"
        "  fabricast run scenario.yaml --calibration mysite.yaml\n"
        "  fabricast-validate score nccl all_reduce.log --node hgx-h100 --nodes 2\n"
        "  fabricast-validate score nccl logs/index.csv --loo --json\n"
        "  fabricast-validate score nccl nccl_measured.csv\n"
        "  fabricast-validate score runs published_runs.csv --source torchtitan --output torchtitan.html\n\n"
        "exit codes: 0 done, 2 bad input or no CUDA device, 70 a bug, 130 measurement interrupted\n",
        FABRICAST_VERSION);
}

}  // namespace

int dispatch(const Arguments& arguments) {
    if (arguments.empty()) {
        std::fputs(main_help().c_str(), stderr);
        return kBadInput;
    }
    const std::string& first = arguments.front();
    if (first == "--help" || first == "-h" || first == "help") {
        print_result(main_help());
        return kDone;
    }
    if (first == "--version") {
        print_result(fmt::format("fabricast-validate {}\n", FABRICAST_VERSION));
        return kDone;
    }
    constexpr std::pair<std::string_view, int (*)(const Arguments&)> kVerbs[] = {
        {"measure", measure}, {"ingest", ingest}, {"fit", fit}, {"score", score}};
    for (const auto& [name, verb] : kVerbs) {
        if (first == name)
            return verb(Arguments(arguments.begin() + 1, arguments.end()));
    }
    throw UsageError(
        fmt::format("fabricast-validate: unknown {} `{}`; known are measure, ingest, fit and score, and --help",
                    first.starts_with('-') ? "option" : "verb", first));
}

void print_result(std::string_view text) {
    errno = 0;
    const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
    if (written != text.size() || std::fflush(stdout) != 0) {
        throw UsageError(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
    }
}

}  // namespace fabricast::validate_cli
