#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sample_result.hpp"
#include "sim/report/expectation.hpp"
#include "sim/report/monitor_view.hpp"
#include "sim/report/views.hpp"

namespace fabricast {
namespace {

using nlohmann::ordered_json;
using testing::failed_result;
using testing::sample_result;
using testing::sample_scenario;

TEST(ResultJson, TellsAQuantumOnlyWhereOneWasSet) {
    Scenario scenario = sample_scenario();
    scenario.quantum = 1'000'000;
    Result result = sample_result(scenario);
    EXPECT_FALSE(ordered_json::parse(result_json(result))["engine"].contains("quantum"));
    EXPECT_EQ(full_text(result, false).find("network solved"), std::string::npos);
    result.quantum = {1000, 10, 20, 900'000, 2'500'000};
    const ordered_json quantum = ordered_json::parse(result_json(result))["engine"]["quantum"];
    EXPECT_EQ(quantum["ps"], 1'000'000);
    EXPECT_EQ(quantum["put_off"], 10);
    EXPECT_EQ(quantum["step_too_long_by_at_most_ps"], 2'500'000);
    EXPECT_NE(full_text(result, false).find("an exact step is at most 2.5 us shorter"), std::string::npos);
    result.quantum->late = -1;
    EXPECT_TRUE(ordered_json::parse(result_json(result))["engine"]["quantum"]["step_too_long_by_at_most_ps"].is_null());
    EXPECT_NE(full_text(result, false).find("not known"), std::string::npos);
}

TEST(ResultJson, HoldsTheKeysLaterToolsRelyOn) {
    const Scenario scenario = sample_scenario();
    const ordered_json json = ordered_json::parse(result_json(sample_result(scenario)));
    EXPECT_EQ(json["schema_version"], 1);
    EXPECT_EQ(json["scenario"]["name"], "case-a-after");
    for (const char* key : {"time_s", "tokens_per_s", "tokens_per_s_per_gpu", "model_tflops_per_gpu", "peak_tflops",
                            "mfu", "hfu", "exposed_comm_fraction", "bubble_fraction"}) {
        ASSERT_TRUE(json["step"].contains(key)) << key;
        EXPECT_GT(json["step"][key].get<double>(), 0) << key;
    }
    EXPECT_EQ(json["step"]["ps"], 2'019'876'543'211);
    EXPECT_TRUE(json["step"]["periodic"].is_boolean());
    for (const char* key : {"stage", "total_bytes", "capacity_bytes", "parts"})
        EXPECT_TRUE(json["memory"][0].contains(key));
    EXPECT_EQ(json["memory"][1]["parts"]["logits"], std::int64_t{1} << 30);
    for (const char* key : {"what", "value", "origin", "source"})
        EXPECT_TRUE(json["assumptions"][0].contains(key));
    for (const char* key : {"events", "ranks", "ranks_simulated"})
        EXPECT_TRUE(json["engine"][key].is_number_integer());
    EXPECT_EQ(json["engine"]["fingerprint"], "00c0ffee12345678");
    EXPECT_EQ(json["run"]["currency"], "USD");
    EXPECT_TRUE(json["definitions"]["mfu"].is_string());
    EXPECT_EQ(json["expect"][0]["met"], true);
}

TEST(ResultJson, WaterfallSumsExactlyToRankTime) {
    const Scenario scenario = sample_scenario();
    const ordered_json json = ordered_json::parse(result_json(sample_result(scenario)));
    ASSERT_EQ(json["step"]["waterfall"].size(), kAccountCount);
    std::int64_t sum = 0;
    for (const ordered_json& row : json["step"]["waterfall"])
        sum += row["rank_ps"].get<std::int64_t>();
    EXPECT_EQ(sum, json["step"]["ps"].get<std::int64_t>() * json["engine"]["ranks"].get<std::int64_t>());
    std::int64_t by_stage = 0;
    for (const ordered_json& stage : json["step"]["stages"]) {
        for (const ordered_json& row : stage["waterfall"])
            by_stage += row["rank_ps"].get<std::int64_t>();
    }
    EXPECT_EQ(by_stage, sum);
}

TEST(ResultJson, IntegersBeyond64BitsStayExact) {
    const Scenario scenario = sample_scenario();
    Result result = sample_result(scenario);
    result.step.accounts[0] = static_cast<__int128>(1'000'000'000'000'000'000) * 1000 + 7;
    const ordered_json json = ordered_json::parse(result_json(result));
    EXPECT_EQ(json["step"]["waterfall"][0]["rank_ps"], "1000000000000000000007");
}

TEST(ResultJson, RoundTripGivesTheSameBytes) {
    const Scenario scenario = sample_scenario();
    const std::string text = result_json(sample_result(scenario));
    EXPECT_EQ(text, result_json(sample_result(scenario)));
    EXPECT_EQ(text, ordered_json::parse(text).dump(2) + "\n");
}

TEST(ResultJson, DerivedFiguresFollowTheDefinitions) {
    const Scenario scenario = sample_scenario();
    const Result result = sample_result(scenario);
    const Headline h = headline(result);
    EXPECT_DOUBLE_EQ(h.step_s, 2.019876543211);
    EXPECT_DOUBLE_EQ(h.tokens_per_s, 512.0 * 4096 / 2.019876543211);
    EXPECT_NEAR(h.mfu, 9.35e17 / (2.019876543211 * 1024 * 989.4e12), 1e-12);
    EXPECT_NEAR(h.hfu / h.mfu, 9.71 / 9.35, 1e-12);
    EXPECT_NEAR(h.exposed_comm_fraction, 0.097 + 0.012 + 0.058 + 0.031 + 0.002 + 0.004, 1e-9);
    EXPECT_NEAR(h.bubble_fraction, 0.069, 1e-9);
    EXPECT_NEAR(h.days, 3.5e12 / h.tokens_per_s / 86400, 1e-9);
    EXPECT_NEAR(h.cost, h.days * 24 * 1024 * 1.9, 1e-3);
}

// Packed sequences count documents; a trainer that does not know them counts whole sequences.
TEST(ResultJson, PackedSequencesHaveTwoMfus) {
    Scenario scenario = sample_scenario();
    scenario.training.document = 512;
    Result result = sample_result(scenario);
    result.step.attention_flops = 1e16;
    result.step.attention_hardware_flops = 1.25e16;
    result.step.attention_flops_whole = 8e16;
    const Headline h = headline(result);
    const double possible = 2.019876543211 * 1024 * 989.4e12;
    EXPECT_NEAR(h.mfu, 9.35e17 / possible, 1e-12);
    EXPECT_NEAR(h.mfu_whole, (9.35e17 + 7e16) / possible, 1e-12);
    EXPECT_NEAR(h.hfu_whole, (9.71e17 + 1.25 * 7e16) / possible, 1e-12);
    const std::string text = full_text(result, false);
    EXPECT_NE(text.find("whole sequences"), std::string::npos);
    EXPECT_NE(text.find("the 512 tokens of its document, of 4096"), std::string::npos);
    const Scenario plain = sample_scenario();
    EXPECT_EQ(full_text(sample_result(plain), false).find("whole sequences"), std::string::npos);
}

TEST(ResultJson, ScreensNameTheMethods) {
    Scenario scenario = sample_scenario();
    EXPECT_EQ(first_screen(sample_result(scenario), false).find("in int8"), std::string::npos);
    scenario.training.optimizer = {.kind = OptimizerKind::muon, .first = StateType::bf16, .second = StateType::bf16};
    scenario.training.document = 1792;
    scenario.training.compression.parameters = Compression::int8;
    const std::string line = "muon, moments bf16; packed, 1792 tokens a document; parameters in int8";
    const std::string screen = first_screen(sample_result(scenario), false);
    EXPECT_NE(screen.find(line), std::string::npos) << screen;
    EXPECT_LE(std::count(screen.begin(), screen.end(), '\n'), 25);
    EXPECT_NE(full_text(sample_result(scenario), false).find(line), std::string::npos);
}

TEST(ResultJson, StepsBeforeCompressionCountInTheRun) {
    Scenario scenario = sample_scenario();
    Result result = sample_result(scenario);
    const double days = headline(result).days;
    scenario.compression_warmup = 0.25;
    result.warmup_ps = 2 * result.step.ps;
    EXPECT_NEAR(headline(result).days / days, 1.25, 1e-12);
    const ordered_json json = ordered_json::parse(result_json(result));
    EXPECT_EQ(json["run"]["warmup_share"], 0.25);
    EXPECT_NE(full_text(result, false).find("25.0 % of the run goes before gradients are compressed"),
              std::string::npos);
}

TEST(ResultJson, HostMemoryStandsBesideTheGpus) {
    Scenario scenario = sample_scenario();
    scenario.training.offload.optimizer = 1;
    scenario.training.offload.host_bytes_per_s = 20e9;
    scenario.node.host_memory_bytes = 2e12;
    Result result = sample_result(scenario);
    result.host_bytes = std::int64_t{30} << 30;
    const ordered_json json = ordered_json::parse(result_json(result));
    EXPECT_EQ(json["host_memory"]["bytes"], std::int64_t{30} << 30);
    EXPECT_NE(full_text(result, false).find("30.0 GiB on the server that has most, of 1862.6 GiB"), std::string::npos);
}

TEST(ResultJson, FailedRunHasNullsAndNoDivisionByZero) {
    const Scenario scenario = sample_scenario();
    const ordered_json json = ordered_json::parse(result_json(failed_result(scenario)));
    EXPECT_EQ(json["verdict"], "out of memory");
    EXPECT_FALSE(json["failure"].get<std::string>().empty());
    EXPECT_TRUE(json["step"]["mfu"].is_null());
    EXPECT_TRUE(json["run"]["days"].is_null());
    EXPECT_EQ(json["step"]["waterfall"][0]["fraction"], 0.0);
    EXPECT_EQ(json["expect"][0]["met"], false);
    EXPECT_TRUE(json["expect"][0]["value"].is_null());

    Result empty;
    empty.scenario = &scenario;
    EXPECT_TRUE(ordered_json::accept(result_json(empty)));
}

TEST(ResultJson, NamesNoMachinePathAndSurvivesBrokenText) {
    Scenario scenario = sample_scenario();
    scenario.file = "/somewhere/private/run.yaml";
    scenario.name = "bad \xff name";
    const std::string text = result_json(sample_result(scenario));
    EXPECT_EQ(text.find("somewhere"), std::string::npos);
    EXPECT_EQ(ordered_json::parse(text)["scenario"]["file"], "run.yaml");
}

TEST(Expectation, EveryNumberOfStepCanBeExpected) {
    Scenario scenario = sample_scenario();
    const Result result = sample_result(scenario);
    const ordered_json json = ordered_json::parse(result_json(result));
    const std::vector<std::string> not_figures = {"tokens", "model_flops", "hardware_flops"};
    for (const auto& [key, value] : json["step"].items()) {
        if (!value.is_number() || std::count(not_figures.begin(), not_figures.end(), key) > 0)
            continue;
        ASSERT_TRUE(figure(result, key).has_value()) << key;
        EXPECT_DOUBLE_EQ(*figure(result, key), value.get<double>()) << key;
    }
    const std::vector<std::string_view> of_jobs = {"failed_at_s",    "epochs_done",     "job_s",
                                                   "longest_step_s", "reporting_ranks", "samples_missed"};
    const std::vector<std::string_view> campaigns = {
        "ettr",         "stops",           "mttf_h",           "best_interval_s", "best_to_young",
        "best_to_daly", "lost_h",          "stop_lost_s",      "stop_restart_s",  "warnings",
        "criticals",    "first_warning_d", "first_critical_d", "stop_detection_s"};
    const std::vector<std::string_view>& watched = report::monitor_figure_names();
    for (const std::string_view name : figure_names()) {
        const bool of_job = std::count(of_jobs.begin(), of_jobs.end(), name) > 0;
        const bool of_campaign = name.starts_with("campaign_") ||
                                 std::count(campaigns.begin(), campaigns.end(), name) > 0 ||
                                 std::count(watched.begin(), watched.end(), name) > 0;
        EXPECT_NE(figure(result, name).has_value(), of_job || of_campaign) << name;
    }
    EXPECT_DOUBLE_EQ(*figure(result, "memory_gib"), 58);
}

TEST(Expectation, BoundsAreInclusiveAndUnknownIsNotMet) {
    Scenario scenario = sample_scenario();
    scenario.expect = {
        {"memory_gib", 58, 58, ""}, {"memory_gib", 59, 60, ""}, {"memory_gib", 1, 57, ""}, {"mfuu", 0, 1, ""}};
    const Result result = sample_result(scenario);
    const std::vector<ExpectationOutcome> outcomes = check_expectations(result);
    EXPECT_TRUE(outcomes[0].met);
    EXPECT_FALSE(outcomes[1].met);
    EXPECT_EQ(describe(outcomes[1]), "memory_gib 58 is below [59, 60]");
    EXPECT_EQ(describe(outcomes[2]), "memory_gib 58 is above [1, 57]");
    EXPECT_FALSE(outcomes[3].met);
    EXPECT_FALSE(outcomes[3].value.has_value());
}

TEST(Expectation, OutcomeIsAWordAndAFailureMayBeExpected) {
    Scenario scenario = sample_scenario();
    scenario.expect.clear();
    EXPECT_TRUE(failed_unexpectedly(failed_result(scenario)));
    scenario.expect_outcome = "out_of_memory";
    EXPECT_FALSE(failed_unexpectedly(failed_result(scenario)));
    EXPECT_FALSE(failed_unexpectedly(sample_result(scenario)));
    EXPECT_TRUE(check_expectations(failed_result(scenario))[0].met);
    const ExpectationOutcome ran = check_expectations(sample_result(scenario))[0];
    EXPECT_FALSE(ran.met);
    EXPECT_EQ(describe(ran), "outcome ok, expected out_of_memory");
    const ordered_json json = ordered_json::parse(result_json(failed_result(scenario)));
    EXPECT_EQ(json["expect"][0]["value"], "out_of_memory");
}

}  // namespace
}  // namespace fabricast
