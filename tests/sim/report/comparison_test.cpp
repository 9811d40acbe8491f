// Two results side by side, and measured figures against one.
#include "sim/report/comparison.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sample_result.hpp"
#include "sim/report/result_views.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast::testing {
namespace {

using nlohmann::json;

class Comparing : public ::testing::Test {
protected:
    Comparing() {
        a_ = sample_result(scenario_a_);
        b_ = sample_result(scenario_b_);
        b_.step.ps -= 100'000'000'000;  // less bubble
        b_.step.accounts[static_cast<std::size_t>(Account::bubble)] -= static_cast<__int128>(100'000'000'000) * 1024;
    }
    Scenario scenario_a_ = sample_scenario(), scenario_b_ = sample_scenario();
    Result a_, b_;
};

TEST_F(Comparing, DifferencesOfAccountsSumToTheDifferenceOfTheStep) {
    const Comparison c = compare(a_, b_, {});
    double seconds_sum = 0, points = 0;
    for (const AccountDifference& d : c.accounts) {
        seconds_sum += d.b_s - d.a_s;
        points += d.points;
    }
    EXPECT_NEAR(seconds_sum, seconds(b_.step.ps - a_.step.ps), 1e-9);
    EXPECT_NEAR(points, 100 * (seconds(b_.step.ps) / seconds(a_.step.ps) - 1), 1e-9);
    EXPECT_NEAR(c.cost_ratio, seconds(b_.step.ps) / seconds(a_.step.ps), 1e-12);
    EXPECT_TRUE(c.same_batch && c.same_gpus);
    const std::string text = comparison_text(c, false);
    EXPECT_NE(text.find("The scenarios say the same"), std::string::npos) << text;
    EXPECT_EQ(text.find("compare by tokens"), std::string::npos);
}

TEST_F(Comparing, DifferentBatchesAreComparedByTokens) {
    b_.step.tokens *= 4;
    const Comparison c = compare(a_, b_, {{"training.global_batch", "64 sequences", "256 sequences"}});
    EXPECT_FALSE(c.same_batch);
    const std::string text = comparison_text(c, false);
    EXPECT_NE(text.find("compare by tokens, not by iteration time"), std::string::npos) << text;
    EXPECT_NE(text.find("GPU-seconds per million tokens"), std::string::npos);
    EXPECT_NE(text.find("256 sequences"), std::string::npos);
    double per_token = 0;
    for (const AccountDifference& d : c.accounts)
        per_token += d.b_per_token;
    EXPECT_NEAR(per_token, seconds(b_.step.ps) * 1024 / b_.step.tokens * 1e6, 1e-9);
}

TEST_F(Comparing, PricesOfOneCurrencyGiveACostRatio) {
    scenario_b_.price_per_gpu_hour = 2 * scenario_a_.price_per_gpu_hour;
    EXPECT_NEAR(compare(a_, b_, {}).cost_ratio, 2 * compare(a_, b_, {}).gpu_s_per_token_ratio, 1e-12);
    scenario_b_.currency = "EUR";
    EXPECT_EQ(compare(a_, b_, {}).cost_ratio, 0);
    scenario_b_.currency = scenario_a_.currency;
    scenario_b_.price_per_gpu_hour = 0;
    EXPECT_NE(comparison_text(compare(a_, b_, {}), false).find("name no price"), std::string::npos);
}

TEST_F(Comparing, JsonHoldsBothResults) {
    const json whole = json::parse(comparison_json(compare(a_, b_, {{"training.layout.tp", "4", "8"}})));
    EXPECT_EQ(whole["keys"][0]["key"], "training.layout.tp");
    EXPECT_EQ(whole["step_difference_ps"], b_.step.ps - a_.step.ps);
    EXPECT_EQ(whole["a"]["schema_version"], 1);
    EXPECT_EQ(whole["b"]["step"]["ps"], b_.step.ps);
}

TEST_F(Comparing, AJobThatFailedLeavesNoRatios) {
    b_.step.ps = 0;
    b_.failure = "out of memory";
    const json whole = json::parse(comparison_json(compare(a_, b_, {})));
    EXPECT_TRUE(whole["step_ratio"].is_null());
    EXPECT_TRUE(whole["accounts"].empty());
    EXPECT_NE(comparison_text(compare(a_, b_, {}), false).find("out of memory"), std::string::npos);
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST_F(Comparing, SpeedIsSaidInWordsWithItsIntervals) {
    EXPECT_EQ(report::speed_words(1.284), "1.28x faster");
    EXPECT_EQ(report::speed_words(1 / 1.284), "1.28x slower");
    EXPECT_EQ(report::speed_words(1.004), "1.004x faster");
    EXPECT_EQ(report::speed_words(1.0002), "as fast");
    const Comparison near = compare(a_, b_, {});
    EXPECT_EQ(near.intervals, Intervals::overlap);
    EXPECT_TRUE(has(comparison_text(near, false), "B is 1.052x faster, intervals overlap"))
        << comparison_text(near, false);
    b_.step.ps /= 2;
    const Comparison apart = compare(a_, b_, {});
    EXPECT_EQ(apart.intervals, Intervals::apart);
    EXPECT_TRUE(has(comparison_text(apart, false), "2.10x faster, intervals do not overlap"));
    EXPECT_EQ(json::parse(comparison_json(apart))["intervals_overlap"], false);
}

TEST_F(Comparing, PageAndMarkdownTellWhereTheDifferenceLies) {
    const std::string text = comparison_json(compare(a_, b_, {{"training.layout.tp", "4", "<8>"}}));
    const std::string page = html_report(text);
    for (const char* part :
         {"B is 1.052x faster", "id=intervals", "id=keys", "&lt;8&gt;", "id=figures", "id=difference",
          "pipeline bubble", "-5.0 points", "id=steps", "id=memory", "id=reproduce"})
        EXPECT_TRUE(has(page, part)) << part;
    for (const char* outside : {"http://", "https://", "<script", "<link rel=stylesheet", " src=", "<8>"})
        EXPECT_FALSE(has(page, outside)) << outside;
    EXPECT_FALSE(has(page, "id=campaign")) << "no section without data";
    const std::string markdown = markdown_report(text);
    EXPECT_TRUE(has(markdown, "**B is 1.052x faster than A, intervals overlap.**")) << markdown;
    EXPECT_TRUE(has(markdown, "| training.layout.tp | 4 | <8> |")) << markdown;
    EXPECT_TRUE(has(markdown, "| pipeline bubble |")) << markdown;
}

TEST_F(Comparing, AThirdStandsBesideAndIsHeldAgainstA) {
    Scenario scenario_c = sample_scenario();
    scenario_c.name = "third";
    Result c = sample_result(scenario_c);
    c.step.ps *= 2;
    Comparison third = compare(a_, c, {{"seed", "1", "2"}});
    third.letter = "C";
    const std::string text = comparison_json(compare(a_, b_, {}), &third);
    EXPECT_EQ(json::parse(text)["c"]["step"]["ps"], c.step.ps);
    EXPECT_NEAR(json::parse(text)["c_against_a"]["tokens_per_s_ratio"].get<double>(), 0.5, 1e-12);
    for (const std::string& view : {html_report(text), markdown_report(text)}) {
        EXPECT_TRUE(has(view, "C is 2.00x slower")) << view;
        EXPECT_TRUE(has(view, "third"));
        EXPECT_TRUE(has(view, "as A")) << "B keeps the seed";
    }
    EXPECT_TRUE(has(comparison_text(third, false), "C against A"));
    EXPECT_FALSE(has(comparison_text(third, false), "B against A"));
}

TEST_F(Comparing, APageOfAFailedJobHasNoDifference) {
    b_.step.ps = 0;
    b_.failure = "out of memory";
    const std::string page = html_report(comparison_json(compare(a_, b_, {})));
    EXPECT_TRUE(has(page, "out of memory"));
    EXPECT_FALSE(has(page, "id=difference"));
    EXPECT_FALSE(has(page, "faster"));
}

Scenario a800(const std::string& training) {
    return parse_scenario(
        "cluster: {node: hgx-a800}\nmodel: llama-7b\ntraining: {sequence: 4096 tokens, " + training + "}\n",
        "test.yaml");
}

TEST(Measured, EveryFigureNamesTheSameStep) {
    const Scenario s = a800("global_batch: 64 sequences, layout: {zero: 1}");
    const Measurement by_rate = parse_measurement("tokens_per_s_per_gpu=4000", s);
    EXPECT_NEAR(by_rate.step_s, 64 * 4096 / 8.0 / 4000, 1e-12);
    const auto same = [&](const std::string& text) {
        EXPECT_NEAR(parse_measurement(text, s).step_s / by_rate.step_s, 1, 1e-9) << text;
    };
    same(fmt::format("step_s={:.15g}", by_rate.step_s));
    same(fmt::format("mfu={:.15g}", by_rate.mfu));
    same(fmt::format("tflops_per_gpu={:.15g}", by_rate.mfu * 312));
    EXPECT_EQ(doubt(by_rate, s), "");
}

TEST(Measured, AboveThePeakIsRefusedAndAboveTheSustainedRateDoubted) {
    const Scenario s = a800("global_batch: 256 sequences, layout: {zero: 1}");
    try {
        parse_measurement("tokens_per_s_per_gpu=8707.8", s);
        ADD_FAILURE() << "accepted";
    } catch (const ScenarioError& error) {
        const std::string text = error.what();
        for (const char* part : {"128.6 %", "312.0 TFLOP/s", "A800-SXM-80G", "8707.8"})
            EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    }
    const Scenario tp4 = a800("global_batch: 64 sequences, layout: {tp: 4, sp: true, zero: 1}");
    const Measurement m = parse_measurement("step_s=5.2", tp4);
    EXPECT_NEAR(m.mfu, 0.939, 0.02);
    EXPECT_NE(doubt(m, tp4).find("suspicious"), std::string::npos);
}

TEST(Measured, AttentionInFullMayPassThePeakWhereItIsMostOfTheWork) {
    const Scenario s = parse_scenario(
        "cluster: {node: hgx-h100}\nmodel: llama3.1-8b\ntraining: {sequence: 262144 tokens, global_batch: 8 sequences, "
        "layout: {zero: 3}, recompute: full}\n",
        "test.yaml");
    EXPECT_NO_THROW(parse_measurement("mfu=1.05", s));
}

TEST(Measured, NonsenseIsRefusedWithASentence) {
    const Scenario s = a800("global_batch: 64 sequences, layout: {zero: 1}");
    for (const char* text : {"", "mfu", "mfu=", "mfu=x", "mfu=-1", "mfu=0", "mfu=nan", "mfu=0.3x", "=1", "tokens=3"})
        EXPECT_THROW(parse_measurement(text, s), ScenarioError) << text;
    try {
        parse_measurement("step=3", s);
    } catch (const ScenarioError& error) {
        EXPECT_NE(std::string(error.what()).find("step_s"), std::string::npos);
    }
}

}  // namespace
}  // namespace fabricast::testing
