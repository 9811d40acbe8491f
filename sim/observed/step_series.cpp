#include "sim/observed/step_series.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/observed/csv.hpp"
#include "sim/observed/ingest_error.hpp"
#include "sim/observed/text.hpp"

namespace fabricast {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// The number behind "key" and a colon or blanks.
std::optional<double> number_after(std::string_view line, std::string_view key) {
    const std::size_t at = line.find(key);
    if (at == std::string_view::npos)
        return std::nullopt;
    std::string_view rest = line.substr(at + key.size());
    while (!rest.empty() && (rest.front() == ':' || rest.front() == ' ' || rest.front() == '='))
        rest.remove_prefix(1);
    const auto number = printed_number(rest.substr(0, rest.find_first_of(" |,/")));
    return number ? std::optional<double>(number->value) : std::nullopt;
}

constexpr std::string_view kFailures[] = {"out of memory",
                                          "OutOfMemoryError",
                                          "Traceback (most recent call last)",
                                          "Watchdog caught collective operation timeout",
                                          "ncclSystemError",
                                          "ncclRemoteError",
                                          "srun: error",
                                          "SIGKILL"};
// Printed by Megatron once at every start.
constexpr std::string_view kStarts[] = {"using world size:", "[before the start of training step]"};

/// Seconds of "2024-05-01 12:00:00[.5]" or with a T, since 1970; nothing otherwise.
std::optional<double> seconds_of_date(std::string_view text) {
    constexpr std::string_view kShape = "dddd-dd-dd dd:dd:dd";
    if (text.size() < kShape.size())
        return std::nullopt;
    for (std::size_t i = 0; i < kShape.size(); ++i) {
        const char c = text[i];
        const bool right = kShape[i] == 'd'   ? c >= '0' && c <= '9'
                           : kShape[i] == ' ' ? c == ' ' || c == 'T'
                                              : c == kShape[i];
        if (!right)
            return std::nullopt;
    }
    const auto part = [&](std::size_t at, std::size_t length) {
        std::int64_t value = 0;
        for (const char c : text.substr(at, length))
            value = value * 10 + (c - '0');
        return value;
    };
    // Days since 1970 of the Gregorian calendar, years beginning with March.
    const std::int64_t month = part(5, 2), year = part(0, 4) - (month <= 2 ? 1 : 0);
    const std::int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + part(8, 2) - 1;
    const std::int64_t days = year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719468;
    double seconds = static_cast<double>(days * 86400 + part(11, 2) * 3600 + part(14, 2) * 60 + part(17, 2));
    std::string_view rest = text.substr(kShape.size());
    if (rest.size() > 1 && rest.front() == '.') {
        const auto fraction = printed_number(rest.substr(0, rest.find_first_not_of("0123456789", 1)));
        seconds += fraction ? fraction->value : 0;
    }
    return seconds;
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// What logs of all sorts have in common, row by row, and the checks at the end.
class Collector {
public:
    explicit Collector(const std::string& file) : file_(file) {}

    StepSeries out;

    void begin_attempt() { starts_ = true; }

    void row(int line, std::int64_t step, double step_s, double clock_s) {
        const bool first = out.step.empty();
        if (!first && !starts_ && step <= out.step.back()) {
            throw IngestError(file_, line,
                              fmt::format("step {} follows step {}: steps must go up; a restart is told by a column "
                                          "`attempt`, or by the lines Megatron prints when it starts",
                                          step, out.step.back()));
        }
        if (!std::isfinite(step_s))
            throw IngestError(file_, line, fmt::format("step {} has no finite step time", step));
        if (!(step_s > 0))
            throw IngestError(file_, line, "an iteration takes no time");
        if (first || starts_)
            out.attempts.push_back(out.step.size());
        starts_ = false;
        out.step.push_back(step);
        out.step_s.push_back(step_s);
        clock_.push_back(clock_s);
    }

    void clear() {
        StepSeries fresh;
        fresh.failure = out.failure;
        fresh.failed = out.failed;
        out = std::move(fresh);
        clock_.clear();
        starts_ = false;
    }

    StepSeries finish() {
        const std::size_t n = out.size();
        std::vector<double> gaps;
        for (std::size_t i = 1; i < n; ++i) {
            if (out.step[i] > out.step[i - 1])
                gaps.push_back(static_cast<double>(out.step[i] - out.step[i - 1]));
        }
        out.every = gaps.empty() ? 1 : static_cast<std::int64_t>(median(gaps));
        times();
        return std::move(out);
    }

private:
    void times() {
        const std::size_t n = out.size();
        bool clock = n > 0;
        for (std::size_t i = 0; i < n && clock; ++i)
            clock = std::isfinite(clock_[i]) && (i == 0 || clock_[i] >= clock_[i - 1]);
        clock = clock && clock_.back() > clock_.front();
        out.has_clock = clock;
        if (clock) {
            for (const double at : clock_)
                out.time_s.push_back(at - clock_.front());
            if (clock_.front() > 1e8) {  // a date, not seconds since the start
                const double days = std::floor(clock_.front() / 86400);
                out.day_s = clock_.front() - days * 86400;
            }
            return;
        }
        double now = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const std::int64_t steps =
                i > 0 && out.step[i] > out.step[i - 1] ? out.step[i] - out.step[i - 1] : out.every;
            now += i == 0 ? 0 : out.step_s[i] * static_cast<double>(steps);
            out.time_s.push_back(now);
        }
    }

    const std::string& file_;
    std::vector<double> clock_;
    bool starts_ = false;
};

// ---- CSV

struct Column {
    std::string_view name;
    double scale;
};
constexpr Column kStepTimes[] = {{"step_s", 1},          {"step_time", 1},  {"step_time_s", 1},
                                 {"iteration_ms", 1e-3}, {"step_ms", 1e-3}, {"iter_time_ms", 1e-3},
                                 {"step_time_ms", 1e-3}};
constexpr std::string_view kSteps[] = {"step", "iteration", "iter", "global_step"};
constexpr std::string_view kTimes[] = {"time", "time_s", "timestamp", "wall_time"};

/// Name and scale of a metric without its unit.
Column without_unit(std::string_view name) {
    constexpr Column kUnits[] = {{"_ms", 1e-3}, {"_s", 1}, {"_gbps", 1.0 / 8}, {"_gb_s", 1},
                                 {"_mhz", 1},   {"_c", 1}, {"_percent", .01},  {"_pct", .01}};
    for (const Column& unit : kUnits)
        if (name.size() > unit.name.size() && name.ends_with(unit.name))
            return {name.substr(0, name.size() - unit.name.size()), unit.scale};
    return {name, 1};
}

template <typename List>
std::string find_column(const Csv& table, const List& names) {
    for (const auto& wanted : names)
        for (const std::string& name : table.header())
            if (lower(name) == wanted)
                return name;
    return {};
}

StepSeries parse_table(std::string_view text, const std::string& file) {
    const Csv table = Csv::parse(text, file);
    std::string time_column, step_time;
    double scale = 1;
    for (const Column& column : kStepTimes) {
        step_time = find_column(table, std::array{column.name});
        scale = column.scale;
        if (!step_time.empty())
            break;
    }
    const std::string steps = find_column(table, kSteps),
                      attempt = find_column(table, std::array{std::string_view("attempt")});
    time_column = find_column(table, kTimes);
    if (step_time.empty() && (time_column.empty() || steps.empty())) {
        throw IngestError(
            file, 1,
            fmt::format("no column of step times; known are step_s, step_time, iteration_ms, step_ms, iter_time_ms "
                        "and step_time_ms, or `step` with `time`; there are: {}",
                        fmt::join(table.header(), ", ")));
    }
    if (table.size() == 0)
        throw IngestError(file, 0, "has a line of column names and no row");
    const auto clock_of = [&](std::size_t row) {
        if (time_column.empty())
            return kNone;
        const std::string& field = table.text(row, time_column);
        if (const auto date = seconds_of_date(trimmed(field)))
            return *date;
        const auto number = table.number_if_any(row, time_column);
        return number ? *number : kNone;
    };
    std::vector<std::string> metrics;
    for (const std::string& name : table.header()) {
        if (name == step_time || name == steps || name == time_column || name == attempt || name.empty())
            continue;
        const bool numeric = [&] {
            std::size_t numbers = 0;
            for (std::size_t row = 0; row < table.size(); ++row) {
                const std::string_view field = trimmed(table.text(row, name));
                if (!field.empty() && !printed_number(field) && lower(field) != "nan")
                    return false;
                numbers += printed_number(field) ? 1 : 0;
            }
            return numbers > 0;
        }();
        if (numeric)
            metrics.push_back(name);
    }
    Collector collect(file);
    std::vector<std::size_t> kept;
    std::int64_t last_attempt = 0;
    double last_clock = kNone;
    for (std::size_t row = 0; row < table.size(); ++row) {
        const std::int64_t step = steps.empty() ? static_cast<std::int64_t>(row) + 1 : table.integer(row, steps);
        const double clock = clock_of(row);
        if (!attempt.empty()) {
            const std::int64_t number = table.integer(row, attempt);
            if (row > 0 && number != last_attempt)
                collect.begin_attempt();
            last_attempt = number;
        }
        double step_s = kNone;
        if (!step_time.empty()) {
            const std::string_view field = trimmed(table.text(row, step_time));
            if (!field.empty() && lower(field) != "nan")
                step_s = table.number(row, step_time) * scale;
        } else if (std::isfinite(clock) && std::isfinite(last_clock) && !collect.out.step.empty()) {
            const std::int64_t done = step - collect.out.step.back();
            step_s = done > 0 ? (clock - last_clock) / static_cast<double>(done) : 0;
        } else if (std::isfinite(clock) && row == 0 && table.size() > 1) {
            const std::int64_t done = table.integer(1, steps) - step;
            step_s = done > 0 ? (clock_of(1) - clock) / static_cast<double>(done) : kNone;
        }
        last_clock = clock;
        if (std::isnan(step_s)) {
            ++collect.out.failed;
            continue;
        }
        collect.row(table.line(row), step, step_s, clock);
        kept.push_back(row);
    }
    if (kept.empty())
        throw IngestError(file, 0, fmt::format("no iteration has a step time: all {} rows failed", table.size()));
    StepSeries out = collect.finish();
    for (const std::string& name : metrics) {
        const std::string small = lower(name);
        const Column plain = without_unit(small);
        StepSeries::Metric metric;
        metric.name = std::string(plain.name);
        for (const std::size_t row : kept) {
            const auto value =
                lower(trimmed(table.text(row, name))) == "nan" ? std::nullopt : table.number_if_any(row, name);
            metric.values.push_back(value ? *value * plain.scale : kNone);
        }
        out.metrics.push_back(std::move(metric));
    }
    return out;
}

// ---- Megatron

StepSeries parse_megatron(std::string_view text, const std::string& file) {
    Collector collect(file);
    std::optional<long> batch;
    std::int64_t dropped = 0, counted = 0;
    int number = 0;
    std::string failure;
    for (const std::string_view raw : lines_of(text)) {
        ++number;
        const std::string line = clean_line(raw);
        const auto ms = number_after(line, "elapsed time per iteration (ms)");
        if (!ms) {
            for (const std::string_view word : kFailures) {
                if (failure.empty() && contains(line, word))
                    failure = std::string(trimmed(line));
            }
            for (const std::string_view word : kStarts) {
                if (contains(line, word)) {
                    collect.begin_attempt();
                    failure.clear();
                }
            }
            continue;
        }
        ++counted;
        const auto skipped = number_after(line, "number of skipped iterations"),
                   nan = number_after(line, "number of nan iterations");
        if ((skipped && *skipped > 0) || (nan && *nan > 0)) {
            ++collect.out.failed;
            continue;
        }
        if (const auto sequences = number_after(line, "global batch size")) {
            if (batch && *batch != static_cast<long>(*sequences)) {  // batch ramp-up: the last size counts
                dropped += static_cast<std::int64_t>(collect.out.size());
                collect.clear();
            }
            batch = static_cast<long>(*sequences);
        }
        const auto step = number_after(line, "iteration");
        double clock = kNone;
        if (const std::size_t open = raw.find("[20"); open != std::string_view::npos)
            clock = seconds_of_date(raw.substr(open + 1)).value_or(kNone);
        collect.row(number, step ? static_cast<std::int64_t>(*step) : static_cast<std::int64_t>(collect.out.size()) + 1,
                    *ms * 1e-3, clock);
        for (const std::string_view key : {"throughput per GPU (TFLOP/s/GPU)", "TFLOPs"}) {
            if (const auto rate = number_after(line, key)) {
                collect.out.tflops.push_back(*rate);
                break;
            }
        }
    }
    if (collect.out.size() == 0) {
        throw IngestError(file, 0,
                          counted > 0        ? fmt::format("all {} iterations were skipped or gave NaN", counted)
                          : !failure.empty() ? "the job failed before its first iteration: " + failure
                          : trimmed(text).empty()
                              ? "is empty"
                              : "no line `elapsed time per iteration (ms)`; is this a log of Megatron? A table needs a "
                                "name that ends in .csv");
    }
    StepSeries out = collect.finish();
    out.failure = failure;
    out.global_batch = batch;
    if (dropped > 0)
        out.notes.push_back(
            fmt::format("the first {} iterations have another global batch than the last {} and are left out", dropped,
                        out.size()));
    return out;
}

}  // namespace

const StepSeries::Metric* StepSeries::metric(std::string_view name) const {
    const auto at = std::find_if(metrics.begin(), metrics.end(), [&](const Metric& m) { return m.name == name; });
    return at == metrics.end() ? nullptr : &*at;
}

StepSeries parse_step_series(std::string_view text, const std::string& file) {
    StepSeries out = lower(file).ends_with(".csv") ? parse_table(text, file) : parse_megatron(text, file);
    if (out.failed > 0)
        out.notes.push_back(
            fmt::format("{} iterations failed (skipped, NaN or without a time) and are left out", out.failed));
    return out;
}

StepSeries read_step_series(const std::filesystem::path& path) {
    return parse_step_series(read_text_file(path), path.string());
}

}  // namespace fabricast
