#include "validate/cli/verb_options.hpp"

#include <fmt/format.h>

#include <sstream>

namespace fabricast::validate_cli {

namespace po = boost::program_options;

VerbOptions parse_verb(std::string_view usage, po::options_description named, const Arguments& arguments,
                       std::string_view help_note) {
    named.add_options()("help,h", "this text");
    po::options_description hidden, all;
    hidden.add_options()("file", po::value<std::vector<std::string>>());
    po::positional_options_description positional;
    positional.add("file", -1);
    all.add(named).add(hidden);
    VerbOptions out;
    const std::string_view verb = usage.substr(0, usage.find(' '));
    try {
        const int style = int{po::command_line_style::unix_style} & ~int{po::command_line_style::allow_guessing};
        po::store(po::command_line_parser(arguments).options(all).positional(positional).style(style).run(),
                  out.values);
        po::notify(out.values);
    } catch (const po::error& error) {
        throw UsageError(
            fmt::format("fabricast-validate {}: {}; usage: fabricast-validate {}", verb, error.what(), usage));
    }
    out.help = out.has("help");
    if (out.help) {
        std::ostringstream text;
        text << "usage: fabricast-validate " << usage << "\n\n" << named << help_note;
        print_result(text.str());
        return out;
    }
    if (out.has("file"))
        out.files = out.values["file"].as<std::vector<std::string>>();
    return out;
}

void add_platform_options(po::options_description& named) {
    named.add_options()("node", po::value<std::string>()->value_name("PRESET"),
                        "machine of the logs, a preset of the catalogue (`fabricast presets`)")(
        "nodes", po::value<int>()->value_name("N"), "how many of them")(
        "network", po::value<std::string>()->value_name("WORDS"), "their network in words: \"InfiniBand 8x400G\"");
}

PlatformHint read_platform(std::string_view verb, const VerbOptions& options) {
    PlatformHint hint;
    hint.preset = options.text("node");
    hint.network = options.text("network");
    if (options.has("nodes")) {
        hint.nodes = options.values["nodes"].as<int>();
        if (*hint.nodes < 1)
            throw UsageError(fmt::format("fabricast-validate {}: --nodes {} must be 1 or more", verb, *hint.nodes));
    }
    return hint;
}

std::vector<std::string> listed_words(const std::string& text) {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string word; std::getline(in, word, ',');) {
        if (!word.empty())
            out.push_back(word);
    }
    return out;
}

}  // namespace fabricast::validate_cli
