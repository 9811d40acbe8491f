// What monitors know of a job before it runs: its parts, a healthy step of each phase, steps under conditions.
//
// Noise of what is measured: models/monitors/noise.hpp.
// Lasting differences between parts that are well: GPUs as in models/compute/spread.hpp, coolers as in
// models/monitors/thermal.hpp; adapters and rings have none.
#pragma once

#include <atomic>
#include <vector>

#include "models/faults/random.hpp"
#include "models/monitors/noise.hpp"
#include "models/monitors/rule.hpp"
#include "sim/campaign/campaign_report.hpp"
#include "sim/monitor/sample.hpp"
#include "sim/monitor/step_picture.hpp"

namespace fabricast::monitor {

using monitors::kStepNoise;

/// Pictures by condition, simulated when first asked for; safe to ask from many threads, as StepTimes is. What is known stays
/// as it is: a step simulated once more (StepTimes without memory) has the same picture, and others may be reading it.
class Pictures {
public:
    Pictures(std::size_t keys, int kinds) : kinds_(kinds), all_(keys << kinds) {}
    /// Who simulates; null: everything that will be asked for is there.
    void ask(campaign::StepTimes* steps) { steps_ = steps; }
    /// One at a time; of a condition the first counts.
    void set(const campaign::Condition& c, const StepPicture& picture) {
        Slot& at = all_[slot(c)];
        if (at.known.load(std::memory_order_acquire))
            return;
        at.picture = picture;
        at.known.store(true, std::memory_order_release);
    }
    const StepPicture& operator()(const campaign::Condition& c) const {
        const Slot& at = all_[slot(c)];
        if (!at.known.load(std::memory_order_acquire) && steps_)
            steps_->step(c);
        return at.picture;
    }

private:
    struct Slot {
        StepPicture picture;
        std::atomic<bool> known = false;
    };
    std::size_t slot(const campaign::Condition& c) const { return (std::size_t{c.key} << kinds_) + c.degraded; }
    int kinds_;
    std::vector<Slot> all_;
    campaign::StepTimes* steps_ = nullptr;
};

struct Fleet {
    std::uint32_t nodes = 1, gpus = 8, nics = 8;  ///< GPUs and adapters of all nodes: nodes times these
    std::uint32_t pp = 1;
    double gpu_spread = 0;       ///< sigma
    double board_w = 700;        ///< at its limit
    double clock_mhz = 0;        ///< 0: not known
    double port_bits_per_s = 0;  ///< 0: no adapters
    double longest_pause_s = 0;  ///< of a save and an evaluation, as sim/campaign/progress.hpp has it
    std::uint64_t seed = 1;
};
/// `step_s`: of the healthy cluster.
Fleet fleet_of(const Scenario& scenario, const campaign::CampaignSpec& spec, double step_s);

/// Of n parts that are well the one at the bad end of a metric, as a share (or difference) of the median.
class Extremes {
public:
    Extremes(const Fleet& fleet, const StepPicture& base, std::uint64_t seed, std::uint64_t entity);
    /// `median` of the metric, averaged over `steps` steps; how many parts there are comes from the fleet.
    double worst(Metric metric, double median, double steps, bool below);

private:
    double scores(std::uint32_t n, double sigma_lasting, double floor, double sigma_noise);

    const Fleet& fleet_;
    const StepPicture& base_;
    faults::Draws draws_;
    std::uint32_t count_ = 0;  ///< for which lasting_ was made
    double floor_ = 0;
    std::vector<double> lasting_;  ///< scores, in sigma
};

}  // namespace fabricast::monitor
