// What slows a job without stopping it: how severe, how often, how long, where to look (signatures.yaml).
//
//   rate      of onsets a day in a job:  per_1000_node_days x nodes / 1000 + per_job_day + per_link_month x links / 30.4
//   lasts     log-normal, 95 % between the two; a mean of 24 min exponential is 1 to 110 min in that sense (2.5 and 97.5 %)
//   severity  all alike on its scale between the two
//
// Timeless: what a severity does to a step is simulated by who asks (sim/diagnose).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/faults/distributions.hpp"

namespace fabricast::faults {

enum class Part : std::uint8_t { compute, network, nvlink, data, host, work };
std::string_view part_name(Part part);

struct Signature {
    std::string name, what, inject, look, source;
    Part part = Part::compute;
    double low = 0, high = 0;  ///< severity; 0 and 0: it has none
    bool log_scale = false;
    double stop_low_s = 0, stop_high_s = 0;  ///< 0: not by stops
    double per_node_day = 0, per_job_day = 0, per_link_month = 0, at_start = 0;
    Distribution lasts;  ///< s
    bool permanent = true;
    enum class Onset : std::uint8_t { any, either, start } onset = Onset::any;
    double repeats = 0;

    double rate_per_day(double nodes, double links) const {
        return per_node_day * nodes + per_job_day + per_link_month * links / 30.4;
    }
    /// Severity at a share of its range, 0 to 1.
    double severity(double share) const;
};

/// Parses signatures.yaml. Throws std::runtime_error naming the entry.
std::vector<Signature> parse_signatures(std::string_view yaml);
const std::vector<Signature>& signatures();

}  // namespace fabricast::faults
