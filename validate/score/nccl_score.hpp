// Predicted against measured for every curve: points, summary, verdict; totals over curves that are fit to score.
//
//   error      predicted / measured time - 1, out of place
//   peak error largest predicted / largest measured busbw - 1
// Scored (counted in the totals): curves labelled healthy, and unlabelled ones judged healthy. The others are shown with their
// errors against the healthy expectation, which is what the verdict rests on.
//
// Constants: of the catalogue, or with `leave_one_out` fitted on the other logs of the call (network_fit.hpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validate/score/network_fit.hpp"
#include "validate/score/run_case.hpp"
#include "validate/score/verdict.hpp"

namespace fabricast {

struct ScoredPoint {
    Compared at;
    double error = 0;
    Algorithm algorithm{};
    Protocol protocol{};
    int channels = 0;
};

/// Absolute errors as fractions; nothing where no size falls into the range.
struct ErrorSummary {
    std::optional<double> large_median, large_p90;  ///< 1 MiB and more
    std::optional<double> small_median;             ///< under 64 KiB
    std::size_t large_points = 0, small_points = 0;
};

struct CurveScore {
    std::string file, collective, platform, group;
    int line = 0, ranks = 0;
    Label label = Label::none;
    std::vector<ScoredPoint> points;
    ErrorSummary errors;
    double measured_peak = 0, predicted_peak = 0, peak_error = 0;  ///< busbw, GB/s
    NetworkConstants constants;
    Verdict verdict;
    bool counted = false;
};

struct PeakTally {
    int platforms = 0, within = 0;
};

struct NcclScore {
    bool leave_one_out = false;
    std::vector<CurveScore> curves;
    std::vector<RunRefusal> refused;
    ErrorSummary total;
    /// Platform and collective with several logs: within 10 %; with one: within 15 %. The median of its curves counts.
    PeakTally several, single;
};

NcclScore score_nccl(const RunCases& cases, bool leave_one_out);

ErrorSummary summarise(const std::vector<const ScoredPoint*>& points);
/// p in [0, 1], nearest rank below. Precondition: not empty.
double percentile(std::vector<double> values, double p);

}  // namespace fabricast
