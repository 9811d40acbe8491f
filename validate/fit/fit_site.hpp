// All measurements of a site -> one calibration: kernels, then links, then whole steps with what the first two found held.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/calibration.hpp"
#include "validate/fit/fit_curves.hpp"
#include "validate/fit/site_inputs.hpp"

namespace fabricast {

struct SiteFit {
    Calibration calibration;
    std::vector<PartFit> parts;
    std::vector<std::string> warnings, refused;  ///< doubted or incomplete inputs; fits that were not kept
};

/// Throws IngestError, also when there is nothing to fit, or nothing better than the defaults.
SiteFit fit_site(const std::vector<std::string>& files, const SiteOptions& options);

/// Constants of a fit of jobs, over what is there.
void merge_constants(const StepFit& fit, Calibration& into);

std::string fit_text(const SiteFit& fit);

}  // namespace fabricast
