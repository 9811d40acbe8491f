#include "sim/traces/grid_network.hpp"

#include <utility>

#include <fmt/format.h>

#include "topologies/importers/import_error.hpp"

namespace fabricast::traces {
namespace {

using Kind = importers::GridDimension::Kind;

std::uint32_t links_per_rank(const importers::GridDimension& dimension) {
    switch (dimension.kind) {
        case Kind::ring: return dimension.count == 2 ? 1 : 2;    // upwards, downwards
        case Kind::fully_connected: return dimension.count - 1;  // to the rank 1, 2, ... further up
        case Kind::network_switch: break;
    }
    return 2;  // to the switch, from the switch
}

}  // namespace

GridNetwork::GridNetwork(std::vector<importers::GridDimension> dimensions, const std::string& file)
    : dimensions_(std::move(dimensions)) {
    for (const importers::GridDimension& dimension : dimensions_) {
        stride_.push_back(ranks_);
        ranks_ *= dimension.count;
    }
    for (std::size_t d = 0; d < dimensions_.size(); ++d) {
        links_per_rank_.push_back(links_per_rank(dimensions_[d]));
        first_link_.push_back(link_count_);
        link_count_ += static_cast<std::uint64_t>(ranks_) * links_per_rank_.back();
        if (link_count_ > kMostLinks) {
            throw importers::ImportError(
                file, 0,
                fmt::format("{} links up to dimension {}, at most {} are simulated", link_count_, d, kMostLinks));
        }
    }
}

std::vector<std::uint32_t> GridNetwork::line(std::uint32_t rank, std::size_t d) const {
    const std::uint32_t base = rank - coordinate(rank, d) * stride_[d];
    std::vector<std::uint32_t> members(dimensions_[d].count);
    for (std::uint32_t i = 0; i < members.size(); ++i)
        members[i] = base + i * stride_[d];
    return members;
}

std::size_t GridNetwork::dimension_of(LinkId link) const {
    std::size_t d = dimensions_.size() - 1;
    while (index(link) < first_link_[d])
        --d;
    return d;
}

std::string GridNetwork::link_name(LinkId link) const {
    const std::size_t d = dimension_of(link);
    const std::uint64_t local = index(link) - first_link_[d];
    const auto rank = static_cast<std::uint32_t>(local / links_per_rank_[d]);
    const auto which = static_cast<std::uint32_t>(local % links_per_rank_[d]);
    const std::uint32_t n = dimensions_[d].count;
    if (dimensions_[d].kind == Kind::network_switch)
        return fmt::format("dimension {} rank {} {} switch", d, rank, which == 0 ? "to" : "from");
    const std::uint32_t up = dimensions_[d].kind == Kind::fully_connected ? which + 1 : which == 0 ? 1 : n - 1;
    const std::uint32_t at = coordinate(rank, d);
    const std::uint32_t peer = rank - at * stride_[d] + (at + up) % n * stride_[d];
    return fmt::format("dimension {} rank {} to {}", d, rank, peer);
}

LinkId GridNetwork::shifted(LinkId link, std::size_t dimension, std::uint32_t shift) const {
    const std::uint64_t local = index(link) - first_link_[dimension];
    const auto rank = static_cast<std::uint32_t>(local / links_per_rank_[dimension]);
    const std::uint32_t at = coordinate(rank, dimension), n = dimensions_[dimension].count;
    const std::uint64_t moved = rank - at * stride_[dimension] + (at + shift) % n * stride_[dimension];
    return LinkId{static_cast<std::uint32_t>(first_link_[dimension] + moved * links_per_rank_[dimension] +
                                             local % links_per_rank_[dimension])};
}

double GridNetwork::cross(std::size_t d, std::uint32_t base, std::uint32_t from, std::uint32_t to,
                          std::vector<LinkId>& out) const {
    const importers::GridDimension& dimension = dimensions_[d];
    const std::uint32_t n = dimension.count;
    const auto link = [&](std::uint32_t coordinate, std::uint32_t which) {
        const std::uint64_t rank = base + static_cast<std::uint64_t>(coordinate) * stride_[d];
        return LinkId{static_cast<std::uint32_t>(first_link_[d] + rank * links_per_rank_[d] + which)};
    };
    const std::uint32_t up = (to + n - from) % n;
    if (dimension.kind == Kind::fully_connected) {
        out.push_back(link(from, up - 1));
        return dimension.latency_s;
    }
    if (dimension.kind == Kind::network_switch) {
        out.push_back(link(from, 0));
        out.push_back(link(to, 1));
        return 2 * dimension.latency_s;
    }
    const bool upwards = 2 * up <= n;
    const std::uint32_t hops = upwards ? up : n - up;
    for (std::uint32_t hop = 0, at = from; hop < hops; ++hop) {
        out.push_back(link(at, upwards || n == 2 ? 0 : 1));
        at = (at + (upwards ? 1 : n - 1)) % n;
    }
    return hops * dimension.latency_s;
}

double GridNetwork::route(std::uint32_t from, std::uint32_t to, std::vector<LinkId>& out) const {
    double latency = 0;
    std::uint32_t at = from;
    for (std::size_t d = 0; d < dimensions_.size(); ++d) {
        const std::uint32_t here = coordinate(at, d), there = coordinate(to, d);
        if (here == there)
            continue;
        const std::uint32_t base = at - here * stride_[d];
        latency += cross(d, base, here, there, out);
        at = base + there * stride_[d];
    }
    return latency;
}

}  // namespace fabricast::traces
