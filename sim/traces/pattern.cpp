#include "sim/traces/pattern.hpp"

#include <algorithm>
#include <utility>

namespace fabricast::traces {

using Members = std::vector<std::uint32_t>;

PatternBuilder::PatternBuilder(const GridNetwork& network, LinkTable& links)
    : network_(network), links_(links), load_(network.link_count(), 0.0) {}

/// Adds a message for every unit of work; returns the latency of its route.
double PatternBuilder::load(std::uint32_t from, std::uint32_t to, double bytes) {
    route_.clear();
    const double latency = network_.route(from, to, route_);
    for (const LinkId link : route_) {
        if (load_[index(link)] == 0)
            loaded_.push_back(link);
        load_[index(link)] += bytes;
    }
    return latency;
}

PatternUse PatternBuilder::build(Pattern pattern, const Members& members, std::size_t dimension) {
    PatternUse use;
    PatternShape& shape = use.shape;
    shape.ranks = static_cast<std::uint32_t>(members.size());
    loaded_.clear();
    switch (pattern) {
        case Pattern::ring: ring(members, shape); break;
        case Pattern::direct: direct(members, dimension, shape); break;
        case Pattern::halving_doubling: halving_doubling(members, shape); break;
        case Pattern::tree: tree(members, shape); break;
        case Pattern::chain: chain(members, shape); break;
        case Pattern::star:
        case Pattern::count: star(members, shape); break;
    }
    std::sort(loaded_.begin(), loaded_.end());
    double slowest = 0;
    for (const LinkId link : loaded_) {
        const double time = load_[index(link)] / network_.bytes_per_s(link);
        if (time > slowest) {
            slowest = time;
            shape.scale = load_[index(link)];
            use.narrowest = link;
        }
    }
    use.demand.reserve(loaded_.size());
    for (const LinkId link : loaded_) {
        const double coefficient = load_[index(link)] / shape.scale * static_cast<double>(kCoefficientOne);
        use.demand.push_back({links_.of(link), std::max(1u, static_cast<std::uint32_t>(coefficient + 0.5))});
        load_[index(link)] = 0;
    }
    shape.bytes_per_s = 1 / slowest;
    // Passes whose messages are all under way at once, or all alike, take as long as their busiest link.
    if (shape.serial_s_per_byte == 0)
        shape.serial_s_per_byte = slowest;
    else if (pattern == Pattern::tree || pattern == Pattern::chain)
        shape.serial_s_per_byte *= slowest;
    return use;
}

void PatternBuilder::ring(const Members& members, PatternShape& shape) {
    double latency = 0;
    for (std::size_t i = 0; i < members.size(); ++i)
        latency += load(members[i], members[(i + 1) % members.size()], 1);
    shape.steps = shape.ranks - 1;
    shape.step_latency_s = latency / shape.ranks;
    shape.latency_s = shape.steps * shape.step_latency_s;
}

void PatternBuilder::direct(const Members& members, std::size_t dimension, PatternShape& shape) {
    const std::uint32_t peers = shape.ranks - 1;
    double latency = 0;
    if (dimension != kNoLine) {
        // Every rank of a line sees the same: what the routes of the first load by their place along the line, those of
        // the others load shifted.
        std::vector<std::pair<LinkId, double>> of_first;
        for (std::uint32_t i = 1; i < shape.ranks; ++i)
            latency = std::max(latency, load(members[0], members[i], 1.0 / peers));
        for (const LinkId link : loaded_) {
            of_first.emplace_back(link, load_[index(link)]);
            load_[index(link)] = 0;
        }
        loaded_.clear();
        for (const auto& [link, share] : of_first) {
            for (std::uint32_t shift = 0; shift < shape.ranks; ++shift) {
                const LinkId moved = network_.shifted(link, dimension, shift);
                if (load_[index(moved)] == 0)
                    loaded_.push_back(moved);
                load_[index(moved)] += share;
            }
        }
    } else {
        for (const std::uint32_t from : members) {
            for (const std::uint32_t to : members) {
                if (from != to)
                    latency = std::max(latency, load(from, to, 1.0 / peers));
            }
        }
    }
    shape.steps = 1;
    shape.step_latency_s = latency;
    shape.latency_s = latency;
}

void PatternBuilder::halving_doubling(const Members& members, PatternShape& shape) {
    const double whole = 1 - 1.0 / shape.ranks;
    for (std::uint32_t bit = 1; bit < shape.ranks; bit *= 2) {
        const double share = 1.0 / (2.0 * bit) / whole;
        double latency = 0, slowest = 0;
        // The load of this step alone.
        std::vector<std::pair<LinkId, double>> step;
        for (std::uint32_t i = 0; i < shape.ranks; ++i) {
            latency = std::max(latency, load(members[i], members[i ^ bit], share));
            for (const LinkId link : route_)
                step.emplace_back(link, share);
        }
        std::sort(step.begin(), step.end());
        for (std::size_t i = 0; i < step.size();) {
            double sum = 0;
            const LinkId link = step[i].first;
            for (; i < step.size() && step[i].first == link; ++i)
                sum += step[i].second;
            slowest = std::max(slowest, sum / network_.bytes_per_s(link));
        }
        ++shape.steps;
        shape.latency_s += latency;
        shape.step_latency_s = std::max(shape.step_latency_s, latency);
        shape.serial_s_per_byte += slowest;
    }
}

namespace {

/// The parent of place r > 0 in a binary tree over n places that is read from left to right; 0 is the root.
std::uint32_t parent_place(std::uint32_t r, std::uint32_t n) {
    const std::uint32_t bit = r & (~r + 1);
    const std::uint32_t right = (r - bit) | (2 * bit);
    return right < n ? right : r - bit;
}

}  // namespace

void PatternBuilder::tree(const Members& members, PatternShape& shape) {
    const std::uint32_t n = shape.ranks;
    double latency = 0;
    std::uint32_t depth = 0;
    for (std::uint32_t second = 0; second < 2; ++second) {
        // Mirrored where n is even, else shifted by one: inner places of the first tree are leaves of the second.
        const auto rank = [&](std::uint32_t place) {
            return members[second == 0 ? place : n % 2 == 0 ? n - 1 - place : (place + 1) % n];
        };
        for (std::uint32_t place = 1; place < n; ++place) {
            const std::uint32_t parent = parent_place(place, n);
            // Half the data up, half down; a unit of work is 2 s.
            latency = std::max(latency, load(rank(place), rank(parent), 0.25));
            load(rank(parent), rank(place), 0.25);
            std::uint32_t hops = 0;
            for (std::uint32_t at = place; at != 0; at = parent_place(at, n))
                ++hops;
            depth = std::max(depth, hops);
        }
    }
    shape.steps = 2 * depth;
    shape.step_latency_s = latency;
    shape.latency_s = shape.steps * latency;
    shape.serial_s_per_byte = depth;  // 2 depth steps of s, in units of the busiest link's time for 2 s
}

void PatternBuilder::chain(const Members& members, PatternShape& shape) {
    for (std::size_t i = 0; i + 1 < members.size(); ++i) {
        const double latency = load(members[i], members[i + 1], 1);
        shape.latency_s += latency;
        shape.step_latency_s = std::max(shape.step_latency_s, latency);
    }
    shape.steps = shape.ranks - 1;
    shape.serial_s_per_byte = shape.steps;
}

void PatternBuilder::star(const Members& members, PatternShape& shape) {
    for (std::size_t i = 1; i < members.size(); ++i)
        shape.latency_s = std::max(shape.latency_s, load(members[0], members[i], 1.0 / (shape.ranks - 1)));
    shape.steps = 1;
    shape.step_latency_s = shape.latency_s;
}

}  // namespace fabricast::traces
