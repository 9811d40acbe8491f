// Memory of published runs against the forecast: verdicts and peaks.
//
//   verdict    the fullest stage's total (tensors, allocator, context, communicators) is within the GPU's memory as the
//              driver reports it, or not; a row with a step time ran, one with status oom did not; nothing is fitted to the
//              rows. False alarm: ran, and predicted over; missed: the reverse, of
//              which those that the forecast calls tight warn all the same
//   near       rows whose predicted total is within 25 % of the GPU's memory: the others are easy
//   reserved   what the caching allocator of the first stage's ranks holds at most, those whose log the source kept; rows
//              noted as measured before a fix of the pipeline schedule with a host that waits at every exchange
//   allocated  handed out at most: in the optimizer step where the row has a reserved peak as well (nanotron resets its
//              peak before that step), else in the whole step on the fullest stage
//   error      e = predicted / measured - 1 over the rows that fit
//
// nanotron_sweep rows: the pipeline is cut by cost as nanotron does (a layer's products against the head's; a block goes
// to the next stage once the sum passes the stage's share), see nanotron_stages
// (run_score_rules.hpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/step/fit_hints.hpp"
#include "validate/ingest/published_runs.hpp"
#include "validate/score/run_score.hpp"

namespace fabricast {

struct MemoryRow {
    const PublishedRun* run = nullptr;
    double total_gib = 0;  ///< of the fullest stage
    double limit_gib = 0;  ///< the GPU's memory
    std::optional<double> reserved_gib, allocated_gib;
    bool fits() const { return total_gib <= limit_gib; }
    bool tight() const { return fits() && total_gib > kTightUse * limit_gib; }
    bool right() const { return fits() == (run->status == "ok"); }
    bool near() const { return total_gib >= 0.75 * limit_gib && total_gib <= 1.25 * limit_gib; }
};

struct MemoryScore {
    std::size_t rows = 0;  ///< asked for
    std::vector<MemoryRow> scored;
    std::vector<SkippedRow> skipped;
    std::size_t verdicts = 0, right = 0, near = 0, right_near = 0;
    std::size_t ran = 0, false_alarms = 0, missed = 0, missed_tight = 0;  ///< of the verdicts
    ErrorStats reserved, allocated;
};

/// runs must outlive the result; jobs 0 = as many as the machine has. The result does not depend on jobs.
MemoryScore score_memory(const std::vector<PublishedRun>& runs, unsigned jobs = 0);

std::string memory_score_text(const MemoryScore& score, bool full);
nlohmann::ordered_json memory_score_json(const MemoryScore& score);

}  // namespace fabricast
