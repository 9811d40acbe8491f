// Routes inside one class of servers, tabulated: servers that are built alike share a table.
//
// Ends are the GPUs of the server, then its NICs. Links are counted from the server's first one, so that a table fits
// every server of its class. A pair of GPUs on one NVSwitch has type nvl and no links here: Cluster knows those two
// links. Two NICs have no route inside a server.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topologies/graph/path_type.hpp"

namespace fabricast {

struct ServerRoutes {
    std::uint32_t ends = 0;
    std::vector<PathType> types;       ///< [from * ends + to]
    std::vector<std::uint32_t> begin;  ///< [from * ends + to], and one more at the end
    std::vector<std::uint32_t> links;

    PathType type(std::uint32_t from, std::uint32_t to) const { return types[std::size_t{from} * ends + to]; }
    std::span<const std::uint32_t> route(std::uint32_t from, std::uint32_t to) const {
        const std::size_t pair = std::size_t{from} * ends + to;
        return {links.data() + begin[pair], begin[pair + 1] - begin[pair]};
    }
};

}  // namespace fabricast
