#include "sim/observed/text.hpp"

#include <gtest/gtest.h>

namespace fabricast {
namespace {

TEST(Text, PrintedNumbersCarryHalfAUnitOfTheirLastDigit) {
    const auto expect = [](std::string_view token, double value, double error) {
        const std::optional<Printed> number = printed_number(token);
        ASSERT_TRUE(number) << token;
        EXPECT_DOUBLE_EQ(number->value, value) << token;
        EXPECT_NEAR(number->error, error, error * 1e-12) << token;
    };
    expect("186.39", 186.39, 0.005);
    expect("92173", 92173, 0.5);
    expect("2.0e+07", 2e7, 0.05e7);
    expect("5e-07", 5e-7, 0.5e-7);
    expect("-1", -1, 0.5);
    expect(".5", 0.5, 0.05);
    expect("+3", 3, 0.5);
    for (const std::string_view token : {"", "N/A", "nan", "inf", "1.2.3", "12x", "-", "0x10", "1e", "1e999"}) {
        EXPECT_FALSE(printed_number(token).has_value()) << token;
    }
    EXPECT_EQ(whole_number("17179869184"), 17179869184);
    EXPECT_FALSE(whole_number("99999999999999999999").has_value());
    EXPECT_FALSE(whole_number("1.0").has_value());
}

TEST(Text, RemovesLauncherPrefixes) {
    EXPECT_EQ(clean_line("0: # size"), "# size");
    EXPECT_EQ(clean_line("  3:            8 2"), "8 2");
    EXPECT_EQ(clean_line("12:"), "");
    EXPECT_EQ(clean_line("[1,12]<stdout>:# nThread 1"), "# nThread 1");
    EXPECT_EQ(clean_line("[1,0]<stdout>: 8 2 -1[1,0]<stdout>:  85.7[1,0]<stderr>:x"), "8 2 -1   85.7 x");
    EXPECT_EQ(clean_line("[prterun-a@1,0]<stdout>: # x"), "# x");
    EXPECT_EQ(clean_line("[0]     366.5 0.00"), "366.5 0.00");
    EXPECT_EQ(clean_line("run(), common.cu:967, # nThread 1"), "# nThread 1");
    EXPECT_EQ(clean_line("[pod/launcher-x/main] # nThread 1"), "# nThread 1");
    EXPECT_EQ(clean_line("(worker, rank=0, pid=17) # nThread 1"), "# nThread 1");
    EXPECT_EQ(clean_line("2024-05-06T12:34:56.123Z 0: # x"), "# x");
    EXPECT_EQ(clean_line("\x1b[1;32m# x\x1b[0m\r"), "# x");
}

TEST(Text, LeavesOtherLinesAlone) {
    for (const std::string line :
         {"host-01:11:12 [0] NCCL INFO Channel 00/16 : 0 1", "[host-01:07511] 3 more processes", "8 2 float sum -1",
          "# Rank  0 Group  0 Pid 1 on host-01 device 0 [0x07] NVIDIA H100"}) {
        EXPECT_EQ(clean_line(line), line);
    }
}

TEST(Text, LineEndsOfAllSystems) {
    const std::vector<std::string_view> lines = lines_of("a\r\nb\n\nc");
    EXPECT_EQ(lines, (std::vector<std::string_view>{"a", "b", "", "c"}));
    EXPECT_TRUE(lines_of("").empty());
}

}  // namespace
}  // namespace fabricast
