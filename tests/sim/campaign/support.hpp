// Campaigns made by hand: a job that never fails, to which each test adds what it is about.
#pragma once

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "sim/campaign/campaign.hpp"

namespace fabricast::campaign::test {

/// One component that stops the job `per_1000` times per 1000 node-days; nodes come back after `repair_h` hours.
inline faults::Component component(double per_1000, bool node_leaves = false, double repair_h = 1) {
    faults::Component c;
    c.name = "gpu";
    c.rate = per_1000 / 1000;
    c.node_leaves = node_leaves;
    c.repair = faults::constant(repair_h * 3600);
    return c;
}

inline CampaignSpec job(std::uint32_t nodes, std::int64_t steps) {
    CampaignSpec spec;
    spec.fleet.nodes = nodes;
    spec.phases = {{steps, 0, 1}};
    return spec;
}

/// All conditions take `step`.
inline StepTimes all_alike(Nanoseconds step) {
    return StepTimes(1, kMaxKinds, [step](const Condition&) { return step; });
}

inline Nanoseconds spent(const ReplicaResult& r, Spent what) { return r.spent[static_cast<std::size_t>(what)]; }

inline void expect_sums(const ReplicaResult& r) {
    EXPECT_EQ(std::accumulate(r.spent.begin(), r.spent.end(), Nanoseconds{0}), r.wall);
    for (const Nanoseconds part : r.spent)
        EXPECT_GE(part, 0);
    // What stops cost is part of the time without kept steps.
    EXPECT_LE(std::accumulate(r.lost_by.begin(), r.lost_by.end(), Nanoseconds{0}),
              r.wall - r.spent[static_cast<std::size_t>(Spent::steps)]);
}

struct Estimate {
    double mean = 0, error = 0;  ///< of the mean
};
inline Estimate estimate(const std::vector<double>& values) {
    const auto n = static_cast<double>(values.size());
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
    double squares = 0;
    for (const double v : values)
        squares += (v - mean) * (v - mean);
    return {mean, std::sqrt(squares / (n - 1) / n)};
}

}  // namespace fabricast::campaign::test
