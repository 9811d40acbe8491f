// The step time of one layout on a cluster that is built already: what forecast() does, without tables and re-runs.
//
//   memory of the stages -> program -> speeds and faults -> folded run -> period and accounts
//
// Same programs, same engine, same picoseconds as forecast(), which runs where steps differ from each other.
#pragma once

#include <string>
#include <vector>

#include "sim/step/forecast.hpp"

namespace fabricast {

struct PricedStep {
    std::string failure;  ///< of the communication library or the engine; empty: `step` is filled
    StepResult step;
    std::uint64_t events = 0;
    std::vector<StageSummary> stages;
    bool fits = true;  ///< as `compiling.fits` said; false: not run
};

/// scenario.training is the layout; cluster and comm those of the scenario. Memory is looked at by `compiling.fits` alone.
PricedStep price_step(const Scenario& scenario, const ComputeModel& compute, const Cluster& cluster,
                      const CommModel& comm, const ForecastOptions& options = {}, const CompileOptions& compiling = {});

/// Fullest stage of a layout.
struct FullestStage {
    int stage = 0;
    Bytes total = 0;
};
FullestStage fullest_stage(const std::vector<StageSummary>& stages);

}  // namespace fabricast
