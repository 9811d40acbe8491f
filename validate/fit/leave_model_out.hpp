// How a fit carries over to a model it never saw: jobs of one model are left out, constants are fitted on the jobs of the
// others, and the jobs left out are forecast in full with them, beside the defaults.
//
//   for each model M:  constants = fit_steps(jobs of other models),  errors = predicted / measured - 1 over jobs of M
//
// The same as `fit --leave-out-model M` and `score runs --model M --calibration` of what that writes. A fit that explains its
// own jobs no better than the defaults is refused (fit_curves.hpp), and then the defaults forecast M: that is what a user has.
// The defaults may have seen M where its source is one of those that `score runs --refit` fits, as vTrain is. Jobs that the
// forecast refuses are left out everywhere, and told.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "validate/fit/fit_site.hpp"
#include "validate/score/run_score.hpp"

namespace fabricast {

struct ModelLeftOut {
    std::string model;
    std::size_t fitted_on = 0;  ///< jobs of the other models
    bool kept = false;          ///< else the defaults forecast it; `reason` says why
    std::string reason;
    Calibration calibration;                     ///< what the jobs of the others gave
    std::vector<double> errors, default_errors;  ///< of its own jobs
    std::vector<std::string> where;              ///< of the same
};

struct ModelsLeftOut {
    std::vector<ModelLeftOut> models;  ///< in name order
    std::vector<std::string> warnings;
};

/// known: constants fitted on kernels and links, held. Throws IngestError for jobs of one model alone.
ModelsLeftOut leave_models_out(const std::vector<StepCase>& cases, const Calibration& known, unsigned jobs);
/// Of the files of a site: kernels and links are fitted first. Throws IngestError.
ModelsLeftOut leave_models_out(const std::vector<std::string>& files, const SiteOptions& options);

/// All jobs of all models together.
ErrorStats all_errors(const ModelsLeftOut& result, bool defaults);

std::string models_left_out_text(const ModelsLeftOut& result);
nlohmann::ordered_json models_left_out_json(const ModelsLeftOut& result);

}  // namespace fabricast
