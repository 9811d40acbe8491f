#include "sim/observed/csv.hpp"

#include <gtest/gtest.h>

#include "sim/observed/ingest_error.hpp"

namespace fabricast {
namespace {

std::string error_of(std::string_view text) {
    try {
        Csv::parse(text, "t.csv");
    } catch (const IngestError& error) {
        return error.what();
    }
    return "";
}

TEST(Csv, ReadsQuotedFieldsWithCommasQuotesAndLineEnds) {
    const Csv csv = Csv::parse("a,b,c\r\n1,\"x, \"\"y\"\"\",\"two\nlines\"\r\n\r\n2,,\"\"\r\n", "t.csv");
    ASSERT_EQ(csv.size(), 2u);
    EXPECT_EQ(csv.text(0, "b"), "x, \"y\"");
    EXPECT_EQ(csv.text(0, "c"), "two\nlines");
    EXPECT_EQ(csv.text(1, "b"), "");
    EXPECT_EQ(csv.integer(1, "a"), 2);
    EXPECT_EQ(csv.line(0), 2);
    EXPECT_EQ(csv.line(1), 5);
}

TEST(Csv, LastLineMayLackItsEndAndAByteOrderMarkIsSkipped) {
    const Csv csv = Csv::parse("\xEF\xBB\xBFgpu, n\nA100,1.5e3", "t.csv");
    ASSERT_EQ(csv.size(), 1u);
    EXPECT_DOUBLE_EQ(csv.number(0, "n"), 1500);
    EXPECT_TRUE(csv.has("gpu"));
}

TEST(Csv, EmptyFieldsAreKept) {
    const Csv csv = Csv::parse("a,b\n,\n1,", "t.csv");
    ASSERT_EQ(csv.size(), 2u);
    EXPECT_FALSE(csv.number_if_any(0, "a").has_value());
    EXPECT_EQ(csv.number_if_any(1, "a"), 1.0);
    EXPECT_EQ(csv.text(1, "b"), "");
}

TEST(Csv, ErrorsNameFileLineAndColumn) {
    EXPECT_EQ(error_of(""), "t.csv: is empty: a CSV begins with a line of column names");
    EXPECT_EQ(error_of("a,b\n1,2\n1\n"), "t.csv:3: 1 fields where the header names 2");
    EXPECT_EQ(error_of("a,b\n1,\"2\n3\n"), "t.csv:2: the quote that opens here never closes");
    EXPECT_EQ(error_of("a,b\n1,\"2\"3\n"), "t.csv:2: text after the closing quote of a field");
    EXPECT_EQ(error_of("a,a\n"), "t.csv:1: column 'a' is there twice");
    const Csv csv = Csv::parse("a,b\n1,x\n", "t.csv");
    try {
        csv.number(0, "b");
        FAIL();
    } catch (const IngestError& error) {
        EXPECT_STREQ(error.what(), "t.csv:2: column 'b' holds 'x', which is not a number");
        EXPECT_EQ(error.line, 2);
    }
    try {
        csv.text(0, "c");
        FAIL();
    } catch (const IngestError& error) {
        EXPECT_STREQ(error.what(), "t.csv:1: no column 'c'; there are: a, b");
    }
    EXPECT_THROW(csv.integer(0, "b"), IngestError);
    EXPECT_THROW(Csv::read("/no/such/file.csv"), IngestError);
}

}  // namespace
}  // namespace fabricast
