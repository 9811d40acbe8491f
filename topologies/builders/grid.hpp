// Dimension grids: GPU r has coordinate r mod n0 in dimension 0, r / n0 mod n1 in dimension 1, ... as in ASTRA-sim.
//
//   ring       neighbours along the dimension joined, both ways (two GPUs: one link each way)
//   full       every pair along the dimension joined
//   switched   one switch a group; a GPU has one link to and one from it
// The first `inner_dimensions` make a server and are NVLink: direct links, or for a single switched one an NVSwitch.
// Over the others each GPU has a port, a NIC with a switch of its own, whose links are the dimension's; NIC and PCIe
// links are as wide as all of them together, so they never limit, and cost no time.
// Routes: first NVLink to the GPU with the destination's inner coordinates (rails apart), then dimension by dimension,
// lowest first, by arithmetic on coordinates; rings take the shorter way, upwards when both are equal. Inside a server
// the fewest hops (server_search.hpp).
// Not modelled: adaptive choice of the next dimension, virtual channels.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/cluster.hpp"

namespace fabricast {

struct GridAxis {
    enum class Kind : std::uint8_t { ring, full, switched } kind = Kind::ring;
    std::uint32_t count = 2;  ///< >= 2
    double bytes_per_s = 0;   ///< per link and direction
    double latency_s = 0;     ///< per link; a way through a switch pays two
};

struct Grid {
    std::vector<GridAxis> axes;  ///< innermost first
    std::uint32_t inner_dimensions = 1;
};

/// Throws std::invalid_argument with the axis and value; a server of more than 4096 GPUs is refused, and a switched
/// axis beside others inside a server.
Cluster build_grid(const Grid& grid);

}  // namespace fabricast
