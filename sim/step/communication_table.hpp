// The communication table of a step: each class of calls alone on the network, and what limits it.
#pragma once

#include <vector>

#include "models/parallel/compiler.hpp"
#include "sim/step/result.hpp"
#include "topologies/graph/cluster.hpp"

namespace fabricast {

/// Collectives of two ranks or more and the pipeline's messages, the most time per rank and step first.
std::vector<CommRow> communication_table(const CompiledStep& step, const Cluster& cluster);

}  // namespace fabricast
