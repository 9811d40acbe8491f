// Runs a program, folded or rank by rank.
//
// Both ways give the same picoseconds, accounts and fingerprint (models/program/fold.hpp, and for folding in time
// sim/engine/passage.hpp); only what is simulated differs. A run that fails is repeated rank by rank and without replays, so
// that its message names ranks and what they did at that moment.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/program/fold.hpp"
#include "sim/engine/engine.hpp"

namespace fabricast {

struct StepRun {
    engine::EngineResult engine;  ///< accounts by row
    program::Program folded;      ///< what ran, where `is_folded`
    bool is_folded = false;
    std::vector<Rate> capacity;  ///< of the links of `folded`
    struct Row {
        std::uint32_t rank = 0;    ///< the first of the ranks it stands for
        std::uint32_t copies = 1;  ///< how many
    };
    std::vector<Row> rows;
};

/// capacity: one entry a link. Precondition: program::validate(program) is empty.
StepRun run_program(const program::Program& program, std::span<const Rate> capacity, bool fold,
                    engine::EngineOptions options = {});
/// Leaves nothing of the program: spares a copy of its templates.
StepRun run_program(program::Program&& program, std::span<const Rate> capacity, bool fold,
                    engine::EngineOptions options = {});

}  // namespace fabricast
