// fabricast report: a stored result.json shown again, as a page, Markdown, CSV or Prometheus text.
#include <fmt/format.h>

#include <boost/program_options/value_semantic.hpp>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "sim/cli/command_line.hpp"
#include "sim/report/atomic_file.hpp"
#include "sim/report/result_views.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast::cli {
namespace {

namespace po = boost::program_options;

Options description() {
    Options options;
    options.usage = "fabricast report RESULT.json --output FILE";
    options.named.add_options()("output", po::value<std::string>()->value_name("FILE"),
                                "file to write, its ending decides: .html, .md, .csv or .prom");
    options.hidden.add_options()("file", po::value<std::vector<std::string>>());
    options.positional.add("file", -1);
    options.examples =
        "RESULT.json is what `fabricast run --output RESULT.json` wrote, or `fabricast compare` (.html and .md). The "
        "page "
        "of a\nstored result has the timeline of the step where `run --with-timeline` put it into the file.\n\n"
        "examples\n"
        "  fabricast report result.json --output report.html\n"
        "  fabricast report result.json --output figures.csv\n";
    return options;
}

std::string read_whole(const std::string& path) {
    const std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file)
        throw ScenarioError(fmt::format("fabricast report: cannot read {}", path));
    return text.str();
}

bool known_ending(const std::string& output) {
    for (const std::string_view ending : result_view_endings()) {
        if (output.size() > ending.size() && output.ends_with(ending))
            return true;
    }
    return false;
}

}  // namespace

Options report_options() { return description(); }

int report(const Arguments& arguments) {
    bool help = false;
    const po::variables_map values = parse(description(), arguments, help);
    if (help)
        return kDone;
    const auto files = values.count("file") > 0 ? values["file"].as<std::vector<std::string>>() : Arguments();
    if (files.size() != 1)
        throw ScenarioError(fmt::format("fabricast report: takes one result.json, {} were given", files.size()));
    const std::string output = values.count("output") > 0 ? values["output"].as<std::string>() : std::string();
    if (!known_ending(output)) {
        throw ScenarioError(fmt::format("fabricast report: --output {}: the ending decides the format; known are {}",
                                        output, fmt::join(result_view_endings(), ", ")));
    }
    check_writable(output);
    const std::string text = read_whole(files.front());
    try {
        write_file_atomically(output, view_for(output, text));
    } catch (const std::invalid_argument& refused) {
        throw ScenarioError(fmt::format("{}: {}", files.front(), refused.what()));
    }
    return kDone;
}

}  // namespace fabricast::cli
