// Views of a forecast: the figures derived from it, result.json, the first screen, the full tables.
#pragma once

#include <string>

#include "sim/report/interval.hpp"
#include "sim/step/result.hpp"

namespace fabricast {

/// Derived figures in one place, so that all views agree.
struct Headline {
    double step_s = 0, tokens_per_s = 0, tokens_per_s_per_gpu = 0, model_tflops_per_gpu = 0, peak_tflops = 0;
    StepInterval interval;                  ///< of the step time, from published runs
    double mfu = 0, hfu = 0;                ///< attention in full
    double mfu_causal = 0, hfu_causal = 0;  ///< attention halved: the scores a causal kernel computes
    double mfu_whole = 0, hfu_whole = 0;    ///< attention in full over whole sequences, packed or not
    double exposed_comm_fraction = 0, bubble_fraction = 0;
    double bubble_imbalance_fraction = 0;  ///< of bubble_fraction what unequal stages cause, where the result has it
    double days = 0, gpu_hours = 0, cost = 0;  ///< of run.tokens at this rate, no failures; 0 when not stated
};
Headline headline(const Result& result);

/// The versioned result.json (schema_version 1), keys in fixed order, trailing newline.
std::string result_json(const Result& result);

/// First screen: at most 25 lines of at most 100 columns. `color` adds ANSI colours; without `unicode` every
/// character is ASCII.
std::string first_screen(const Result& result, bool color, bool unicode = true);
/// Full tables: waterfall, stages, memory, communication, critical path, assumptions.
std::string full_text(const Result& result, bool color, bool unicode = true);

/// Quantiles, where the wall time goes, checkpoints, what befell one life; `full`: all of it, with causes and conditions.
/// Empty without a campaign.
std::string campaign_text(const Result& result, bool full, bool color, bool unicode = true);

}  // namespace fabricast
