// Runs a job until the ranks' orders fit each other.
//
// In which order a rank takes its nodes depends on when messages and members of collectives arrive, and that on the other
// ranks' orders. Orders are first made as if everything arrived at once, then again from when it really did, until they
// stay the same, kMostRounds at most; the run that ended first counts. A run that stands still tells what must not be
// waited for first, too: only one that comes no further is a deadlock. Jobs in which all ranks do the same, without
// messages, need one run.
#pragma once

#include "sim/engine/engine.hpp"
#include "sim/traces/compile_trace.hpp"

namespace fabricast::traces {

inline constexpr int kMostRounds = 8;

struct SettledRun {
    CompiledTrace compiled;
    engine::EngineResult run;
};

/// Throws ImportError as compile_trace does.
SettledRun run_until_settled(const TraceInputs& inputs);

}  // namespace fabricast::traces
