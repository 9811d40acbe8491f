// From a scenario to its cluster, and what its communication library knows of it.
#pragma once

#include "models/collectives/comm_model.hpp"
#include "sim/scenario/scenario.hpp"
#include "topologies/builders/rail_fat_tree.hpp"
#include "topologies/graph/cluster.hpp"

namespace fabricast {

/// Rates that a node of the catalogue achieves.
NodeShape node_shape(const GpuSpec& gpu, const NodeSpec& node);

/// Throws ScenarioError when the fabric or a degraded part is refused.
Cluster build_cluster(const Scenario& scenario);

/// cluster: build_cluster(scenario).
CommFacts comm_facts(const Scenario& scenario, const Cluster& cluster);

}  // namespace fabricast
