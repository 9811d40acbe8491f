// Says what a run is and whether its table can be believed: verdict with reason.
//
// Refused as curves:
//   failed      NCCL, CUDA or the launcher reported a failure; no complete row
//   suspicious  cut off before its largest size; separate one-process runs printed over one another (built without
//               MPI); one rank only; wrong results; a time of 0 for a size above 0; time, algbw and busbw that do not
//               belong together; busbw above the wires of the device; sizes that go back; CPU launch times (-C);
//               placeholders for numbers; collective or rank count that cannot be told
// Where several hold, the first in this order is the reason.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validate/ingest/nccl_log.hpp"

namespace fabricast {

/// What the reader saw besides the values.
struct NcclTrace {
    int starts = 0;          ///< how often the run was begun before any row (1, or 0 without start lines)
    int headers = 0;         ///< column headers
    int footers = 0;         ///< "Out of bounds values" lines
    int repeated_ranks = 0;  ///< device lines with a rank that was there already
    int header_halves = 0;   ///< "time" columns in the header; 0: no header
    bool cpu_time = false;   ///< column "cputime"
    bool redop_column = false, root_column = false;
    bool concluded = false;
    bool elided = false;  ///< a line of dots among the rows
    bool split = false;   ///< cut off a table with several types, operations or roots
    std::string banner_name, command_name;
    std::vector<int> torn_lines;  ///< rows that could not be completed
    struct Failure {
        std::string text;
        int line = 0;
        bool of_test = false;  ///< printed by nccl-tests itself, not by the launcher
    };
    std::vector<Failure> failures;
};

/// Fills collective, ranks, nodes, notes, verdict and reason.
void judge(NcclRun& run, const NcclTrace& trace);

}  // namespace fabricast
