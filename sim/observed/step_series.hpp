// A training run as it was logged: one row a logged iteration, its step time, its time, and other columns.
//
//   Megatron   ... iteration 120/ 500 | ... | elapsed time per iteration (ms): 14875.2 | ... | global batch size: 512 | ...
//   CSV        step       step, iteration, iter or global_step
//              step time  step_s, step_time, step_time_s, iteration_ms, step_ms, iter_time_ms or step_time_ms; without one,
//                         from `time`
//              time       time, time_s, timestamp or wall_time: seconds, or 2024-05-01 12:00:00
//              start      attempt: a number that grows with every restart
//              others     metrics: data_wait (s, or with _ms), mfu, ib_bw, nvlink_bw, gpu_temp, clock ..., with or without unit
//
// A row that stands for several steps (Megatron's --log-interval) holds their mean. Steps go up; where a log goes back to an
// earlier step, a restart is told by a start line of Megatron's or by `attempt`, and the steps done twice are in it twice.
// Where the global batch changes, only the last size is kept. Iterations that were skipped or gave no number have failed.
// Times without a clock are the sum of step times.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fabricast {

struct StepSeries {
    std::vector<std::int64_t> step;     ///< last step of the row
    std::vector<double> step_s;         ///< mean of the row's steps, above 0
    std::vector<double> time_s;         ///< end of the row, since the first row
    std::vector<std::size_t> attempts;  ///< first row of each start of the job; attempts[0] = 0
    std::int64_t every = 1;             ///< steps a row
    bool has_clock = false;             ///< time_s was logged
    double day_s = -1;                  ///< of the first row, seconds since midnight; -1: not known
    struct Metric {
        std::string name;            ///< "data_wait", in lower case, without its unit
        std::vector<double> values;  ///< in s, GB/s, C, MHz or a plain number; NaN where the field is empty
    };
    std::vector<Metric> metrics;
    std::optional<long> global_batch;  ///< as logged
    std::vector<double> tflops;        ///< as logged, by row where it was; may be shorter
    std::int64_t failed = 0;           ///< iterations left out
    std::string failure;               ///< line with which the job failed; empty: none
    std::vector<std::string> notes;

    std::size_t size() const { return step_s.size(); }
    const Metric* metric(std::string_view name) const;
};

/// Throws IngestError: no such rows, failed ones only, steps that go back, columns that are missing.
StepSeries read_step_series(const std::filesystem::path& path);
StepSeries parse_step_series(std::string_view text, const std::string& file);

}  // namespace fabricast
