// How far published runs lay from the forecast: the interval printed behind a step time.
//
// residuals.yaml holds, for classes of runs (dense or mixture of experts, GPU family), the 10th, 50th and 90th percentile
// of predicted / measured over the published runs of that class. A forecast t then means a measured time between
// t / p90 and t / p10 in 80 % of runs like it. Classes of fewer than kFewest runs borrow those of all GPUs.
// The file is written by `fabricast-validate score runs FILE --residuals`; it says on how many runs it rests.
//
// With a calibration (sim/scenario/calibration.hpp) that holds n measured steps of this GPU and kind of model, of jobs at
// most 4 times larger or smaller, the percentiles are the geometric mean of the site's own, with weight n / (n + 20), and
// those of the class; no near measurement leaves those of the class. The site's own are of steps left out of its fit.
//
// Not covered: what no published run has (other GPUs borrow), and the fit's own optimism: the constants saw these runs.
#pragma once

#include <string>

#include "sim/scenario/scenario.hpp"

namespace fabricast {

struct StepInterval {
    double low_s = 0, high_s = 0;  ///< 80 % of runs lie between; 0 when there is no class
    std::string like;              ///< "dense runs on A100"
    int runs = 0;
};

StepInterval step_interval(const Scenario& scenario, double step_s);

/// "A100" (and A800), "H100" (H200, H800, GH200), "B200" (GB200 ...); "other".
std::string gpu_family(std::string_view gpu);

}  // namespace fabricast
