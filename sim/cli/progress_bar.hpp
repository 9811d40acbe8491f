// How far a search is, on a terminal: one line on stderr that is written over and goes away at the end.
//
//   [######--------------] 340 of about 1120 simulated, 60 known, 12.4 a second, about 1:03 left
//
// Nothing where stderr is no terminal, is a dumb one, or nothing is to be said.
#pragma once

#include <chrono>
#include <mutex>

#include "sim/plan/search.hpp"

namespace fabricast::cli {

class ProgressBar {
public:
    explicit ProgressBar(bool quiet);
    ~ProgressBar() { clear(); }
    ProgressBar(const ProgressBar&) = delete;
    ProgressBar& operator=(const ProgressBar&) = delete;

    bool shows() const { return shows_; }
    void tell(const plan::SearchProgress& progress);  ///< from any thread
    void clear();

private:
    using Clock = std::chrono::steady_clock;
    const bool shows_;
    std::mutex mutex_;
    Clock::time_point last_, begin_;
    bool begun_ = false, shown_ = false;
};

/// The line, `seconds` after the first evaluation began.
std::string progress_line(const plan::SearchProgress& progress, double seconds);

}  // namespace fabricast::cli
