#include "sim/monitor/walk.hpp"

#include <algorithm>

#include "models/compute/spread.hpp"
#include "models/monitors/thermal.hpp"
#include "models/monitors/xid.hpp"
#include "sim/campaign/economics.hpp"

namespace fabricast::monitor {
namespace {

using campaign::Incident;
using campaign::seconds_of;
using campaign::Spent;
using campaign::Stretch;

bool processes_up(Spent why) {
    return why == Spent::steps || why == Spent::detection || why == Spent::stall || why == Spent::save ||
           why == Spent::false_alarm;
}

}  // namespace

Walk::Walk(const Fleet& fleet, const Pictures& pictures, const campaign::CampaignSpec& spec, std::uint64_t seed,
           Nanoseconds interval)
    : fleet_(fleet),
      pictures_(pictures),
      spec_(spec),
      interval_(interval),
      temp_c_(monitors::settled_temperature(campaign::kIdlePerGpuPower, 1)),
      hot_c_(temp_c_),
      heat_rest_(math::exp(-seconds_of(interval) / monitors::kThermalTauS)) {
    for (std::size_t i = 0; i < kMetricCount; ++i)
        noise_[i] = faults::Draws(seed, faults::Purpose::monitor, i);
}

bool Walk::next(Sample& out) {
    const Nanoseconds end = now_ + interval_;
    const auto& stretches = replica_->stretches;
    if (end > replica_->wall || stretches.empty())
        return false;
    Interval sum;
    while (now_ < end) {
        while (stretches[stretch_].end <= now_) {
            ++stretch_;
            entered_ = false;
        }
        const Stretch& s = stretches[stretch_];
        const Nanoseconds length = std::min(s.end, end) - now_;
        if (s.why == Spent::steps)
            run(s, length, sum);
        else
            stand(s, length, sum);
        now_ += length;
    }
    const Stretch& s = stretches[stretch_];
    out.time = now_;
    out.key = s.key;
    out.steps = sum.steps;
    out.job_start = s.job_start;
    out.restarts = s.why == Spent::steps || s.why == Spent::detection;
    out.silenced = s.why != Spent::steps && s.planned && s.why != Spent::stall;
    out.odd_count = 0;
    out.value.fill(kMissing);
    tell_steps(s, sum, out);
    tell_parts(s, sum, out);
    tell_heat(s, sum, out);
    tell_events(sum, out);
    return true;
}

void Walk::run(const Stretch& s, Nanoseconds length, Interval& sum) {
    if (!entered_) {
        progress_ = s.progress;
        entered_ = true;
        last_step_ = std::max(last_step_, s.job_start);
    }
    const std::int64_t before = progress_.steps();
    const Nanoseconds kept = progress_.kept(), saving = progress_.saving();
    progress_.run(now_, length, s.step, s.limit);
    const std::int64_t steps = progress_.steps() - before;
    const Nanoseconds in_steps = progress_.kept() - kept;
    if (steps > 0)
        last_step_ = now_ + length - progress_.since_boundary();
    sum.steps += steps;
    sum.ended += steps * s.step;
    sum.in_steps += in_steps;
    sum.io += progress_.saving() - saving;

    const StepPicture& p = pictures_({s.key, s.degraded});
    const double step = seconds_of(s.step), passed = seconds_of(in_steps), count = passed / step;
    const double data = p.data_s + p.step_s * s.leak, off = p.off_gpu_s + p.step_s * s.leak;
    const double computing = std::max(0.0, step - off - p.in_collectives_s);
    sum.busy_s += std::max(0.0, step - off) * count;
    sum.data_s += data * count;
    sum.tensor += p.hfu * p.step_s * count;
    sum.nic_bytes += p.nic_bytes * count;
    sum.nvlink_bytes += p.nvlink_bytes * count;
    sum.energy +=
        (computing + p.in_collectives_s * monitors::kWaitingPower + off * campaign::kIdlePerGpuPower) * count +
        (seconds_of(length) - passed) * campaign::kIdlePerGpuPower;
}

void Walk::stand(const Stretch& s, Nanoseconds length, Interval& sum) const {
    const bool waits = s.why == Spent::detection || s.why == Spent::stall;
    if (s.why == Spent::stall) {
        sum.stall += length;
        sum.flaps += now_ == s.begin && !s.membership;
    }
    if (s.why == Spent::save || s.why == Spent::load || s.why == Spent::false_alarm)
        sum.io += length;
    sum.busy_s += waits ? seconds_of(length) : 0;
    sum.energy += seconds_of(length) * (waits ? monitors::kWaitingPower : campaign::kIdlePerGpuPower);
}

// The step as the job's log has it: those that ended, and what stood still between them.
void Walk::tell_steps(const Stretch& s, const Interval& sum, Sample& out) {
    const double z = normal_quantile(noise_[static_cast<std::size_t>(Metric::step_time)].next());
    pending_stall_ += sum.stall;
    const bool up = processes_up(s.why);
    if (!up) {
        pending_stall_ = 0;
        out[Metric::job_up] = s.planned ? kMissing : 0;
        return;
    }
    out[Metric::job_up] = 1;
    out[Metric::since_step] = seconds_of(now_ - std::max(last_step_, s.job_start));
    if (sum.steps == 0)
        return;
    const StepPicture& healthy = pictures_({s.key, 0});
    const auto n = static_cast<double>(sum.steps);
    const double step = seconds_of(sum.ended + pending_stall_) / n * (1 + kStepNoise / std::sqrt(n) * z);
    pending_stall_ = 0;
    out[Metric::step_time] = step;
    out[Metric::tokens_per_s] = healthy.tokens / step;
    out[Metric::mfu] = healthy.mfu * healthy.step_s / step;
    if (sum.in_steps > 0)
        out[Metric::data_wait] = sum.data_s / seconds_of(sum.in_steps);
}

void Walk::tell_parts(const Stretch& s, const Interval& sum, Sample& out) {
    const double interval = seconds_of(interval_);
    out[Metric::gpu_util] = 100 * sum.busy_s / interval;
    out[Metric::tensor_active] = sum.tensor / interval;
    out[Metric::power] = fleet_.board_w * sum.energy / interval;
    out[Metric::nvlink_bw] = sum.nvlink_bytes / interval / 1e9;
    out[Metric::io_wait] = std::min(1.0, (seconds_of(sum.io) + sum.data_s) / interval);
    const double port = fleet_.port_bits_per_s / 1e9;
    if (port > 0) {
        out[Metric::ib_bw] = sum.nic_bytes / interval * 8e-9;
        out[Metric::port_rate] = port;
    }
    const auto draw = [&](Metric m) { return normal_quantile(noise_[static_cast<std::size_t>(m)].next()); };
    const double z_net = draw(Metric::ib_busbw), z_node = draw(Metric::nvlink_busbw),
                 z_rank = draw(Metric::collective_time);
    const auto& kinds = spec_.conditions.degradations;
    for (std::size_t i = 0; i < kinds.size(); ++i)
        if (s.degraded >> i & 1 && kinds[i].what.name == "nic_half" && port > 0)
            out.add(Metric::port_rate, i, port * kinds[i].what.keeps);
    const bool running = s.why == Spent::steps;
    const double memory_free =
        spec_.conditions.leak.per_day > 0 && processes_up(s.why)
            ? std::max(kFreeAtLeast, kFreeAtStart - (kFreeAtStart - kFreeAtLeast) * seconds_of(now_ - s.job_start) /
                                                        std::max(1.0, seconds_of(spec_.conditions.leak.free_for)))
            : kFreeAtStart;
    out[Metric::host_memory_free] = memory_free;
    out[Metric::gpu_memory_allocated] = out[Metric::gpu_memory_reserved] = 0;
    if (!processes_up(s.why))
        return;
    const StepPicture& healthy = pictures_({s.key, 0});
    constexpr double kGiB = 1024.0 * 1024 * 1024;
    out[Metric::gpu_memory_allocated] = healthy.allocated_bytes / kGiB;
    out[Metric::gpu_memory_reserved] = healthy.reserved_bytes / kGiB;
    if (fleet_.clock_mhz > 0)
        out[Metric::sm_clock] = fleet_.clock_mhz;
    if (!running || sum.steps == 0)
        return;

    // Inside collectives: all kinds of rings are slower under congestion; one ring or rank under a degradation of one part.
    const double noise = kStepNoise / std::sqrt(static_cast<double>(sum.steps)), step = seconds_of(s.step);
    const std::uint32_t congested = 1u << kinds.size();
    const campaign::Condition around{s.key, s.degraded & congested};
    const StepPicture& others = pictures_(around);
    if (others.net_busbw > 0)
        out[Metric::ib_busbw] = others.net_busbw / 1e9;
    if (others.node_busbw > 0)
        out[Metric::nvlink_busbw] = others.node_busbw / 1e9;
    const double outside = healthy.step_s - healthy.in_collectives_s + healthy.step_s * s.leak;
    out[Metric::compute_time] = std::min(1.0, outside / step);
    out[Metric::collective_time] = 1 - out[Metric::compute_time];
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        if (!(s.degraded >> i & 1))
            continue;
        const faults::Degradation& d = kinds[i].what;
        if (d.name == "slow_gpu" || d.name == "hot_gpu") {
            const double own = (healthy.step_s - healthy.in_collectives_s - healthy.off_gpu_s) * (1 / d.keeps - 1);
            const double busy = std::clamp((outside + own) / step * (1 + noise * z_rank), 0.0, 1.0);
            out.add(Metric::compute_time, i, busy);
            out.add(Metric::collective_time, i, 1 - busy);
            continue;
        }
        const campaign::Condition alone{s.key, (1u << i) | around.degraded};
        const StepPicture& p = pictures_(alone);
        if (p.net_busbw > 0 && p.net_busbw < others.net_busbw && others.net_rings > 1)
            out.add(Metric::ib_busbw, i, p.net_busbw / 1e9 * (1 + noise * z_net));
        if (p.node_busbw > 0 && p.node_busbw < others.node_busbw && others.node_rings > 1)
            out.add(Metric::nvlink_busbw, i, p.node_busbw / 1e9 * (1 + noise * z_node));
    }
}

