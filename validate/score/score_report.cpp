#include "validate/score/score_report.hpp"

#include <iterator>

#include <fmt/format.h>

namespace fabricast {
namespace {

using Json = nlohmann::ordered_json;

std::string percent(const std::optional<double>& value) { return value ? fmt::format("{:.1f} %", 100 * *value) : "-"; }

std::string size_text(std::int64_t bytes) {
    constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB"};
    std::size_t unit = 0;
    double value = static_cast<double>(bytes);
    for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) {
        value /= 1024;
    }
    return fmt::format("{:.4g} {}", value, kUnits[unit]);
}

std::string_view label_text(Label label) {
    return label == Label::healthy ? "healthy" : label == Label::sick ? "sick" : "";
}

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json summary_json(const ErrorSummary& errors) {
    return {{"large_median", number(errors.large_median)},
            {"large_p90", number(errors.large_p90)},
            {"large_points", errors.large_points},
            {"small_median", number(errors.small_median)},
            {"small_points", errors.small_points}};
}

Json tally_json(const PeakTally& tally) { return {{"platforms", tally.platforms}, {"within", tally.within}}; }

void append_curve(std::string& text, const CurveScore& one, ScoreTextOptions options) {
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "{}  {}  {} ranks  [{}]\n", one.file, one.collective, one.ranks, one.platform);
    if (options.points) {
        fmt::format_to(out, "  {:>12} {:>12} {:>12} {:>8} {:>10} {:>10}  {}\n", "size", "measured us", "predicted us",
                       "error", "busbw", "predicted", "choice");
        for (const ScoredPoint& point : one.points) {
            fmt::format_to(out, "  {:>12} {:>12.1f} {:>12.1f} {:>+7.1f}% {:>10.2f} {:>10.2f}  {} {} {}\n",
                           size_text(point.at.bytes), point.at.measured_us, point.at.expected_us, 100 * point.error,
                           point.at.measured_busbw, point.at.expected_busbw, algorithm_name(point.algorithm),
                           protocol_name(point.protocol), point.channels);
        }
    }
    fmt::format_to(out,
                   "  error >= 1 MiB {} (p90 {}), < 64 KiB {}; peak busbw {:.4g} GB/s, predicted {:.4g} ({:+.1f} %)\n",
                   percent(one.errors.large_median), percent(one.errors.large_p90), percent(one.errors.small_median),
                   one.measured_peak, one.predicted_peak, 100 * one.peak_error);
    fmt::format_to(out, "  {}", name_of(one.verdict.health));
    if (one.verdict.cause != Cause::none) {
        fmt::format_to(out, ", {}", name_of(one.verdict.cause));
    }
    for (const Cause cause : one.verdict.also) {
        fmt::format_to(out, ", {}", name_of(cause));
    }
    fmt::format_to(out, ": {}\n\n", one.verdict.sentence);
}

}  // namespace

std::string score_text(const NcclScore& score, ScoreTextOptions options) {
    std::string text;
    for (const CurveScore& one : score.curves) {
        append_curve(text, one, options);
    }
    const auto out = std::back_inserter(text);
    for (const RunRefusal& one : score.refused) {
        fmt::format_to(out, "{}  {}\n  {}: {}\n\n", one.file, one.collective, one.failed ? "failed" : "not scored",
                       one.reason);
    }
    std::size_t counted = 0;
    for (const CurveScore& one : score.curves) {
        counted += one.counted ? 1 : 0;
    }
    fmt::format_to(out, "{} curves, {} healthy ones scored, constants {}\n", score.curves.size(), counted,
                   score.leave_one_out ? "from the other logs (leave one out)" : "of the catalogue");
    fmt::format_to(out, "  >= 1 MiB: median {}, p90 {} of {} sizes\n  < 64 KiB: median {} of {} sizes\n",
                   percent(score.total.large_median), percent(score.total.large_p90), score.total.large_points,
                   percent(score.total.small_median), score.total.small_points);
    fmt::format_to(out,
                   "  peak busbw within 10 %: {} of {} platforms and collectives with several logs; within 15 %: {} of "
                   "{} with one\n",
                   score.several.within, score.several.platforms, score.single.within, score.single.platforms);
    return text;
}

nlohmann::ordered_json score_json(const NcclScore& score) {
    Json curves = Json::array();
    for (const CurveScore& one : score.curves) {
        Json points = Json::array();
        for (const ScoredPoint& point : one.points) {
            points.push_back({{"bytes", point.at.bytes},
                              {"measured_us", point.at.measured_us},
                              {"predicted_us", point.at.expected_us},
                              {"error", point.error},
                              {"measured_busbw", point.at.measured_busbw},
                              {"predicted_busbw", point.at.expected_busbw},
                              {"algorithm", algorithm_name(point.algorithm)},
                              {"protocol", protocol_name(point.protocol)},
                              {"channels", point.channels}});
        }
        Json also = Json::array();
        for (const Cause cause : one.verdict.also) {
            also.push_back(name_of(cause));
        }
        curves.push_back(
            {{"file", one.file},
             {"line", one.line},
             {"collective", one.collective},
             {"ranks", one.ranks},
             {"platform", one.platform},
             {"group", one.group},
             {"label", label_text(one.label)},
             {"counted", one.counted},
             {"errors", summary_json(one.errors)},
             {"peak_busbw",
              {{"measured", one.measured_peak}, {"predicted", one.predicted_peak}, {"error", one.peak_error}}},
             {"constants",
              {{"efficiency", one.constants.efficiency},
               {"ll_hop_us", one.constants.timing.hop_us[0]},
               {"ll128_hop_us", one.constants.timing.hop_us[1]},
               {"simple_hop_us", one.constants.timing.hop_us[2]},
               {"slot_us", one.constants.timing.slot_us},
               {"channel_gb_per_s", one.constants.timing.channel_gb_per_s}}},
             {"verdict",
              {{"health", name_of(one.verdict.health)},
               {"cause", name_of(one.verdict.cause)},
               {"also", also},
               {"share", one.verdict.share},
               {"line_share", one.verdict.line_share},
               {"sentence", one.verdict.sentence}}},
             {"points", points}});
    }
    Json refused = Json::array();
    for (const RunRefusal& one : score.refused) {
        refused.push_back({{"file", one.file},
                           {"collective", one.collective},
                           {"failed", one.failed},
                           {"label", label_text(one.label)},
                           {"reason", one.reason}});
    }
    return {{"schema", "fabricast-nccl-score/1"},
            {"leave_one_out", score.leave_one_out},
            {"total",
             {{"errors", summary_json(score.total)},
              {"several_logs", tally_json(score.several)},
              {"one_log", tally_json(score.single)}}},
            {"curves", curves},
            {"refused", refused}};
}

}  // namespace fabricast
