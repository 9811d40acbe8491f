// Text of logs: lines, words, printed numbers, and the marks that launchers put before lines.
//
// A printed number stands for an interval: "186.39" is 186.39 +- 0.005, "2.0e+07" is 2.0e7 +- 0.05e7. Checks of one
// column against another use these intervals, so a log is never called wrong for its rounding.
//
// clean_line removes what is not the program's own output: colour codes, a carriage return, and before the line
//   0:  3:                    srun -l            [1,12]<stdout>:        mpirun --tag-output (also inside a line)
//   [0]                       PMIx (also inside)  run(), common.cu:967,  a debugging build
//   [pod/launcher/worker]     kubectl logs       (worker, rank=0, pid=17), 2024-05-06T12:00:00Z
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fabricast {

/// A number as printed, with half a unit of its last digit.
struct Printed {
    double value = 0;
    double error = 0;
    double low() const { return value - error; }
    double high() const { return value + error; }
};

/// The whole token is a finite decimal number (sign and exponent allowed); otherwise nothing.
std::optional<Printed> printed_number(std::string_view token);
/// The whole token is a decimal integer that fits; otherwise nothing.
std::optional<std::int64_t> whole_number(std::string_view token);

std::vector<std::string_view> words(std::string_view text);
std::string_view trimmed(std::string_view text);
bool starts_with(std::string_view text, std::string_view start);
bool contains(std::string_view text, std::string_view part);
std::string lower(std::string_view text);

/// Lines without their ends; "\n", "\r\n" and a lone "\r" before "\n" are the same. The views point into `text`.
std::vector<std::string_view> lines_of(std::string_view text);

/// Removes launcher prefixes and colour codes; see the head of this file.
std::string clean_line(std::string_view line);

/// The whole file. Throws IngestError when it cannot be opened or is not text.
std::string read_text_file(const std::filesystem::path& path);

}  // namespace fabricast
