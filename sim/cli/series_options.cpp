#include "sim/cli/series_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <boost/program_options/variables_map.hpp>
#include <charconv>

#include "sim/report/atomic_file.hpp"
#include "sim/report/monitor_series.hpp"

namespace fabricast::cli {
namespace {

namespace po = boost::program_options;

}  // namespace

void add_series_options(Options& options) {
    options.named.add_options()(
        "series", po::value<std::string>()->value_name("FILE"),
        "write what monitors of a campaign read, sample by sample: .csv, or .prom (OpenMetrics)")(
        "replica", po::value<std::string>()->value_name("N"),
        "the life of a campaign to show, watch and sample, from 0; by default the one of median ETTR");
}

std::string read_series_options(const po::variables_map& values, std::vector<std::string>& overrides) {
    if (values.count("replica") > 0) {
        const auto text = values["replica"].as<std::string>();
        std::uint32_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (error != std::errc() || end != text.data() + text.size())
            throw ScenarioError(fmt::format("fabricast run: --replica {}: a replica is a whole number from 0", text));
        overrides.push_back("run.shown=" + text);
    }
    if (values.count("series") == 0)
        return {};
    const auto file = values["series"].as<std::string>();
    const auto& endings = series_endings();
    if (std::none_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return file.size() > ending.size() && file.ends_with(ending); }))
        throw ScenarioError(fmt::format("fabricast run: --series {}: the ending decides the format; known are {}", file,
                                        fmt::join(endings, " and ")));
    check_writable(file);
    return file;
}

void write_series(const std::string& file, const Result& result) {
    if (!result.monitors)
        throw ScenarioError(
            fmt::format("fabricast run: --series {}: {}: {}", file, result.scenario->name,
                        result.campaign ? "nothing watches the run; add `monitors: default` to the scenario"
                                        : "there is no campaign; give faults, run.tokens or run.days, and monitors"));
    write_file_atomically(file, series_for(file, result));
}

}  // namespace fabricast::cli
