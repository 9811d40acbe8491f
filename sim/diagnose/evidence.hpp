// How likely a pattern is under a fault: its size, stops, period, length and time of onset, from simulated steps.
//
//   size       p(seen | fault) = mean over the range of severities of N(seen; simulated size, error)
//              error^2 = (standard error)^2 + (kPartError s x size)^2 + kLeastError^2; sizes between simulated severities
//              are linear
//   stop       log-normal of the range of stops; its effect on the step is that of a simulated one
//   length     of an event that ended: that it lasts within a factor of 1.5 of what it did; else that it lasts at least that
//   onset      rate x length of the log; in the middle of a start only for what may begin there
#pragma once

#include <optional>

#include "sim/diagnose/diagnosis.hpp"
#include "sim/diagnose/fault_steps.hpp"

namespace fabricast {

struct Evidence {
    double fit = 0;  ///< ln p(pattern | fault)
    std::string severity, inject;
    double predicted = 0;
    double keeps = 0, slower = 0;  ///< for the metrics
};

class EvidenceMaker {
public:
    /// spread: s of the head of diagnosis.hpp. All outlive it.
    EvidenceMaker(const Scenario& scenario, FaultSteps& steps, const Picture& picture, const StepSeries& series,
                  double spread, double base_s);

    /// Nothing where the fault does not make such patterns, or the job has no such part.
    std::optional<Evidence> of(const faults::Signature& what, const Pattern& pattern);
    /// The level of the whole log against the forecast, from the start on.
    std::optional<Evidence> from_start(const faults::Signature& what, double offset, double bias);

    /// Simulates what level() and from_start() will ask for, all at once.
    void prepare_levels();

    double prior(const faults::Signature& what, const Pattern& pattern) const;  ///< expected number
    double prior_at_start(const faults::Signature& what) const;                 ///< probability
    double something_else(const Pattern& pattern) const;                        ///< ln p(pattern | none of them)
    double excess_s(const Pattern& pattern) const;                              ///< of a step of a raised row

private:
    std::string level_text(const faults::Signature&, double severity) const;
    bool makes_levels(const faults::Signature&) const;
    std::optional<Evidence> level(const faults::Signature&, double seen, double error, double more_error);
    std::optional<Evidence> starving(const faults::Signature&, const Pattern&);
    std::optional<Evidence> stops(const faults::Signature&, const Pattern&);
    std::optional<Evidence> ramp(const faults::Signature&, const Pattern&);
    std::optional<Evidence> wave(const faults::Signature&, const Pattern&);
    std::optional<Evidence> spread(const faults::Signature&, const Pattern&);
    double lasting(const faults::Signature&, const Pattern&) const;
    double at_epochs(const Pattern&) const;
    bool begins_inside(const Pattern&) const;
    bool begins_with_start(const Pattern&) const;
    double transmission(bool together);
    double steps_of(double rows) const {
        return rows * static_cast<double>(series_.every) * static_cast<double>(picture_.group);
    }

    const Scenario& s_;
    FaultSteps& steps_;
    const Picture& picture_;
    const StepSeries& series_;
    double part_error_, base_s_, days_, links_;
};

}  // namespace fabricast
