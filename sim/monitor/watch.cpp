#include "sim/monitor/watch.hpp"

#include <algorithm>

#include "models/monitors/thermal.hpp"
#include "sim/campaign/economics.hpp"
#include "sim/monitor/walk.hpp"

namespace fabricast::monitor {
namespace {

using campaign::seconds_of;
using monitors::Level;
using monitors::of_peers;
using monitors::Rule;

constexpr std::uint64_t kRuleStreams = 1000;  // entities beyond those of metrics

}  // namespace

std::vector<Rule> for_job(std::vector<Rule> rules, const Fleet& fleet, double step_s) {
    const double pause = fleet.longest_pause_s + 2 * step_s;
    for (Rule& rule : rules) {
        rule.window_s = std::max(rule.window_s, rule.least_steps * step_s);
        if (!rule.waits_for_pauses)
            continue;
        if (rule.hold_s > 0) {
            rule.hold_s += pause;
            continue;
        }
        rule.warning += pause;
        rule.critical += pause;
    }
    return rules;
}

double base_of(Metric metric, const Fleet& fleet, const StepPicture& p) {
    const double step = std::max(1e-9, p.step_s), board = fleet.board_w;
    const double waiting = p.in_collectives_s / step, off = p.off_gpu_s / step;
    const double power = 1 - waiting * (1 - monitors::kWaitingPower) - off * (1 - campaign::kIdlePerGpuPower);
    switch (metric) {
        case Metric::step_time: return p.step_s;
        case Metric::mfu: return p.mfu;
        case Metric::tokens_per_s: return p.tokens / step;
        case Metric::gpu_util: return 100 * (1 - off);
        case Metric::tensor_active: return p.hfu;
        case Metric::power: return board * power;
        case Metric::gpu_temp: return monitors::settled_temperature(power, 1);
        case Metric::sm_clock: return fleet.clock_mhz;
        case Metric::nvlink_bw: return p.nvlink_bytes / step / 1e9;
        case Metric::ib_bw: return p.nic_bytes / step * 8e-9;
        case Metric::port_rate: return fleet.port_bits_per_s / 1e9;
        case Metric::ib_busbw: return p.net_busbw / 1e9;
        case Metric::nvlink_busbw: return p.node_busbw / 1e9;
        case Metric::collective_time: return waiting;
        case Metric::compute_time: return 1 - waiting;
        case Metric::data_wait:
        case Metric::io_wait: return p.data_s / step;
        case Metric::host_memory_free: return kFreeAtStart;
        case Metric::gpu_memory_allocated: return p.allocated_bytes / 0x1p30;
        case Metric::gpu_memory_reserved: return p.reserved_bytes / 0x1p30;
        case Metric::since_step: return p.step_s;
        case Metric::job_up: return 1;
        case Metric::loss_is_nan:
        case Metric::grad_norm_event:
        case Metric::ecc_uncorrectable:
        case Metric::xid:
        case Metric::link_downed:
        case Metric::count: break;
    }
    return 0;
}

Watch::Watch(const std::vector<Rule>& rules, const Fleet& fleet, const Pictures& pictures, std::uint64_t seed,
             Nanoseconds interval, bool only_acting)
    : fleet_(fleet), pictures_(pictures), interval_(interval) {
    for (std::uint32_t i = 0; i < rules.size(); ++i) {
        if (only_acting && rules[i].action == monitors::Action::inquire)
            continue;
        desks_.push_back({&rules[i], i, Extremes(fleet, healthy_, seed, kRuleStreams + i), {}});
        desks_.back().slots.assign(1 + campaign::kMaxKinds, Slot(rules[i]));
    }
}

const std::vector<std::uint32_t>& Watch::look(const Sample& s) {
    risen_.clear();
    if (s.job_start != job_start_)
        job_started(s.job_start);
    job_start_ = s.job_start;
    if (s.key != key_ || healthy_.step_s == 0) {
        key_ = s.key;
        healthy_ = pictures_({key_, 0});
        for (std::size_t i = 0; i < kMetricCount; ++i)
            base_[i] = base_of(static_cast<Metric>(i), fleet_, healthy_);
        for (Desk& desk : desks_)
            for (Slot& slot : desk.slots)
                slot.state.phase_changed();
    }
    if (s.silenced)
        return risen_;
    for (Desk& desk : desks_) {
        const Metric metric = desk.rule->metric;
        const double median = s[metric];
        if (missing(median))
            continue;
        give(desk, 0, s, median, median);
        if (!monitors::info(metric).of_peers)
            continue;
        std::uint32_t there = 0;
        for (std::uint32_t i = 0; i < s.odd_count; ++i)
            if (s.odd[i].metric == metric) {
                there |= 2u << s.odd[i].degradation;
                give(desk, 1 + s.odd[i].degradation, s, s.odd[i].value, median);
            }
        for (std::size_t slot = 1; slot < desk.slots.size(); ++slot)  // mended: like the others again
            if (desk.slots[slot].used && !(there >> slot & 1))
                give(desk, slot, s, median, median);
    }
    return risen_;
}

void Watch::give(Desk& desk, std::size_t slot, const Sample& s, double value, double median) {
    const Rule& rule = *desk.rule;
    Slot& at = desk.slots[slot];
    at.used = true;
    if (at.since < 0)
        at.since = s.time - interval_;
    at.sum += value;
    at.reference += median;
    at.steps += static_cast<double>(s.steps);
    ++at.count;
    if (seconds_of(s.time - at.since) < rule.window_s)
        return;
    const auto n = static_cast<double>(at.count);
    double x = at.sum / n, reference = at.reference / n;
    if (slot == 0 && monitors::info(rule.metric).of_peers)
        x = desk.extremes.worst(rule.metric, x, at.steps, rule.below);
    if (!of_peers(rule))
        reference = base_[static_cast<std::size_t>(rule.metric)];
    const double passed = seconds_of(s.time - at.since);
    at.since = -1;
    at.sum = at.reference = at.steps = 0;
    at.count = 0;
    const Level before = at.state.standing();
    raise(desk, slot, s, before, at.state.update(seconds_of(s.time), passed, x, reference));
}

void Watch::raise(Desk& desk, std::size_t slot, const Sample& s, Level before, Level now) {
    Slot& at = desk.slots[slot];
    if (now == before)
        return;
    if (now == Level::none) {
        alarms_[at.alarm].end = s.time;
        at.alarm = UINT32_MAX;
        return;
    }
    if (before == Level::none) {
        at.alarm = static_cast<std::uint32_t>(alarms_.size());
        alarms_.push_back({.rule = desk.index, .begin = s.time, .part = static_cast<int>(slot) - 1});
    }
    const bool critical = now == Level::critical && alarms_[at.alarm].critical == campaign::kNever;
    if (critical)
        alarms_[at.alarm].critical = s.time;
    const bool acts_on_warning = desk.rule->critical == monitors::kNoLevel;
    if (critical || (acts_on_warning && before == Level::none))
        risen_.push_back(at.alarm);
}

void Watch::job_started(Nanoseconds time) {
    for (Desk& desk : desks_)
        for (Slot& slot : desk.slots) {
            slot.state.job_started();
            slot.since = -1;
            slot.sum = slot.reference = slot.steps = 0;
            slot.count = 0;
            if (slot.alarm != UINT32_MAX)
                alarms_[slot.alarm].end = std::max(time, alarms_[slot.alarm].begin);
            slot.alarm = UINT32_MAX;
        }
}

}  // namespace fabricast::monitor
