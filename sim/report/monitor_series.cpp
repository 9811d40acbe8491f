#include "sim/report/monitor_series.hpp"

#include <fmt/format.h>

#include <iterator>

#include "sim/monitor/monitor.hpp"

namespace fabricast {
namespace {

using namespace monitor;

struct Column {
    Metric metric;
    bool worst;
    std::string name;
};

std::vector<Column> columns() {
    std::vector<Column> all;
    for (std::size_t i = 0; i < kMetricCount; ++i) {
        const auto metric = static_cast<Metric>(i);
        const monitors::MetricInfo& info = monitors::info(metric);
        all.push_back({metric, false, std::string(info.name)});
        if (info.of_peers)
            all.push_back({metric, true, fmt::format("{}_{}", info.name, info.low_is_bad ? "lowest" : "highest")});
    }
    return all;
}

double value(Series& series, const Sample& sample, const Column& column) {
    return column.worst ? series.worst(sample, column.metric) : sample[column.metric];
}

std::string csv(const Result& result) {
    const std::vector<Column> all = columns();
    std::string out = "time_s";
    for (const Column& column : all)
        out += "," + column.name;
    out += "\n";
    Series series(*result.monitors, result.campaign->result.shown);
    for (Sample sample; series.next(sample);) {
        fmt::format_to(std::back_inserter(out), "{:.10g}", campaign::seconds_of(sample.time));
        for (const Column& column : all) {
            out += ',';
            if (const double x = value(series, sample, column); !missing(x))
                fmt::format_to(std::back_inserter(out), "{:.6g}", x);
        }
        out += '\n';
    }
    return out;
}

// A family's samples stand together, so the replica is read once for each.
std::string open_metrics(const Result& result) {
    std::string out, name;
    for (const char c : result.scenario->name)
        name += c == '"' || c == '\\' || c == '\n' ? ' ' : c;
    for (const Column& column : columns()) {
        const monitors::MetricInfo& info = monitors::info(column.metric);
        const std::string unit = info.unit.empty() ? std::string() : fmt::format(" ({})", info.unit);
        out += fmt::format("# TYPE fabricast_{} gauge\n# HELP fabricast_{} {}{}; time is seconds of the run\n",
                           column.name, column.name, info.what, unit);
        Series series(*result.monitors, result.campaign->result.shown);
        for (Sample sample; series.next(sample);)
            if (const double x = value(series, sample, column); !missing(x))
                fmt::format_to(std::back_inserter(out), "fabricast_{}{{scenario=\"{}\"}} {:.6g} {:.10g}\n", column.name,
                               name, x, campaign::seconds_of(sample.time));
    }
    return out + "# EOF\n";
}

}  // namespace

const std::vector<std::string_view>& series_endings() {
    static const std::vector<std::string_view> endings = {".csv", ".prom"};
    return endings;
}

std::string series_for(std::string_view path, const Result& result) {
    return path.ends_with(".csv") ? csv(result) : open_metrics(result);
}

}  // namespace fabricast
