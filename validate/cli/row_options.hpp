// What `score runs` and `score memory` share: one file of published runs, some of its rows, threads.
#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "validate/cli/command_line.hpp"
#include "validate/ingest/published_runs.hpp"

namespace fabricast::validate_cli {

struct RowOptions {
    boost::program_options::variables_map values;
    std::string file;
    unsigned jobs = 0;
    bool help = false;  ///< the help was printed; nothing else is to be done
    bool has(const char* option) const { return values.count(option) > 0; }
};

/// command: "score runs". named: options of this command alone; --source, --model, --rows, --jobs and --help are added. Throws
/// UsageError.
RowOptions parse_row_options(std::string_view command, boost::program_options::options_description named,
                             const Arguments& arguments, std::string_view help_note = {});

/// Keeps the rows that --source, --model and --rows name; every word must be in some row.
void keep_wanted(std::vector<PublishedRun>& runs, std::string_view command, const RowOptions& options);
/// Keeps the rows whose field is one of a list separated by commas; an empty list keeps all.
void keep_rows(std::vector<PublishedRun>& runs, std::string_view command, const std::string& list,
               std::string PublishedRun::*field, std::string_view option);

}  // namespace fabricast::validate_cli
