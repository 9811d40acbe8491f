// What is wrong with the machine, as capacities and speeds.
//
//   clock, slow          slowness of the ranks, x factor
//   rate, lanes          capacity of the links that a name means (topologies/builders/degradation.hpp), both directions
//   collision            half of it: the flows of the adapter share an uplink with another's
//   congestion           1 / factor of every adapter and fabric link, or of the adapters of a node: others take the rest
//   loss                 go-back-N with a share p of packets lost: (1 - p) / (1 - p + p W) of the capacity, W the packets in
//                        flight, capacity x round trip / 4096 bytes (Bertsekas and Gallager, Data Networks, 2.4)
//   flap, down           nothing moves, Change::Kind::down
//   hang, crash          Change::Kind::halt
//
// Faults without a time are there when communicators are made, and the library chooses on what it finds; faults with a time
// strike a running job, whose choices stay.
#pragma once

#include <string>
#include <vector>

#include "sim/engine/engine.hpp"
#include "sim/scenario/scenario.hpp"
#include "topologies/graph/cluster.hpp"

namespace fabricast {

/// Lowers capacities by the faults without a time. Throws ScenarioError for places that do not exist.
void degrade_by_faults(const Scenario& scenario, Cluster& cluster);

/// Slows ranks by the faults without a time. stage_of_rank: of the compiled step.
void slow_by_faults(const Scenario& scenario, const std::vector<int>& stage_of_rank, program::Program& program);

/// Ranks that a place means. Throws ScenarioError at `blame` for a place that is none of ranks.
std::vector<std::uint32_t> ranks_at(const Scenario& scenario, const std::string& place,
                                    const std::vector<int>& stage_of_rank, const std::string& blame);

/// Links that a place means. Throws ScenarioError at `blame`.
std::vector<LinkId> links_at(const Cluster& cluster, const std::string& place, const std::string& blame);

/// Share of packets lost on a link of `place` that leaves it `keeps` of its rate; 0 where there is no such link.
double loss_that_keeps(const Cluster& cluster, const std::string& place, double keeps);

/// What the faults with a time do and undo, in order of time; times from the start of the run.
std::vector<engine::Change> changes_of_faults(const Scenario& scenario, const Cluster& cluster,
                                              const program::Program& program, const std::vector<int>& stage_of_rank);

}  // namespace fabricast
