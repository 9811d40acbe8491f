// The metrics of one replica, sample by sample, read off its course; nothing is kept but the present state.
//
// Over an interval (t0, t1] each stretch adds what it did: steps that ended, time in steps, pauses and stalls, work done, bytes
// sent, energy. Counters (traffic, power, utilisation) are means over the interval; step time is that of the steps that ended
// in it, with stalls between them; everything else is as it stands at t1.
//
//   a GPU's kernels     compute          wait in a collective, a hang, a stall    off the GPU, no job
//   gpu_util            100 %            100 %                                    0
//   power / board       1                kWaitingPower                            kIdlePerGpuPower
//
// so a job that hangs for ever reads 100 % busy at a fifth of its power, with no traffic, and `since_step` grows.
// Under a leak a step is longer by time that waits for data. Its memory is gone when steps begin to grow: host_memory_free
// falls in a straight line from kFreeAtStart at the start of the job to kFreeAtLeast at the end of the leak's free time.
// Noise is drawn for every sample, of its own stream, whether it is used or not: one metric never shifts another.
#pragma once

#include "sim/monitor/fleet.hpp"
#include "sim/monitor/sample.hpp"

namespace fabricast::monitor {

using monitors::kFailedCooling, monitors::kFreeAtLeast, monitors::kFreeAtStart;

class Walk {
public:
    /// All outlive the walk. `seed` is the replica's own.
    Walk(const Fleet& fleet, const Pictures& pictures, const campaign::CampaignSpec& spec, std::uint64_t seed,
         Nanoseconds interval);

    /// The replica to read. A second one must be the same up to now: the walk goes on along it.
    void follow(const campaign::ReplicaResult& replica) { replica_ = &replica; }
    /// False at the end of the replica; what is left of the last interval is not told.
    bool next(Sample& sample);
    /// From here on the hot GPU's power is cut so that it does not pass this temperature.
    void throttle(double celsius) { throttle_c_ = celsius; }

    Nanoseconds now() const { return now_; }

private:
    struct Interval {
        Nanoseconds in_steps = 0, ended = 0, stall = 0, io = 0, waiting = 0, busy = 0;
        double busy_s = 0, energy = 0, tensor = 0, nic_bytes = 0, nvlink_bytes = 0, data_s = 0;
        std::int64_t steps = 0;
        int flaps = 0;
    };
    void run(const campaign::Stretch& s, Nanoseconds length, Interval& sum);
    void stand(const campaign::Stretch& s, Nanoseconds length, Interval& sum) const;
    void tell_steps(const campaign::Stretch& s, const Interval& sum, Sample& out);
    void tell_parts(const campaign::Stretch& s, const Interval& sum, Sample& out);
    void tell_events(const Interval& sum, Sample& out);
    void tell_heat(const campaign::Stretch& s, const Interval& sum, Sample& out);

    const Fleet& fleet_;
    const Pictures& pictures_;
    const campaign::CampaignSpec& spec_;
    const campaign::ReplicaResult* replica_ = nullptr;
    Nanoseconds interval_, now_ = 0;
    std::size_t stretch_ = 0, incident_ = 0;
    bool entered_ = false;  ///< progress_ is that of stretch_
    campaign::Progress progress_;
    Nanoseconds last_step_ = 0, pending_stall_ = 0;
    double temp_c_, hot_c_, throttle_c_ = 1e9;
    double heat_rest_ = 0;  ///< exp(-interval / tau)
    std::array<faults::Draws, kMetricCount> noise_;
};

}  // namespace fabricast::monitor
