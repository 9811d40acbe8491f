// What slows a job without stopping it, and when it changes: degradations, congestion, flaps, a leak that grows.
//
// Each kind of degradation arrives as a Poisson process over the nodes of the job (rate x nodes) and lasts as drawn; so does
// congestion over the job. Flaps stall the job once each. The leak's factor is a function of the time since the job's start,
// 1 + per_day x (days beyond `free_for`), on a grid of kLeakGrid so that step times are few.
// Streams are keyed by kind: another kind beside it does not move a kind's arrivals.
#pragma once

#include <vector>

#include "models/faults/random.hpp"
#include "sim/campaign/campaign_spec.hpp"

namespace fabricast::campaign {

inline constexpr double kLeakGrid = 0.05;

class ConditionClock {
public:
    ConditionClock(const CampaignSpec& spec, std::uint64_t seed);

    enum class Kind : std::uint8_t { degraded, mended, congested, cleared, flap, leak };
    struct Change {
        Nanoseconds time = kNever;
        Kind kind = Kind::degraded;
        std::uint32_t which = 0;  ///< degradation
        Nanoseconds stall = 0;    ///< flap
        bool drains = false;      ///< mended: by a planned stop
    };
    Nanoseconds next() const { return next_.time; }
    Change take();
    /// A degradation that begins now, for `lasts` (0: as drawn), beside those that arrive by themselves.
    void degrade(std::uint32_t which, Nanoseconds now, Nanoseconds lasts);
    /// The one that would be mended first is mended now; nothing without one.
    void mend(std::uint32_t which);
    Nanoseconds flap() {
        return nanoseconds(faults::uniform(spec_.flap_low_s, spec_.flap_high_s).at(flaps_.lasts.next()));
    }
    /// Processes start with the job and the leak starts anew with each of its starts.
    void job_started(Nanoseconds now);

    /// Bits of Condition::degraded.
    std::uint32_t mask() const { return mask_; }
    /// Step time under the leak, from that of the condition.
    Nanoseconds leaking(Nanoseconds step) const {
        return step + step * leak_level_ / static_cast<Nanoseconds>(1 / kLeakGrid);
    }

    double leak() const { return static_cast<double>(leak_level_) * kLeakGrid; }

private:
    struct Source {
        faults::Draws arrivals, lasts;
        double mean_gap_s = 0;  ///< 0: never
        Nanoseconds onset = kNever;
        std::vector<Nanoseconds> ends;
    };
    void arrive(Source& source);
    void find_next();

    const ConditionSpec& spec_;
    std::vector<Source> degradations_;
    Source congestion_, flaps_;
    Nanoseconds leak_next_ = kNever, job_start_ = 0;
    std::int64_t leak_level_ = 0;
    std::uint32_t mask_ = 0;
    Change next_;
};

}  // namespace fabricast::campaign
