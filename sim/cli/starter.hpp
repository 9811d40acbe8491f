// A commented scenario to start from, for a node or a model of the catalogue.
//
// A model gets few nodes of the first preferred kind on which weights, gradients, sharded optimizer and activations
// take at most kFill of the memory, by the arithmetic of models/transformer; then the least tensor x pipeline
// parallelism, with 2, 4, 8 ... data-parallel ranks. A node gets the first preferred model that fits on one. This is
// a place to start, not a search for the best layout.
#pragma once

#include <string>

namespace fabricast::cli {

/// Throws ScenarioError for an unknown name, with the nearest one.
std::string starter_scenario(const std::string& name);

}  // namespace fabricast::cli
