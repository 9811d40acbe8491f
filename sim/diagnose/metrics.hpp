// What the other columns of a log say for or against a fault, ln likelihood against a column that says nothing.
//
//   data_wait (s)          rises by about what the step does (data), or not at all (all others)
//   ib_bw, nic_bw, net_bw  mean over the step: falls as the step grows, for every fault; of the worst port, or while
//                          collectives run: by the share that is left, for faults of the network alone
//   port_rate, pcie_width   what the link came up with: half where that is the fault, else as it was
//   nvlink_bw              the same for NVLink
//   clock, sm_clock        falls where clocks are held, by all of it (slowest GPU) or its share of the mean
//   gpu_temp               moves with faults of clocks and heat
//   mfu                    stays where a step does more work; else falls as the step grows
//   counters               retransmits, link_downed, xmit_wait, ecn, pcie_replay grow with the fault they belong to
//
// Which reading a column has is not known: both are tried with equal weight. No column weighs more than kMost.
#pragma once

#include <vector>

#include "models/faults/signatures.hpp"
#include "sim/observed/picture.hpp"

namespace fabricast {

class MetricEvidence {
public:
    static constexpr double kMost = 6;  ///< nats

    /// Rows where the pattern is against those where it is not.
    MetricEvidence(const StepSeries& series, const Picture& picture, const Pattern& pattern, double base_s,
                   double gpus);

    /// keeps: share of its rate a link keeps under the fault; slower: factor of its compute. 0: not known.
    double of(const faults::Signature& what, double keeps, double slower) const;
    bool speaks() const { return !columns_.empty(); }

private:
    enum class Reading : std::uint8_t { data_wait, network, nvlink, link, clock, temperature, mfu, counter };
    struct Column {
        Reading reading = Reading::mfu;
        std::string name;
        double inside = 0, outside = 0, error = 0;  ///< medians, and the standard error of their difference
    };
    double one(const Column& column, const faults::Signature& what, double keeps, double slower) const;

    std::vector<Column> columns_;
    double ratio_ = 1;  ///< of step times, inside / outside
    double base_s_ = 0, gpus_ = 1;
};

}  // namespace fabricast
