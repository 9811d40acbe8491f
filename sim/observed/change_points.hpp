// Levels of a noisy series: where its mean changes, and how often.
//
//   minimise  sum over segments of sum (x - mean)^2 / (2 sigma^2) + penalty x changes
//
// exactly, by optimal partitioning with pruning (PELT; Killick, Fearnhead and Eckley 2012), which costs O(n) where changes
// are many and O(n^2) where there are none; series longer than kMostBins are taken in bins of medians, and each change is then
// placed to the row. The penalty is 1.5 ln n + 3 nats a change: place, level, and that many places were tried.
// Wild values must be clipped before: the cost is of squares.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace fabricast {

struct Segment {
    std::size_t begin = 0, end = 0;  ///< rows [begin, end)
    double level = 0;                ///< median
};

inline constexpr std::size_t kShortestSegment = 5;  ///< rows; shorter ones are spikes

/// sigma > 0: noise of one value. worth: share of independent values (robust::Noise::worth).
std::vector<Segment> level_segments(std::span<const double> values, double sigma, double worth);

}  // namespace fabricast
