#include "validate/score/score_picture.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "sim/observed/ingest_error.hpp"
#include "sim/report/atomic_file.hpp"

namespace fabricast {
namespace {

constexpr double kLeft = 80, kTop = 30, kSide = 520, kWidth = 900, kBottom = 60, kLegendLine = 18;
constexpr double kBand = 0.1;  ///< of the dashed lines
constexpr std::string_view kColours[] = {"#1b6ca8", "#c8553d", "#3a7d44", "#8f2d8a", "#b8860b",
                                         "#4d4d4d", "#00897b", "#ad1457", "#5e35b1", "#6d4c41"};

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text)
        out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
    return out;
}

std::string time_text(double s) {
    constexpr std::string_view kUnits[] = {"ns", "us", "ms", "s", "ks"};
    const int unit = std::clamp(static_cast<int>(std::floor((std::log10(s) + 9 + 1e-9) / 3)), 0, 4);
    return fmt::format("{:g} {}", s * std::pow(10, 9 - 3 * unit), kUnits[unit]);
}

/// 1, 2, 5 x powers of ten by number: 0 -> 1 s, 1 -> 2 s, 2 -> 5 s, 3 -> 10 s.
double step_125(int i) {
    const int power = static_cast<int>(std::floor(i / 3.0));
    constexpr double kDigits[] = {1, 2, 5};
    return kDigits[i - 3 * power] * std::pow(10, power);
}

struct Axis {
    int from = 0, to = 1;  ///< in 1-2-5 steps
    bool decades = false;  ///< lines at powers of ten alone
    double at(double s) const {
        const double low = std::log10(step_125(from)), high = std::log10(step_125(to));
        return kSide * (std::log10(s) - low) / (high - low);
    }
    double x(double s) const { return kLeft + at(s); }
    double y(double s) const { return kTop + kSide - at(s); }
};

Axis axis_of(const ScorePicture& picture) {
    double low = 1e300, high = 0;
    for (const PictureSeries& one : picture.series) {
        for (const auto& p : one.points) {
            low = std::min({low, p.measured_s, p.predicted_s});
            high = std::max({high, p.measured_s, p.predicted_s});
        }
    }
    Axis out;
    out.from = static_cast<int>(std::floor(3 * std::log10(low))) - 2;
    while (step_125(out.from + 1) <= low)
        ++out.from;
    out.to = out.from + 1;
    while (step_125(out.to) < high)
        ++out.to;
    constexpr int kMostLines = 12;
    out.decades = out.to - out.from > kMostLines;
    return out;
}

ErrorStats stats_of(const PictureSeries& one) {
    std::vector<double> errors;
    for (const auto& p : one.points)
        errors.push_back(p.predicted_s / p.measured_s - 1);
    return error_stats(errors);
}

std::string_view colour(std::size_t k) { return kColours[k % std::size(kColours)]; }

void draw_axes(const Axis& axis, std::string& svg) {
    const auto out = std::back_inserter(svg);
    for (int i = axis.from; i <= axis.to; ++i) {
        if (axis.decades && i % 3 != 0)
            continue;
        const double s = step_125(i), x = axis.x(s), y = axis.y(s);
        fmt::format_to(out,
                       "<path d=\"M{0:.1f} {1:.1f}V{2:.1f}M{3:.1f} {4:.1f}H{5:.1f}\" stroke=\"#ddd\"/>"
                       "<text x=\"{0:.1f}\" y=\"{6:.1f}\" text-anchor=\"middle\">{8}</text>"
                       "<text x=\"{7:.1f}\" y=\"{9:.1f}\" text-anchor=\"end\">{8}</text>\n",
                       x, kTop, kTop + kSide, kLeft, y, kLeft + kSide, kTop + kSide + 18, kLeft - 6, time_text(s),
                       y + 4);
    }
    const double low = step_125(axis.from), high = step_125(axis.to);
    for (const double share : {1 - kBand, 1.0, 1 + kBand}) {  // predicted = share x measured, inside the square
        const double first = share < 1 ? low / share : low, last = share > 1 ? high / share : high;
        fmt::format_to(out, "<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke=\"#888\"{}/>\n", axis.x(first),
                       axis.y(first * share), axis.x(last), axis.y(last * share),
                       share == 1 ? "" : " stroke-dasharray=\"4 4\"");
    }
    fmt::format_to(out,
                   "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">measured</text>"
                   "<text x=\"8\" y=\"20\">predicted; dashed: 10 % off</text>\n",
                   kLeft + kSide / 2, kTop + kSide + 40);
}

}  // namespace

