// A table of NCCL times measured inside one node (columns gpu, op, ngpus, dtype, bytes, latency_us) against prediction.
//
// Rows of one (gpu, op, ngpus, dtype, nccl_version) are a curve. int8 has no NVLS reduction. GPUs are matched to the
// catalogue by name, on their reference board; a table of a host without peer access (L40S) has no machine here and is
// left out with the reason. Constants of links inside a node come from elsewhere (the catalogue says where); the hop
// times of rings over NVLink were fitted on this very table, so its small sizes are in sample.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "validate/score/nccl_score.hpp"

namespace fabricast {

struct TableCurve {
    std::string gpu, collective, datatype, nccl_version;
    int gpus = 0;
    ErrorSummary errors;
    double measured_peak = 0, predicted_peak = 0, peak_error = 0;
    std::vector<ScoredPoint> points;
};

struct TableScore {
    std::vector<TableCurve> curves;
    std::vector<std::string> left_out;  ///< sentences
    ErrorSummary total;
};

/// Throws IngestError for a file that is no such table.
TableScore score_table(const std::filesystem::path& path);

std::string table_text(const TableScore& score);
nlohmann::ordered_json table_json(const TableScore& score);

}  // namespace fabricast
