// Edits of a Program that take one cause of lost time away, so that a re-run shows what the cause costs.
//
//   free_communication   every collective and message takes no time and holds no link; members still meet, a message
//                        still needs both sides; compute runs as if nothing else were on the GPU
//   no_interference      compute runs at full speed whatever moves beside it
//   equal_stages         the compute of forward, of backward (with recomputation) and of the rest is the mean over all
//                        ranks in every stage: a stage's segments are scaled by mean / own
//   full_pipeline        a stage never waits for a neighbour: its input is there, what it sends leaves at once and loads
//                        the links as before
//   free_launches        the CPU issues work in no time
//   free_host            copies to and from the host and updates on its CPU take no time
//   equal_ranks          no rank is slower than another by itself
//   unlimited            links of the given kinds carry kUnlimited; latency and the caps of channels stay
//
// Removing a wait or shortening an operation never delays a program that shares nothing; on shared links traffic may
// bunch up, which is why a re-run is a re-run.
#pragma once

#include <initializer_list>
#include <vector>

#include "models/program/program.hpp"
#include "topologies/graph/links.hpp"

namespace fabricast {

inline constexpr double kUnlimited = 1e15;  ///< byte/s, a million times a NVLink port; a Rate holds 8e15

void free_communication(program::Program& program);
void no_interference(program::Program& program);
void equal_stages(program::Program& program);
void full_pipeline(program::Program& program);
void free_launches(program::Program& program);
void free_host(program::Program& program);
void equal_ranks(program::Program& program);
std::vector<Rate> unlimited(const Links& links, std::initializer_list<LinkKind> kinds);

}  // namespace fabricast
