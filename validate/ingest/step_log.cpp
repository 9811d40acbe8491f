#include "validate/ingest/step_log.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "validate/ingest/csv.hpp"
#include "validate/ingest/ingest_error.hpp"
#include "validate/ingest/text.hpp"

namespace fabricast {
namespace {

/// The number behind "key" and a colon or blanks.
std::optional<double> number_after(std::string_view line, std::string_view key) {
    const std::size_t at = line.find(key);
    if (at == std::string_view::npos)
        return std::nullopt;
    std::string_view rest = line.substr(at + key.size());
    while (!rest.empty() && (rest.front() == ':' || rest.front() == ' ' || rest.front() == '='))
        rest.remove_prefix(1);
    const auto number = printed_number(rest.substr(0, rest.find_first_of(" |,")));
    return number ? std::optional<double>(number->value) : std::nullopt;
}

double quantile(std::vector<double> values, double q) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + .5)];
}

constexpr std::string_view kFailures[] = {"out of memory",
                                          "OutOfMemoryError",
                                          "Traceback (most recent call last)",
                                          "Watchdog caught collective operation timeout",
                                          "ncclSystemError",
                                          "ncclRemoteError",
                                          "srun: error",
                                          "SIGKILL"};

StepLog summed_up(std::vector<double> steps, const std::string& file, const std::string& failure) {
    constexpr std::size_t kFewest = 5, kMostWarmUp = 10;
    if (steps.size() < kFewest) {
        throw IngestError(file, 0,
                          failure.empty()
                              ? fmt::format("{} measured iterations; {} and more are needed, the first ones are "
                                            "warm-up",
                                            steps.size(), kFewest)
                              : fmt::format("the job failed after {} iterations: {}", steps.size(), failure));
    }
    if (std::any_of(steps.begin(), steps.end(), [](double s) { return !(s > 0); }))
        throw IngestError(file, 0, "an iteration takes no time");
    const std::size_t warm_up = std::clamp<std::size_t>(steps.size() / 10, 1, kMostWarmUp);
    steps.erase(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(warm_up));
    StepLog out;
    out.iterations = static_cast<int>(steps.size());
    out.step_s = quantile(steps, .5);
    out.p10_s = quantile(steps, .1);
    out.p90_s = quantile(steps, .9);
    return out;
}

StepLog parse_table(std::string_view text, const std::string& file) {
    struct Column {
        const char* name;
        double scale;
    };
    constexpr Column kColumns[] = {{"step_s", 1}, {"iteration_ms", 1e-3}, {"step_ms", 1e-3}, {"iter_time_ms", 1e-3}};
    const Csv table = Csv::parse(text, file);
    for (const Column& column : kColumns) {
        if (!table.has(column.name))
            continue;
        std::vector<double> steps;
        for (std::size_t row = 0; row < table.size(); ++row)
            steps.push_back(table.number(row, column.name) * column.scale);
        return summed_up(std::move(steps), file, "");
    }
    throw IngestError(file, 1, "no column of step times; known are step_s, iteration_ms, step_ms and iter_time_ms");
}

}  // namespace

StepLog parse_step_log(std::string_view text, const std::string& file) {
    if (file.ends_with(".csv"))
        return parse_table(text, file);
    std::vector<double> steps, rates;
    std::optional<long> batch;
    std::string failure;
    for (const std::string_view raw : lines_of(text)) {
        const std::string line = clean_line(raw);
        const auto ms = number_after(line, "elapsed time per iteration (ms)");
        if (!ms) {
            for (const std::string_view word : kFailures) {
                if (failure.empty() && contains(line, word))
                    failure = std::string(trimmed(line));
            }
            continue;
        }
        steps.push_back(*ms * 1e-3);
        if (const auto sequences = number_after(line, "global batch size")) {
            if (batch && *batch != static_cast<long>(*sequences))
                steps.clear();  // batch ramp-up: the last size counts
            batch = static_cast<long>(*sequences);
        }
        for (const std::string_view key : {"throughput per GPU (TFLOP/s/GPU)", "TFLOPs"}) {
            if (const auto rate = number_after(line, key)) {
                rates.push_back(*rate);
                break;
            }
        }
    }
    if (steps.empty())
        throw IngestError(file, 0,
                          failure.empty() ? "no line `elapsed time per iteration (ms)`; is this a log of Megatron?"
                                          : "the job failed before its first iteration: " + failure);
    StepLog out = summed_up(std::move(steps), file, failure);
    out.global_batch = batch;
    if (!rates.empty())
        out.tflops_per_gpu = quantile(rates, .5);
    return out;
}

StepLog read_step_log(const std::filesystem::path& path) { return parse_step_log(read_text_file(path), path.string()); }

}  // namespace fabricast
