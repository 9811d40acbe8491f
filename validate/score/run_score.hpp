// Published runs against the forecast: every row becomes a scenario (run_score_rules), is run by sim/step and compared by
// step time.
//
//   error  e = predicted / measured - 1          mape = mean |e|, bias = mean e, median and p90 of |e|
//   source mean = mean over sources of their mape (two sources hold half of the rows)
//   groups of one model, GPU, GPU count and batch that differ in layout: Kendall's tau-b between predicted and measured
//   order, and regret = measured time of the layout predicted fastest / measured time of the fastest - 1
//
// A row whose predicted memory is over the GPU's is still timed (the run existed) and counted in out_of_memory.
// A row that cannot be modelled is listed with the sentence of the part that refused it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/scenario/scenario.hpp"
#include "validate/ingest/published_runs.hpp"

namespace fabricast {

struct RowScore {
    const PublishedRun* run = nullptr;
    double predicted_s = 0;
    double error() const { return predicted_s / run->step_s - 1; }
    bool out_of_memory = false;  ///< by the forecast
    double hfu = 0;              ///< implied by the measured time: hardware FLOPs / (measured time, dense peak, GPUs)
};
struct SkippedRow {
    const PublishedRun* run = nullptr;
    std::string reason;
};

struct ErrorStats {
    std::size_t n = 0;
    double mape = 0, median = 0, p90 = 0, bias = 0;
};
ErrorStats error_stats(const std::vector<double>& errors);

/// Layouts of one model on the same GPUs with the same batch.
struct RankingGroup {
    std::string what;
    std::size_t n = 0;
    double kendall = 0, regret = 0;
};

struct RunScore {
    std::size_t rows = 0;  ///< asked for
    std::vector<RowScore> scored;
    std::vector<SkippedRow> skipped;
    ErrorStats total;
    double source_mean = 0;
    std::map<std::string, ErrorStats> by_source, by_gpu, by_kind;
    std::vector<RankingGroup> groups;
    double kendall = 0, regret = 0;  ///< means over the groups
};

/// Changes a parsed scenario before it runs (constants of a refit).
using Adjust = std::function<void(const PublishedRun&, Scenario&)>;

/// runs must outlive the result; jobs 0 = as many as the machine has. The result does not depend on jobs. calibration:
/// constants of the site the runs are of; null = the catalogue's.
RunScore score_runs(const std::vector<PublishedRun>& runs, unsigned jobs = 0, const Adjust& adjust = {},
                    const std::shared_ptr<const Calibration>& calibration = {});

/// Statistics from scored and skipped rows.
void summarise(RunScore& score);

/// "H100 bf16": the GPU family and precision of a row; "dense" or "moe".
std::string gpu_class(const PublishedRun& run);
std::string run_kind(const PublishedRun& run);

/// The residuals file of sim/report (interval.hpp).
std::string residuals_yaml(const RunScore& score);
std::string run_score_text(const RunScore& score, bool full);
nlohmann::ordered_json run_score_json(const RunScore& score);

}  // namespace fabricast
