// How much the network between the halves of a cluster carries at once.
//
// Every NIC of the first half of the servers sends to the NIC of equal number on the server half a cluster away, and
// the other way round, all at one rate: the largest that no link forbids,
//   rate = min over links (capacity / flows on it),   bisection = rate x flows from first to second half.
// That is the bisection bandwidth of a fabric that spreads ideally; where single flows are hashed it is what the
// slowest of them leaves to a synchronous exchange. With an odd number of servers the middle one stays silent.
#pragma once

#include "topologies/graph/cluster.hpp"

namespace fabricast {

struct Bisection {
    double bytes_per_s = 0;      ///< one direction, all flows together; 0 with fewer than two servers or no NIC
    double nic_bytes_per_s = 0;  ///< of each flow
    LinkId bottleneck{0};        ///< the first link at the least rate; meaningful when there are flows
};

/// flows_per_nic > 1 gives each NIC so many flows with numbers from 0 on, each an equal part of its rate.
Bisection bisection(const Cluster& cluster, std::uint32_t flows_per_nic = 1);

}  // namespace fabricast
