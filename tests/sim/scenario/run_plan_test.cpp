// The run of a scenario: what is taken from the catalogue, what the file changes, what is refused and where.
#include <cmath>

#include "tests/sim/scenario/helpers.hpp"

namespace fabricast::test {
namespace {

Scenario good(const std::vector<std::string>& overrides) { return parse_scenario(kGood, "t.yaml", overrides); }

double total(const Scenario& s) {
    double sum = 0;
    for (const faults::Component& c : s.run.faults.components)
        sum += c.rate;
    return sum * 1000;
}

TEST(RunPlan, FaultsAndALengthMakeACampaign) {
    EXPECT_FALSE(good({}).run.given);
    const Scenario s = good({"faults=default"});
    EXPECT_TRUE(s.run.given);
    EXPECT_NEAR(total(s), 3.79, 0.01);
    EXPECT_EQ(s.run.spares, 1u);  // 4 % of 4 nodes, rounded up
    EXPECT_EQ(s.run.faults.burst_cv, 1.5);
    EXPECT_EQ(s.run.recovery.locate_s, 240);
    EXPECT_TRUE(good({"faults=none", "run.days=45 d"}).run.given);
    EXPECT_EQ(good({"faults=none", "run.days=45 d"}).run.days, 45);
    const std::string without = replaced(kGood, "tokens: 3.5 Ttokens, ", "");
    const Scenario endless = parse_scenario(without, "t.yaml", {"faults=default"});
    EXPECT_FALSE(endless.run.given);
    EXPECT_TRUE(any_contains(endless.notes, "give run.tokens or run.days"));
    EXPECT_TRUE(any_contains(good({"run.checkpoint={every: 1 h, mode: async}"}).notes, "say what breaks"));
}

TEST(RunPlan, RatesByFleetTotalAndCause) {
    EXPECT_NEAR(total(good({"faults=new"})), 13, 1e-9);
    EXPECT_EQ(total(good({"faults=none"})), 0);
    EXPECT_NEAR(total(good({"faults={per_1000_node_days: 2.1}"})), 2.1, 1e-9);
    const Scenario s = good({"faults={components: {gpu: 2, hbm: 0}, degradations: {nic_half: 0.5}}"});
    EXPECT_EQ(s.run.faults.components[0].rate, 0.002);
    EXPECT_EQ(s.run.faults.components[1].rate, 0);
    EXPECT_EQ(s.run.faults.degradations[1].rate, 0.0005);
    EXPECT_EQ(good({"faults={congestions_per_day: 0}"}).run.faults.episodes.congestions_per_day, 0);
}

TEST(RunPlan, PiecesOfARecoveryAndOtherStops) {
    const Scenario s =
        good({"faults=default", "run.checkpoint={every: 1 h, mode: memory, write: 10 GB/s, copies_every: 4}",
              "run.recovery={style: replicas, locate: 1 min, spread: 2.2, membership: 0 s}",
              "run.watchdog={time_out: 120 s, save_grace: 1 h}", "run.limit=24 h",
              "run.maintenance={every: 28 d, lasts: 8 h}", "run.evaluation={every_steps: 1000, lasts: 10 min}"});
    EXPECT_EQ(s.run.checkpoint.mode, RunPlan::Save::memory);
    EXPECT_EQ(s.run.checkpoint.read_bytes_per_s, 10e9);
    EXPECT_EQ(s.run.recovery.style, RunPlan::Style::replicas);
    EXPECT_EQ(s.run.recovery.locate_s, 60);
    EXPECT_EQ(s.run.recovery.membership_s, 0);
    EXPECT_TRUE(s.run.watchdog.watches_saves);
    EXPECT_EQ(s.run.limit_s, 86400);
    EXPECT_EQ(s.run.maintenance_s, 8 * 3600);
    EXPECT_EQ(s.run.evaluate_every, 1000);
}

TEST(RunPlan, PhasesTakeWhatTheOthersLeave) {
    const Scenario s = good({"faults=none",
                             "run.phases=[{tokens: 1 Ttokens, global_batch: 32}, {tokens: 2 Ttokens}, "
                             "{sequence: 32768 tokens, global_batch: 8, cp: 2}]"});
    ASSERT_EQ(s.run.phases.size(), 3u);
    EXPECT_EQ(s.run.phases[2].tokens, 0.5e12);
    TrainingPlan plan = s.training;
    apply_phase(s.run.phases[2], 32, plan);
    EXPECT_EQ(plan.layout.dp, 1);
    EXPECT_EQ(plan.sequence, 32768);
    const auto error = [](const std::string& phases) {
        return error_of(kGood, {"faults=none", "run.phases=" + phases});
    };
    EXPECT_NE(error("[{tokens: 4 Ttokens}, {sequence: 8192 tokens}]").find("together"), std::string::npos);
    EXPECT_NE(error("[{sequence: 8192 tokens}, {tokens: 1 Ttokens}]").find("tokens is missing"), std::string::npos);
    EXPECT_NE(error("[{tokens: 1 Ttokens}]").find("together"), std::string::npos);
    EXPECT_NE(error("[{tokens: 1 Ttokens, global_batch: 33}, {}]").find("run.phases: "), std::string::npos);
}

TEST(RunPlan, EventsNameTheCatalogue) {
    const Scenario s =
        good({"faults={rates: none, events: [{kind: nic_slow, at: 5 d, node: 1, duration: 2 d}, "
              "{kind: gpu_fail, at: 3 d, node: 3, gpu: 2}, {kind: loader_slow, at: 1 d}]}"});
    ASSERT_EQ(s.run.faults.events.size(), 2u);
    EXPECT_EQ(s.run.faults.events[0].at_s, 3 * 86400);
    EXPECT_EQ(s.run.faults.components[s.run.faults.events[0].which].name, "gpu");
    EXPECT_EQ(s.run.faults.degradations[s.run.faults.events[1].which].name, "nic_half");
    EXPECT_TRUE(any_contains(s.notes, "does not know loader_slow"));
}

TEST(RunPlan, EventsOfTheStepStandBesideThoseOfACampaign) {
    const std::string slow = "{what: slow, where: gpu 1.2, by: 1.5}", fails = "{kind: gpu_fail, at: 3 d, node: 3}";
    const Scenario list = good({"faults=[" + slow + "]"});
    EXPECT_FALSE(list.run.given);
    EXPECT_EQ(list.faults.size(), 1u);
    EXPECT_EQ(list.run.faults.events.size(), 0u);

    const Scenario both = good({"faults={rates: none, events: [" + slow + ", " + fails + "]}"});
    EXPECT_TRUE(both.run.given);
    EXPECT_EQ(both.faults.size(), 1u);
    EXPECT_EQ(both.run.faults.events.size(), 1u);
    EXPECT_TRUE(good({"faults=[" + slow + ", " + fails + "]"}).run.given);
    EXPECT_TRUE(good({"faults={rates: none, events: [" + slow + "]}"}).run.given);
    EXPECT_FALSE(good({"faults={events: [" + slow + "]}"}).run.given);
}

TEST(RunPlan, BadInputIsToldWithItsPlace) {
    const auto says = [](const std::string& line, const std::string& place, const std::string& part) {
        const std::string text = error_of(kGood + line);
        EXPECT_EQ(text.substr(0, place.size()), place) << text;
        EXPECT_NE(text.find(part), std::string::npos) << text;
    };
    says("faults: {per_1000_node_days: -3}\n", "t.yaml:14:30:", "must be at least 0");
    says("faults: {components: {gpu: -1}}\n", "t.yaml:14:28:", "must be at least 0");
    says("faults: {components: {gqu: 1}}\n", "t.yaml:14:28:", "did you mean `gpu`?");
    says("faults: {components: {gpu: many}}\n", "t.yaml:14:28:", "per 1000 node-days");
    says("faults: {degradations: {nic_haf: 1}}\n", "t.yaml:14:34:", "did you mean `nic_half`?");
    says("faults: {events: [{kind: gpu_fail, at: 3 d, node: 4}]}\n", "t.yaml:14:51:", "there is no node 4");
    says("faults: {events: [{kind: gpu_fail, at: 3 d, gpu: 8}]}\n", "t.yaml:14:50:", "there is no gpu 8");
    says("faults: {events: [{kind: gpu_fale, at: 3 d}]}\n", "t.yaml:14:26:", "did you mean `gpu_fail`?");
    says("faults: {events: [{kind: gpu_fail, what: slow, at: 3 d}]}\n", "t.yaml:14:", "leave one of them out");
    says("faults: {events: [{kind: gpu_fail, at: 3 d, where: gpu 1.2}]}\n", "t.yaml:14:", "does not have it");
    says("faults: {events: [{what: hang, at: 3 d, node: 1}]}\n", "t.yaml:14:", "belongs to an event with `kind`");
    says("faults: {events: [{what: hang, at: 300 d, where: gpu 1.2}]}\n", "t.yaml:14:", "at most 10000000 s");
    says("faults: {events: [{kind: gpu_fail}]}\n", "t.yaml:14:", ".at is missing");
    says("faults: {burst_cv: 0.5}\n", "t.yaml:14:20:", "must be at least 1");
    says("faults: {rates: none, per_1000_node_days: 3}\n", "t.yaml:14:43:", "leave one of them out");
    const std::string run =
        replaced(kGood, "price: 1.90 USD/GPU-h", "price: 1.90 USD/GPU-h, checkpoint: {capacity: 1.5 TB}");
    const std::string small = error_of(run);
    EXPECT_EQ(small.substr(0, 10), "t.yaml:13:") << small;
    EXPECT_NE(small.find("does not hold 2 checkpoints"), std::string::npos) << small;
    EXPECT_NE(
        error_of(kGood, {"run.recovery={style: replicas}", "training.layout={tp: 8, pp: 4, dp: 1}"}).find("dp is 1"),
        std::string::npos);
    EXPECT_NE(error_of(kGood, {"run.checkpoint={every: 1 h, every_steps: 100}"}).find("leave one out"),
              std::string::npos);
    EXPECT_NE(error_of(kGood, {"run.maintenance={every: 28 d}"}).find("run.maintenance.lasts"), std::string::npos);
}

TEST(RunPlan, WhatACampaignRestsOnIsListed) {
    const auto origin = [](const Scenario& s, const std::string& what) -> std::string {
        for (const Assumption& a : s.assumptions)
            if (a.what == what)
                return std::string(origin_name(a.origin)) + ": " + a.source;
        return {};
    };
    const Scenario s = good({"faults=default", "run.recovery.swap=5 min"});
    EXPECT_NE(origin(s, "faults.per_1000_node_days").find("Llama 3"), std::string::npos);
    EXPECT_NE(origin(s, "faults.node_spread").find("fitted: "), std::string::npos);
    EXPECT_NE(origin(s, "run.recovery.spread").find("guess: "), std::string::npos);
    EXPECT_NE(origin(s, "run.checkpoint.write").find("BLOOM"), std::string::npos);
    EXPECT_EQ(origin(s, "run.recovery.swap"), "");
    EXPECT_EQ(origin(good({}), "faults.node_spread"), "");
}

}  // namespace
}  // namespace fabricast::test
