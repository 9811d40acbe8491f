#include "validate/fit/leave_model_out.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "sim/observed/ingest_error.hpp"

namespace fabricast {
namespace {

using Json = nlohmann::ordered_json;

std::vector<double> errors_of(const std::vector<StepCase>& cases, const std::vector<double>& times) {
    std::vector<double> out;
    for (std::size_t i = 0; i < cases.size(); ++i)
        out.push_back(times[i] / cases[i].step_s - 1);
    return out;
}

ModelLeftOut leave_out(const std::string& model, const std::vector<StepCase>& cases,
                       const std::vector<double>& defaults, const Calibration& known, unsigned jobs,
                       ModelsLeftOut& all) {
    std::vector<StepCase> others, own;
    std::vector<double> before;
    for (std::size_t i = 0; i < cases.size(); ++i) {
        (cases[i].group == model ? own : others).push_back(cases[i]);
        if (cases[i].group == model)
            before.push_back(defaults[i]);
    }
    ModelLeftOut out;
    out.model = model;
    out.fitted_on = others.size();
    StepFit fit = fit_steps(others, known, jobs);
    for (const PartFit& part : fit.parts) {
        out.kept = out.kept || part.kept;
        if (!part.kept)
            out.reason += (out.reason.empty() ? "" : "; ") + part.reason;
    }
    if (fit.parts.empty())
        out.reason = "too few jobs of one GPU to fit on";
    if (out.kept)
        out.reason.clear();
    out.calibration = known;
    merge_constants(fit, out.calibration);
    const std::vector<double> after =
        out.kept ? forecast_cases(own, std::make_shared<const Calibration>(out.calibration), jobs) : before;
    out.default_errors = errors_of(own, before);
    out.errors = errors_of(own, after);
    for (const StepCase& one : own)
        out.where.push_back(one.where);
    for (std::string& warning : fit.warnings) {
        if (std::find(all.warnings.begin(), all.warnings.end(), warning) == all.warnings.end())
            all.warnings.push_back(std::move(warning));
    }
    return out;
}

std::string stats_text(const ErrorStats& s) {
    return fmt::format("{:>7.1f}% {:>6.1f}% {:>+6.1f}%", 100 * s.median, 100 * s.p90, 100 * s.bias);
}

Json stats_json(const ErrorStats& s) {
    return {{"n", s.n}, {"median_ape", s.median}, {"p90_ape", s.p90}, {"mape", s.mape}, {"bias", s.bias}};
}

std::string constants_text(const Calibration& c) {
    std::string text;
    const std::pair<const char*, const Calibration::Owned*> parts[] = {
        {"gpus", &c.gpus}, {"networks", &c.networks}, {"software", &c.software}};
    for (const auto& [part, owned] : parts) {
        for (const auto& [owner, values] : *owned) {
            for (const auto& [key, value] : values)
                text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, calibration_value_text(part, key, value));
        }
    }
    return text;
}

}  // namespace

ModelsLeftOut leave_models_out(const std::vector<StepCase>& cases, const Calibration& known, unsigned jobs) {
    ModelsLeftOut out;
    const std::vector<double> all = forecast_cases(cases, std::make_shared<const Calibration>(known), jobs);
    std::vector<StepCase> good;
    std::vector<double> defaults;
    std::set<std::string> models;
    for (std::size_t i = 0; i < cases.size(); ++i) {
        if (all[i] <= 0) {
            out.warnings.push_back(cases[i].where + ": the forecast refuses this job; it is left out");
            continue;
        }
        good.push_back(cases[i]);
        defaults.push_back(all[i]);
        models.insert(cases[i].group);
    }
    if (models.size() < 2)
        throw IngestError(cases.empty() ? "" : cases.front().where, 0,
                          fmt::format("jobs of {}: to leave a model out, jobs of two models and more are needed",
                                      models.empty() ? "no model" : "one model, " + *models.begin()));
    for (const std::string& model : models)
        out.models.push_back(leave_out(model, good, defaults, known, jobs, out));
    return out;
}

ErrorStats all_errors(const ModelsLeftOut& result, bool defaults) {
    std::vector<double> all;
    for (const ModelLeftOut& one : result.models) {
        const std::vector<double>& errors = defaults ? one.default_errors : one.errors;
        all.insert(all.end(), errors.begin(), errors.end());
    }
    return error_stats(all);
}

std::string models_left_out_text(const ModelsLeftOut& result) {
    std::string text;
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "{:<22} {:>5} {:>6} {:>23} {:>23}\n{:<22} {:>5} {:>6} {:>8} {:>7} {:>7} {:>8} {:>7} {:>7}\n",
                   "error of step times", "", "fitted", "defaults", "fitted on the others", "model left out", "jobs",
                   "on", "median", "p90", "bias", "median", "p90", "bias");
    for (const ModelLeftOut& one : result.models)
        fmt::format_to(out, "{:<22} {:>5} {:>6} {} {}{}\n", one.model, one.errors.size(), one.fitted_on,
                       stats_text(error_stats(one.default_errors)), stats_text(error_stats(one.errors)),
                       one.kept ? "" : "  defaults kept");
    const ErrorStats before = all_errors(result, true), after = all_errors(result, false);
    fmt::format_to(out, "{:<22} {:>5} {:>6} {} {}\n", "all", after.n, "", stats_text(before), stats_text(after));
    for (const ModelLeftOut& one : result.models) {
        fmt::format_to(out, "without {}: {}\n", one.model, one.kept ? constants_text(one.calibration) : one.reason);
    }
    return text;
}

Json models_left_out_json(const ModelsLeftOut& result) {
    Json models = Json::array();
    for (const ModelLeftOut& one : result.models) {
        Json jobs = Json::array();
        for (std::size_t i = 0; i < one.errors.size(); ++i)
            jobs.push_back(
                {{"where", one.where[i]}, {"error", one.errors[i]}, {"default_error", one.default_errors[i]}});
        Json row = {{"model", one.model},
                    {"fitted_on", one.fitted_on},
                    {"kept", one.kept},
                    {"defaults", stats_json(error_stats(one.default_errors))},
                    {"left_out", stats_json(error_stats(one.errors))}};
        if (one.kept)
            row["constants"] = constants_text(one.calibration);
        else
            row["reason"] = one.reason;
        row["jobs"] = std::move(jobs);
        models.push_back(std::move(row));
    }
    return {{"schema", "fabricast-models-left-out/1"},
            {"defaults", stats_json(all_errors(result, true))},
            {"left_out", stats_json(all_errors(result, false))},
            {"models", models},
            {"warnings", result.warnings}};
}

}  // namespace fabricast
