// The table of causes, and the views of an explanation made by hand.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sample_result.hpp"
#include "sim/report/explain_views.hpp"
#include "sim/report/text.hpp"

namespace fabricast::testing {
namespace {

using nlohmann::json;

class ExplainViews : public ::testing::Test {
protected:
    ExplainViews() {
        e_.run = sample_result(scenario_);
        const auto of = [&](Account a) { return e_.run.step.accounts[static_cast<std::size_t>(a)]; };
        e_.run.waiting = WaitingSplit{of(Account::bubble) / 3, of(Account::straggler) / 5, 0};
        e_.communication[static_cast<std::size_t>(Account::comm_tp)] = 4 * of(Account::comm_tp);
        Ceiling overlap;
        overlap.key = "perfect_overlap";
        overlap.name = "perfect overlap";
        overlap.how = "re-run without traffic";
        overlap.ps = overlap.rerun_ps = e_.run.step.ps / 2;
        overlap.mfu = 0.9;
        Ceiling nothing = overlap;
        nothing.key = "no_recompute";
        nothing.name = "no recomputation";
        nothing.present = false;
        e_.ceilings = {overlap, nothing};
    }
    Scenario scenario_ = sample_scenario();
    Explanation e_;
};

TEST_F(ExplainViews, RowsSumToTheStepExactly) {
    __int128 sum = 0;
    for (const CauseRow& row : cause_rows(e_)) {
        EXPECT_TRUE(row.rank_ps >= 0) << row.key;
        sum += row.rank_ps;
    }
    EXPECT_TRUE(sum == static_cast<__int128>(e_.run.step.ps) * e_.run.step.ranks);
}

TEST_F(ExplainViews, TextHasTheTableTheCeilingsAndHowTheyWereMade) {
    const std::string text = explain_text(e_, false);
    for (const char* part :
         {"the rows add up to the step", "= step", "pipeline warm-up and drain", "imbalance of stages", "75.0 %",
          "perfect overlap", "re-run without traffic", "nothing of it in this run"})
        EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    const std::string ascii = explain_text(e_, false, false);
    for (const char c : ascii)
        ASSERT_LT(static_cast<unsigned char>(c), 0x80);
}

TEST_F(ExplainViews, ARunShowsWhatItsBubbleIsMadeOf) {
    const Result& run = e_.run;
    const __int128 bubble = run.step.accounts[static_cast<std::size_t>(Account::bubble)];
    const json split = json::parse(result_json(run))["step"]["bubble_split"];
    EXPECT_EQ(split["imbalance"].get<std::int64_t>(), static_cast<std::int64_t>(bubble / 3));
    EXPECT_EQ(split["warmup_and_drain"].get<std::int64_t>(), static_cast<std::int64_t>(bubble - bubble / 3));
    const std::string full = full_text(run, false), screen = first_screen(run, false);
    for (const char* part : {"of it warm-up and drain", "of it imbalance of stages", "HFU recomputed ones too"})
        EXPECT_NE(full.find(part), std::string::npos) << part << "\n" << full;
    EXPECT_NE(screen.find("bubble 6.9 % (warm-up and drain 4.6 %, unequal stages 2.3 %)"), std::string::npos) << screen;
    EXPECT_NE(explain_text(e_, false).find("HFU recomputed ones too"), std::string::npos);

    e_.run.waiting.reset();  // one stage, or nobody asked
    EXPECT_TRUE(json::parse(result_json(e_.run))["step"]["bubble_split"].is_null());
    EXPECT_EQ(full_text(e_.run, false).find("of it warm-up"), std::string::npos);
    EXPECT_NE(first_screen(e_.run, false).find("bubble 6.9 %"), std::string::npos);
}

TEST_F(ExplainViews, PrintedMillisecondsAddUp) {
    const std::string text = explain_text(e_, false);
    std::istringstream lines(text);
    double sum = 0, step = 0;
    bool table = false;
    for (std::string line; std::getline(lines, line);) {
        table = table || line.find("the rows add up") != std::string::npos;
        const std::size_t unit = line.find(" ms ");
        if (!table || unit == std::string::npos)
            continue;
        const std::size_t begin = line.rfind(' ', unit - 1);
        const double ms = std::stod(line.substr(begin));
        if (line.starts_with("  = step")) {
            step = ms;
            break;
        }
        if (!line.starts_with("  ="))
            sum += ms;
    }
    EXPECT_NEAR(sum, step, 0.02);
    EXPECT_NEAR(step, seconds(e_.run.step.ps) * 1e3, 1e-3);
}

TEST_F(ExplainViews, JsonIsTheResultWithOneMoreKey) {
    const json whole = json::parse(explain_json(e_));
    json without = whole;
    without.erase("explain");
    EXPECT_EQ(without, json::parse(result_json(e_.run)));
    const json& explain = whole["explain"];
    double fractions = 0;
    for (const json& row : explain["causes"])
        fractions += row["fraction"].get<double>();
    EXPECT_NEAR(fractions, 1, 1e-12);
    EXPECT_NEAR(explain["communication"][0]["hidden_fraction"].get<double>(), 0.75, 1e-12);
    EXPECT_EQ(explain["ceilings"][0]["ceiling"], "perfect_overlap");
    EXPECT_EQ(explain["ceilings"][1]["present"], false);
}

TEST_F(ExplainViews, AFailedJobHasEmptyTables) {
    Explanation failed;
    failed.run = sample_result(scenario_);
    failed.run.step.ps = 0;
    failed.run.verdict = "out of memory";
    failed.run.failure = "out of memory: stage 0 needs 90 GiB";
    EXPECT_NE(explain_text(failed, false).find("needs 90 GiB"), std::string::npos);
    EXPECT_TRUE(json::parse(explain_json(failed))["explain"]["causes"].empty());
}

}  // namespace
}  // namespace fabricast::testing
