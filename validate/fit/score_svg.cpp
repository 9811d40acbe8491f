// Predicted against measured as a picture: logarithmic axes, the diagonal, a dot a point, a colour a part.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "sim/observed/ingest_error.hpp"
#include "validate/fit/score_site.hpp"

namespace fabricast {
namespace {

constexpr double kLeft = 80, kTop = 30, kSide = 520, kWidth = 860;
constexpr std::string_view kColours[] = {"#1b6ca8", "#c8553d", "#3a7d44", "#8f2d8a", "#b8860b",
                                         "#4d4d4d", "#00897b", "#ad1457", "#5e35b1", "#6d4c41"};

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text)
        out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c);
    return out;
}

std::string time_text(int power) {
    constexpr std::string_view kUnits[] = {"ns", "us", "ms", "s", "ks"};
    const int unit = std::clamp((power + 9) / 3, 0, 4);
    return fmt::format("{:g} {}", std::pow(10, power + 9 - 3 * unit), kUnits[unit]);
}

}  // namespace

void write_score_svg(const SiteScore& score, const std::string& path) {
    double low = 1e300, high = 0;
    for (const ScoredPart& p : score.parts) {
        for (std::size_t i = 0; i < p.measured_s.size(); ++i) {
            const double predicted = p.measured_s[i] * std::exp(p.part.points[i].fitted_error);
            low = std::min({low, p.measured_s[i], predicted});
            high = std::max({high, p.measured_s[i], predicted});
        }
    }
    const int from = static_cast<int>(std::floor(std::log10(low)));
    const int to = std::max(from + 1, static_cast<int>(std::ceil(std::log10(high))));
    const auto at = [&](double s) { return kSide * (std::log10(s) - from) / (to - from); };
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        kWidth, kTop + kSide + 60);
    const auto out = std::back_inserter(svg);
    for (int power = from; power <= to; ++power) {
        const double x = kLeft + kSide * (power - from) / (to - from), y = kTop + kSide - (x - kLeft);
        fmt::format_to(out,
                       "<path d=\"M{:.1f} {:.1f}V{:.1f}M{:.1f} {:.1f}H{:.1f}\" stroke=\"#ddd\"/>"
                       "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>"
                       "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                       x, kTop, kTop + kSide, kLeft, y, kLeft + kSide, x, kTop + kSide + 18, time_text(power),
                       kLeft - 6, y + 4, time_text(power));
    }
    fmt::format_to(out,
                   "<path d=\"M{} {}L{} {}\" stroke=\"#888\"/><text x=\"{}\" y=\"{}\">measured</text>"
                   "<text x=\"8\" y=\"20\">predicted</text>\n",
                   kLeft, kTop + kSide, kLeft + kSide, kTop, kLeft + kSide / 2, kTop + kSide + 40);
    for (std::size_t k = 0; k < score.parts.size(); ++k) {
        const ScoredPart& p = score.parts[k];
        const std::string_view colour = kColours[k % std::size(kColours)];
        for (std::size_t i = 0; i < p.measured_s.size(); ++i) {
            const double predicted = p.measured_s[i] * std::exp(p.part.points[i].fitted_error);
            fmt::format_to(
                out,
                "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\" fill-opacity=\"0.6\"><title>{}: {:+.1f} "
                "%</title></circle>\n",
                kLeft + at(p.measured_s[i]), kTop + kSide - at(predicted), colour, escaped(p.part.points[i].where),
                100 * std::expm1(p.part.points[i].fitted_error));
        }
        const double y = kTop + 14 + 18 * static_cast<double>(k);
        fmt::format_to(
            out, "<circle cx=\"{}\" cy=\"{}\" r=\"4\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{}: {:.1f} %</text>\n",
            kLeft + kSide + 20, y - 4, colour, kLeft + kSide + 30, y, escaped(p.part.what), 100 * p.part.fitted_median);
    }
    svg += "</svg>\n";
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << svg;
    file.flush();
    if (!file)
        throw IngestError(path, 0, "the picture cannot be written");
}

}  // namespace fabricast
