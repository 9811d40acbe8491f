#include "sim/report/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/compute/gemm.hpp"
#include "sim/report/text.hpp"
#include "sim/scenario/nearest.hpp"
#include "sim/step/forecast.hpp"

namespace fabricast {
namespace {

const std::vector<std::string>& figures() {
    static const std::vector<std::string> names = {"step_s", "tokens_per_s_per_gpu", "mfu", "tflops_per_gpu"};
    return names;
}

/// Share of the dense peak that matrix products sustain in a long run.
double sustained_ceiling(const Scenario& s) {
    const double power = s.power_limit_w > 0 ? std::sqrt(std::min(1.0, s.power_limit_w / s.gpu.power_w)) : 1.0;
    const double envelope = s.training.precision == Precision::fp8 ? kFp8Envelope : 1.0;
    return s.gpu.gemm.cap * s.gpu.gemm.sustained * power * envelope;
}

std::string peak_text(const Scenario& s, double peak_flops) {
    return fmt::format("the dense {} peak of {}, {:.1f} TFLOP/s", report::precision_text(s.training.precision),
                       s.gpu.name, peak_flops / 1e12);
}

}  // namespace

Measurement parse_measurement(const std::string& text, const Scenario& scenario) {
    const std::size_t equals = text.find('=');
    Measurement m;
    m.figure = text.substr(0, equals);
    const auto fail = [&](const std::string& why) { throw ScenarioError(fmt::format("--measured {}: {}", text, why)); };
    if (std::find(figures().begin(), figures().end(), m.figure) == figures().end()) {
        fail(fmt::format("unknown figure `{}`{}; known are {}", m.figure, did_you_mean(m.figure, figures()),
                         listed(figures())));
    }
    const std::string number = equals == std::string::npos ? "" : text.substr(equals + 1);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), m.value);
    if (error != std::errc() || end != number.data() + number.size() || !std::isfinite(m.value) || m.value <= 0)
        fail("a measured figure is a number above 0, as in tokens_per_s_per_gpu=1900");

    const StepResult step = step_of(scenario, build_compute(scenario));
    const double gpus = static_cast<double>(step.ranks);
    if (m.figure == "step_s")
        m.step_s = m.value;
    else if (m.figure == "tokens_per_s_per_gpu")
        m.step_s = step.tokens / gpus / m.value;
    else if (m.figure == "mfu")
        m.step_s = step.model_flops / gpus / step.peak_flops / m.value;
    else
        m.step_s = step.model_flops / gpus / (m.value * 1e12);
    const double possible = m.step_s * gpus * step.peak_flops;
    m.mfu = step.model_flops / possible;
    m.mfu_causal = (step.model_flops - step.attention_flops / 2) / possible;
    if (m.mfu > 1 && m.mfu_causal > sustained_ceiling(scenario)) {
        fail(fmt::format(
            "implies an MFU of {:.1f} % ({:.1f} TFLOP/s a GPU; {:.1f} % with causal attention) of {}: no GPU "
            "can be above its peak; check sequence, batch, GPU count and what a token counts",
            m.mfu * 100, m.mfu * step.peak_flops / 1e12, m.mfu_causal * 100, peak_text(scenario, step.peak_flops)));
    }
    return m;
}

std::string doubt(const Measurement& m, const Scenario& scenario) {
    const double ceiling = sustained_ceiling(scenario);
    if (m.mfu_causal <= ceiling)
        return "";
    return fmt::format(
        "--measured {}={:g}: implies an MFU of {:.1f} % ({:.1f} % with causal attention) of {}; matrix products of "
        "that "
        "GPU sustain {:.1f} %, so the figure is suspicious",
        m.figure, m.value, m.mfu * 100, m.mfu_causal * 100,
        peak_text(scenario, build_compute(scenario).peak_flops(scenario.training.precision)), ceiling * 100);
}

double forecast_over_measured(const Measurement& m, const Result& result) {
    return result.step.ps > 0 ? seconds(result.step.ps) / m.step_s : 0;
}

std::string describe(const Measurement& m, const Result& result) {
    std::string text =
        fmt::format("{} {:g}: step {}, MFU {}", m.figure, m.value, report::duration(m.step_s), report::percent(m.mfu));
    if (const double ratio = forecast_over_measured(m, result); ratio > 0) {
        text += fmt::format("; the forecast's step is {:.1f} % {}", std::abs(ratio - 1) * 100,
                            ratio >= 1 ? "longer" : "shorter");
    }
    return text;
}

std::string measured_text(const std::vector<Measurement>& measurements, const Result& result) {
    std::string text;
    for (const Measurement& m : measurements)
        text += fmt::format("  Measured   {}\n", describe(m, result));
    return text;
}

std::string with_measurements(const std::string& json, const std::vector<Measurement>& measurements,
                              const Result& result) {
    if (measurements.empty())
        return json;
    using nlohmann::ordered_json;
    ordered_json whole = ordered_json::parse(json);
    ordered_json rows = ordered_json::array();
    for (const Measurement& m : measurements) {
        const double ratio = forecast_over_measured(m, result);
        rows.push_back({{"figure", m.figure},
                        {"value", m.value},
                        {"step_s", m.step_s},
                        {"mfu", m.mfu},
                        {"mfu_causal", m.mfu_causal},
                        {"forecast_over_measured", ratio > 0 ? ordered_json(ratio) : ordered_json()},
                        {"suspicious", !doubt(m, *result.scenario).empty()}});
    }
    whole["measured"] = std::move(rows);
    return whole.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace fabricast
