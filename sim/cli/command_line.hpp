// What all verbs share: exit codes, option parsing, where text goes.
//
// Results go to stdout, talk and errors to stderr. Colour only on a terminal, never with NO_COLOR or
// --no-color; ASCII only where the locale names another character set than UTF-8.
#pragma once

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/positional_options.hpp>
#include <boost/program_options/variables_map.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/text.hpp"

namespace fabricast::cli {

enum ExitCode : int { kDone = 0, kExpectFailed = 1, kBadInput = 2, kJobFailed = 3, kOurBug = 70 };

using Arguments = std::vector<std::string>;

struct Options;

struct Verb {
    std::string_view name, summary;
    int (*call)(const Arguments& arguments);  ///< arguments after the verb; returns an ExitCode
    Options (*options)();                     ///< for its page of the manual and completion
};
std::span<const Verb> verbs();  ///< in the order of the help

int run(const Arguments& arguments);
int explain(const Arguments& arguments);
int compare(const Arguments& arguments);
int report(const Arguments& arguments);
int plan_layouts(const Arguments& arguments);
int presets(const Arguments& arguments);
int schema(const Arguments& arguments);
int nccl(const Arguments& arguments);
int topo(const Arguments& arguments);
int validate(const Arguments& arguments);
int import_files(const Arguments& arguments);
int manual(const Arguments& arguments);

Options run_options();
Options explain_options();
Options compare_options();
Options report_options();
Options plan_options();
Options presets_options();
Options schema_options();
Options nccl_options();
Options topo_options();
Options validate_options();
Options import_options();
Options manual_options();

/// First argument -> verb. Throws ScenarioError for an unknown one.
int dispatch(const Arguments& arguments);

/// The options of one verb, for parsing and for its help.
struct Options {
    std::string usage;  ///< "fabricast run FILE... [option]..."
    boost::program_options::options_description named;
    boost::program_options::options_description hidden;  ///< positional ones
    boost::program_options::positional_options_description positional;
    std::string examples;
};

/// Throws ScenarioError with the nearest option for one that does not exist. Adds --help; when it is given, the
/// help is printed and `help` is set.
boost::program_options::variables_map parse(Options options, const Arguments& arguments, bool& help);

struct Terminal {
    bool color = false, unicode = true;
};
Terminal stdout_terminal(bool no_color);

using report::shell_word;

/// To stdout, whole; throws ScenarioError when that fails (full disk).
void print_result(std::string_view text);

}  // namespace fabricast::cli
