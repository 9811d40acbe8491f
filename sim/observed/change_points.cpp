#include "sim/observed/change_points.hpp"

#include <algorithm>
#include <limits>

#include "models/compute/math.hpp"
#include "sim/observed/robust.hpp"

namespace fabricast {
namespace {

constexpr std::size_t kMostBins = 2048;

/// Sums of values and squares, so that the cost of any segment is one difference.
struct Sums {
    explicit Sums(std::span<const double> x) : sum(x.size() + 1, 0), square(x.size() + 1, 0) {
        for (std::size_t i = 0; i < x.size(); ++i) {
            sum[i + 1] = sum[i] + (x[i] - x[0]);
            square[i + 1] = square[i] + (x[i] - x[0]) * (x[i] - x[0]);
        }
    }
    double cost(std::size_t begin, std::size_t end) const {
        const double s = sum[end] - sum[begin];
        return square[end] - square[begin] - s * s / static_cast<double>(end - begin);
    }
    std::vector<double> sum, square;
};

std::vector<std::size_t> optimal_partition(std::span<const double> x, double scale, double penalty,
                                           std::size_t shortest) {
    const std::size_t n = x.size();
    const Sums sums(x);
    std::vector<double> best(n + 1, std::numeric_limits<double>::infinity());
    std::vector<std::size_t> from(n + 1, 0), alive = {0};
    best[0] = -penalty;
    for (std::size_t end = shortest; end <= n; ++end) {
        for (const std::size_t begin : alive) {
            if (end - begin < shortest)
                continue;
            const double cost = best[begin] + sums.cost(begin, end) * scale + penalty;
            if (cost < best[end]) {
                best[end] = cost;
                from[end] = begin;
            }
        }
        std::erase_if(alive, [&](std::size_t begin) {
            return end - begin >= shortest && best[begin] + sums.cost(begin, end) * scale > best[end];
        });
        if (best[end] < std::numeric_limits<double>::infinity())
            alive.push_back(end);
    }
    std::vector<std::size_t> changes;
    for (std::size_t at = from[n]; at > 0; at = from[at])
        changes.push_back(at);
    std::reverse(changes.begin(), changes.end());
    return changes;
}

}  // namespace

std::vector<Segment> level_segments(std::span<const double> x, double sigma, double worth) {
    const std::size_t n = x.size();
    const double ln_n = math::log(static_cast<double>(std::max<std::size_t>(n, 2)));
    const double penalty = 1.5 * ln_n + 3;
    const std::size_t bin = (n + kMostBins - 1) / kMostBins;
    std::vector<std::size_t> changes;
    if (bin <= 1) {
        changes = optimal_partition(x, worth / (2 * sigma * sigma), penalty, kShortestSegment);
    } else {
        std::vector<double> bins;
        for (std::size_t i = 0; i < n; i += bin) {
            const auto begin = x.begin() + static_cast<std::ptrdiff_t>(i);
            bins.push_back(robust::median({begin, begin + static_cast<std::ptrdiff_t>(std::min(bin, n - i))}));
        }
        // A median of b normal values has pi / 2 times the variance of their mean.
        const double scale = worth * static_cast<double>(bin) / (1.5707963 * 2 * sigma * sigma);
        changes = optimal_partition(bins, scale, penalty, std::max<std::size_t>(1, kShortestSegment / bin));
        for (std::size_t& change : changes)
            change *= bin;
        const Sums sums(x);  // to the row, between the neighbouring changes
        for (std::size_t c = 0; c < changes.size(); ++c) {
            const std::size_t low = c > 0 ? changes[c - 1] : 0, high = c + 1 < changes.size() ? changes[c + 1] : n;
            const std::size_t first = std::max(low + 1, changes[c] > 2 * bin ? changes[c] - 2 * bin : 1);
            const std::size_t last = std::min(high - 1, changes[c] + 2 * bin);
            std::size_t at = changes[c];
            for (std::size_t place = first; place <= last; ++place)
                if (sums.cost(low, place) + sums.cost(place, high) < sums.cost(low, at) + sums.cost(at, high))
                    at = place;
            changes[c] = at;
        }
    }
    std::vector<Segment> out;
    changes.push_back(n);
    std::size_t begin = 0;
    for (const std::size_t end : changes) {
        const auto at = x.begin() + static_cast<std::ptrdiff_t>(begin);
        out.push_back({begin, end, robust::median({at, at + static_cast<std::ptrdiff_t>(end - begin)})});
        begin = end;
    }
    return out;
}

}  // namespace fabricast
