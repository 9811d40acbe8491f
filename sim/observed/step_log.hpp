// The step time of a training job, from its log (step_series.hpp reads it).
//
// The first iterations are warm-up and left out: the first tenth, at least one and at most 10. The median stands for the job.
// Refused: a log without such lines, one that ends in a failure before a fifth iteration, times of 0.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace fabricast {

struct StepLog {
    double step_s = 0, p10_s = 0, p90_s = 0;
    int iterations = 0;                    ///< that counted
    std::optional<long> global_batch;      ///< as logged
    std::optional<double> tflops_per_gpu;  ///< median as logged
};

/// Throws IngestError.
StepLog read_step_log(const std::filesystem::path& path);
StepLog parse_step_log(std::string_view text, const std::string& file);

}  // namespace fabricast
