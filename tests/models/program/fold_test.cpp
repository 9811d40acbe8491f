// Folding on programs small enough to fold by hand.
#include "models/program/fold.hpp"

#include <gtest/gtest.h>

namespace fabricast::program {
namespace {

/// Ranks in a ring: each sends to the next over a link of its own and all load one shared link; one group of all of them
/// loads every rank's link once.
Program ring(std::uint32_t ranks) {
    Program p;
    p.names = {"ring"};
    p.labels = {{0, Account::comm_cp}};
    Template t;
    t.name = "rank";
    t.nodes = {{Node::Kind::operation, 1, 1, kNone, 0}, {Node::Kind::operation, 2, 1, kNone, 1}};
    t.operations.resize(2);
    t.operations[0].kind = OpKind::p2p_batch;
    t.operations[1].kind = OpKind::collective;
    p.templates = {t};
    p.batches = {{{{0, true, 1000}, {1, false, 1000}}}};
    p.calls = {{0, 0, 5000}};
    p.plans = {{{.latency = 7, .activities = {{5000, 1, 0, 0}}}}};
    Group all{"all", {}, 0, {ranks}};
    std::vector<LinkUse> whole;
    for (std::uint32_t r = 0; r < ranks; ++r) {
        p.demands.push_back({{LinkId{r}, 65536}, {LinkId{ranks}, 65536}});
        p.routes.push_back({.latency = 3, .demand = r});
        whole.push_back({LinkId{r}, 32768});
        all.members.push_back(r);
        Rank rank;
        rank.groups = {0};
        rank.peers = {{.rank = (r + 1) % ranks, .channel = 0, .send_route = r},
                      {.rank = (r + ranks - 1) % ranks, .channel = 0}};
        p.ranks.push_back(rank);
    }
    p.demands.push_back(whole);
    p.groups = {all};
    return p;
}

std::vector<Rate> capacities(std::uint32_t ranks) {
    std::vector<Rate> out(ranks, 1000);
    out.push_back(3000);
    return out;
}

TEST(FoldedProgram, EqualRanksSendToThemselvesAndLoadTheSharedLinkTogether) {
    const Program whole = ring(6);
    ASSERT_EQ(validate(whole), "");
    const Folded folded = fold(whole, capacities(6));
    EXPECT_EQ(validate(folded.program), "");
    ASSERT_EQ(folded.program.ranks.size(), 1u);
    const Rank& rank = folded.program.ranks.front();
    EXPECT_EQ(rank.copies, 6u);
    EXPECT_EQ(rank.peers[0].rank, 0u);
    EXPECT_EQ(rank.peers[0].channel, rank.peers[1].receive_channel) << "what it sends is what it receives";
    ASSERT_EQ(folded.program.groups.size(), 1u);
    EXPECT_EQ(folded.program.groups.front().members, (std::vector<std::uint32_t>{0}));
    // a message: its own link once, the shared one for six; the collective: half of every own link
    const std::vector<LinkUse>& message =
        folded.program.demands[folded.program.routes[rank.peers[0].send_route].demand];
    ASSERT_EQ(message.size(), 2u);
    EXPECT_EQ(message[0].coefficient, 65536u);
    EXPECT_EQ(message[1].coefficient, 6u * 65536);
    const std::uint32_t group_demand = folded.program.groups.front().demands.front();
    const std::vector<LinkUse>& group = folded.program.demands[group_demand];
    ASSERT_EQ(group.size(), 1u);
    EXPECT_NE(group[0].link, message[0].link) << "nothing else runs meanwhile: a link of its own";
    EXPECT_EQ(folded.capacity[index(group[0].link)], 1000);
    EXPECT_EQ(group[0].coefficient, 32768u);
    // alone on the network a message has all of its own link, the collective twice that
    EXPECT_EQ(folded.program.alone[folded.program.routes[rank.peers[0].send_route].demand], 1000);
    EXPECT_EQ(folded.program.alone[group_demand], 2000);
}

TEST(FoldedProgram, ACollectiveThatMessagesMayOverlapSharesTheirLinks) {
    Program whole = ring(6);
    whole.templates[0].streams = 2;
    whole.templates[0].operations[0].stream = 1;  // nothing waits for the messages
    ASSERT_EQ(validate(whole), "");
    const Folded folded = fold(whole, capacities(6));
    ASSERT_EQ(folded.program.ranks.size(), 1u);
    const std::uint32_t route = folded.program.ranks.front().peers[0].send_route;
    const std::vector<LinkUse>& message = folded.program.demands[folded.program.routes[route].demand];
    const std::vector<LinkUse>& group = folded.program.demands[folded.program.groups.front().demands.front()];
    ASSERT_EQ(group.size(), 1u);
    EXPECT_EQ(group[0].link, message[0].link);
    EXPECT_EQ(group[0].coefficient, 32768u);
}

/// A tree loads the links of its inner ranks more.
Program with_tree(std::uint32_t ranks) {
    Program p = ring(ranks);
    for (std::uint32_t r = 0; r < ranks / 2; ++r)
        p.demands.back()[r].coefficient = 65536;
    return p;
}

TEST(FoldedProgram, ATreeOfAllRanksTellsNoneApartWhereItRunsByItself) {
    const Folded folded = fold(with_tree(6), capacities(6));
    EXPECT_EQ(folded.program.ranks.size(), 1u);
    const std::vector<LinkUse>& group = folded.program.demands[folded.program.groups.front().demands.front()];
    ASSERT_EQ(group.size(), 1u) << "the fullest link decides";
    EXPECT_EQ(group[0].coefficient, 65536u);
    Program overlapped = with_tree(6);
    overlapped.templates[0].streams = 2;
    overlapped.templates[0].operations[0].stream = 1;
    EXPECT_GT(fold(overlapped, capacities(6)).program.ranks.size(), 1u);
}

TEST(FoldedProgram, ASlowRankTellsAllOfARingApart) {
    Program whole = ring(6);
    whole.ranks[2].slowness = 2 * kFullSpeed;
    const Folded folded = fold(whole, capacities(6));
    EXPECT_EQ(validate(folded.program), "");
    EXPECT_EQ(folded.program.ranks.size(), 6u) << "by how far they send behind it";
}

TEST(FoldedProgram, ANarrowLinkTellsItsRankApart) {
    std::vector<Rate> capacity = capacities(6);
    capacity[4] = 500;
    const Folded folded = fold(ring(6), capacity);
    EXPECT_EQ(folded.program.ranks.size(), 6u);
    EXPECT_EQ(folded.class_of.size(), 6u);
    for (std::uint32_t c = 0; c < folded.examples.size(); ++c)
        EXPECT_EQ(folded.class_of[folded.examples[c]], c);
}

TEST(FoldedProgram, ChannelNumbersBelongToWhoSends) {
    Program whole = ring(4);
    for (Rank& rank : whole.ranks)
        rank.peers[0].channel = 9;  // sent on 9, awaited on 0: nobody meets
    const Folded folded = fold(whole, capacities(4));
    for (const Rank& rank : folded.program.ranks)
        EXPECT_NE(rank.peers[0].channel, rank.peers[1].receive_channel);
}

}  // namespace
}  // namespace fabricast::program
