// From a scenario to its campaign: what a condition changes, checkpoint times, a run end to end.
#include <gtest/gtest.h>

#include "sim/campaign/campaign_report.hpp"
#include "sim/campaign/condition_steps.hpp"
#include "sim/step/forecast.hpp"

namespace fabricast::campaign {
namespace {

const std::string kRun =
    "cluster: {nodes: 16, node: hgx-h100}\n"
    "model: llama-70b\n"
    "training:\n"
    "  sequence: 4096 tokens\n"
    "  global_batch: 64 sequences\n"
    "  layout: {tp: 8, sp: true, pp: 2, dp: 8, zero: 1}\n"
    "  recompute: selective\n"
    "  overlap: {grad_reduce: true, param_gather: true}\n"
    "run: {tokens: 100 Gtokens, price: 2 USD/GPU-h, replicas: 40, checkpoint: {every: 1 h, mode: async}}\n"
    "faults: default\n";

struct Ran {
    Scenario scenario;
    Result result;
};
std::unique_ptr<Ran> run(const std::vector<std::string>& overrides = {}) {
    auto ran = std::make_unique<Ran>();
    ran->scenario = parse_scenario(kRun, "t.yaml", overrides);
    ran->result = forecast(ran->scenario, {.critical_path = false});
    add_campaign(ran->scenario, ran->result);
    return ran;
}

double report_bytes(const std::unique_ptr<Ran>& ran) { return ran->result.campaign->checkpoint_bytes; }

std::uint32_t bit(const Scenario& s, std::string_view name) {
    for (std::uint32_t i = 0; i < s.run.faults.degradations.size(); ++i)
        if (s.run.faults.degradations[i].name == name)
            return 1u << i;
    return 0;
}

TEST(ScenarioCampaign, ConditionsChangeTheStep) {
    const Scenario s = parse_scenario(kRun, "t.yaml");
    const Result healthy = forecast(s, {.critical_path = false});
    StepTimes steps = condition_steps(s, healthy);
    const double base = seconds_of(steps.step({0, 0}));
    EXPECT_NEAR(base, seconds(healthy.step.ps), 1e-9);
    const auto slower = [&](std::uint32_t degraded) { return seconds_of(steps.step({0, degraded})) / base - 1; };
    // A half-rate adapter costs 0-9 % of a step that overlaps, far below a rule of 1.5 times; a GPU 7 % slower less than 7.6 %.
    const double nic = slower(bit(s, "nic_half")), gpu = slower(bit(s, "slow_gpu"));
    EXPECT_GE(nic, 0);
    EXPECT_LT(nic, 0.25);
    EXPECT_GT(gpu, 0.01);
    EXPECT_LT(gpu, 0.076);
    EXPECT_GT(slower(bit(s, "nvlink_lane")), 0);
    EXPECT_LT(slower(bit(s, "nvlink_lane")), 0.06);
    EXPECT_GE(slower(bit(s, "nic_half") | bit(s, "slow_gpu")), std::max(nic, gpu) - 1e-6);
    EXPECT_GE(slower(1u << s.run.faults.degradations.size()), 0);  // congestion
}

TEST(ScenarioCampaign, RunsEndToEnd) {
    const auto ran = run();
    ASSERT_TRUE(ran->result.campaign);
    const CampaignReport& report = *ran->result.campaign;
    EXPECT_EQ(report.result.replicas.size(), 40u);
    const double ideal = 100e9 / ran->result.step.tokens * seconds(ran->result.step.ps) / 86400;
    const Quantiles days = report.result.of([&](const ReplicaResult& r) { return report.of(r).days; });
    EXPECT_GT(days.p10, ideal);
    EXPECT_LT(days.p50, 1.3 * ideal);
    // 70 G parameters of 14 or 16 bytes at 50 GB/s: about 20 s to storage, a fraction of a second to the hosts.
    EXPECT_NEAR(seconds_of(report.spec.checkpoint.write), 20, 4);
    EXPECT_LT(seconds_of(report.spec.checkpoint.block), 0.5);
    EXPECT_EQ(report.spec.fleet.spares, 1u);
    EXPECT_GE(report.conditions.size(), 1u);
    EXPECT_EQ(report.conditions.front().what, "healthy");
}

// Storage on the job's network: the steps beside a write are longer, which a save costs beside its stall; a slow storage takes a
// small part of the adapters for long, a fast one much for a short time.
TEST(ScenarioCampaign, SavesOverTheNetworkOfTheJobDragAtItsSteps) {
    const auto own = run(), slow = run({"run.checkpoint.network=job"}),
               fast = run({"run.checkpoint.network=job", "run.checkpoint.write=2 TB/s"});
    const auto spec = [](const auto& ran) -> const CheckpointSpec& { return ran->result.campaign->spec.checkpoint; };
    EXPECT_EQ(spec(own).drag, 0);
    EXPECT_EQ(spec(slow).write, spec(own).write);  // 50 GB/s, far below 128 adapters
    for (const auto* ran : {&slow, &fast}) {
        EXPECT_GT(spec(*ran).drag, 0);
        EXPECT_LT(spec(*ran).drag, spec(*ran).write);
    }
    const auto saving = [](const auto& ran) { return ran->result.campaign->result.mean_spent(Spent::save); };
    EXPECT_GT(saving(slow), saving(own));
    const IntervalAdvice& advice = slow->result.campaign->result.advice;
    EXPECT_NEAR(advice.given.save, seconds_of(spec(slow).block + spec(slow).drag), 1e-9);
    // No adapter carries more than its rate: 16 x 8 of them take 1 TB in at 5.9 TB/s at most.
    const auto huge = run({"run.checkpoint.network=job", "run.checkpoint.write=100 TB/s"});
    EXPECT_GT(seconds_of(spec(huge).write), report_bytes(huge) / (128 * 50e9));
}

TEST(ScenarioCampaign, SameWithMoreReplicasBesideIt) {
    const auto few = run(), many = run({"run.replicas=60"});
    for (std::size_t i = 0; i < 40; ++i)
        EXPECT_EQ(few->result.campaign->result.replicas[i].wall, many->result.campaign->result.replicas[i].wall);
}

TEST(ScenarioCampaign, NothingBreaksWithoutRates) {
    const auto ran = run({"faults=none", "run.replicas=1", "run.checkpoint.mode=none"});
    const CampaignReport& report = *ran->result.campaign;
    const ReplicaResult& r = report.result.replicas.front();
    EXPECT_EQ(r.stops, 0u);
    EXPECT_EQ(r.wall, r.spent[static_cast<std::size_t>(Spent::steps)] + kMinute);  // start and communicators
}

TEST(ScenarioCampaign, ScheduledFaultsStrikeWhenTheyAreToldTo) {
    const auto ran =
        run({"faults={rates: none, events: [{kind: gpu_fail, at: 20 h, node: 3}, {kind: nic_slow, at: 30 h, "
             "duration: 5 h}, {kind: data_nan, at: 40 h}, {kind: link_flap, at: 41 h, duration: 8 s}]}",
             "run.replicas=1"});
    const ReplicaResult& shown = ran->result.campaign->result.shown;
    EXPECT_EQ(shown.stops, 1u);
    const auto at = [&](Incident::Kind kind) {
        for (const Incident& incident : shown.incidents)
            if (incident.kind == kind)
                return seconds_of(incident.time) / 3600;
        return -1.0;
    };
    EXPECT_EQ(at(Incident::Kind::fault), 20);
    EXPECT_EQ(at(Incident::Kind::degraded), 30);
    EXPECT_EQ(at(Incident::Kind::mended), 35);
    EXPECT_EQ(at(Incident::Kind::poisoned), 40);
    EXPECT_EQ(shown.spent[static_cast<std::size_t>(Spent::stall)], 8 * kSecond);
    EXPECT_GT(shown.spent[static_cast<std::size_t>(Spent::lost)], 0);
}

TEST(ScenarioCampaign, PhasesAreSimulatedEach) {
    const auto ran = run({"run.phases=[{tokens: 60 Gtokens}, {sequence: 8192 tokens, global_batch: 32}]", "faults=none",
                          "run.replicas=1"});
    const CampaignReport& report = *ran->result.campaign;
    ASSERT_EQ(report.conditions.size(), 2u);
    EXPECT_GT(report.conditions[1].step, report.conditions[0].step);  // longer sequences: more attention
    EXPECT_NEAR(report.result.shown.tokens, 100e9, 1e6);
}

TEST(ScenarioCampaign, TimeOutShorterThanAStepIsRefused) {
    try {
        run({"run.watchdog={time_out: 1 s}"});
        FAIL();
    } catch (const ScenarioError& e) {
        EXPECT_NE(std::string(e.what()).find("shorter than a step"), std::string::npos) << e.what();
        EXPECT_NE(std::string(e.what()).find("run.watchdog"), std::string::npos) << e.what();
    }
}

TEST(ScenarioCampaign, RunThatNeverGetsOnIsAFailure) {
    const auto ran = run(
        {"run.checkpoint={every: 1 h, mode: sync, write: 1 GB/s}", "run.watchdog={time_out: 300 s}", "run.replicas=3"});
    EXPECT_EQ(ran->result.verdict, "stuck");
    EXPECT_NE(ran->result.failure.find("watchdog"), std::string::npos);
}

}  // namespace
}  // namespace fabricast::campaign
