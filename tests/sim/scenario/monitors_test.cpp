// monitors: shipped rules, own rules, and what is refused with which words.
#include "models/monitors/shipped_rules.hpp"
#include "tests/sim/scenario/helpers.hpp"

namespace fabricast::test {
namespace {

Scenario good(const std::vector<std::string>& overrides) { return parse_scenario(kGood, "t.yaml", overrides); }

std::string refused(const std::string& rule) {
    return error_of(kGood, {"faults=default", "monitor={own: [" + rule + "]}"});
}

void expect_words(const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words)
        EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
}

TEST(MonitorKeys, SetsOfRules) {
    EXPECT_FALSE(good({"faults=default"}).run.monitors.given);
    const Scenario s = good({"faults=default", "monitor=default"});
    EXPECT_TRUE(s.run.monitors.given);
    EXPECT_EQ(s.run.monitors.interval_s, 60);
    EXPECT_EQ(s.run.monitors.rules.size(), monitors::default_rules().size());
    EXPECT_EQ(good({"faults=default", "monitor=all"}).run.monitors.rules.size(),
              monitors::default_rules().size() + monitors::case_a_rules().size());
    EXPECT_EQ(good({"faults=default", "monitor={rules: none, interval: 15 s}"}).run.monitors.interval_s, 15);
    EXPECT_TRUE(any_contains(good({"monitor=default"}).notes, "its rules watch a campaign"));
    EXPECT_TRUE(any_contains(good({"faults=default", "monitor=none"}).notes, "no rules"));
}

TEST(MonitorKeys, RulesOfYourOwn) {
    const Scenario s = good({"faults=default",
                             "monitor={rules: none, own: [{metric: ib_busbw, of: peers, when: below, warning: 0.8, "
                             "critical: 0.6, hold: 10 min, window: 5 min, action: restart}, {name: drift, metric: "
                             "step_time, of: baseline, test: cusum, drift: 0.02, warning: 1, memory: 12 h}]}"});
    ASSERT_EQ(s.run.monitors.rules.size(), 2u);
    const monitors::Rule& r = s.run.monitors.rules[0];
    EXPECT_EQ(r.name, "ib_busbw");
    EXPECT_EQ(r.set, "own");
    EXPECT_TRUE(r.below);
    EXPECT_EQ(r.of, monitors::Of::peers);
    EXPECT_EQ(r.critical, 0.6);
    EXPECT_EQ(r.hold_s, 600);
    EXPECT_EQ(r.window_s, 300);
    EXPECT_EQ(r.action, monitors::Action::restart);
    EXPECT_EQ(s.run.monitors.rules[1].memory_s, 12 * 3600);
    EXPECT_EQ(s.run.monitors.rules[1].critical, monitors::kNoLevel);
    EXPECT_EQ(good({"faults=default", "monitor=[{metric: mfu, when: below, warning: 0.3}]"}).run.monitors.rules.size(),
              monitors::default_rules().size() + 1);
}

TEST(MonitorKeys, BadInputIsRefusedWithPlaceAndRemedy) {
    expect_words(refused("{metric: gpu_tmp, warning: 80}"),
                 {"monitor.own[0].metric", "gpu_tmp", "did you mean `gpu_temp`"});
    expect_words(refused("{metric: gpu_temp, warning: 80, hold: -5 min}"),
                 {"monitor.own[0].hold", "-5 min", "at least 0"});
    expect_words(refused("{metric: gpu_temp, warning: 85, critical: 80}"),
                 {"monitor.own[0].critical", "critical 80 is below warning 85"});
    expect_words(refused("{metric: ib_bw, when: below, warning: 200, critical: 300}"),
                 {"critical 300 is above warning 200"});
    expect_words(refused("{metric: gpu_temp}"), {"needs a level", "warning"});
    expect_words(refused("{warning: 80}"), {"monitor.own[0].metric", "missing"});
    expect_words(refused("{metric: mfu, of: peers, warning: 0.9}"), {"mfu", "no peers", "port_rate"});
    expect_words(refused("{metric: mfu, of: peer, warning: 0.9}"), {"peer", "did you mean `peers`"});
    expect_words(refused("{metric: step_time, of: baseline, test: cusum, warning: 1}"), {"drift is missing"});
    expect_words(refused("{metric: step_time, test: cusum, drift: 0.02, warning: 1}"), {"base, baseline or peers"});
    expect_words(refused("{metric: step_time, warning: 2, action: throttle}"), {"throttle", "gpu_temp"});
    expect_words(refused("{metric: gpu_temp, when: below, warning: 80, action: throttle}"),
                 {"throttle", "when: above"});
    expect_words(refused("{metric: gpu_temp, warning: 80, critical: 90, action: throttle}"),
                 {"monitor.own[0].critical", "never acts", "89 C"});
    expect_words(refused("{metric: job_up, when: below, warning: 0.5, action: restart}"),
                 {"monitor.own[0].action", "never acts"});
    expect_words(refused("{metric: mfu, warning: 2}, {metric: mfu, warning: 3}"), {"another rule is called `mfu`"});
    expect_words(refused("{metric: mfu, wanring: 2}"), {"wanring", "did you mean `warning`"});
    expect_words(error_of(kGood, {"faults=default", "monitor={interval: 0 s}"}), {"monitor.interval", "at least 1"});
    expect_words(error_of(kGood, {"faults=default", "monitor=defualt"}), {"defualt", "did you mean `default`"});
    expect_words(error_of(kGood, {"faults=default", "run.shown=200"}),
                 {"run.shown", "no life 200", "200 are simulated"});
}

TEST(MonitorKeys, EventsOfAWatchedCampaign) {
    const Scenario s = good({"faults={events: [{kind: gpu_hot, at: 1 d}, {kind: hang, at: 2 d}]}"});
    ASSERT_EQ(s.run.faults.events.size(), 2u);
    EXPECT_EQ(s.run.faults.degradations[s.run.faults.events[0].which].name, "hot_gpu");
    EXPECT_EQ(s.run.faults.components[s.run.faults.events[1].which].shows, faults::Shows::hang);
}

}  // namespace
}  // namespace fabricast::test
