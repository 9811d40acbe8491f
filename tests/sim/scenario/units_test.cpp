#include "sim/scenario/units.hpp"

#include <gtest/gtest.h>

namespace fabricast {
namespace {

struct Good {
    const char* text;
    Dimension dimension;
    double value;
};

TEST(Units, Table) {
    const Good table[] = {
        {"400 Gb/s", Dimension::rate, 50e9},      {"400Gb/s", Dimension::rate, 50e9},
        {"400  Gbps", Dimension::rate, 50e9},     {"200 Gbit/s", Dimension::rate, 25e9},
        {"50 GB/s", Dimension::rate, 50e9},       {"3.35 TB/s", Dimension::rate, 3.35e12},
        {"1 GiB/s", Dimension::rate, 1073741824}, {"8 b/s", Dimension::rate, 1},
        {"80 GB", Dimension::size, 80e9},         {"80 GiB", Dimension::size, 85899345920.0},
        {"25 MB", Dimension::size, 25e6},         {"25 MiB", Dimension::size, 26214400},
        {"1 kB", Dimension::size, 1000},          {"1 h", Dimension::time, 3600},
        {"90 min", Dimension::time, 5400},        {"250 ns", Dimension::time, 250e-9},
        {"0.6 us", Dimension::time, 0.6e-6},      {"2 d", Dimension::time, 172800},
        {"700 W", Dimension::power, 700},         {"989.4 TFLOP/s", Dimension::flops, 989.4e12},
        {"1 PFLOPS", Dimension::flops, 1e15},     {"4096 tokens", Dimension::tokens, 4096},
        {"4096", Dimension::tokens, 4096},        {"3.5 Ttokens", Dimension::tokens, 3.5e12},
        {"3.5e12", Dimension::tokens, 3.5e12},    {"4 Mitokens", Dimension::batch, 4194304},
        {"512 sequences", Dimension::batch, 512}, {"1 sequence", Dimension::sequences, 1},
        {"8", Dimension::sequences, 8},           {"1.90 USD/GPU-h", Dimension::price, 1.9},
        {"2 EUR/GPU-hour", Dimension::price, 2},  {"+5 W", Dimension::power, 5},
        {"1.5e3 W", Dimension::power, 1500},
    };
    for (const Good& row : table) {
        std::string problem;
        const auto quantity = parse_quantity(row.text, row.dimension, "x", problem);
        ASSERT_TRUE(quantity) << row.text << ": " << problem;
        EXPECT_DOUBLE_EQ(quantity->value, row.value) << row.text;
    }
}

TEST(Units, BitsAreAnEighthOfBytesExactly) {
    std::string problem;
    EXPECT_EQ(parse_quantity("400 Gb/s", Dimension::rate, "", problem)->value, 50'000'000'000.0);
    EXPECT_EQ(parse_quantity("400 GB/s", Dimension::rate, "", problem)->value, 400'000'000'000.0);
}

TEST(Units, PriceKeepsItsCurrency) {
    std::string problem;
    EXPECT_EQ(parse_quantity("2 EUR/GPU-h", Dimension::price, "", problem)->unit, "EUR");
}

struct Bad {
    const char* text;
    Dimension dimension;
    const char* fragment;
};

TEST(Units, Refused) {
    const Bad table[] = {
        {"400", Dimension::rate, "write \"400 Gb/s\""},
        {"400 gb/s", Dimension::rate, "\"400 Gb/s\" or \"400 GB/s\""},
        {"400 Gb", Dimension::rate, "has the unknown unit `Gb`"},
        {"400 GB", Dimension::rate, "is a size, but a rate is needed"},
        {"80 gib", Dimension::size, "did you mean \"80 GiB\""},
        {"80 GB/s", Dimension::size, "is a rate, but a size is needed"},
        {"80 Gb", Dimension::size, "`Gb`; did you mean \"80 GB\"?"},
        {"512", Dimension::batch, "has no unit"},
        {"1_000 W", Dimension::power, "underscore; write 1000"},
        {"1,5 W", Dimension::power, "comma"},
        {"012 W", Dimension::power, "leading zero"},
        {"1e400 W", Dimension::power, "out of the range"},
        {"fast", Dimension::rate, "is not a rate"},
        {"", Dimension::rate, "is not a rate"},
        {"nan W", Dimension::power, "is not a power"},
        {".inf W", Dimension::power, "is not a power"},
        {"1.2.3 W", Dimension::power, "is not a number"},
        {"2 dollars", Dimension::price, "write \"2 USD/GPU-h\""},
        {"2 usd/GPU-h", Dimension::price, "three-letter currency"},
        {"2", Dimension::price, "has no unit"},
    };
    for (const Bad& row : table) {
        std::string problem;
        EXPECT_FALSE(parse_quantity(row.text, row.dimension, "Gb/s", problem)) << row.text;
        EXPECT_NE(problem.find(row.fragment), std::string::npos) << row.text << ": " << problem;
    }
}

TEST(Numbers, WholeAndDecimal) {
    std::string problem;
    EXPECT_EQ(parse_integer("4.5e3", problem), 4500);
    EXPECT_EQ(parse_integer("0", problem), 0);
    EXPECT_EQ(parse_integer("-3", problem), -3);
    EXPECT_EQ(parse_number("0.5", problem), 0.5);
    EXPECT_FALSE(parse_integer("4.5", problem));
    EXPECT_EQ(problem, "is not a whole number");
    EXPECT_FALSE(parse_integer("012", problem));
    EXPECT_NE(problem.find("octal; write 12"), std::string::npos);
    EXPECT_FALSE(parse_integer("0x10", problem));
    EXPECT_NE(problem.find("hexadecimal"), std::string::npos);
    EXPECT_FALSE(parse_integer("1e17", problem));
    EXPECT_FALSE(parse_integer("8 GPUs", problem));
    EXPECT_NE(problem.find("`GPUs`"), std::string::npos);
}

}  // namespace
}  // namespace fabricast
