// Series and verdicts of jobs made by hand.
#include "models/monitors/thermal.hpp"
#include "tests/sim/monitor/support.hpp"

namespace fabricast::monitor::test {
namespace {

double seconds(Nanoseconds ns) { return campaign::seconds_of(ns); }

// 45 days of 1024 GPUs with saves every hour and nothing wrong: no shipped rule may say a word, whatever the step.
TEST(Monitor, ShippedRulesAreSilentInAHealthyRun) {
    for (const double step : {0.5, 4.0, 27.0, 90.0}) {
        Job job(step);
        for (const std::uint32_t index : {0u, 1u, 2u}) {
            const MonitorReport report = job.watch(index);
            EXPECT_EQ(report.samples, 45 * 1440);
            EXPECT_TRUE(report.alarms.empty()) << step << " s, life " << index << ": " << alarms_text(report);
            EXPECT_TRUE(report.truths.empty());
        }
    }
}

TEST(Monitor, HealthyRunOfManyGpusIsSilentToo) {
    Job job(4, 10);
    job.fleet.nodes = job.spec.fleet.nodes = 4096;
    const MonitorReport report = job.watch();
    EXPECT_TRUE(report.alarms.empty()) << alarms_text(report);
}

// The stalled job reads 100 % busy for as long as nobody ends it: its power, traffic and progress tell, GPU_UTIL does not.
TEST(Monitor, EndlessHangReadsFullUtilisation) {
    Job job(4, 3);
    job.spec.recovery.detect_hang = campaign::kNever;
    job.stop("unknown", kDay);
    monitors::Rule util;
    util.name = "util";
    util.set = "own";
    util.metric = Metric::gpu_util;
    util.below = true;
    util.warning = 90;
    util.hold_s = 120;  // saves take a part of a minute
    job.rules.push_back(util);
    const MonitorReport report = job.watch();
    int hanging = 0;
    for (const Sample& s : job.samples()) {
        if (s.time <= kDay + kMinute)
            continue;
        ++hanging;
        ASSERT_EQ(s[Metric::gpu_util], 100);
        ASSERT_EQ(s[Metric::ib_bw], 0);
        ASSERT_EQ(s[Metric::nvlink_bw], 0);
        ASSERT_EQ(s[Metric::job_up], 1);
        ASSERT_NEAR(s[Metric::power], 140, 1);
        ASSERT_NEAR(s[Metric::since_step], seconds(s.time - kDay), 4 + 1e-6);
        ASSERT_TRUE(missing(s[Metric::step_time]));
        if (s.time > kDay + 5 * kMinute) {
            ASSERT_NEAR(s[Metric::gpu_temp], 32, 1);
        }
    }
    EXPECT_EQ(hanging, 2 * 1440 - 1);
    EXPECT_EQ(rule(report, "util", "own").alarms, 0u);
    EXPECT_EQ(rule(report, "no_progress").caught, 1u);
    EXPECT_NEAR(rule(report, "no_progress").median_delay_s, 300 + 28 + 4, 61);
    EXPECT_EQ(rule(report, "no_traffic").caught, 1u);
    EXPECT_LT(rule(report, "no_traffic").median_delay_s, 420);
    EXPECT_EQ(rule(report, "job_down").caught, 0u);
    for (const RuleOutcome& out : report.rules)
        EXPECT_EQ(out.false_alarms, 0u) << out.rule.name;
}

TEST(Monitor, EachSlowPartIsCaughtByItsOwnRule) {
    Job job(4, 45);
    const struct {
        const char *part, *rule;
        double soonest_s, latest_s;
    } kinds[] = {{"nic_half", "port_rate", 0, 61},
                 {"pcie_width", "ib_busbw", 300, 1260},
                 {"nvlink_lane", "nvlink_busbw", 1000, 7260},
                 {"slow_gpu", "compute_time", 1000, 7260},
                 {"hot_gpu", "gpu_temp", 120, 300}};
    Nanoseconds at = 2 * kDay;
    for (const auto& kind : kinds) {
        job.degrade(kind.part, at, 2 * kDay);
        at += 8 * kDay;
    }
    for (const monitors::Rule& r : monitors::case_a_rules())
        job.rules.push_back(r);
    const MonitorReport report = job.watch();
    ASSERT_EQ(report.truths.size(), 5u);
    for (std::size_t i = 0; i < 5; ++i) {
        const auto& by = report.truths[i].caught_by;
        const auto found = std::find_if(by.begin(), by.end(), [&](const TruthOutcome::Catch& c) {
            return report.rules[c.rule].rule.name == kinds[i].rule && report.rules[c.rule].rule.set == "default";
        });
        ASSERT_NE(found, by.end()) << kinds[i].part << ": " << alarms_text(report);
        EXPECT_GE(found->delay_s, kinds[i].soonest_s) << kinds[i].part;
        EXPECT_LE(found->delay_s, kinds[i].latest_s) << kinds[i].part;
        // none makes the step half as long again
        for (const TruthOutcome::Catch& c : by)
            EXPECT_NE(report.rules[c.rule].rule.metric == Metric::step_time &&
                          report.rules[c.rule].rule.of == monitors::Of::base,
                      true);
    }
    EXPECT_EQ(rule(report, "sm_clock").caught, 1u);
    EXPECT_EQ(rule(report, "gpu_temp_peers").caught, 1u);
    // The field report's rules: the port at exactly 200 is a warning, never critical; traffic is below 300 all the time.
    const RuleOutcome& port = rule(report, "ib_port", "case-a");
    EXPECT_EQ(port.caught, 1u);
    EXPECT_EQ(port.first_critical, campaign::kNever);
    const RuleOutcome& traffic = rule(report, "ib_traffic", "case-a");
    EXPECT_EQ(traffic.caught, 0u);
    EXPECT_EQ(traffic.false_alarms, traffic.alarms);
    EXPECT_GT(traffic.standing, 0.99);
    EXPECT_EQ(rule(report, "step_time", "case-a").missed, 5u);
    EXPECT_EQ(rule(report, "gpu_temp", "case-a").caught, 1u);
    for (const RuleOutcome& out : report.rules)
        if (out.rule.set == "default") {
            EXPECT_EQ(out.false_alarms, 0u) << out.rule.name << " " << alarms_text(report);
        }
}

TEST(Monitor, StopsShowWhereTheyCan) {
    Job job(4, 10);
    job.stop("hbm", 2 * kDay);
    job.stop("host", 4 * kDay);
    job.spec.scheduled.push_back({.time = 6 * kDay, .kind = ScheduledFault::Kind::poisoned});
    job.spec.scheduled.push_back({.time = 7 * kDay, .kind = ScheduledFault::Kind::from_zero});
    job.spec.scheduled.push_back({.time = 8 * kDay, .kind = ScheduledFault::Kind::stall, .lasts = 8 * kSecond});
    const MonitorReport report = job.watch();
    ASSERT_EQ(report.truths.size(), 5u);
    EXPECT_EQ(rule(report, "ecc").caught, 1u);
    EXPECT_EQ(rule(report, "xid").caught, 1u);
    EXPECT_EQ(rule(report, "xid").out_of_sight, 4u);
    EXPECT_EQ(rule(report, "loss_nan").caught, 1u);
    EXPECT_EQ(rule(report, "loss_nan").missed, rule(report, "loss_nan").out_of_sight);
    EXPECT_EQ(report.truths[3].what, "training begun anew");  // whose loss is a number
    EXPECT_LE(rule(report, "loss_nan").median_delay_s, 60);
    EXPECT_GE(rule(report, "job_down").caught, 2u);
    EXPECT_TRUE(report.truths.back().caught_by.empty());  // a flap of 8 s
    for (const RuleOutcome& out : report.rules)
        EXPECT_EQ(out.false_alarms, 0u) << out.rule.name << " " << alarms_text(report);
    int links = 0;
    for (const Sample& s : job.samples())
        links += static_cast<int>(s[Metric::link_downed]);
    EXPECT_EQ(links, 1);
}

TEST(Monitor, PlannedStopsAreAnnounced) {
    Job job(4, 20);
    job.spec.events.maintenance_every = 5 * kDay;
    job.spec.events.maintenance = 8 * kHour;
    const MonitorReport report = job.watch();
    EXPECT_GE(job.replica.planned_stops, 3u);
    EXPECT_TRUE(report.alarms.empty()) << alarms_text(report);
}

// Day 12: memory is used up; day 20: 2.33 times the step; the scheduler ends the job then and another starts.
TEST(Monitor, LeakRampsWarnsAndIsResetByARestart) {
    Job job(1.2, 30);
    job.spec.conditions.leak = {12 * kDay, (2.8 / 1.2 - 1) / 8};
    job.spec.events.time_limit = 20 * kDay;
    const MonitorReport report = job.watch();
    const RuleOutcome& step = rule(report, "step_time");
    EXPECT_EQ(step.alarms, 1u);
    EXPECT_NEAR(seconds(step.first_warning) / 86400, 15, 0.4);
    EXPECT_NEAR(seconds(step.first_critical) / 86400, 18, 0.4);
    EXPECT_LT(seconds(rule(report, "host_memory").first_warning) / 86400,
              12);  // the leak itself is told before its effect
    EXPECT_EQ(rule(report, "data_wait").caught, 1u);
    double highest = 0, behind = 0;
    for (const Sample& s : job.samples()) {
        if (missing(s[Metric::step_time]))
            continue;
        double& most = s.time < 20 * kDay + kHour ? highest : behind;
        most = std::max(most, s[Metric::step_time]);
        if (s.time == 19 * kDay) {
            EXPECT_NEAR(s[Metric::data_wait], 1 - 1.2 / (1.2 * (1 + 7 * (2.8 / 1.2 - 1) / 8)), 0.02);
            EXPECT_NEAR(s[Metric::gpu_util], 100 * (1 - s[Metric::data_wait]), 2);
        }
    }
    EXPECT_NEAR(highest, 2.8, 0.1);
    EXPECT_LT(behind, 1.3);
}

TEST(Monitor, RuleThatRestartsActsInTheCampaign) {
    Job job(1.2, 45);
    job.spec.conditions.leak = {12 * kDay, (2.8 / 1.2 - 1) / 8};
    const double unwatched = job.watch().rules.empty() ? 0 : seconds(job.replica.slow);
    for (monitors::Rule& r : job.rules)
        if (r.name == "step_time")
            r.action = monitors::Action::restart;
    const MonitorReport report = job.watch();
    EXPECT_EQ(job.actions, 2u);  // at 18 and 36 days
    EXPECT_EQ(job.replica.planned_stops, 2u);
    EXPECT_FALSE(job.gave_up);
    EXPECT_LT(seconds(job.replica.slow), 0.5 * unwatched);
    const RuleOutcome& step = rule(report, "step_time");
    EXPECT_EQ(step.alarms, 2u);  // the alarms the campaign acted on are those the report tells
    EXPECT_NEAR(seconds(step.first_critical) / 86400, 18, 0.4);
}

TEST(Monitor, NamedPartIsExchanged) {
    Job job(4, 20);
    job.degrade("nic_half", 2 * kDay, 15 * kDay);
    for (monitors::Rule& r : job.rules)
        if (r.name == "port_rate")
            r.action = monitors::Action::restart;
    const MonitorReport report = job.watch();
    EXPECT_EQ(job.actions, 1u);
    ASSERT_EQ(report.truths.size(), 1u);
    EXPECT_LT(report.truths.front().truth.end, 2 * kDay + 5 * kMinute);
    EXPECT_EQ(rule(report, "port_rate").alarms, 1u);
}

// A hang that a rule sees before the watchdog: the job is ended then, and nothing is saved.
TEST(Monitor, RuleEndsAHang) {
    Job job(4, 2);
    job.spec.recovery.detect_hang = 2 * kHour;
    job.stop("unknown", kDay);
    for (monitors::Rule& r : job.rules)
        if (r.name == "no_progress")
            r.action = monitors::Action::restart;
    const MonitorReport report = job.watch();
    EXPECT_EQ(job.actions, 1u);
    EXPECT_EQ(job.replica.planned_stops, 0u);
    EXPECT_EQ(job.replica.recovered, 1u);
    const double noticed = seconds(job.replica.spent[static_cast<std::size_t>(campaign::Spent::detection)]);
    EXPECT_EQ(rule(report, "no_progress").alarms, 1u);
    EXPECT_NEAR(seconds(kDay) + noticed, seconds(rule(report, "no_progress").first_critical), 1e-6);
    EXPECT_NEAR(noticed, 480 + 20 + 2 * 4, 61);  // critical, and pauses and steps that it waits for
}

// Whatever ended in the interval of the alarm: the named part is exchanged with the next sample.
TEST(Monitor, RuleActsWhateverTheStep) {
    for (int minute = 0; minute < 6; ++minute) {
        Job job(150, 2);
        job.degrade("nic_half", kDay + minute * kMinute, 12 * kHour);
        for (monitors::Rule& r : job.rules)
            if (r.name == "port_rate")
                r.action = monitors::Action::restart;
        const MonitorReport report = job.watch();
        EXPECT_EQ(job.actions, 1u) << minute;
        ASSERT_EQ(report.truths.size(), 1u) << minute;
        EXPECT_LE(report.truths.front().truth.end - report.truths.front().truth.begin, 7 * kMinute) << minute;
    }
}

// An alarm that rises in a stall acts behind it, if it still stands; one of a job that comes back already is left alone.
TEST(Monitor, ActionWaitsUntilItHelps) {
    const auto watched = [](Job& job, double keep_s) {
        monitors::Rule r;
        r.name = "quiet";
        r.set = "own";
        r.metric = Metric::ib_bw;
        r.of = monitors::Of::base;
        r.below = true;
        r.warning = 0.02;
        r.keep_s = keep_s;
        r.action = monitors::Action::restart;
        job.rules = {r};
        job.watch();
        return job.actions;
    };
    for (const bool keeps : {false, true}) {
        Job stalls(4, 2);
        stalls.spec.scheduled.push_back({.time = kDay, .kind = ScheduledFault::Kind::stall, .lasts = 5 * kMinute});
        EXPECT_EQ(watched(stalls, keeps ? 3600 : 0), keeps ? 1u : 0u);
        EXPECT_EQ(stalls.replica.planned_stops, keeps ? 1u : 0u);
    }
    Job crashes(4, 2);  // noticed within a sample
    crashes.stop("hbm", kDay - 45 * kSecond);
    EXPECT_EQ(watched(crashes, 3600), 0u);
    EXPECT_EQ(crashes.replica.planned_stops, 0u);
}

TEST(Monitor, NobodyListensForEver) {
    Job job(4, 20);
    monitors::Rule r;
    r.name = "cries";
    r.set = "own";
    r.metric = Metric::ib_bw;
    r.below = true;
    r.warning = 300;
    r.action = monitors::Action::restart;
    job.rules = {r};
    const MonitorReport report = job.watch();
    EXPECT_EQ(job.actions, kMostActions);
    EXPECT_TRUE(job.gave_up);
    EXPECT_EQ(report.rules.front().false_alarms, report.rules.front().alarms);
}

TEST(Monitor, ThrottleHoldsTheHotGpu) {
    Job job(4, 5);
    job.degrade("hot_gpu", 2 * kDay, 2 * kDay);
    const auto hottest = [&] {
        const MonitorReport report = job.watch();
        Series series(report, job.replica);
        double most = 0;
        for (Sample s; series.next(s);)
            if (s.time > 2 * kDay + kHour)
                most = std::max(most, series.worst(s, Metric::gpu_temp));
        return most;
    };
    EXPECT_EQ(hottest(), monitors::kSlowdownC);
    for (monitors::Rule& r : job.rules)
        if (r.name == "gpu_temp") {
            r.warning = 80;
            r.action = monitors::Action::throttle;
        }
    EXPECT_EQ(hottest(), 80);
}

// The series tell what the rules saw: read again, rules that ask for two levels say the same at the same time.
TEST(Monitor, SeriesAreWhatRulesSaw) {
    Job job(4, 5);
    job.degrade("hot_gpu", 2 * kDay, 2 * kDay);
    for (monitors::Rule& r : job.rules)
        if (r.name == "gpu_temp") {
            r.warning = 80;
            r.action = monitors::Action::throttle;  // when it is critical
        }
    const MonitorReport report = job.watch();
    EXPECT_LT(rule(report, "gpu_temp").first_critical, campaign::kNever);
    Series series(report, job.replica);
    Watch again(job.rules, report.fleet, *report.pictures, report.seed, report.interval, false);
    for (Sample s; series.next(s);)
        again.look(s);
    ASSERT_EQ(again.alarms().size(), report.alarms.size());
    for (std::size_t i = 0; i < report.alarms.size(); ++i) {
        EXPECT_EQ(again.alarms()[i].begin, report.alarms[i].begin);
        EXPECT_EQ(again.alarms()[i].critical, report.alarms[i].critical);
    }
}

// A save that blocks longer than the watchdog waits, and silent corruption that is found, take the job down unannounced: what
// rules say then is true.
TEST(Monitor, StopsWithoutAFaultOfTheirTimeAreTruths) {
    Job saves(4, 20);
    saves.spec.checkpoint.block = kMinute;
    saves.spec.checkpoint.spread = 1;
    saves.spec.watchdog = {10 * kMinute, 0};
    const MonitorReport of_saves = saves.watch();
    ASSERT_GT(saves.replica.false_alarms, 1u);
    EXPECT_EQ(of_saves.truths.size(), saves.replica.false_alarms);
    EXPECT_EQ(rule(of_saves, "job_down").caught, saves.replica.false_alarms);
    Job corrupts(4, 20);
    for (faults::Component& c : corrupts.spec.fleet.components)
        if (c.shows == faults::Shows::silent)
            c.rate = 5.0 / (20 * 128);
    corrupts.spec.recovery.detect_silent_mean_s = 7200;
    const MonitorReport of_corruption = corrupts.watch();
    ASSERT_GT(corrupts.replica.stops, 1u);
    EXPECT_EQ(rule(of_corruption, "job_down").caught, corrupts.replica.stops);
    for (const MonitorReport* report : {&of_saves, &of_corruption})
        for (const RuleOutcome& out : report->rules)
            EXPECT_EQ(out.false_alarms, 0u) << out.rule.name << " " << alarms_text(*report);
}

// Replicas that go on without each other: a departure is one thing that was wrong, not a flap; each ends when its own is back.
TEST(Monitor, ReplicasThatLeave) {
    Job job(4, 4);
    job.spec.recovery.style = campaign::Style::replicas;
    job.spec.recovery.replicas = 16;
    job.spec.recovery.membership = 30 * kSecond;
    job.spec.scheduled = {{.time = 2 * kDay, .which = job.component("host"), .node = 3},
                          {.time = 2 * kDay + 5 * kMinute, .which = job.component("host"), .node = 5}};
    job.spec.fleet.spares = 4;
    const MonitorReport report = job.watch();
    ASSERT_EQ(report.truths.size(), 2u);
    for (const TruthOutcome& t : report.truths)
        EXPECT_EQ(t.truth.kind, Truth::Kind::departure);
    EXPECT_NEAR(seconds(report.truths[1].truth.end - report.truths[0].truth.end), 300, 61);
    EXPECT_GT(report.truths[0].truth.end, report.truths[1].truth.begin);
    EXPECT_GT(seconds(report.truths[0].truth.end - report.truths[0].truth.begin), 480);
    for (const Sample& s : job.samples())
        ASSERT_EQ(s[Metric::link_downed], 0);
    for (const RuleOutcome& out : report.rules)
        EXPECT_EQ(out.false_alarms, 0u) << out.rule.name << " " << alarms_text(report);
}

// A sample sees only what was before it: a restart on day 5 changes none of the days before, not by a bit.
TEST(Monitor, WhatComesLaterShiftsNothing) {
    Job job(4, 8);
    job.degrade("pcie_width", kDay, kDay);
    job.watch();
    const std::vector<Sample> before = job.samples();
    job.spec.scheduled.push_back(
        {.time = 5 * kDay, .kind = ScheduledFault::Kind::restart, .which = ScheduledFault::kNothing});
    job.watch();
    const std::vector<Sample> after = job.samples();
    for (std::size_t i = 0; before[i].time < 5 * kDay; ++i)
        for (std::size_t m = 0; m < kMetricCount; ++m)
            if (!missing(before[i].value[m])) {
                ASSERT_EQ(before[i].value[m], after[i].value[m]) << i << " " << m;
            }
    std::int64_t steps = 0;
    for (const Sample& s : after)
        steps += s.steps;
    EXPECT_NEAR(static_cast<double>(steps), static_cast<double>(job.replica.steps), 20);
}

}  // namespace
}  // namespace fabricast::monitor::test
