// Sends and receives: tags become channels, and every send must have its receive.
//
// The k-th send on (source, destination, tag, size) meets the k-th receive. ASTRA-sim waits for ever for a receive of
// another size; here such a pair is two channels, and what is left over on either is found before anything runs. A send
// goes off when it is issued and ends when its data have left, whether its receive is there or not (ASTRA-sim without
// --rendezvous-protocol); data arrive a route's latency later.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/program/program.hpp"
#include "sim/traces/grid_network.hpp"
#include "sim/traces/link_table.hpp"
#include "sim/traces/workload.hpp"

namespace fabricast::traces {

/// Sends without receives and receives without sends, as a sentence with ranks and nodes; empty when all match.
std::string unmatched_messages(const Workload& workload);

/// Fills the peers of the program's ranks, one a message slot, with routes and demands.
void bind_messages(const Workload& workload, const GridNetwork& network, LinkTable& links, program::Program& program);

}  // namespace fabricast::traces
