// From a scenario to the inside of its servers, where that is more than one NVSwitch a node.
#pragma once

#include "sim/scenario/scenario.hpp"
#include "topologies/builders/server_shape.hpp"

namespace fabricast {

/// One NVSwitch and plain PCIe in every node, as the catalogue's usual boards: NodeShape says it all.
bool is_plain_node(const Scenario& scenario);

/// The board of the preset, or the server as its topology file tells. Throws std::invalid_argument as builders do.
ServerShape server_shape(const Scenario& scenario);

/// The same of a preset alone.
bool is_plain_node(const NodeSpec& node);
ServerShape server_shape(const GpuSpec& gpu, const NodeSpec& node);

}  // namespace fabricast
