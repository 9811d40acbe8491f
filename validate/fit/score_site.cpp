#include "validate/fit/score_site.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "sim/observed/ingest_error.hpp"
#include "validate/fit/fit_adapters.hpp"
#include "validate/fit/fit_host.hpp"
#include "validate/fit/fit_kernels.hpp"
#include "validate/score/predict.hpp"

namespace fabricast {
namespace {

/// Parts by name, in the order of their first point.
class Parts {
public:
    void add(const std::string& what, const std::string& where, double measured_s, double default_s,
             double predicted_s) {
        auto at = std::find_if(parts_.begin(), parts_.end(), [&](const ScoredPart& p) { return p.part.what == what; });
        if (at == parts_.end()) {
            at = parts_.insert(parts_.end(), ScoredPart{});
            at->part.what = what;
            at->has_defaults = default_s > 0;
        }
        FittedPoint point;
        point.where = where;
        point.fitted_error = std::log(predicted_s / measured_s);
        point.default_error = default_s > 0 ? std::log(default_s / measured_s) : point.fitted_error;
        at->part.points.push_back(std::move(point));
        at->measured_s.push_back(measured_s);
    }
    std::vector<ScoredPart> take() {
        for (ScoredPart& p : parts_) {
            settle(p.part);
            const auto n = static_cast<double>(p.part.points.size());
            for (const FittedPoint& point : p.part.points) {
                p.default_mean += std::abs(std::expm1(point.default_error)) / n;
                p.mean += std::abs(std::expm1(point.fitted_error)) / n;
            }
        }
        return std::move(parts_);
    }

private:
    std::vector<ScoredPart> parts_;
};

NetworkConstants network_constants(const RunCase& run, const Calibration& c, const GpuSpec& gpu) {
    NetworkConstants out;
    const bool several = run.platform.nodes > 1;
    if (several) {
        NetworkSpec spec = *Catalogue::builtin().find_network(run.carried_by());
        apply(c, spec);
        out.efficiency = spec.efficiency;
        out.timing = {.hop_us = {spec.ll_hop_us, spec.ll128_hop_us, spec.simple_hop_us},
                      .slot_us = spec.slot_us,
                      .channel_gb_per_s = gpu.network_channel_bytes_per_s * 1e-9};
        out = with_collisions(out, run.kind, run.platform);
    }
    for (const Calibration::CollectiveRow& row : c.collectives) {
        if (row.kind == run.kind && row.link == (several ? run.carried_by() : "node"))
            out.correction = row.correction;
    }
    return out;
}

void score_curves(const std::vector<RunCase>& curves, const Calibration& c, Parts& out) {
    const Calibration none;
    for (const RunCase& run : curves) {
        std::vector<std::unique_ptr<Predictor>> predictors;
        for (const Calibration* one : {&none, &c}) {
            Platform platform = run.platform;
            apply(*one, platform.gpu);
            predictors.push_back(
                std::make_unique<Predictor>(platform, network_constants(run, *one, platform.gpu), run.settings));
        }
        for (const NcclPoint& point : curve(run.run)) {
            double s[2];
            for (std::size_t k = 0; k < 2; ++k) {
                const auto p = predictors[k]->predict(run.kind, point.bytes);
                s[k] = kLaunch.with(p.time_us, run.gpus_per_thread, p.channels) * 1e-6;
            }
            out.add(fmt::format("{} {}", run.platform.nodes > 1 ? run.carried_by() : "node", collective_name(run.kind)),
                    fmt::format("{}: {} ranks, {} bytes", run.file, run.run.ranks, point.bytes),
                    point.out_of_place.time_us.value * 1e-6, s[0], s[1]);
        }
    }
}

}  // namespace

SiteScore score_site(const std::vector<std::string>& files, const Calibration& c, const SiteOptions& options) {
    SiteScore out;
    out.calibration = provenance_sentence(c);
    const SiteInputs in = read_site_inputs(files, options, out.warnings);
    Parts parts;
    for (const KernelPoint& point : in.kernels) {
        GpuSpec gpu = *point.gpu;
        apply(c, gpu);
        parts.add(point.group, point.where, point.measured_s, kernel_s(point, *point.gpu), kernel_s(point, gpu));
    }
    score_curves(in.curves, c, parts);
    for (const AdapterPoint& p : in.adapters)
        parts.add(adapter_part(p), p.where, p.measured_s, predicted_adapter_s(p, {}), predicted_adapter_s(p, c));
    if (!in.steps.empty()) {
        const std::vector<double> before = forecast_cases(in.steps, nullptr, options.jobs);
        const std::vector<double> after =
            forecast_cases(in.steps, std::make_shared<const Calibration>(c), options.jobs);
        for (std::size_t i = 0; i < in.steps.size(); ++i) {
            if (before[i] > 0 && after[i] > 0)
                parts.add("steps", in.steps[i].where, in.steps[i].step_s, before[i], after[i]);
            else
                out.warnings.push_back(in.steps[i].where + ": the forecast refuses this job");
        }
    }
    for (const MeasurementFile& m : in.measurements) {
        for (const HostPoint& p : host_points(m)) {
            const double s = c.hosts.empty() ? 0 : predicted_host_s(p, c.hosts.front().second);
            if (s > 0)
                parts.add("host " + p.test, p.where, p.measured_s, 0, s);
        }
    }
    out.parts = parts.take();
    if (out.parts.empty())
        throw IngestError(files.front(), 0, "nothing in these files that the calibration can predict");
    return out;
}

std::string site_score_text(const SiteScore& score, bool full) {
    std::string text = score.calibration + "\n\n";
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "{:<36} {:>7} {:>17} {:>17}\n{:<36} {:>7} {:>8} {:>8} {:>8} {:>8}\n",
                   "error of predicted times", "points", "defaults", "calibrated", "", "", "median", "mean", "median",
                   "mean");
    for (const ScoredPart& p : score.parts) {
        const std::string before =
            p.has_defaults ? fmt::format("{:>7.1f}% {:>7.1f}%", 100 * p.part.default_median, 100 * p.default_mean)
                           : fmt::format("{:>8} {:>8}", "-", "-");
        fmt::format_to(out, "{:<36} {:>7} {} {:>7.1f}% {:>7.1f}%\n", p.part.what, p.part.points.size(), before,
                       100 * p.part.fitted_median, 100 * p.mean);
        for (const FittedPoint& point : p.part.points) {
            if (full)
                fmt::format_to(out, "    {:<60} {:>+8.1f}% {:>+8.1f}%\n", point.where,
                               100 * std::expm1(point.default_error), 100 * std::expm1(point.fitted_error));
        }
    }
    for (const std::string& warning : score.warnings)
        fmt::format_to(out, "warning: {}\n", warning);
    return text;
}

