// fabricast-validate score memory FILE: predicted against measured memory of published runs.
#include <fmt/format.h>
#include <boost/program_options.hpp>

#include <algorithm>
#include <sstream>

#include "validate/cli/command_line.hpp"
#include "validate/score/memory_score.hpp"

namespace fabricast::validate_cli {
namespace {

namespace po = boost::program_options;

constexpr const char* kUsage = "fabricast-validate score memory FILE.csv [option]...";

void keep(std::vector<PublishedRun>& runs, const std::string& list, std::string PublishedRun::*field,
          std::string_view option) {
    std::vector<std::string> wanted;
    std::istringstream in(list);
    for (std::string word; std::getline(in, word, ',');) {
        if (word.empty())
            continue;
        if (std::none_of(runs.begin(), runs.end(), [&](const PublishedRun& r) { return r.*field == word; }))
            throw UsageError(
                fmt::format("fabricast-validate score memory: {} {}: no row with memory has it", option, word));
        wanted.push_back(word);
    }
    if (!wanted.empty())
        std::erase_if(runs, [&](const PublishedRun& r) {
            return std::find(wanted.begin(), wanted.end(), r.*field) == wanted.end();
        });
}

}  // namespace

int score_memory(const Arguments& arguments) {
    po::options_description named("options");
    named.add_options()("json", "everything, for programs")("full", "a line per run")(
        "source", po::value<std::string>()->default_value(""), "only rows of these sources, separated by commas")(
        "rows", po::value<std::string>()->default_value(""), "only these rows, separated by commas")(
        "jobs", po::value<int>()->default_value(0), "threads; 0: as many as there are processors")("help,h",
                                                                                                   "this text");
    po::options_description hidden;
    hidden.add_options()("file", po::value<std::vector<std::string>>());
    po::positional_options_description positional;
    positional.add("file", -1);
    po::options_description all;
    all.add(named).add(hidden);
    po::variables_map values;
    try {
        const int style = int{po::command_line_style::unix_style} & ~int{po::command_line_style::allow_guessing};
        po::store(po::command_line_parser(arguments).options(all).positional(positional).style(style).run(), values);
        po::notify(values);
    } catch (const po::error& error) {
        throw UsageError(fmt::format("fabricast-validate score memory: {}; usage: {}", error.what(), kUsage));
    }
    if (values.count("help") > 0) {
        std::ostringstream text;
        text << "usage: " << kUsage << "\n\n"
             << named
             << "\nRows count that have a status (ok, oom), columns mem_reserved_gib and mem_allocated_gib, or `peak "
                "alloc "
                "X GiB` in their notes.\n";
        print_result(text.str());
        return kDone;
    }
    const auto files = values.count("file") > 0 ? values["file"].as<std::vector<std::string>>() : Arguments();
    if (files.size() != 1)
        throw UsageError(fmt::format("fabricast-validate score memory: one file is needed; usage: {}", kUsage));
    const int jobs = values["jobs"].as<int>();
    if (jobs < 0)
        throw UsageError(fmt::format("fabricast-validate score memory: --jobs {} must be 0 or more", jobs));
    std::vector<PublishedRun> runs = read_memory_runs(files.front());
    keep(runs, values["source"].as<std::string>(), &PublishedRun::source_key, "--source");
    keep(runs, values["rows"].as<std::string>(), &PublishedRun::id, "--rows");
    const MemoryScore result = fabricast::score_memory(runs, static_cast<unsigned>(jobs));
    print_result(values.count("json") > 0 ? memory_score_json(result).dump(2) + "\n"
                                          : memory_score_text(result, values.count("full") > 0));
    return kDone;
}

}  // namespace fabricast::validate_cli
