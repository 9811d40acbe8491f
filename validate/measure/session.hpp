// One run of `measure`: warm-up, repeated samples, and a file that is valid whenever the run ends.
//
// A test is warmed up, then timed until it has the samples asked for or its time is used up; the median stands for it, the 10th
// and 90th percentile tell its spread. The file is written after every test, marked incomplete, and once more at the end.
// Ctrl-C ends the run after the sample under way; what is there stays.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include "validate/measure/measurement.hpp"

namespace fabricast {

/// A measurement that cannot go on: no device, a wrong result, no permission. One clear sentence.
struct MeasureError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct MeasureOptions {
    bool quick = false;      ///< seconds instead of minutes: fewer and smaller shapes
    std::uint64_t seed = 1;  ///< of shapes between the fixed ones, and of the data
    std::string output;      ///< measurement file; empty: none is written
    bool progress = false;   ///< a line per test on stderr
};

class MeasureSession {
public:
    MeasureSession(MeasurementFile start, MeasureOptions options);

    const MeasureOptions& options() const { return options_; }
    MeasurementFile& file() { return file_; }
    /// Ctrl-C came: leave.
    static bool interrupted();
    /// From here on Ctrl-C ends the run gently.
    static void catch_interrupts();
    static void interrupt();  ///< as Ctrl-C does, for tests
    /// A program that opened the module this session runs in tells by `asked` (0 or 1) that Ctrl-C came.
    static void ask_too(std::int32_t (*asked)());

    /// `once` runs the test and gives its time in us; warm-ups are thrown away.
    Samples sample(const std::function<double()>& once) const;

    void add(MeasuredPoint point);
    void add(MeasuredCurve curve);
    void note(std::string sentence);
    /// Writes the file as it is, incomplete.
    void save() const;
    /// The last word: complete, or interrupted.
    MeasurementFile finish();

private:
    void tell(const std::string& what) const;
    MeasurementFile file_;
    MeasureOptions options_;
};

}  // namespace fabricast