ScorePicture picture_of(const SiteScore& score) {
    ScorePicture out{"Predicted against measured times", score.calibration, {}};
    for (const ScoredPart& p : score.parts) {
        PictureSeries one{p.part.what, {}};
        for (std::size_t i = 0; i < p.measured_s.size(); ++i)
            one.points.push_back(
                {p.part.points[i].where, p.measured_s[i], p.measured_s[i] * std::exp(p.part.points[i].fitted_error)});
        out.series.push_back(std::move(one));
    }
    return out;
}

nlohmann::ordered_json site_score_json(const SiteScore& score) {
    using Json = nlohmann::ordered_json;
    Json parts = Json::array();
    for (const ScoredPart& p : score.parts) {
        Json points = Json::array();
        for (std::size_t i = 0; i < p.part.points.size(); ++i) {
            const FittedPoint& point = p.part.points[i];
            Json row = {
                {"where", point.where}, {"measured_s", p.measured_s[i]}, {"error", std::expm1(point.fitted_error)}};
            if (p.has_defaults)
                row["default_error"] = std::expm1(point.default_error);
            points.push_back(std::move(row));
        }
        Json part = {{"what", p.part.what}, {"median_ape", p.part.fitted_median}, {"mape", p.mean}};
        if (p.has_defaults) {
            part["default_median_ape"] = p.part.default_median;
            part["default_mape"] = p.default_mean;
        }
        part["points"] = std::move(points);
        parts.push_back(std::move(part));
    }
    return {{"schema", "fabricast-site-score/1"},
            {"calibration", score.calibration},
            {"parts", parts},
            {"warnings", score.warnings}};
}

}  // namespace fabricast
