#include "sim/cli/timeline_options.hpp"

#include <fmt/format.h>

#include <boost/program_options/value_semantic.hpp>
#include <charconv>

#include "sim/report/atomic_file.hpp"
#include "sim/report/timeline_views.hpp"

namespace fabricast::cli {
namespace {

namespace po = boost::program_options;

[[noreturn]] void refuse(const std::string& sentence) { throw ScenarioError("fabricast run: " + sentence); }

// "0,8,16-23": numbers and ranges of them.
std::vector<std::uint32_t> ranks_of(const std::string& text) {
    std::vector<std::uint32_t> ranks;
    const char* at = text.data();
    const char* const end = at + text.size();
    const auto number = [&](std::uint32_t& value) {
        const auto [next, error] = std::from_chars(at, end, value);
        if (error != std::errc())
            refuse(fmt::format("--trace-ranks {}: ranks are `all` or numbers such as 0,8,16-23", text));
        at = next;
    };
    for (;;) {
        std::uint32_t first = 0;
        number(first);
        std::uint32_t last = first;
        if (at != end && *at == '-') {
            ++at;
            number(last);
        }
        if (last < first || last - first >= 1'000'000)
            refuse(fmt::format("--trace-ranks {}: {}-{} is no range of ranks", text, first, last));
        for (std::uint32_t rank = first; rank <= last; ++rank)
            ranks.push_back(rank);
        if (at == end)
            return ranks;
        if (*at++ != ',')
            refuse(fmt::format("--trace-ranks {}: ranks are `all` or numbers such as 0,8,16-23", text));
    }
}

}  // namespace

void add_timeline_options(Options& options) {
    options.named.add_options()(
        "trace", po::value<std::string>()->value_name("FILE"),
        "write the step as a timeline for ui.perfetto.dev: Perfetto protobuf, or Chrome JSON for a name in .json")(
        "trace-ranks", po::value<std::string>()->value_name("LIST"),
        "ranks in the timeline: all, or 0,8,16-23; by default one of each class of ranks that do the same")(
        "with-timeline",
        "put timeline and command into --output FILE.json too: `fabricast report` makes the same page of it");
}

TimelineArguments read_timeline_options(const po::variables_map& values) {
    TimelineArguments arguments;
    arguments.stored = values.count("with-timeline") > 0;
    if (values.count("trace") > 0) {
        arguments.trace = values["trace"].as<std::string>();
        if (arguments.trace.empty())
            refuse("--trace needs a file name");
        check_writable(arguments.trace);
    }
    if (values.count("trace-ranks") > 0) {
        const auto text = values["trace-ranks"].as<std::string>();
        if (text == "all")
            arguments.request.all = true;
        else
            arguments.request.ranks = ranks_of(text);
    }
    return arguments;
}

void check_ranks(const TimelineRequest& request, const Scenario& scenario) {
    const std::int64_t world = scenario.training.layout.world();
    for (const std::uint32_t rank : request.ranks) {
        if (rank >= world)
            refuse(fmt::format("--trace-ranks {}: the job has ranks 0 to {}", rank, world - 1));
    }
}

void write_trace(const std::string& file, const StepTimeline& timeline) {
    write_file_atomically(file, file.ends_with(".json") ? chrome_trace(timeline) : perfetto_trace(timeline));
}

}  // namespace fabricast::cli
