#include "models/faults/signatures.hpp"

#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

#include "models/faults/fault_catalogue.hpp"

namespace fabricast::faults {
namespace {

TEST(Signatures, EveryKindHasItsSentencesAndARate) {
    std::set<std::string> names;
    for (const Signature& s : signatures()) {
        EXPECT_TRUE(names.insert(s.name).second) << s.name;
        EXPECT_FALSE(s.what.empty() || s.look.empty() || s.source.empty()) << s.name;
        EXPECT_GT(s.rate_per_day(128, 1024) + s.at_start, 0) << s.name;
        EXPECT_TRUE(s.high > 0 || s.stop_high_s > 0) << s.name;
    }
    EXPECT_GE(names.size(), 19u);
}

TEST(Signatures, AgreeWithTheCatalogue) {
    // Slow faults that a campaign draws have the rates of the catalogue.
    for (const Degradation& d : FaultCatalogue::builtin().degradations()) {
        if (d.rate == 0)  // happens where a scenario says so
            continue;
        bool found = false;
        for (const Signature& s : signatures()) {
            if (s.name != d.name)
                continue;
            found = true;
            EXPECT_DOUBLE_EQ(s.per_node_day, d.rate) << d.name;
            if (d.lane_bytes_per_s == 0 && s.low == s.high) {
                EXPECT_DOUBLE_EQ(s.low, d.keeps) << d.name;
            }
            EXPECT_GT(s.lasts.above(d.until.at(0.5)), 0.1) << d.name;
            EXPECT_LT(s.lasts.above(d.until.at(0.5)), 0.9) << d.name;
        }
        EXPECT_TRUE(found) << d.name;
    }
}

TEST(Signatures, ReadsAndRefuses) {
    const std::vector<Signature> one = parse_signatures(
        "kinds:\n  a: {what: b, look: c, source: d, severity: [1, 4], scale: log, lasts: [10 min, 1 d], "
        "per_1000_node_days: 2}\n");
    ASSERT_EQ(one.size(), 1u);
    EXPECT_NEAR(one[0].severity(0.5), 2, 1e-12);
    EXPECT_NEAR(one[0].lasts.above(600), 0.975, 1e-3);
    EXPECT_NEAR(one[0].rate_per_day(500, 0), 1, 1e-12);
    EXPECT_THROW(parse_signatures("kinds:\n  a: {what: b, look: c, source: d, colour: red}\n"), std::runtime_error);
    EXPECT_THROW(parse_signatures("kinds:\n  a: {what: b, look: c}\n"), std::runtime_error);
    EXPECT_THROW(parse_signatures("kinds:\n  a: {what: b, look: c, source: d, severity: [4, 1]}\n"),
                 std::runtime_error);
}

}  // namespace
}  // namespace fabricast::faults
