// What the simulation itself took: wall time, memory, nanoseconds an event. Differs from run to run, so it goes
// to stderr and --stats, never into result.json.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace fabricast::cli {

class RunStats {
public:
    RunStats();  ///< the clock starts
    void start_forecast();
    void end_forecast(const std::string& name, std::uint64_t events);

    std::string json() const;
    std::string sentence() const;  ///< one line for stderr

private:
    using Clock = std::chrono::steady_clock;
    struct Forecast {
        std::string name;
        std::uint64_t events = 0;
        double wall_s = 0;
    };
    Clock::time_point begin_, forecast_begin_;
    std::vector<Forecast> forecasts_;
};

}  // namespace fabricast::cli
