// What measure, ingest and fit share: options of one verb, its files, its help.
#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "validate/cli/command_line.hpp"
#include "validate/score/platform.hpp"

namespace fabricast::validate_cli {

struct VerbOptions {
    boost::program_options::variables_map values;
    std::vector<std::string> files;
    bool help = false;  ///< the help was printed
    bool has(const char* option) const { return values.count(option) > 0; }
    std::string text(const char* option) const {
        return has(option) ? values[option].as<std::string>() : std::string();
    }
};

/// usage: "fit FILE... --output SITE.yaml". Adds --help. Throws UsageError.
VerbOptions parse_verb(std::string_view usage, boost::program_options::options_description named,
                       const Arguments& arguments, std::string_view help_note);

/// --node, --nodes, --network: the machine of logs that do not tell it.
void add_platform_options(boost::program_options::options_description& named);
PlatformHint read_platform(std::string_view verb, const VerbOptions& options);

/// "a,b" -> a b.
std::vector<std::string> listed_words(const std::string& text);

}  // namespace fabricast::validate_cli
