// In which order a rank issues the nodes of its trace.
//
// A node is ready when its parents are done. Of the ready nodes of a resource (the GPU's kernels, the CPU, a
// communicator ...) the one with the lowest id is taken, one at a time, as ASTRA-sim does. Times are those of the rank
// alone: recorded or modelled durations, collectives as if all members were there, messages as if they arrived at once;
// or, once the ranks have run together, when these really ended (run_trace.hpp). The order found so is kept while the
// ranks run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/traces/workload.hpp"

namespace fabricast::traces {

/// A sentence that names the nodes of a circle of dependencies; empty when there is none.
std::string circle_of(const NodeList& list, const std::vector<std::string>& names);

/// Indices of nodes in the order they are issued. resource: by node, kNone for those that need none; below
/// resource_count. duration: by node, >= 0. not_before: by node, earliest end; may be empty. Precondition: no circle.
std::vector<std::uint32_t> issue_order(const NodeList& list, std::span<const std::uint32_t> resource,
                                       std::uint32_t resource_count, std::span<const Picoseconds> duration,
                                       std::span<const Picoseconds> not_before = {});

}  // namespace fabricast::traces
