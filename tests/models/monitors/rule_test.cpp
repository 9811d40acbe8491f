// Rules on numbers made by hand, and the temperature of a GPU.
#include "models/monitors/rule.hpp"

#include <gtest/gtest.h>

#include <set>

#include "models/compute/spread.hpp"
#include "models/faults/random.hpp"
#include "models/monitors/shipped_rules.hpp"
#include "models/monitors/thermal.hpp"
#include "models/monitors/xid.hpp"

namespace fabricast::monitors {
namespace {

Rule step_rule(double hold_s = 0) {
    Rule r;
    r.metric = Metric::step_time;
    r.of = Of::base;
    r.warning = 1.5;
    r.critical = 2;
    r.hold_s = hold_s;
    return r;
}

TEST(Rule, LevelsAreRaisedInOrderAndFallAtOnce) {
    const Rule r = step_rule();
    RuleState state(r);
    EXPECT_EQ(state.update(60, 60, 1.79, 1.2), Level::none);
    EXPECT_EQ(state.update(120, 60, 1.81, 1.2), Level::warning);
    EXPECT_EQ(state.update(180, 60, 2.39, 1.2), Level::warning);
    EXPECT_EQ(state.update(240, 60, 2.41, 1.2), Level::critical);
    EXPECT_EQ(state.update(300, 60, 1.3, 1.2), Level::none);
}

TEST(Rule, LevelMustHold) {
    const Rule r = step_rule(300);
    RuleState state(r);
    for (int minute = 1; minute <= 5; ++minute)
        EXPECT_EQ(state.update(60.0 * minute, 60, 2, 1.2), Level::none) << minute;
    EXPECT_EQ(state.update(360, 60, 2, 1.2), Level::warning);
    RuleState broken(r);
    for (int minute = 1; minute <= 20; ++minute)  // below it once in five
        EXPECT_EQ(broken.update(60.0 * minute, 60, minute % 5 ? 2 : 1.2, 1.2), Level::none) << minute;
    broken.update(1260, 60, 2, 1.2);
    broken.job_started();
    EXPECT_EQ(broken.update(1560, 60, 2, 1.2), Level::none);  // a new job, a new hold
}

TEST(Rule, BelowAndDifference) {
    Rule r;
    r.metric = Metric::port_rate;
    r.of = Of::peers;
    r.below = true;
    r.warning = 0.95;
    r.critical = 0.75;
    RuleState half(r);
    EXPECT_EQ(half.update(60, 60, 400, 400), Level::none);
    EXPECT_EQ(half.update(120, 60, 200, 400), Level::critical);
    r.of = Of::peers_difference;
    r.below = false;
    r.warning = 12;
    r.critical = kNoLevel;
    RuleState hot(r);
    EXPECT_EQ(hot.update(60, 60, 77, 70), Level::none);
    EXPECT_EQ(hot.update(120, 60, 89, 70), Level::warning);
}

// 5 % slower from the 1000th minute on, noise of 1.2 % a minute: seen within an hour, and never before.
TEST(Rule, ChangePointFindsFivePercentInNoise) {
    Rule r;
    r.of = Of::baseline;
    r.test = monitors::Test::cusum;
    r.drift = 0.025;
    r.warning = 0.75;
    RuleState state(r);
    faults::Draws draws(1, faults::Purpose::monitor);
    const auto sample = [&](int minute, double level) {
        const double value = level * (1 + 0.012 * normal_quantile(draws.next()));
        return state.update(60.0 * minute, 60, value, 0);
    };
    for (int minute = 1; minute <= 1000; ++minute)
        ASSERT_EQ(sample(minute, 4), Level::none) << minute;
    int delay = 0;
    while (sample(1000 + delay, 4 * 1.05) == Level::none)
        ASSERT_LT(++delay, 60);
    EXPECT_GE(delay, 20);
    // Below twice the drift it never adds up.
    RuleState small(r);
    for (int minute = 1; minute <= 5000; ++minute)
        ASSERT_EQ(small.update(60.0 * minute, 60, minute > 1000 ? 4.08 : 4, 0), Level::none);
}

TEST(Rule, BaselineForgetsWhatLastsLongerThanItsMemory) {
    Rule r = step_rule();
    r.of = Of::baseline;
    r.warning = 1.2;
    r.critical = kNoLevel;
    r.memory_s = 3600;
    RuleState state(r);
    double value = 1;
    for (int minute = 0; minute < 3000; ++minute) {  // 0.1 % a minute is 6 % an hour: 6 % ahead of its past
        ASSERT_EQ(state.update(60.0 * minute, 60, value, 0), Level::none) << minute;
        value *= 1.001;
    }
}

TEST(Rule, ShippedOnesHaveLevelsReasonsAndNames) {
    for (const auto& rules : {default_rules(), case_a_rules()}) {
        std::set<std::string> names;
        for (const Rule& r : rules) {
            EXPECT_TRUE(names.insert(r.name).second) << r.name;
            EXPECT_FALSE(r.reason.empty()) << r.name;
            EXPECT_TRUE(r.warning != kNoLevel || r.critical != kNoLevel) << r.name;
            EXPECT_EQ(r.action, Action::inquire) << r.name;
            EXPECT_NE(rule_text(r).find(info(r.metric).name), std::string::npos);
        }
    }
    EXPECT_EQ(rule_text(step_rule(300)), "step_time > 1.5 x base, critical > 2 x base, for 5 min");
}

TEST(Rule, MetricsAreFoundByName) {
    for (const std::string& name : metric_names())
        EXPECT_EQ(info(*find_metric(name)).name, name);
    EXPECT_FALSE(find_metric("gpu_tmp"));
    EXPECT_EQ(driver_report("hbm").xid, 95);
    EXPECT_EQ(driver_report("host").xid, 0);
}

TEST(Thermal, SettlesWhereTheSourcesSay) {
    EXPECT_NEAR(settled_temperature(700, 700), 70, 1e-9);
    EXPECT_NEAR(settled_temperature(70, 700), 27, 0.5);  // idle
    EXPECT_NEAR(settled_temperature(140, 700), 33, 2);   // a hang
    EXPECT_NEAR(settled_temperature(560, 700), 60.5, 1e-9);
    const double minute = temperature_after(27, 70, 60);  // the rise is over within a minute
    EXPECT_GT(minute, 67);
    EXPECT_LT(minute, 70);
    double steps = 27;
    for (int i = 0; i < 6; ++i)
        steps = temperature_after(steps, 70, 10);
    EXPECT_NEAR(steps, minute, 1e-9);
}

}  // namespace
}  // namespace fabricast::monitors
