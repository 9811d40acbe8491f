// Why a step takes what it takes: the causes behind the accounts.
//
//   run        the forecast; its accounts sum to the step exactly
//   hidden     communication of every kind in all, so that the exposed part has a whole to stand beside
//   waiting    the account `bubble` and the waiting for late peers, split by a re-run in which all stages have equal work:
//              what remains of the bubble is warm-up and drain, what goes is the imbalance of stages. The split sums to
//              the accounts exactly (integers; a re-run that waits longer counts as no imbalance)
//   ceilings   re-runs with one cause removed, never subtraction: a step in which nothing is exposed is simulated, not
//              computed from the table. A cause that the run does not have is not re-run
//
// Ceilings are bounds, each taken alone; they do not add up. Where traffic that comes sooner contends more, a re-run may
// in principle take longer than the run; then the run itself is the ceiling (`ps`), and `rerun_ps` keeps what it took.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/step/forecast.hpp"
#include "sim/step/result.hpp"

namespace fabricast {

struct Ceiling {
    std::string key;      ///< "perfect_overlap"
    std::string name;     ///< "perfect overlap"
    std::string how;      ///< how the re-run was made
    bool present = true;  ///< false: the run has nothing of the cause; ps is the run's
    Picoseconds ps = 0;   ///< never above the run
    Picoseconds rerun_ps = 0;
    double mfu = 0;  ///< model FLOPs of the run / (ps x GPUs x dense peak)
    std::string note = {};
};

struct Explanation {
    Result run;                                              ///< with the split of waiting
    std::array<__int128, kAccountCount> communication = {};  ///< rank-ps by account comm_*, exposed or not
    std::vector<Ceiling> ceilings;                           ///< empty when the job did not run
    std::uint64_t events = 0;                                ///< of the run and all re-runs
};

/// As forecast(); a job that fails is explained by its result alone.
Explanation explain(const Scenario& scenario, ForecastOptions options = {});

}  // namespace fabricast
