#include "sim/monitor/monitor.hpp"

#include <algorithm>

namespace fabricast::monitor {
namespace {

using campaign::CampaignReport;
using campaign::CampaignSpec;
using campaign::Condition;
using campaign::ReplicaResult;
using campaign::ScheduledFault;
using campaign::StepTimes;
using monitors::Action;
using monitors::Rule;

bool any_acts(const std::vector<Rule>& rules) {
    return std::any_of(rules.begin(), rules.end(), [](const Rule& r) { return r.action != Action::inquire; });
}

/// At which the GPU is held: what comes first of the two.
double throttle_level(const Rule& rule) { return std::min(rule.warning, rule.critical); }

void schedule_restart(CampaignSpec& spec, Nanoseconds time, int part) {
    ScheduledFault restart{.time = time, .kind = ScheduledFault::Kind::restart, .which = ScheduledFault::kNothing};
    if (part >= 0)
        restart.which = static_cast<std::uint32_t>(part);
    const auto at = std::upper_bound(spec.scheduled.begin(), spec.scheduled.end(), restart,
                                     [](const ScheduledFault& a, const ScheduledFault& b) { return a.time < b.time; });
    spec.scheduled.insert(at, restart);
}

class Monitors : public campaign::Watcher {
public:
    Monitors(const Scenario& scenario, Result& result) : scenario_(scenario), result_(result) {
        const std::size_t keys = std::max<std::size_t>(1, scenario.run.phases.size()) + 1;
        pictures_ = std::make_shared<Pictures>(keys, static_cast<int>(scenario.run.faults.degradations.size()) + 1);
        interval_ = campaign::nanoseconds(scenario.run.monitors.interval_s);
    }
    void begins(const CampaignSpec& spec, StepTimes& steps) override {
        pictures_->ask(&steps);
        const double step_s = (*pictures_)({spec.phases.front().key, 0}).step_s;
        fleet_ = fleet_of(scenario_, spec, step_s);
        rules_ = for_job(scenario_.run.monitors.rules, fleet_, step_s);
    }
    void step_seen(const Condition& condition, const Scenario& scenario, const Result& result) override {
        pictures_->set(condition, picture_of(scenario, result));
    }
    ReplicaResult run(const CampaignSpec& spec, StepTimes& steps, std::uint32_t index, bool record) override {
        if (!any_acts(rules_))
            return campaign::run_replica(spec, steps, index, record);
        std::uint32_t actions = 0;
        bool gave_up = false;
        ReplicaResult r = run_under(rules_, fleet_, *pictures_, spec, steps, index, interval_, &actions, &gave_up);
        if (record) {
            actions_ = actions;
            gave_up_ = gave_up;
        } else {
            r.incidents.clear();
            r.stretches.clear();
        }
        return r;
    }
    void ended(const CampaignReport& report, StepTimes&) override {
        auto seen = std::make_shared<MonitorReport>(watch_replica(
            rules_, fleet_, pictures_, report.spec, report.result.shown, report.result.shown_index, interval_));
        seen->actions = actions_;
        seen->gave_up = gave_up_;
        pictures_->ask(nullptr);
        result_.monitors = std::move(seen);
    }

private:
    const Scenario& scenario_;
    Result& result_;
    std::shared_ptr<Pictures> pictures_;
    Fleet fleet_;
    std::vector<Rule> rules_;
    Nanoseconds interval_ = 0;
    std::uint32_t actions_ = 0;
    bool gave_up_ = false;
};

}  // namespace

void add_campaign(const Scenario& scenario, Result& result, campaign::CampaignOptions options) {
    Monitors monitors(scenario, result);
    if (scenario.run.monitors.given)
        options.watcher = &monitors;
    campaign::add_campaign(scenario, result, options);
}

ReplicaResult run_under(const std::vector<Rule>& rules, const Fleet& fleet, const Pictures& pictures,
                        const CampaignSpec& spec, StepTimes& steps, std::uint32_t index, Nanoseconds interval,
                        std::uint32_t* actions, bool* gave_up) {
    CampaignSpec acted = spec;
    ReplicaResult replica = campaign::run_replica(acted, steps, index, true);
    const std::uint64_t seed = campaign::replica_seed(spec, index);
    Walk walk(fleet, pictures, spec, seed, interval);
    Watch watch(rules, fleet, pictures, seed, interval, true);
    walk.follow(replica);
    Sample sample;
    std::uint32_t count = 0;
    bool tired = false;
    std::vector<std::uint32_t> asking;  // alarms that wait for a restart
    while (!tired && walk.next(sample)) {
        for (const std::uint32_t risen : watch.look(sample)) {
            const Rule& rule = rules[watch.alarms()[risen].rule];
            if (rule.action == Action::throttle)
                walk.throttle(throttle_level(rule));
            if (rule.action == Action::restart)
                asking.push_back(risen);
        }
        // What fell meanwhile, or was cleared by a start of the job, asks no more.
        std::erase_if(asking, [&](std::uint32_t i) { return watch.alarms()[i].end != campaign::kNever; });
        if (asking.empty() || !sample.restarts)
            continue;
        tired = count == kMostActions;
        if (tired)
            break;
        ++count;
        schedule_restart(acted, sample.time, watch.alarms()[asking.front()].part);
        asking.clear();  // the job stops
        replica = campaign::run_replica(acted, steps, index, true);
    }
    if (actions)
        *actions = count;
    if (gave_up)
        *gave_up = tired;
    return replica;
}

MonitorReport watch_replica(const std::vector<Rule>& rules, const Fleet& fleet,
                            std::shared_ptr<const Pictures> pictures, const CampaignSpec& spec,
                            const ReplicaResult& replica, std::uint32_t index, Nanoseconds interval) {
    MonitorReport report;
    report.interval = interval;
    report.wall = replica.wall;
    report.replica = index;
    report.spec = spec;
    report.fleet = fleet;
    report.pictures = std::move(pictures);
    report.seed = campaign::replica_seed(spec, index);
    Walk walk(report.fleet, *report.pictures, report.spec, report.seed, interval);
    Watch watch(rules, report.fleet, *report.pictures, report.seed, interval, false);
    walk.follow(replica);
    Sample sample;
    for (; walk.next(sample); ++report.samples)
        for (const std::uint32_t risen : watch.look(sample)) {
            const Rule& rule = rules[watch.alarms()[risen].rule];
            if (rule.action != Action::throttle)
                continue;
            walk.throttle(throttle_level(rule));
            report.throttles.push_back({sample.time, throttle_level(rule)});
        }
    report.alarms = watch.alarms();
    judge(rules, replica, report);
    return report;
}

Series::Series(const MonitorReport& report, const ReplicaResult& replica)
    : report_(report), walk_(report.fleet, *report.pictures, report.spec, report.seed, report.interval) {
    walk_.follow(replica);
}

bool Series::next(Sample& sample) {
    for (; throttle_ < report_.throttles.size() && report_.throttles[throttle_].time <= walk_.now(); ++throttle_)
        walk_.throttle(report_.throttles[throttle_].celsius);
    return walk_.next(sample);
}

double Series::worst(const Sample& s, Metric metric) {
    const bool low = monitors::info(metric).low_is_bad;
    double worst = s[metric];
    for (std::uint32_t i = 0; i < s.odd_count; ++i)
        if (s.odd[i].metric == metric)
            worst = low ? std::min(worst, s.odd[i].value) : std::max(worst, s.odd[i].value);
    return worst;
}

}  // namespace fabricast::monitor
