#include "sim/report/html_charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace fabricast::report {
namespace {

constexpr std::size_t kBins = 48;
constexpr double kWide = 1000, kHigh = 100;  // of a drawing, in its own units

std::string path(const std::vector<CurvePoint>& points, double x_most, double y_most) {
    std::string out;
    for (const CurvePoint& p : points)
        out +=
            fmt::format("{}{:.1f} {:.2f}", out.empty() ? "M" : "L", p.x / x_most * kWide, kHigh - p.y / y_most * kHigh);
    return out;
}

std::string labels(const char* css, const std::vector<std::string>& texts) {
    std::string out = fmt::format("<div class=\"{}\">", css);
    for (const std::string& text : texts)
        out += "<span>" + escape(text) + "</span>";
    return out + "</div>";
}

}  // namespace

std::string strip(std::vector<double> values, double low, double high) {
    std::sort(values.begin(), values.end());
    const auto at = [&](std::size_t tenth) { return values[(tenth * values.size() + 9) / 10 - 1]; };
    const auto place = [&](double value) { return (value - low) / (high - low) * kWide; };
    std::array<std::size_t, kBins> counts = {};
    for (const double value : values) {
        const double bin = (value - low) / (high - low) * kBins;
        ++counts[std::min(kBins - 1, static_cast<std::size_t>(std::max(0.0, bin)))];
    }
    const std::size_t most = *std::max_element(counts.begin(), counts.end());
    std::string bars;
    for (std::size_t i = 0; i < kBins; ++i) {
        if (counts[i] == 0)
            continue;
        const double height = kHigh * static_cast<double>(counts[i]) / static_cast<double>(most);
        bars += fmt::format("M{:.1f} {:.1f}h{:.1f}V100h-{:.1f}z", static_cast<double>(i) * kWide / kBins,
                            kHigh - height, kWide / kBins, kWide / kBins);
    }
    const double left = place(at(1)), right = place(at(9)), middle = place(at(5));
    return fmt::format(
        "<span class=strip><svg viewBox=\"0 0 1000 100\" preserveAspectRatio=none aria-hidden=true>"
        "<path class=s-band d=\"M{0:.1f} 0H{1:.1f}V100H{0:.1f}z\"/><path class=s-bars d=\"{2}\"/>"
        "<path class=s-median d=\"M{3:.1f} 0V100\"/></svg></span>",
        left, std::max(right, left + 1), bars, middle);
}

std::string curve(const Curve& c) {
    std::string out = "<div class=plot>" + labels("y", {c.y_labels.rbegin(), c.y_labels.rend()});
    out += fmt::format(
        "<div class=area><svg viewBox=\"0 0 1000 100\" preserveAspectRatio=none role=img aria-label=\"{}\">",
        escape(c.name));
    for (std::size_t i = 1; i + 1 < c.y_labels.size(); ++i)
        out += fmt::format("<path class=s-grid d=\"M0 {0:.2f}H1000\"/>",
                           kHigh * static_cast<double>(i) / static_cast<double>(c.y_labels.size() - 1));
    for (const CurveMark& mark : c.marks)
        out += fmt::format("<path class=\"{}\" d=\"M{:.1f} 0V100\"><title>{}</title></path>", mark.css,
                           mark.x / c.x_most * kWide, escape(mark.title));
    if (!c.reference.empty())
        out += fmt::format("<path class=s-reference d=\"{}\"/>", path(c.reference, c.x_most, c.y_most));
    out += fmt::format("<path class=s-course d=\"{}\"/></svg></div>", path(c.points, c.x_most, c.y_most));
    return out + labels("axis x", c.x_labels) + "</div>\n";
}

std::string hanging_rows(const std::vector<Hanging>& rows, double most) {
    std::string out = "<div class=rows>\n";
    for (const Hanging& row : rows) {
        const double begin = std::min(row.from, row.to) / most, end = std::max(row.from, row.to) / most;
        out += bar_row(row.name, {{row.css, begin, end - begin, row.figure}}, row.figure);
    }
    return out + "</div>\n";
}

}  // namespace fabricast::report
