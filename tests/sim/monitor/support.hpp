// Jobs made by hand: 1024 GPUs, a step whose time is given, and what it looks like under each degradation.
#pragma once

#include <gtest/gtest.h>

#include "models/monitors/shipped_rules.hpp"
#include "sim/monitor/monitor.hpp"

namespace fabricast::monitor::test {

using campaign::CampaignSpec;
using campaign::kDay;
using campaign::kHour;
using campaign::kMinute;
using campaign::kSecond;
using campaign::ReplicaResult;
using campaign::ScheduledFault;
using campaign::StepTimes;

struct Job {
    CampaignSpec spec;
    Fleet fleet;
    std::shared_ptr<Pictures> pictures;
    StepTimes steps;
    std::vector<monitors::Rule> rules;

    explicit Job(double step_s, double days = 45)
        : pictures(std::make_shared<Pictures>(1, campaign::kMaxKinds)),
          steps(1, campaign::kMaxKinds, [this](const campaign::Condition& c) { return picture(c); }),
          step_s_(step_s) {
        spec.fleet.nodes = 128;
        spec.fleet.components = faults::FaultCatalogue::builtin().components();
        for (faults::Component& c : spec.fleet.components)
            c.rate = 0;
        for (faults::Degradation d : faults::FaultCatalogue::builtin().degradations()) {
            d.rate = 0;
            spec.conditions.degradations.push_back({d, false});
        }
        spec.phases = {{std::int64_t{1} << 40, 0, 1e6}};
        spec.horizon = static_cast<Nanoseconds>(days * static_cast<double>(kDay));
        spec.checkpoint = {.mode = campaign::SaveMode::sync,
                           .every_steps = std::max<std::int64_t>(1, static_cast<std::int64_t>(3600 / step_s)),
                           .block = 20 * kSecond,
                           .load = 20 * kSecond};
        spec.recovery.detect_crash = 30 * kSecond;
        spec.recovery.detect_hang = 600 * kSecond;
        spec.recovery.start = 5 * kMinute;
        spec.recovery.swap = 3 * kMinute;
        fleet = {.nodes = 128,
                 .gpus = 8,
                 .nics = 8,
                 .pp = 2,
                 .gpu_spread = 0.05 / 2.847,
                 .board_w = 700,
                 .clock_mhz = 1830,
                 .port_bits_per_s = 400e9,
                 .longest_pause_s = 20,
                 .seed = 1};
        pictures->ask(&steps);
        rules = for_job(monitors::default_rules(), fleet, step_s);
    }

    std::uint32_t degradation(std::string_view name) const {
        std::uint32_t i = 0;
        while (spec.conditions.degradations[i].what.name != name)
            ++i;
        return i;
    }
    std::uint32_t component(std::string_view name) const {
        std::uint32_t i = 0;
        while (spec.fleet.components[i].name != name)
            ++i;
        return i;
    }
    void degrade(std::string_view name, Nanoseconds at, Nanoseconds lasts) {
        spec.scheduled.push_back(
            {.time = at, .kind = ScheduledFault::Kind::slow, .which = degradation(name), .lasts = lasts});
    }
    void stop(std::string_view name, Nanoseconds at) {
        spec.scheduled.push_back({.time = at, .which = component(name)});
    }

    MonitorReport watch(std::uint32_t index = 0) {
        replica = run_under(rules, fleet, *pictures, spec, steps, index, interval, &actions, &gave_up);
        return watch_replica(rules, fleet, pictures, spec, replica, index, interval);
    }
    /// All samples of the replica watched last.
    std::vector<Sample> samples() {
        Walk walk(fleet, *pictures, spec, campaign::replica_seed(spec, 0), interval);
        walk.follow(replica);
        std::vector<Sample> all;
        for (Sample s; walk.next(s);)
            all.push_back(s);
        return all;
    }

    ReplicaResult replica;
    Nanoseconds interval = kMinute;
    std::uint32_t actions = 0;
    bool gave_up = false;

private:
    // A quarter of the step is inside collectives; slow parts act as in the catalogue.
    Nanoseconds picture(const campaign::Condition& c) {
        StepPicture p{.step_s = step_s_,
                      .tokens = 1e6,
                      .mfu = 0.4,
                      .hfu = 0.42,
                      .in_collectives_s = 0.25 * step_s_,
                      .off_gpu_s = 0.01 * step_s_,
                      .nvlink_bytes = 5e9 * step_s_,
                      .nic_bytes = 10e9 * step_s_,
                      .net_busbw = 45e9,
                      .node_busbw = 160e9,
                      .net_rings = 16,
                      .node_rings = 128,
                      .allocated_bytes = 30e9,
                      .reserved_bytes = 31e9};
        const auto slower = [&](double by) {
            p.step_s += by * step_s_;
            p.in_collectives_s += by * step_s_;
        };
        const auto& kinds = spec.conditions.degradations;
        for (std::uint32_t i = 0; i < kinds.size(); ++i) {
            if (!(c.degraded >> i & 1))
                continue;
            const std::string& name = kinds[i].what.name;
            if (name == "slow_gpu" || name == "hot_gpu")
                slower(0.74 * (1 / kinds[i].what.keeps - 1));
            if (name == "nic_half" || name == "pcie_width") {
                slower(0.04);
                p.net_busbw *= kinds[i].what.keeps;
            }
            if (name == "nvlink_lane") {
                slower(0.01);
                p.node_busbw *= 7.0 / 8;
            }
        }
        if (c.degraded >> kinds.size() & 1) {
            slower(0.02);
            p.net_busbw /= 1.3;
        }
        p.mfu *= step_s_ / p.step_s;
        p.hfu *= step_s_ / p.step_s;
        pictures->set(c, p);
        return campaign::nanoseconds(p.step_s);
    }
    double step_s_;
};

inline const RuleOutcome& rule(const MonitorReport& report, std::string_view name, std::string_view set = "default") {
    for (const RuleOutcome& out : report.rules)
        if (out.rule.name == name && out.rule.set == set)
            return out;
    ADD_FAILURE() << "no rule " << name;
    return report.rules.front();
}

inline std::string alarms_text(const MonitorReport& report) {
    std::string text;
    for (const Alarm& a : report.alarms)
        text += report.rules[a.rule].rule.name + " at " + std::to_string(campaign::seconds_of(a.begin)) + " s; ";
    return text;
}

}  // namespace fabricast::monitor::test
