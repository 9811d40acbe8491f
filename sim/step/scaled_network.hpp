// The same cluster with other adapters: every adapter and every link between nodes carries `factor` times as much. Latency,
// efficiency of the network, NVLink, PCIe and hosts stay; where a grid or a graph makes up PCIe links as wide as the
// adapters behind them, these grow along.
#pragma once

#include "sim/scenario/scenario.hpp"
#include "topologies/graph/cluster.hpp"

namespace fabricast {

/// factor > 0.
Scenario with_scaled_network(const Scenario& scenario, double factor);

/// Line rate of all adapters of a node together, one direction, bit/s; of the node that has most. Where a file, a grid or
/// a graph says what links reach, that. 0: no adapters.
double adapter_bits_per_s(const Scenario& scenario, const Cluster& cluster);

}  // namespace fabricast
