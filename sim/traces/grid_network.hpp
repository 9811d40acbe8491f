// The network of an ASTRA-sim file as flat links: a grid of dimensions, routed by arithmetic on coordinates.
//
// Rank r has coordinate r mod n0 in dimension 0, r / n0 mod n1 in dimension 1, ...
//   Ring            a link to each neighbour (of two ranks: one each way)
//   FullyConnected  a link to every other rank of the line
//   Switch          one link to the switch and one from it; a way through it pays two latencies
// A route crosses the dimensions in which two ranks differ, lowest first; rings take the shorter way, upwards when both
// are equal. ASTRA-sim's congestion-unaware network charges only the first dimension in which they differ: a message
// between ranks 0 and 63 of an 8 x 8 grid would then move at the speed of dimension 0.
// Links exist as numbers only; names are made on demand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topologies/graph/links.hpp"
#include "topologies/importers/fabric.hpp"

namespace fabricast::traces {

inline constexpr std::uint64_t kMostLinks = 4'000'000;

class GridNetwork {
public:
    /// Throws ImportError, in the name of `file`, for more than kMostLinks links.
    GridNetwork(std::vector<importers::GridDimension> dimensions, const std::string& file);

    std::uint32_t ranks() const { return ranks_; }
    std::size_t dimension_count() const { return dimensions_.size(); }
    const importers::GridDimension& dimension(std::size_t d) const { return dimensions_[d]; }
    std::uint32_t stride(std::size_t d) const { return stride_[d]; }
    std::uint32_t coordinate(std::uint32_t rank, std::size_t d) const {
        return rank / stride_[d] % dimensions_[d].count;
    }
    /// The ranks that differ from `rank` in dimension d only, by coordinate.
    std::vector<std::uint32_t> line(std::uint32_t rank, std::size_t d) const;

    std::size_t link_count() const { return link_count_; }
    double bytes_per_s(LinkId link) const { return dimensions_[dimension_of(link)].bytes_per_s; }
    std::string link_name(LinkId link) const;

    /// The link that lies `shift` coordinates further along its dimension, around the end.
    LinkId shifted(LinkId link, std::size_t dimension, std::uint32_t shift) const;

    /// Appends the links from one rank to another and returns their latency in seconds.
    double route(std::uint32_t from, std::uint32_t to, std::vector<LinkId>& out) const;

private:
    std::size_t dimension_of(LinkId link) const;
    double cross(std::size_t d, std::uint32_t base, std::uint32_t from, std::uint32_t to,
                 std::vector<LinkId>& out) const;

    std::vector<importers::GridDimension> dimensions_;
    std::vector<std::uint32_t> stride_, links_per_rank_;
    std::vector<std::uint64_t> first_link_;
    std::uint32_t ranks_ = 1;
    std::uint64_t link_count_ = 0;
};

}  // namespace fabricast::traces
