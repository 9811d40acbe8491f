// A rule of a monitor, and its state while samples pass.
//
//   window    samples of so long are averaged first (blocks, not a sliding mean); 0: every sample counts by itself
//   of        what the value is held against:
//               value             nothing: x is the value
//               base              the simulated value of the healthy step:            x = value / base
//               baseline          its own past:                                       x = value / m
//                                 m becomes m + (value - m) max(1 / n, time since the value before / memory) first, unless
//                                 an alarm stands: then it stays as it was
//               peers             the median of the others:                           x = value / median
//               peers_difference                                                      x = value - median
//   threshold x above (below) a level for `hold` raises the level; it falls when x has been back for `keep`
//   cusum     S' = min(max(0, S + d - drift), twice the highest level), d = x - 1 (1 - x for `below`); S above a level
//             raises it. What stands falls when S is 0 again: the change is gone, for a baseline does not move meanwhile
// An alarm is raised once; critical follows warning without a second alarm. A start of the job clears alarms, holds and sums.
//
// Source of the change-point test: Page 1954, one-sided CUSUM; drift is half of the smallest shift that matters, the level
// sets how rare a false alarm is (about exp(2 drift level / sigma^2) samples between two, sigma of one sample).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "models/monitors/metric.hpp"

namespace fabricast::monitors {

enum class Of : std::uint8_t { value, base, baseline, peers, peers_difference };
enum class Test : std::uint8_t { threshold, cusum };
enum class Action : std::uint8_t {
    inquire,   ///< somebody looks; the job runs on
    throttle,  ///< gpu_temp: the GPU's power is cut until it is at the warning level
    restart,   ///< save and restart; the node of the part the alarm names is exchanged
};
enum class Level : std::uint8_t { none, warning, critical };

std::string_view of_name(Of of);
std::string_view action_name(Action action);

inline constexpr double kNoLevel = std::numeric_limits<double>::infinity();

struct Rule {
    std::string name;
    std::string set;  ///< "default", "case-a", "own"
    Metric metric = Metric::step_time;
    Of of = Of::value;
    Test test = Test::threshold;
    bool below = false;
    double warning = kNoLevel, critical = kNoLevel;  ///< of x, or of S; kNoLevel: none
    double hold_s = 0, window_s = 0;
    double keep_s = 0;        ///< threshold: an alarm that returns within it is the same one
    double least_steps = 0;   ///< the window grows until it holds so many steps
    double memory_s = 86400;  ///< of a baseline
    double drift = 0;         ///< cusum
    Action action = Action::inquire;
    bool waits_for_pauses = false;  ///< hold (or a level in s) grows by the longest pause the job makes by itself
    std::string reason;
};

inline bool of_peers(const Rule& rule) { return rule.of == Of::peers || rule.of == Of::peers_difference; }

/// "step_time > 1.5 x base, critical > 2 x base, for 5 min".
std::string rule_text(const Rule& rule);

class RuleState {
public:
    explicit RuleState(const Rule& rule) : rule_(&rule) {}

    /// One (averaged) value at `time_s`, `passed_s` after the one before; base or median in `reference` where the rule needs
    /// one. Returns the level that stands.
    Level update(double time_s, double passed_s, double value, double reference);
    void job_started();
    void phase_changed() { baseline_count_ = 0; }
    Level standing() const { return standing_; }
    double sum() const { return sum_; }

private:
    bool beyond(double x, double level) const { return rule_->below ? x < level : x > level; }
    Level threshold(double time_s, double x);
    Level cusum(double x);

    const Rule* rule_;
    struct Passed {
        double since = -1, last = -1;  ///< first of a row of values beyond the level; the last one beyond it
        bool stands = false;
    };
    Passed warning_, critical_;
    double sum_ = 0, baseline_ = 0;
    std::int64_t baseline_count_ = 0;
    Level standing_ = Level::none;
};

}  // namespace fabricast::monitors
