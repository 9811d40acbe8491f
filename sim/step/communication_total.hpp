// All communication of a step by kind, exposed or hidden: what every call and message would take alone on the network.
//
//   total(kind) = sum over ranks and operations of the kind: latency + slowest activity at its uncontended rate
//
// in rank-picoseconds. The accounts comm_* of a run hold the exposed part less what contention added, so that
// 1 - exposed / total is the share that compute hides.
#pragma once

#include <array>

#include "models/program/account.hpp"
#include "models/program/program.hpp"
#include "topologies/graph/links.hpp"

namespace fabricast {

std::array<__int128, kAccountCount> communication_total(const program::Program& program, const Links& links);

}  // namespace fabricast
