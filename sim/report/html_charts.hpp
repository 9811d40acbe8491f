// Drawings of the HTML page: SVG stretched over its place, words and numbers as text beside it, so that nothing is too small to
// read on a phone and no script is needed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/report/html_parts.hpp"

namespace fabricast::report {

/// How many lives end where: a histogram with the band from P10 to P90 and a line at the median, on the scale low..high.
/// values is not empty, low < high.
std::string strip(std::vector<double> values, double low, double high);

struct CurvePoint {
    double x = 0, y = 0;
};
struct CurveMark {
    std::string css;  ///< "s-fault"
    double x = 0;
    std::string title;
};
struct Curve {
    std::vector<CurvePoint> points, reference;  ///< reference: dashed; may be empty
    std::vector<CurveMark> marks;               ///< lines from bottom to top
    double x_most = 1, y_most = 1;
    std::vector<std::string> x_labels, y_labels;  ///< evenly spaced, from 0 to the most
    std::string name;                             ///< for readers that do not see
};
std::string curve(const Curve& curve);

/// A difference that hangs where the one before it ended, on a scale of 0..most; `grows`: it is a loss.
struct Hanging {
    std::string name, figure;
    double from = 0, to = 0;
    std::string css;
};
std::string hanging_rows(const std::vector<Hanging>& rows, double most);

}  // namespace fabricast::report
