// The course of one replica: stretches of time in which nothing changes but the progress of the job, one behind the other.
//
// What a monitor would have seen is read off it: a stretch of running holds the progress at its begin, so that steps, saves
// and evaluations at any instant inside it come out by the same arithmetic that ran them. Steps kept over time are read off it,
// too (course_of).
#pragma once

#include <vector>

#include "sim/campaign/progress.hpp"

namespace fabricast::campaign {

/// Where wall time goes; every nanosecond is in one of them.
enum class Spent : std::uint8_t {
    steps,  ///< steps that were kept: productive
    lost,   ///< steps done and thrown away, the one in flight included
    save,   ///< training stands still for a save
    evaluation,
    stall,      ///< flaps, changes of membership
    detection,  ///< from the fault until somebody knows
    restart,    ///< locating, exchange of the node, process start, communicators
    load,       ///< from the checkpoint
    waiting,    ///< for a node: no spare was left
    maintenance,
    queue,        ///< for the scheduler, between jobs
    false_alarm,  ///< a save that looked like a hang
    count
};
inline constexpr std::size_t kSpentCount = static_cast<std::size_t>(Spent::count);

struct Stretch {
    Nanoseconds begin = 0, end = 0;
    Spent why = Spent::steps;              ///< steps: the job runs, saves and evaluations inside
    bool planned = false;                  ///< standing: nobody is surprised
    bool membership = false;               ///< stall: a replica leaves or joins; otherwise a flap
    std::uint32_t component = UINT32_MAX;  ///< standing: what broke, where something did
    Nanoseconds job_start = 0;             ///< of the processes that run, or ran last
    // running
    std::uint32_t key = 0, degraded = 0;  ///< Condition
    double leak = 0;                      ///< share that the step is longer by
    Nanoseconds step = 0;
    std::int64_t limit = 0;  ///< for Progress::run
    // both
    Progress progress;  ///< at `begin`
};

/// A bend of a life's course: between two of them steps grow evenly.
struct CourseMark {
    Nanoseconds time = 0;
    std::int64_t steps = 0;  ///< kept
};
/// By time; where the job goes back, two at the same instant. No two are alike, of a stand only its ends are there.
std::vector<CourseMark> course_of(const std::vector<Stretch>& stretches);

}  // namespace fabricast::campaign
