// Monitors of a scenario's campaign: what they take from it, and what rules that act do to all of it.
#include "sim/step/forecast.hpp"
#include "tests/sim/monitor/support.hpp"

namespace fabricast::monitor::test {
namespace {

// A save's pause is its block, what the write drags at the steps beside it, and the wait for the write before.
TEST(ScenarioMonitors, RulesWaitForThePauseAsTheJobMakesIt) {
    const Scenario scenario = load_scenario(std::string(FABRICAST_SOURCE_DIR) + "/scenarios/case-a/ramp.yaml", {});
    CampaignSpec spec;
    spec.checkpoint = {.mode = campaign::SaveMode::async,
                       .every_steps = 10,
                       .block = kSecond,
                       .write = 100 * kSecond,
                       .drag = 5 * kSecond};
    spec.events.evaluate_every = 100;
    spec.events.evaluation = 3 * kSecond;
    EXPECT_NEAR(fleet_of(scenario, spec, 2).longest_pause_s, 1 + 5 + (100 - 10 * 2) + 3, 1e-9);
    EXPECT_NEAR(fleet_of(scenario, spec, 20).longest_pause_s, 1 + 5 + 3, 1e-9);
    spec.checkpoint.mode = campaign::SaveMode::none;
    EXPECT_NEAR(fleet_of(scenario, spec, 2).longest_pause_s, 3, 1e-9);
}

// The table of checkpoint intervals is of this campaign, restarts that rules ask for included.
TEST(ScenarioMonitors, OtherIntervalsHaveTheSameRules) {
    const Scenario scenario = parse_scenario(
        "cluster: {nodes: 2, node: hgx-h100}\n"
        "model: llama3.2-1b\n"
        "training: {sequence: 4096 tokens, global_batch: 128 sequences, micro_batch: 2, layout: {dp: auto, zero: 1}}\n"
        "run: {days: 4 d, replicas: 3, checkpoint: {every: 1 h, mode: sync}}\n"
        "faults: {per_1000_node_days: 500}\n"
        "monitor: {rules: none, own: [{name: cries, metric: mfu, when: below, warning: 1, hold: 4 h, action: "
        "restart}]}\n",
        "t.yaml");
    Result result = forecast(scenario, {.critical_path = false});
    add_campaign(scenario, result);
    ASSERT_TRUE(result.campaign);
    EXPECT_GT(result.monitors->actions, 5u);
    double mean = 0;
    for (const ReplicaResult& r : result.campaign->result.replicas)
        mean += r.ettr() / 3;
    std::size_t own = 0;
    for (const auto& row : result.campaign->intervals.rows) {
        own += row.as_it_is;
        if (row.as_it_is) {
            EXPECT_NEAR(row.simulated, mean, 1e-12);
        }
    }
    EXPECT_EQ(own, 1u);
}

}  // namespace
}  // namespace fabricast::monitor::test