void Walk::tell_heat(const Stretch& s, const Interval& sum, Sample& out) {
    const double power = sum.energy / seconds_of(interval_);
    const auto towards = [&](double& t, double settled) { t = settled + (t - settled) * heat_rest_; };
    towards(temp_c_, monitors::settled_temperature(power, 1));
    const double failed = monitors::settled_temperature(power, 1, kFailedCooling);
    const auto& kinds = spec_.conditions.degradations;
    bool hot = false;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        if (!(s.degraded >> i & 1) || kinds[i].what.name != "hot_gpu")
            continue;
        hot = true;
        towards(hot_c_, std::min({failed, monitors::kSlowdownC, throttle_c_}));
        out.add(Metric::gpu_temp, i, std::round(hot_c_));  // drivers tell whole degrees
        if (!missing(out[Metric::sm_clock]))
            out.add(Metric::sm_clock, i, fleet_.clock_mhz * kinds[i].what.keeps);
    }
    if (!hot) {
        hot_c_ = temp_c_;
        throttle_c_ = 1e9;
    }
    out[Metric::gpu_temp] = std::round(temp_c_);
}

void Walk::tell_events(const Interval& sum, Sample& out) {
    out[Metric::link_downed] = sum.flaps;
    out[Metric::loss_is_nan] = out[Metric::grad_norm_event] = out[Metric::ecc_uncorrectable] = out[Metric::xid] = 0;
    for (; incident_ < replica_->incidents.size() && replica_->incidents[incident_].time <= now_; ++incident_) {
        const Incident& incident = replica_->incidents[incident_];
        if (incident.kind == Incident::Kind::poisoned)
            out[Metric::loss_is_nan] = out[Metric::grad_norm_event] = 1;
        if (incident.kind != Incident::Kind::fault && incident.kind != Incident::Kind::replica_left)
            continue;
        const monitors::DriverReport told = monitors::driver_report(spec_.fleet.components[incident.which].name);
        if (told.xid > 0)
            out[Metric::xid] = told.xid;
        out[Metric::ecc_uncorrectable] += told.uncorrectable;
    }
}

}  // namespace fabricast::monitor
