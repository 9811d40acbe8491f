#include "sim/cli/run_stats.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "sim/report/text.hpp"

namespace fabricast::cli {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::int64_t peak_rss_bytes() {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return std::int64_t{usage.ru_maxrss} * 1024;  // Linux counts KiB
}

double ns_per_event(double wall_s, std::uint64_t events) {
    return events > 0 ? wall_s * 1e9 / static_cast<double>(events) : 0.0;
}

}  // namespace

RunStats::RunStats() : begin_(Clock::now()), forecast_begin_(begin_) {}

void RunStats::start_forecast() { forecast_begin_ = Clock::now(); }

void RunStats::end_forecast(const std::string& name, std::uint64_t events) {
    forecasts_.push_back({name, events, seconds_since(forecast_begin_)});
}

std::string RunStats::json() const {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    std::uint64_t events = 0;
    double forecast_s = 0;
    for (const Forecast& forecast : forecasts_) {
        events += forecast.events;
        forecast_s += forecast.wall_s;
        rows.push_back({{"name", forecast.name},
                        {"wall_s", forecast.wall_s},
                        {"events", forecast.events},
                        {"ns_per_event", ns_per_event(forecast.wall_s, forecast.events)}});
    }
    const nlohmann::ordered_json json = {{"schema_version", 1},
                                         {"wall_s", seconds_since(begin_)},
                                         {"peak_rss_bytes", peak_rss_bytes()},
                                         {"threads", 1},
                                         {"events", events},
                                         {"ns_per_event", ns_per_event(forecast_s, events)},
                                         {"forecasts", rows}};
    return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string RunStats::sentence() const {
    std::uint64_t events = 0;
    double forecast_s = 0;
    for (const Forecast& forecast : forecasts_) {
        events += forecast.events;
        forecast_s += forecast.wall_s;
    }
    const std::string simulated =
        events > 0
            ? fmt::format("simulated {} events in {} ({:.0f} ns each)", report::magnitude(static_cast<double>(events)),
                          report::duration(forecast_s), ns_per_event(forecast_s, events))
            : "nothing to simulate";
    return fmt::format("{}; {} in all, peak memory {}\n", simulated, report::duration(seconds_since(begin_)),
                       report::decimal_bytes(static_cast<double>(peak_rss_bytes())));
}

}  // namespace fabricast::cli
