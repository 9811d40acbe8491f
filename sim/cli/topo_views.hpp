// Text and JSON of what `fabricast topo` was given: a machine, a fabric, the cluster of a scenario.
#pragma once

#include <string>

#include "sim/report/page.hpp"
#include "sim/scenario/scenario.hpp"
#include "topologies/graph/cluster.hpp"
#include "topologies/importers/fabric.hpp"
#include "topologies/importers/machine.hpp"

namespace fabricast::cli {

/// The text is written to the page and returned.
std::string machine_text(const importers::Machine& machine, report::Page& page);
std::string machine_json(const importers::Machine& machine);
std::string fabric_text(const importers::FabricDescription& fabric, report::Page& page);
std::string fabric_json(const importers::FabricDescription& fabric);
std::string cluster_text(const Scenario& scenario, const Cluster& cluster, report::Page& page);
std::string cluster_json(const Scenario& scenario, const Cluster& cluster);

}  // namespace fabricast::cli
