// Constants of a site from measured step times of training jobs.
//
//   ln t(x) at the defaults and its sensitivities S_k = d ln t / d ln x_k by one re-run each; the linear form is fitted by
//   robust least squares, taken up, and linearised once more:  r_i(x) = ln t_i(x0) + sum_k S_ik ln(x_k / x0_k) - ln measured_i
//
// Constants: of each GPU gemm.sustained, the memory-bound fraction and the attention efficiency that its stacks use,
// nvlink_achieved; of a network that no curve of the site shows, efficiency; of each stack host time per layer and the hidden
// share of tensor-parallel traffic where it has them. How far each may go before the jobs must insist (sigma of ln): what `score
// runs --refit` found between published sources: 5 % GEMM and NVLink, 15 % memory and attention, 20 % hidden traffic, 40 % host
// time; 10 % network, as between healthy logs of one class (fit_curves.hpp). A constant that moves no job by 0.5 % for 10 %
// stays.
//
// Taken is the point between defaults and fit where the median error of the fitted jobs is least (fit_curves.hpp says why).
// Cross-check: jobs of one group (model) predicted by the constants of the others; of one group alone job by job. What a
// calibration says of its intervals are these errors.
// Refused: a job above the peak (sim/report/measured.hpp); doubted ones are named.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "validate/fit/fit_curves.hpp"
#include "validate/ingest/published_runs.hpp"
#include "validate/measure/measurement.hpp"

namespace fabricast {

/// A job to fit on: the scenario, and the same with less to simulate for sensitivities.
struct StepCase {
    std::string where, group;
    std::string scenario, shortened;
    double step_s = 0;
};
std::vector<StepCase> step_cases(const MeasurementFile& measurement);
std::vector<StepCase> step_cases(const std::vector<PublishedRun>& runs, const std::string& file);

struct StepFit {
    Calibration::Owned gpus, networks, software;
    std::vector<PartFit> parts;         ///< "steps dense H100-SXM-80G"
    std::vector<CalibrationFit> fits;   ///< of the same, with the sizes of the jobs
    std::vector<std::string> warnings;  ///< doubted measurements
};

/// known: constants fitted on kernels and links of this site, held. jobs: threads, 0 = all. A job that is no
/// scenario or cannot be forecast is told in the warnings. Throws IngestError for one above the peak.
StepFit fit_steps(const std::vector<StepCase>& cases, const Calibration& known, unsigned jobs);

/// Step times of cases with a calibration, seconds; 0 where the forecast refuses.
std::vector<double> forecast_cases(const std::vector<StepCase>& cases,
                                   const std::shared_ptr<const Calibration>& calibration, unsigned jobs,
                                   bool shortened = false);

}  // namespace fabricast
