// Who says what, and when, once a job stands still.
//
//   collective   each rank that waits reports when its own call is older than the time-out. Within kLauncherGrace of the first
//                report the launcher ends the others: who is waited for reports nothing
//   transport    the two ends of what was in flight over the lost link: the rank behind the adapter and its neighbours in
//                the order of the group, 4.096 us x 2^t x retries after the first use
//   crash        the rank itself at once; its peers are ended by the launcher
//   no member    a rank that is gone before the first step: set-up of communicators runs into its own time-out
//
// Texts are in the style of the libraries, in our own words.
#pragma once

#include <functional>

#include "sim/engine/engine.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/result.hpp"
#include "topologies/graph/cluster.hpp"

namespace fabricast {

/// `srun --wait` of a large public run: the rest is killed so long after the first exit (BLOOM chronicles).
inline constexpr Picoseconds kLauncherGrace = 60 * kPicosecondsPerSecond;

struct StandstillFacts {
    const Scenario& scenario;
    const Cluster& cluster;
    const engine::EngineResult& run;
    std::function<Picoseconds(Picoseconds)> real;         ///< simulated time -> time of the run
    std::function<std::int64_t(std::int64_t)> real_step;  ///< simulated steps -> steps of the run
    const StepFault* fatal = nullptr;                     ///< hang or crash that struck
    std::vector<std::uint32_t> struck;                    ///< its ranks
    Picoseconds struck_at = 0;                            ///< time of the run
};

/// Fills messages, reporting, silent, end and stalled_at of `job`; verdict and failure of the result.
void tell_standstill(const StandstillFacts& facts, JobResult& job, Result& result);

}  // namespace fabricast
