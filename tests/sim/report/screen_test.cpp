#include <gtest/gtest.h>

#include <sstream>

#include "sample_result.hpp"
#include "sim/report/views.hpp"
#include "sim/report/text.hpp"

namespace fabricast {
namespace {

using testing::failed_result;
using testing::sample_result;
using testing::sample_scenario;

std::vector<std::string> lines_of(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);)
        lines.push_back(line);
    return lines;
}

void expect_fits_screen(const std::string& text) {
    const std::vector<std::string> lines = lines_of(text);
    EXPECT_LE(lines.size(), 25u) << text;
    EXPECT_GE(lines.size(), 5u) << text;
    for (const std::string& line : lines)
        EXPECT_LE(report::width(line), 100u) << line;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(FirstScreen, SaysVerdictFiguresLossesAndAssumptions) {
    const Scenario scenario = sample_scenario();
    const std::string text = first_screen(sample_result(scenario), false);
    expect_fits_screen(text);
    for (const char* part : {"fits", "case-a-after", "MFU", "989.4 TFLOP/s dense bf16", "HFU", "2.020 s",
                             "58.0 of 79.6 GiB", "days", "USD", "matrix products at dense peak", "gradient reduction",
                             "tensor all-gather", "2 assumptions", "✔ mfu 0.45"}) {
        EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
    }
}

TEST(FirstScreen, PercentagesOfTheBarsSumToAHundred) {
    const Scenario scenario = sample_scenario();
    double sum = 0;
    for (const std::string& line : lines_of(first_screen(sample_result(scenario), false))) {
        const std::size_t percent = line.find(" %  ");
        if (percent == std::string::npos || line.rfind("  ", 0) != 0 || !contains(line, "█"))
            continue;
        sum += std::stod(line.substr(line.rfind(' ', percent - 1)));
    }
    EXPECT_NEAR(sum, 100, 0.5);
}

TEST(FirstScreen, StaysSmallWithManyLongRemarksAndExpectations) {
    Scenario scenario = sample_scenario();
    scenario.name = std::string(300, 'n');
    for (int i = 0; i < 30; ++i) {
        scenario.expect.push_back({"hfu", 0.9, 1.0, ""});
        scenario.notes.push_back(std::string(400, 'x') + " " + std::string(150, 'y'));
        scenario.comm_notes.emplace_back("NCCL_NSOCKS_PERTHREAD is read by the TCP transport only");
    }
    Result result = sample_result(scenario);
    result.hints.assign(5, "a hint of many words " + std::string(120, 'z') + " and more words after it");
    result.communication[1].limiting_link = std::string(200, 'l');
    for (std::size_t i = 0; i < kAccountCount; ++i)
        result.step.accounts[i] = result.step.ps * result.step.ranks / 21;
    const std::string text = first_screen(result, false);
    expect_fits_screen(text);
    EXPECT_TRUE(contains(text, "more not met"));
    EXPECT_TRUE(contains(text, "see --full"));
}

TEST(FirstScreen, FailedRunExplainsItselfWithoutFigures) {
    const Scenario scenario = sample_scenario();
    const std::string text = first_screen(failed_result(scenario), false);
    expect_fits_screen(text);
    EXPECT_TRUE(contains(text, "out of memory"));
    EXPECT_TRUE(contains(text, "needs 141.0 GiB"));
    EXPECT_TRUE(contains(text, "zero 3 would fit"));
    EXPECT_FALSE(contains(text, "nan"));
    EXPECT_FALSE(contains(text, "inf"));
    EXPECT_FALSE(contains(text, "MFU"));
}

TEST(FirstScreen, ColoursOnlyWhenAskedAndAsciiWhenAsked) {
    const Scenario scenario = sample_scenario();
    const Result result = sample_result(scenario);
    EXPECT_FALSE(contains(first_screen(result, false), "\x1b"));
    EXPECT_TRUE(contains(first_screen(result, true), "\x1b["));
    for (const std::string& text : {first_screen(result, false, false), full_text(result, false, false)}) {
        for (const char c : text)
            EXPECT_LT(static_cast<unsigned char>(c), 0x80u);
    }
}

TEST(FirstScreen, ControlCharactersOfTheUserDoNotReachTheTerminal) {
    Scenario scenario = sample_scenario();
    scenario.name = "evil\x1b[2J\nname";
    const std::string text = first_screen(sample_result(scenario), false);
    EXPECT_FALSE(contains(text, "\x1b"));
    EXPECT_TRUE(contains(text, "evil [2J name"));
}

TEST(FullText, HoldsEveryTable) {
    Scenario scenario = sample_scenario();
    scenario.comm_notes = {"NCCL_MIN_NCHANNELS=128 is clamped to 64"};
    const std::string text = full_text(sample_result(scenario), false);
    for (const char* part : {"gemm_loss", "by pipeline stage", "Memory per GPU", "activations",
                             "gradient reduce-scatter", "Critical path", "cluster.node.nic_efficiency",
                             "perftest on 400G rails", "published", "clamped to 64", "00c0ffee12345678", "sum"}) {
        EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
    }
    EXPECT_NO_THROW(full_text(failed_result(scenario), true));
}

TEST(Text, NumbersReadWell) {
    EXPECT_EQ(report::grouped(614302.4), "614 302");
    EXPECT_EQ(report::grouped(999), "999");
    EXPECT_EQ(report::grouped(1000), "1 000");
    EXPECT_EQ(report::percent(0.46149), "46.1 %");
    EXPECT_EQ(report::percent(0.0001), "<0.1 %");
    EXPECT_EQ(report::percent(0), "0.0 %");
    EXPECT_EQ(report::duration(0.0375), "37.5 ms");
    EXPECT_EQ(report::duration(3.4121), "3.412 s");
    EXPECT_EQ(report::duration(0), "0.000 s");
    EXPECT_EQ(report::magnitude(3.5e12), "3.50 T");
    EXPECT_EQ(report::magnitude(999.6e3), "1.00 M");
    EXPECT_EQ(report::decimal_bytes(17.5e9), "17.5 GB");
    EXPECT_EQ(report::decimal_bytes(17), "17 B");
}

TEST(Text, WidthClipAndWrapCountColumns) {
    EXPECT_EQ(report::width("a×b"), 3u);
    EXPECT_EQ(report::width("模型"), 4u);
    EXPECT_EQ(report::clip("abcdef", 4), "abc…");
    EXPECT_EQ(report::width(report::clip("模型模型", 5)), 5u);
    EXPECT_EQ(report::clip("abc", 3), "abc");
    EXPECT_EQ(report::wrap("one two three", 7), (std::vector<std::string>{"one two", "three"}));
    EXPECT_TRUE(report::wrap("", 7).empty());
    EXPECT_EQ(report::width(report::bar(1, 10)), 10u);
    EXPECT_EQ(report::bar(0, 10), "");
    EXPECT_EQ(report::width(report::bar(1e-9, 10)), 1u);
}

}  // namespace
}  // namespace fabricast
