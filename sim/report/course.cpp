#include "sim/report/course.hpp"

#include <algorithm>
#include <limits>

namespace fabricast::report {

std::vector<campaign::CourseMark> thinned(const std::vector<campaign::CourseMark>& course, double tolerance) {
    if (course.size() < 3)
        return course;
    constexpr double kAnySlope = std::numeric_limits<double>::infinity();
    std::vector<campaign::CourseMark> out = {course.front()};
    double low = -kAnySlope, high = kAnySlope;
    for (std::size_t i = 1; i < course.size(); ++i) {
        const auto reach = [&] {
            const auto time = static_cast<double>(course[i].time - out.back().time);
            const auto steps = static_cast<double>(course[i].steps - out.back().steps);
            const bool fall = time <= 0 && (steps > tolerance || steps < -tolerance);
            const bool outside = time > 0 && (steps / time < low || steps / time > high);
            if (time > 0) {
                low = std::max(low, (steps - tolerance) / time);
                high = std::min(high, (steps + tolerance) / time);
            }
            return !fall && !outside;
        };
        if (reach())
            continue;
        if (out.back().time != course[i - 1].time || out.back().steps != course[i - 1].steps)
            out.push_back(course[i - 1]);
        low = -kAnySlope;
        high = kAnySlope;
        if (!reach())  // a fall: at the same time as the point before it
            out.push_back(course[i]);
    }
    if (out.back().time != course.back().time || out.back().steps != course.back().steps)
        out.push_back(course.back());
    return out;
}

}  // namespace fabricast::report
