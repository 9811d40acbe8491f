// A step while a save is written beside it over the network of the job.
//
// Every rank sends its share of what storage takes in during a step from its server's host to the storage (topologies/builders/
// storage.hpp), from the beginning of the step on, beside whatever the step moves; the fluid network shares the adapters and the
// levels of the fabric between both. The host sends from its memory: no kernel of a GPU is slowed. A step moves
//   min(save, 0.98 x storage rate x step of the healthy machine)
// of all ranks together, so that each step's write is over before the next begins one and the steps repeat.
#pragma once

#include "sim/scenario/scenario.hpp"
#include "sim/step/result.hpp"

namespace fabricast {

struct SavingStep {
    Picoseconds step = 0;  ///< while the write goes on; 0: nothing is written over this network
    double bytes = 0;      ///< that one such step moves
};

/// bytes: of the save; healthy: the step without it. Precondition: the scenario's step runs, and healthy > 0.
SavingStep step_while_saving(const Scenario& scenario, double bytes, Picoseconds healthy, bool fold = true);

}  // namespace fabricast
