#include "sim/monitor/monitor.hpp"

#include <algorithm>
#include <atomic>

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
        fleet_ = fleet_of(scenario_, spec);
        rules_ = for_job(scenario_.run.monitors.rules, fleet_, (*pictures_)({spec.phases.front().key, 0}).step_s);
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
            r.course.clear();
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
    while (walk.next(sample)) {
        for (const std::uint32_t risen : watch.look(sample)) {
            const Alarm& alarm = watch.alarms()[risen];
            const Rule& rule = rules[alarm.rule];
            if (rule.action == Action::throttle)
                walk.throttle(std::min(rule.warning, rule.critical));
            if (rule.action != Action::restart || sample.steps == 0)
                continue;
            tired = tired || count == kMostActions;
            if (tired)
                break;
            ++count;
            schedule_restart(acted, sample.time, alarm.part);
            replica = campaign::run_replica(acted, steps, index, true);
            break;  // the job stops: what else rose now is cleared
        }
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
            if (rule.action == Action::throttle)
                walk.throttle(std::min(rule.warning, rule.critical));
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
    for (; alarm_ < report_.alarms.size() && report_.alarms[alarm_].begin <= walk_.now(); ++alarm_) {
        const Rule& rule = report_.rules[report_.alarms[alarm_].rule].rule;
        if (rule.action == Action::throttle)
            walk_.throttle(std::min(rule.warning, rule.critical));
    }
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
