// fabricast-validate score runs FILE: predicted against measured step time of published runs.
#include <fmt/format.h>
#include <boost/program_options.hpp>

#include <algorithm>
#include <sstream>

#include "validate/cli/command_line.hpp"
#include "validate/score/run_fit.hpp"
#include "validate/score/run_score.hpp"
#include "validate/score/run_score_rules.hpp"

namespace fabricast::validate_cli {
namespace {

namespace po = boost::program_options;

constexpr const char* kUsage = "fabricast-validate score runs published_runs.csv [option]...";

std::vector<std::string> words_of(const std::string& list) {
    std::vector<std::string> out;
    std::istringstream in(list);
    for (std::string word; std::getline(in, word, ',');)
        if (!word.empty())
            out.push_back(word);
    return out;
}

// Rows of the wanted ids or sources; every word must be known.
void keep(std::vector<PublishedRun>& runs, const std::vector<std::string>& wanted, std::string PublishedRun::*field,
          std::string_view option) {
    for (const std::string& word : wanted) {
        if (std::none_of(runs.begin(), runs.end(), [&](const PublishedRun& r) { return r.*field == word; }))
            throw UsageError(fmt::format("fabricast-validate score runs: {} {}: no complete row has it", option, word));
    }
    if (!wanted.empty())
        std::erase_if(runs, [&](const PublishedRun& r) {
            return std::find(wanted.begin(), wanted.end(), r.*field) == wanted.end();
        });
}

}  // namespace

int score_runs(const Arguments& arguments) {
    po::options_description named("options");
    named.add_options()("json", "everything, for programs")("full", "rules, and a line per run")(
        "loso", "constants refitted without the source they score")(
        "source", po::value<std::string>()->default_value(""), "only rows of these sources, separated by commas")(
        "rows", po::value<std::string>()->default_value(""), "only these rows, separated by commas")(
        "jobs", po::value<int>()->default_value(0), "threads; 0: as many as there are processors")(
        "scenario", po::value<std::string>(), "print the scenario file of this row instead")("help,h", "this text");
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
        throw UsageError(fmt::format("fabricast-validate score runs: {}; usage: {}", error.what(), kUsage));
    }
    if (values.count("help") > 0) {
        std::ostringstream text;
        text << "usage: " << kUsage << "\n\n" << named;
        print_result(text.str());
        return kDone;
    }
    const auto files = values.count("file") > 0 ? values["file"].as<std::vector<std::string>>() : Arguments();
    if (files.size() != 1)
        throw UsageError(fmt::format("fabricast-validate score runs: one file is needed; usage: {}", kUsage));
    const int jobs = values["jobs"].as<int>();
    if (jobs < 0)
        throw UsageError(fmt::format("fabricast-validate score runs: --jobs {} must be 0 or more", jobs));
    std::vector<PublishedRun> runs = read_published_runs(files.front());
    if (values.count("scenario") > 0) {
        keep(runs, {values["scenario"].as<std::string>()}, &PublishedRun::id, "--scenario");
        print_result(run_scenario(runs.front()).yaml);
        return kDone;
    }
    keep(runs, words_of(values["source"].as<std::string>()), &PublishedRun::source_key, "--source");
    keep(runs, words_of(values["rows"].as<std::string>()), &PublishedRun::id, "--rows");
    if (values.count("loso") > 0) {
        const LosoScore loso = score_loso(runs, static_cast<unsigned>(jobs));
        print_result(values.count("json") > 0 ? loso_json(loso).dump(2) + "\n" : loso_text(loso));
        return kDone;
    }
    const RunScore result = fabricast::score_runs(runs, static_cast<unsigned>(jobs));
    print_result(values.count("json") > 0 ? run_score_json(result).dump(2) + "\n"
                                          : run_score_text(result, values.count("full") > 0));
    return kDone;
}

}  // namespace fabricast::validate_cli
