// fabricast-validate score memory FILE: predicted against measured memory of published runs.
#include "validate/cli/row_options.hpp"
#include "validate/score/memory_score.hpp"

namespace fabricast::validate_cli {

int score_memory(const Arguments& arguments) {
    constexpr std::string_view kCommand = "score memory";
    boost::program_options::options_description named("options");
    named.add_options()("json", "everything, for programs")("full", "a line per run");
    const RowOptions options =
        parse_row_options(kCommand, named, arguments,
                          "\nVerdicts: rows with a step time ran, rows with status oom did not fit. Peaks: columns "
                          "mem_reserved_gib and mem_allocated_gib, or `peak alloc X GiB` in the notes.\n");
    if (options.help)
        return kDone;
    std::vector<PublishedRun> runs = read_memory_runs(options.file);
    keep_wanted(runs, kCommand, options);
    const MemoryScore result = fabricast::score_memory(runs, options.jobs);
    print_result(options.has("json") ? memory_score_json(result).dump(2) + "\n"
                                     : memory_score_text(result, options.has("full")));
    return kDone;
}

}  // namespace fabricast::validate_cli
