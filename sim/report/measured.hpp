// A measured figure of a run held against its forecast.
//
//   step_s, tokens_per_s_per_gpu, tflops_per_gpu, mfu     all name the same thing, the time of a step:
//   time = tokens of a step / (GPUs x tokens/s/GPU) = model FLOPs / (GPUs x FLOP/s) = model FLOPs / (GPUs x peak x MFU)
//
// with the scenario's batch, sequence, GPU count and model FLOPs (attention in full, recomputation not counted).
//
// Refused: an MFU above 1 whose causal reading (attention halved, the work a causal kernel does) is above the sustained
// ceiling of the GPU's matrix products too; at sequences where attention is most of the count, an MFU above 1 in full may
// be real. Doubted: a causal MFU above that ceiling, burst cap x sustained share of the catalogue (0.745 on an A100).
#pragma once

#include <string>
#include <vector>

#include "sim/step/result.hpp"

namespace fabricast {

struct Measurement {
    std::string figure;  ///< "tokens_per_s_per_gpu"
    double value = 0;    ///< as given
    double step_s = 0;   ///< what it means for the step
    double mfu = 0;      ///< implied, attention in full
    double mfu_causal = 0;
};

/// "tokens_per_s_per_gpu=8707.8". Throws ScenarioError for an unknown figure, a value that is not positive, and a figure
/// that no GPU of the scenario can reach.
Measurement parse_measurement(const std::string& text, const Scenario& scenario);

/// A sentence when the figure is above what the GPU sustains; empty when it is plausible.
std::string doubt(const Measurement& measurement, const Scenario& scenario);

/// Forecast step / measured step; 0 when the job did not run.
double forecast_over_measured(const Measurement& measurement, const Result& result);

/// One line: "tokens_per_s_per_gpu 1900: step 5.518 s, MFU 54.1 %; the forecast is 3.2 % slower".
std::string describe(const Measurement& measurement, const Result& result);

/// "  Measured   ..." a line each, for the end of a text.
std::string measured_text(const std::vector<Measurement>& measurements, const Result& result);

/// result.json with one more key, `measured`; the text as it is without measurements.
std::string with_measurements(const std::string& json, const std::vector<Measurement>& measurements,
                              const Result& result);

}  // namespace fabricast
