// What was simulated once is remembered; without memory the result is the same, byte by byte.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "shipped.hpp"
#include "sim/report/views.hpp"

namespace fabricast::testing {
namespace {

using nlohmann::ordered_json;

// A job on two nodes; `training` is more of its section, `faults` the rest of that one and what follows.
std::string run_of_200_steps(const std::string& training, const std::string& faults) {
    return "cluster: {nodes: 2, node: hgx-h100}\n"
           "model: llama3.2-1b\n"
           "training:\n"
           "  sequence: 4096 tokens\n"
           "  global_batch: 128 sequences\n"
           "  micro_batch: 2\n"
           "  layout: {dp: auto, zero: 1}\n" +
           training +
           "run:\n"
           "  tokens: 104857600 tokens\n"  // 200 steps
           "  replicas: 2\n"
           "  checkpoint: {every_steps: 20, mode: sync}\n"
           "faults:\n"
           "  rates: none\n" +
           faults;
}

// 200 steps of a run on two nodes, in which an adapter falls to half its rate, a link flaps, neighbours congest the network, a GPU
// dies and saves are taken: steps under a condition from memory, and simulated whenever they are asked for.
TEST(Memo, ARunOf200StepsWithFaults) {
    const std::string text = run_of_200_steps("  overlap: {grad_reduce: true, param_gather: true}\n",
                                              "  congestions_per_day: 4000\n"
                                              "  flaps_per_link_month: 9000\n"
                                              "  events:\n"
                                              "    - {kind: nic_slow, at: 70 s, duration: 20 s}\n"
                                              "    - {kind: gpu_slow, at: 75 s, duration: 30 s}\n"
                                              "    - {kind: gpu_fail, at: 100 s, node: 1}\n");
    const auto run = [&](bool memo) {
        const Scenario scenario = parse_scenario(text, "t.yaml");
        Result result = forecast(scenario, {.memo = memo});
        campaign::add_campaign(scenario, result, {.memo = memo, .intervals = false});
        EXPECT_EQ(result.failure, "");
        EXPECT_EQ(result.campaign->result.shown.steps, 200);
        EXPECT_EQ(result.campaign->result.shown.stops, 1u);
        EXPECT_GE(result.campaign->conditions.size(), 4u);
        return result_json(result);
    };
    EXPECT_EQ(run(true), run(false));
}

// The same with monitors, one of which restarts the job: they ask for pictures of steps, many times.
TEST(Memo, AWatchedRunWithFaults) {
    const std::string text =
        run_of_200_steps("",
                         "  congestions_per_day: 400\n"
                         "  events:\n"
                         "    - {kind: nic_slow, at: 70 s, duration: 20 s}\n"
                         "    - {kind: gpu_slow, at: 200 s, duration: 30 s}\n"
                         "monitor:\n"
                         "  interval: 2 s\n"
                         "  own:\n"
                         "    - {metric: port_rate, of: peers, when: below, warning: 0.9, action: restart}\n");
    const auto run = [&](bool memo) {
        const Scenario scenario = parse_scenario(text, "t.yaml");
        Result result = forecast(scenario, {.memo = memo});
        monitor::add_campaign(scenario, result, {.memo = memo, .intervals = false});
        EXPECT_EQ(result.failure, "");
        EXPECT_EQ(result.campaign->result.shown.steps, 200);
        EXPECT_EQ(result.monitors->actions, 1u);
        EXPECT_GE(result.monitors->alarms.size(), 1u);
        return result_json(result);
    };
    EXPECT_EQ(run(true), run(false));
}

// 200 steps of a job on one node, step by step: a clock falls and recovers, an adapter loses half its rate; stretches that repeat
// are left out, or simulated. Engine counts and the list of what was simulated tell the two apart, nothing else.
TEST(Memo, AJobOf200StepsWithFaults) {
    const auto run = [](bool memo) {
        Scenario scenario = load_scenario(FABRICAST_SOURCE_DIR "/scenarios/case-b/base.yaml",
                                          {"data.epochs=1", "cluster.nodes=2", "training.layout.dp=16",
                                           "training.global_batch=64 sequences", "comm.library=nccl 2.28"});
        inject_fault(scenario, "gpu 1.3 clock 1000 MHz at 150 s for 60 s");
        inject_fault(scenario, "nic 0.2 rate 0.5 at 300 s");
        const Result result = forecast(scenario, {.memo = memo});
        EXPECT_EQ(result.failure, "");
        EXPECT_EQ(result.job->steps_done, 200);
        EXPECT_TRUE(result.job->settled);
        EXPECT_EQ(result.job->steps_simulated < 200, memo);
        ordered_json json = ordered_json::parse(result_json(result));
        json["engine"].erase("events");
        json["job"].erase("simulated_step_s");
        return json.dump(1);
    };
    EXPECT_EQ(run(true), run(false));
}

}  // namespace
}  // namespace fabricast::testing
