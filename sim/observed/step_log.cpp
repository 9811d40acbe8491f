#include "sim/observed/step_log.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/observed/ingest_error.hpp"
#include "sim/observed/step_series.hpp"
#include "sim/observed/text.hpp"

namespace fabricast {
namespace {

double quantile(std::vector<double> values, double q) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + .5)];
}

}  // namespace

StepLog parse_step_log(std::string_view text, const std::string& file) {
    constexpr std::size_t kFewest = 5, kMostWarmUp = 10;
    StepSeries series = parse_step_series(text, file);
    std::vector<double> steps = std::move(series.step_s);
    if (steps.size() < kFewest) {
        throw IngestError(
            file, 0,
            series.failure.empty()
                ? fmt::format("{} measured iterations; {} and more are needed, the first ones are warm-up",
                              steps.size(), kFewest)
                : fmt::format("the job failed after {} iterations: {}", steps.size(), series.failure));
    }
    const std::size_t warm_up = std::clamp<std::size_t>(steps.size() / 10, 1, kMostWarmUp);
    steps.erase(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(warm_up));
    StepLog out;
    out.iterations = static_cast<int>(steps.size());
    out.step_s = quantile(steps, .5);
    out.p10_s = quantile(steps, .1);
    out.p90_s = quantile(steps, .9);
    out.global_batch = series.global_batch;
    if (!series.tflops.empty())
        out.tflops_per_gpu = quantile(series.tflops, .5);
    return out;
}

StepLog read_step_log(const std::filesystem::path& path) { return parse_step_log(read_text_file(path), path.string()); }

}  // namespace fabricast
