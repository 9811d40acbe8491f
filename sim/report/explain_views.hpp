// Views of an explanation: the table that sums to the step, communication hidden and exposed, stages, critical path,
// ceilings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/step/explain.hpp"

namespace fabricast {

/// One row of the table: rank-picoseconds, exact.
struct CauseRow {
    std::string key;    ///< "gemm_ideal", "bubble_warmup", "stage_imbalance"
    std::string group;  ///< "compute", "slowed", "communication", "waiting", "other"
    std::string name;   ///< "matrix products at dense peak"
    __int128 rank_ps = 0;
};

/// All causes in the order of the table, also those of no time; they sum to step.ps x step.ranks.
std::vector<CauseRow> cause_rows(const Explanation& explanation);

std::string explain_text(const Explanation& explanation, bool color, bool unicode = true);

/// result.json of the run with one more key, `explain`.
std::string explain_json(const Explanation& explanation);

}  // namespace fabricast
