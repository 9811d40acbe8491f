// What all monitors of a job read at one instant.
//
// A value that is not there (no step ended, the job is down) is not a number. Of a metric of peers `value` is the median of
// the parts that are well; `odd` are the parts of a degradation that differ from them.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "models/monitors/metric.hpp"
#include "sim/campaign/campaign_spec.hpp"

namespace fabricast::monitor {

using campaign::Nanoseconds;
using monitors::kMetricCount;
using monitors::Metric;

inline constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
inline bool missing(double value) { return std::isnan(value); }

struct Sample {
    struct Odd {
        Metric metric = Metric::count;
        std::uint8_t degradation = 0;  ///< index; says which part it is
        double value = 0;
    };
    Nanoseconds time = 0;  ///< end of the interval
    std::array<double, kMetricCount> value;
    std::array<Odd, 16> odd;
    std::uint32_t odd_count = 0;
    std::uint32_t key = 0;      ///< phase
    std::int64_t steps = 0;     ///< that ended in the interval
    bool silenced = false;      ///< a planned stop: no rule is asked
    bool restarts = false;      ///< the job runs or hangs at `time`: a restart makes a difference
    Nanoseconds job_start = 0;  ///< of the processes at `time`

    double operator[](Metric m) const { return value[static_cast<std::size_t>(m)]; }
    double& operator[](Metric m) { return value[static_cast<std::size_t>(m)]; }
    void add(Metric m, std::size_t degradation, double v) {
        if (odd_count < odd.size())
            odd[odd_count++] = {m, static_cast<std::uint8_t>(degradation), v};
    }
};

}  // namespace fabricast::monitor
