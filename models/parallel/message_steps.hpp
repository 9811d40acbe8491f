// Exchanges message by message and chains chunk by chunk, for validation of the fluid model.
//
//   every_message   an all-to-all, send-recv, gather, scatter or any PairTraffic as n (n - 1) messages, all posted at once;
//                   each is an activity of its own on the links of its way (PXN included)
//   every_chunk     a ring broadcast or reduce as a chain: a rank passes on what it received, chunk after chunk
// The latency of the plan that does not depend on chunks passes once, first.
//
// Agreement with the fluid model at 1 MiB and more (tests/sim/step/collectives_test.cpp): within 5 %. Not expanded: trees, NVLS, PAT, CollNet.
// The library's ceiling on all channels together holds hops inside a node, or those between nodes when there are any.
#pragma once

#include <cstdint>
#include <vector>

#include "models/collectives/exchange.hpp"
#include "models/program/program.hpp"

namespace fabricast {

program::Program every_message(const Cluster& cluster, const CommModel& comm, GpuGeneration generation,
                               const std::vector<std::uint32_t>& members, const PairTraffic& traffic, bool pxn = true);

/// kind: broadcast or reduce, the plan must be a ring with Simple; otherwise std::invalid_argument.
program::Program every_chunk(const Cluster& cluster, const CommModel& comm, GpuGeneration generation,
                             const std::vector<std::uint32_t>& members, Collective kind, Bytes size);

}  // namespace fabricast