ScorePicture picture_of(const RunScore& score, std::string subtitle) {
    std::map<std::string, PictureSeries> series;
    for (const RowScore& row : score.scored) {
        const std::string& name = score.by_source.size() == 1 ? row.run->model : row.run->source_key;
        series[name].name = name;
        series[name].points.push_back({row.run->id, row.run->step_s, row.predicted_s});
    }
    ScorePicture out;
    out.title = fmt::format("Step times of {} runs, predicted against measured", score.scored.size());
    out.subtitle = std::move(subtitle);
    for (auto& [name, one] : series)
        out.series.push_back(std::move(one));
    return out;
}

std::string picture_svg(const ScorePicture& picture) {
    const Axis axis = axis_of(picture);
    const double legend = kTop + kLegendLine * static_cast<double>(picture.series.size() + 1);
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        kWidth, std::max(kTop + kSide + kBottom, legend), escaped(picture.title));
    draw_axes(axis, svg);
    const auto out = std::back_inserter(svg);
    for (std::size_t k = 0; k < picture.series.size(); ++k) {
        const PictureSeries& one = picture.series[k];
        for (const auto& p : one.points)
            fmt::format_to(
                out,
                "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\" fill-opacity=\"0.6\"><title>{}: measured "
                "{:.4g} s, predicted {:.4g} s, {:+.1f} %</title></circle>\n",
                axis.x(p.measured_s), axis.y(p.predicted_s), colour(k), escaped(p.what), p.measured_s, p.predicted_s,
                100 * (p.predicted_s / p.measured_s - 1));
        const double y = kTop + 14 + kLegendLine * static_cast<double>(k);
        fmt::format_to(out,
                       "<circle cx=\"{}\" cy=\"{}\" r=\"4\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{}: {}, median "
                       "{:.1f} %</text>\n",
                       kLeft + kSide + 20, y - 4, colour(k), kLeft + kSide + 30, y, escaped(one.name),
                       one.points.size(), 100 * stats_of(one).median);
    }
    return svg + "</svg>\n";
}

std::string picture_html(const ScorePicture& picture) {
    std::string page = fmt::format(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\n"
        "<style>body{{font:14px sans-serif;max-width:60em;margin:2em auto;padding:0 1em}}"
        "table{{border-collapse:collapse}}td,th{{padding:.2em .8em;text-align:right;border-bottom:1px solid #ddd}}"
        "td:first-child,th:first-child{{text-align:left}}svg{{width:100%}}</style></head>\n"
        "<body><h1>{0}</h1>\n<p>{1}</p>\n{2}"
        "<table><tr><th>series</th><th>points</th><th>mean error</th><th>median</th><th>p90</th><th>bias</th></tr>\n",
        escaped(picture.title), escaped(picture.subtitle), picture_svg(picture));
    for (const PictureSeries& one : picture.series) {
        const ErrorStats s = stats_of(one);
        fmt::format_to(std::back_inserter(page),
                       "<tr><td>{}</td><td>{}</td><td>{:.1f} %</td><td>{:.1f} %</td><td>{:.1f} %</td><td>{:+.1f} "
                       "%</td></tr>\n",
                       escaped(one.name), s.n, 100 * s.mape, 100 * s.median, 100 * s.p90, 100 * s.bias);
    }
    return page + "</table>\n<p>Error: predicted / measured - 1.</p></body></html>\n";
}

void check_picture(const std::string& path) {
    if (!path.ends_with(".svg") && !path.ends_with(".html"))
        throw IngestError(path, 0, "a picture ends in .html or .svg");
    check_writable(path);
}

void write_picture(const ScorePicture& picture, const std::string& path) {
    check_picture(path);
    if (std::all_of(picture.series.begin(), picture.series.end(), [](const auto& one) { return one.points.empty(); }))
        throw IngestError(path, 0, "there is no point to show");
    write_file_atomically(path, path.ends_with(".html") ? picture_html(picture) : picture_svg(picture));
}

}  // namespace fabricast
