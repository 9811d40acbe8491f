// The measurements of a site from files of any kind, told apart by content: measurement files (*.json), nccl-tests and
// perftest logs, tables of kernels (columns gpu dtype m n k; heads head_dim), tables of published or own runs
// (measured_step_s), an index of logs.
// GPUs of two kinds are refused: a calibration is of one site.
#pragma once

#include <string>
#include <vector>

#include "validate/fit/fit_steps.hpp"
#include "validate/fit/measured_adapters.hpp"
#include "validate/measure/measurement.hpp"
#include "validate/score/kernel_score.hpp"
#include "validate/score/run_case.hpp"

namespace fabricast {

struct SiteOptions {
    PlatformHint hint;                            ///< of logs that do not tell their machine
    std::vector<std::string> rows, without_rows;  ///< of tables of runs: only these, all but these
    std::vector<std::string> sources;
    std::vector<std::string> without_models;  ///< of tables of runs all but these; each must be there
    std::string gpu;                          ///< of tables of kernels: only this GPU
    unsigned jobs = 0;
    std::string name;  ///< of the calibration
};

struct SiteInputs {
    std::vector<MeasurementFile> measurements;
    std::vector<KernelPoint> kernels;
    std::string kernel_file;
    std::vector<RunCase> curves;
    std::vector<AdapterPoint> adapters;
    std::vector<StepCase> steps;
};

/// warnings: partial files. Throws IngestError.
SiteInputs read_site_inputs(const std::vector<std::string>& files, const SiteOptions& options,
                            std::vector<std::string>& warnings);

}  // namespace fabricast
