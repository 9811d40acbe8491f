// What is worse than built: half-rate NICs, lost NVLink lanes, PCIe links that trained down, any link by name.
//
// Applied to the flat links of a frozen cluster, both directions; routes stay, as a running job's do. Parts are named
// as in link names and reports:
//   nic 3.2             NIC 2 of node 3                     gpu 1.0 nvlink          all NVLinks of GPU 0 of node 1
//   gpu 1.0 nvlink gpu 3   the direct NVLink of a pair      gpu 1.0 pcie            the PCIe link of a GPU
//   anything else       a link name, exactly as in Cluster::links().name (one direction)
// How bad: a factor of the present capacity, an absolute rate, or lanes lost out of a number of lanes. Lanes lost of the
// link's own cables are gone from the start: what is laid over lanes (rings over direct NVLinks) counts those that remain.
#pragma once

#include <string>
#include <vector>

#include "topologies/graph/cluster.hpp"

namespace fabricast {

struct Degradation {
    std::string what;
    double factor = 1;             ///< of the present capacity; above 0, at most 1
    double bytes_per_s = 0;        ///< above 0: the new rate instead, at most the present one
    std::uint32_t lanes_lost = 0;  ///< above 0: of `lanes`, fewer than all
    std::uint32_t lanes = 0;       ///< 0: the link's own count of cables
};

/// Links that `what` means, in LinkId order. Throws std::invalid_argument with the nearest name for unknown ones.
std::vector<LinkId> links_named(const Cluster& cluster, const std::string& what);

/// Throws std::invalid_argument for unknown names and for figures that do not lower a capacity.
void apply(Cluster& cluster, const std::vector<Degradation>& degradations);

}  // namespace fabricast
