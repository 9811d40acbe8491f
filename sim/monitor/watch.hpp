// Rules at work: samples in, alarms out.
//
// A rule on a metric of the job has one state. On a metric of peers it has one for the worst of the parts that are well, and
// one for each part under a degradation; each is averaged and held by itself. Planned stops are announced: no rule is asked
// then. A start of the job clears everything that stood.
#pragma once

#include <vector>

#include "sim/monitor/fleet.hpp"
#include "sim/monitor/sample.hpp"

namespace fabricast::monitor {

struct Alarm {
    std::uint32_t rule = 0;
    Nanoseconds begin = 0, end = campaign::kNever;  ///< kNever: it stands
    Nanoseconds critical = campaign::kNever;        ///< since when, if ever
    int part = -1;  ///< degradation whose part it names; -1: the job, or a part that is well
};

/// `rules` with what they wait for: the pauses of this job and two of its steps.
std::vector<monitors::Rule> for_job(std::vector<monitors::Rule> rules, const Fleet& fleet, double step_s);

/// The value of a metric in a healthy job, without noise.
double base_of(Metric metric, const Fleet& fleet, const StepPicture& healthy);

class Watch {
public:
    /// All outlive the watch; `only_acting`: rules that only inquire are left out.
    Watch(const std::vector<monitors::Rule>& rules, const Fleet& fleet, const Pictures& pictures, std::uint64_t seed,
          Nanoseconds interval, bool only_acting);

    /// Alarms that rose with this sample: indices into alarms() whose level the action waits for was reached now.
    const std::vector<std::uint32_t>& look(const Sample& sample);
    const std::vector<Alarm>& alarms() const { return alarms_; }

private:
    struct Slot {
        explicit Slot(const monitors::Rule& rule) : state(rule) {}
        monitors::RuleState state;
        double sum = 0, reference = 0, steps = 0;
        std::int64_t count = 0;
        Nanoseconds since = -1;  ///< of the block
        std::uint32_t alarm = UINT32_MAX;
        bool used = false;
    };
    struct Desk {
        const monitors::Rule* rule;
        std::uint32_t index;
        Extremes extremes;
        std::vector<Slot> slots;
    };
    void job_started(Nanoseconds time);
    void give(Desk& desk, std::size_t slot, const Sample& sample, double value, double median);
    void raise(Desk& desk, std::size_t slot, const Sample& sample, monitors::Level before, monitors::Level now);

    const Fleet& fleet_;
    const Pictures& pictures_;
    Nanoseconds interval_, job_start_ = -1;
    std::uint32_t key_ = 0;
    StepPicture healthy_;
    std::array<double, kMetricCount> base_ = {};
    std::vector<Desk> desks_;
    std::vector<Alarm> alarms_;
    std::vector<std::uint32_t> risen_;
};

}  // namespace fabricast::monitor
