// The course of one life, thinned for a drawing.
//
// From a kept point on, points are left out as long as one straight line passes all of them within the tolerance (in steps);
// the cone of slopes that do so narrows with each point, so a pass over n points takes O(n). First and last point stay, and both
// ends of a fall that is larger than the tolerance.
#pragma once

#include <vector>

#include "sim/campaign/course.hpp"

namespace fabricast::report {

std::vector<campaign::CourseMark> thinned(const std::vector<campaign::CourseMark>& course, double tolerance);

}  // namespace fabricast::report
