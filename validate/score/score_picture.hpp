// Predicted against measured as a picture: both axes logarithmic and alike, the diagonal with lines at +-10 %, a dot a
// point, a colour a series; what a point is shows when the pointer rests on it.
//
//   x = log10 measured,  y = log10 predicted;  range: 1-2-5 steps around all points
//
// FILE.svg holds the picture alone; FILE.html a page with the picture and a table of the series, one file, no script.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "validate/score/run_score.hpp"

namespace fabricast {

struct PictureSeries {
    struct Point {
        std::string what;
        double measured_s = 0, predicted_s = 0;  ///< both above 0
    };
    std::string name;
    std::vector<Point> points;
};

struct ScorePicture {
    std::string title, subtitle;
    std::vector<PictureSeries> series;
};

/// A series per source; of one source alone, per model.
ScorePicture picture_of(const RunScore& score, std::string subtitle);

std::string picture_svg(const ScorePicture& picture);
std::string picture_html(const ScorePicture& picture);

/// Throws IngestError for a name that ends neither in .svg nor in .html, and when there is no point to show.
void write_picture(const ScorePicture& picture, const std::string& path);
/// The first of these, to be told before a long run; also when the file cannot be written.
void check_picture(const std::string& path);

}  // namespace fabricast
