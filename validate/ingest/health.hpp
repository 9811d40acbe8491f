// What a log alone shows about a fabric: the shape of its own curve, no model and no other log.
//
//   falling bandwidth   the largest sizes run below 0.88 of the best busbw of smaller ones (from 1 MiB on)
//   spike               a size takes 1.5 times as long as its larger neighbour, and longer than its smaller one
//   first iteration     the first row takes twice as long as its in-place half or as the next row: warm-up, not latency
//   halves apart        out of place and in place differ by more than a quarter at 1 MiB or more
// A finding is a sign, not a verdict: it does not say what is broken, and a slow fabric with a smooth curve shows none.
// Spikes below 1 MiB are common where NCCL changes protocol. Thresholds: on the public logs under
// tests/validate/ingest/data none that is known as healthy falls, and the known slow pair does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "validate/ingest/nccl_log.hpp"

namespace fabricast {

enum class LogFindingKind { falling_bandwidth, spike, first_iteration, halves_apart };

struct LogFinding {
    LogFindingKind kind;
    std::int64_t bytes = 0;
    std::string sentence;
};

std::string_view name_of(LogFindingKind kind);

/// Findings in the order of the kinds, sizes ascending. Empty for a run without points.
std::vector<LogFinding> log_findings(const NcclRun& run);

}  // namespace fabricast
