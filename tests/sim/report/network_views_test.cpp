// The answer in sentences, and the views of a need made by hand.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sample_result.hpp"
#include "sim/report/network_views.hpp"

namespace fabricast::testing {
namespace {

using Bound = NetworkRow::Bound;
using nlohmann::json;

class NetworkViews : public ::testing::Test {
protected:
    NetworkViews() {
        need_.run = sample_result(scenario_);
        need_.nodes = 4;
        need_.gpus_per_node = 8;
        need_.has_bits_per_s = 340e9;
        need_.smallest = 1e10;
        need_.largest = 1e14;
        need_.capacity = std::int64_t{80} << 30;
        NetworkRow row;
        row.micro_batches = 4;
        row.tokens = 2048;
        row.own = true;
        row.memory = std::int64_t{40} << 30;
        row.sent.over_network[static_cast<std::size_t>(Account::comm_pp)] = 64'000'000'000;
        row.step = 10'000'000'000'000;
        row.infinite = 6'200'000'000'000;
        row.needs_bits_per_s = 2.043e12;
        row.short_bits_per_s = 2.01e12;
        NetworkRow larger = row;
        larger.own = false;
        larger.micro_batch = 2;
        larger.needs_bits_per_s = 330e9;
        NetworkRow too_large = larger;
        too_large.micro_batch = 4;
        too_large.fits = false;
        too_large.memory = std::int64_t{90} << 30;
        need_.rows = {row, larger, too_large};
    }
    NetworkRow& own() { return need_.rows.front(); }
    std::string verdict() const {
        std::string all;
        for (const std::string& sentence : network_verdict(need_))
            all += sentence + "\n";
        return all;
    }
    bool says(const std::string& part) const { return verdict().find(part) != std::string::npos; }
    Scenario scenario_ = sample_scenario();
    NetworkNeed need_;
};

TEST_F(NetworkViews, TheAnswerIsASentence) {
    EXPECT_TRUE(
        says("needs 2 040 Gb/s a node (255 Gb/s a GPU) for its communication to hide, has 340 Gb/s: 38.0 % of "
             "the step waits for the network"))
        << verdict();
    EXPECT_TRUE(says("with a micro-batch of 2 sequences it would hide on what there is: 330 Gb/s a node are needed"))
        << verdict();
    EXPECT_FALSE(says("an infinite one")) << verdict();
    own().exposed = 0.12;
    EXPECT_TRUE(says("with an infinite one 12.0 % of the step still is exposed communication")) << verdict();
    need_.rows[1].fits = false;
    EXPECT_FALSE(says("it would hide on what there is")) << verdict();
}

TEST_F(NetworkViews, WhatHidesAndTheEndsOfTheSearch) {
    own().step = 6'300'000'000'000;
    own().needs_bits_per_s = 300e9;
    EXPECT_TRUE(says("needs 300 Gb/s a node (37.5 Gb/s a GPU) for its communication to hide, has 340 Gb/s: it hides"))
        << verdict();
    own().bound = Bound::smallest_is_enough;
    EXPECT_TRUE(says("10 Gb/s a node, the least looked at, already hide its communication")) << verdict();
    own().bound = Bound::largest_is_short;
    EXPECT_TRUE(says("even 100 000 Gb/s a node do not hide its communication")) << verdict();
    own().sent = {};
    EXPECT_TRUE(says("nothing of this step crosses the network")) << verdict();
    own().refused = "no";
    EXPECT_EQ(verdict(), "");
}

TEST_F(NetworkViews, TextMarksRowsAndIsAsciiWhereItMust) {
    const std::string text = network_text(need_, false);
    for (const char* part : {"pipeline messages", "16.0 GB", "2.00 GB", "\xE2\x86\x90 yours",
                             "does not fit in 80.0 GiB", "what there is", "2 043", "at most 5 % above"})
        EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    for (const char c : network_text(need_, false, false))
        ASSERT_LT(static_cast<unsigned char>(c), 0x80);
    own().bound = Bound::largest_is_short;
    EXPECT_NE(network_text(need_, false).find("never"), std::string::npos);
    need_.rows.clear();
    EXPECT_EQ(network_text(need_, false).find("what there is"), std::string::npos);
}

TEST_F(NetworkViews, JsonHasTheCurve) {
    own().bound = Bound::largest_is_short;
    need_.rows[2].refused = "interleaving needs more micro-batches";
    const json network = json::parse(network_json(need_))["network"];
    ASSERT_EQ(network["curve"].size(), 3u);
    EXPECT_TRUE(network["curve"][0]["needs_bits_per_s_per_node"].is_null());
    EXPECT_EQ(network["curve"][1]["needs_bits_per_s_per_gpu"], 330e9 / 8);
    EXPECT_FALSE(network["curve"][2].contains("ps"));
    EXPECT_EQ(network["sent"][0]["account"], "comm_pp");
    EXPECT_EQ(network["sent"][0]["network_bytes_per_node"], 16e9);
    EXPECT_EQ(network["hidden_within"], 1.05);
}

}  // namespace
}  // namespace fabricast::testing
