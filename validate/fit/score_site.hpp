// Measurements against a calibration: every point with the defaults and with the site's constants.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/scenario/calibration.hpp"
#include "validate/fit/fit_curves.hpp"
#include "validate/fit/site_inputs.hpp"
#include "validate/score/score_picture.hpp"

namespace fabricast {

/// fitted_error: with the calibration. measured_s beside, in the order of the points.
struct ScoredPart {
    PartFit part;
    std::vector<double> measured_s;
    double default_mean = 0, mean = 0;  ///< |predicted / measured - 1|
    bool has_defaults = true;           ///< a host has none
};

struct SiteScore {
    std::string calibration;  ///< its provenance
    std::vector<ScoredPart> parts;
    std::vector<std::string> warnings;
};

/// Throws IngestError.
SiteScore score_site(const std::vector<std::string>& files, const Calibration& calibration, const SiteOptions& options);

std::string site_score_text(const SiteScore& score, bool full);
nlohmann::ordered_json site_score_json(const SiteScore& score);
/// A series a part.
ScorePicture picture_of(const SiteScore& score);

}  // namespace fabricast
