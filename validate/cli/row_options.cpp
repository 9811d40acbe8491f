#include "validate/cli/row_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace fabricast::validate_cli {

namespace po = boost::program_options;

RowOptions parse_row_options(std::string_view command, po::options_description named, const Arguments& arguments,
                             std::string_view help_note) {
    named.add_options()("source", po::value<std::string>()->default_value(""),
                        "only rows of these sources, separated by commas")(
        "model", po::value<std::string>()->default_value(""), "only rows of these models, separated by commas")(
        "rows", po::value<std::string>()->default_value(""), "only these rows, separated by commas")(
        "jobs", po::value<int>()->default_value(0), "threads; 0: as many as there are processors")("help,h",
                                                                                                   "this text");
    const std::string program = fmt::format("fabricast-validate {}", command);
    const std::string usage = fmt::format("{} FILE.csv [option]...", program);
    po::options_description hidden, all;
    hidden.add_options()("file", po::value<std::vector<std::string>>());
    po::positional_options_description positional;
    positional.add("file", -1);
    all.add(named).add(hidden);
    RowOptions out;
    try {
        const int style = int{po::command_line_style::unix_style} & ~int{po::command_line_style::allow_guessing};
        po::store(po::command_line_parser(arguments).options(all).positional(positional).style(style).run(),
                  out.values);
        po::notify(out.values);
    } catch (const po::error& error) {
        throw UsageError(fmt::format("{}: {}; usage: {}", program, error.what(), usage));
    }
    out.help = out.has("help");
    if (out.help) {
        std::ostringstream text;
        text << "usage: " << usage << "\n\n" << named << help_note;
        print_result(text.str());
        return out;
    }
    const auto files = out.has("file") ? out.values["file"].as<std::vector<std::string>>() : Arguments();
    if (files.size() != 1)
        throw UsageError(fmt::format("{}: one file is needed; usage: {}", program, usage));
    out.file = files.front();
    const int jobs = out.values["jobs"].as<int>();
    if (jobs < 0)
        throw UsageError(fmt::format("{}: --jobs {} must be 0 or more", program, jobs));
    out.jobs = static_cast<unsigned>(jobs);
    return out;
}

void keep_rows(std::vector<PublishedRun>& runs, std::string_view command, const std::string& list,
               std::string PublishedRun::*field, std::string_view option) {
    std::vector<std::string> wanted;
    std::istringstream in(list);
    for (std::string word; std::getline(in, word, ',');) {
        if (word.empty())
            continue;
        if (std::none_of(runs.begin(), runs.end(), [&](const PublishedRun& r) { return r.*field == word; }))
            throw UsageError(
                fmt::format("fabricast-validate {}: {} {}: no row to be scored has it", command, option, word));
        wanted.push_back(word);
    }
    if (!wanted.empty())
        std::erase_if(runs, [&](const PublishedRun& r) {
            return std::find(wanted.begin(), wanted.end(), r.*field) == wanted.end();
        });
}

void keep_wanted(std::vector<PublishedRun>& runs, std::string_view command, const RowOptions& options) {
    keep_rows(runs, command, options.values["source"].as<std::string>(), &PublishedRun::source_key, "--source");
    keep_rows(runs, command, options.values["model"].as<std::string>(), &PublishedRun::model, "--model");
    keep_rows(runs, command, options.values["rows"].as<std::string>(), &PublishedRun::id, "--rows");
}

}  // namespace fabricast::validate_cli
