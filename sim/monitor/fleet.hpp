// What monitors know of a job before it runs: its parts, a healthy step of each phase, steps under conditions.
//
// Noise of what is measured: models/monitors/noise.hpp.
// Lasting differences between parts that are well: GPUs as in models/compute/spread.hpp, coolers as in
// models/monitors/thermal.hpp; adapters and rings have none.
#pragma once

#include <vector>

#include "models/faults/random.hpp"
#include "models/monitors/noise.hpp"
#include "models/monitors/rule.hpp"
#include "sim/campaign/campaign_report.hpp"
#include "sim/monitor/sample.hpp"
#include "sim/monitor/step_picture.hpp"

namespace fabricast::monitor {

using monitors::kStepNoise;

/// Pictures by condition, simulated when first asked for; safe to ask from many threads, as StepTimes is.
class Pictures {
public:
    Pictures(std::size_t keys, int kinds) : kinds_(kinds), all_(keys << kinds) {}
    /// Who simulates; null: everything that will be asked for is there.
    void ask(campaign::StepTimes* steps) { steps_ = steps; }
    void set(const campaign::Condition& c, const StepPicture& picture) { all_[slot(c)] = picture; }
    const StepPicture& operator()(const campaign::Condition& c) const {
        if (steps_)
            steps_->step(c);
        return all_[slot(c)];
    }

private:
    std::size_t slot(const campaign::Condition& c) const { return (std::size_t{c.key} << kinds_) + c.degraded; }
    int kinds_;
    std::vector<StepPicture> all_;
    campaign::StepTimes* steps_ = nullptr;
};

struct Fleet {
    std::uint32_t nodes = 1, gpus = 8, nics = 8;  ///< GPUs and adapters of all nodes: nodes times these
    std::uint32_t pp = 1;
    double gpu_spread = 0;       ///< sigma
    double board_w = 700;        ///< at its limit
    double clock_mhz = 0;        ///< 0: not known
    double port_bits_per_s = 0;  ///< 0: no adapters
    double longest_pause_s = 0;  ///< of a save or an evaluation
    std::uint64_t seed = 1;
};
Fleet fleet_of(const Scenario& scenario, const campaign::CampaignSpec& spec);

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
