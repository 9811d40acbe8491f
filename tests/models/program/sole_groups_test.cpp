// Collectives of all ranks and what may run beside them.
#include "models/program/sole_groups.hpp"

#include <gtest/gtest.h>

namespace fabricast::program {
namespace {

constexpr std::uint8_t kMain = 0, kSide = 1;

/// Two ranks that call a group of both on the main stream; a collective of pairs (each rank alone) and messages may stand
/// on the side stream. Nodes: 0 the step's repeat, 1 ...
struct Job {
    Program p;
    Job() {
        p.templates.resize(1);
        p.templates[0].streams = 2;
        p.templates[0].nodes = {{Node::Kind::repeat, 1, 3, kNone, kNone}};
        p.calls = {{0, 0, 8}, {1, 0, 8}};
        p.batches = {{{{0, true, 10}}}, {{{0, false, 10}}}};
        p.groups = {{"both", {0, 1}, 0, {0}}, {"first", {0}, 0, {1}}, {"second", {1}, 0, {1}}};
        p.ranks.resize(2);
        p.ranks[0].groups = {0, 1};
        p.ranks[1].groups = {0, 2};
        p.routes.resize(2);
        p.ranks[0].peers = {{.rank = 1, .send_route = 0}};
        p.ranks[1].peers = {{.rank = 0, .send_route = 1}};
    }
    std::uint32_t add(OpKind kind, std::uint8_t stream, std::uint32_t payload, std::vector<std::uint32_t> waits = {}) {
        Template& t = p.templates[0];
        Operation op;
        op.kind = kind;
        op.stream = stream;
        op.payload = payload;
        op.waits = std::move(waits);
        t.nodes.push_back({Node::Kind::operation, 0, 1, kNone, static_cast<std::uint32_t>(t.operations.size())});
        t.operations.push_back(op);
        t.nodes.back().end = static_cast<std::uint32_t>(t.nodes.size());
        t.nodes[0].end = t.nodes.back().end;
        return t.nodes[0].end - 1;
    }
    std::uint32_t border(std::vector<std::uint32_t> waits = {}) {
        return add(OpKind::collective, kMain, 0, std::move(waits));
    }
    bool sole() const { return sole_groups(p) == std::vector<std::uint32_t>{0}; }
};

TEST(SoleGroups, NothingElse) {
    Job job;
    job.border();
    EXPECT_TRUE(job.sole());
}

TEST(SoleGroups, ACollectiveBesideIsAwaitedAndWaits) {
    Job awaited;
    const std::uint32_t side = awaited.add(OpKind::collective, kSide, 1);
    awaited.border({side});
    EXPECT_FALSE(awaited.sole()) << "that of the next step may begin while the border runs";

    Job both;
    const std::uint32_t first = both.add(OpKind::compute, kMain, 0);
    const std::uint32_t between = both.add(OpKind::collective, kSide, 1, {first});
    both.border({between});
    EXPECT_TRUE(both.sole());
}

TEST(SoleGroups, ACollectiveAfterEndsBeforeTheNextBorder) {
    Job free;
    const std::uint32_t border = free.border();
    const std::uint32_t after = free.add(OpKind::collective, kSide, 1, {border});
    EXPECT_FALSE(free.sole()) << "the next border does not wait for it";
    free.p.templates[0].operations[0].waits = {after};  // of the step before
    EXPECT_TRUE(free.sole());
}

TEST(SoleGroups, AWaitOnTheIterationBeforeOfAnInnerRepeatTellsNothing) {
    Job job;
    job.p.templates[0].nodes.push_back({Node::Kind::repeat, 4, 5, kNone, kNone});
    job.add(OpKind::compute, kMain, 0, {3});
    job.add(OpKind::collective, kSide, 1, {2});
    job.border();
    EXPECT_FALSE(job.sole()) << "the last one is not awaited";
    Job awaited;
    awaited.p.templates[0].nodes.push_back({Node::Kind::repeat, 4, 5, kNone, kNone});
    awaited.add(OpKind::compute, kMain, 0, {3});
    awaited.add(OpKind::collective, kSide, 1, {2});
    awaited.border({3});
    EXPECT_TRUE(awaited.sole());
    awaited.p.templates[0].nodes[1].bound = 0;
    EXPECT_FALSE(awaited.sole()) << "may run no iteration";
}

TEST(SoleGroups, AMessageIsOrderedByItsReceive) {
    Job job;
    job.add(OpKind::p2p_batch, kSide, 0);  // its send is awaited by nobody
    const std::uint32_t receive = job.add(OpKind::p2p_batch, kMain, 1);
    (void)receive;
    job.border();
    EXPECT_TRUE(job.sole());
    for (Rank& rank : job.p.ranks)
        rank.peers[0].slots = 1;
    EXPECT_FALSE(job.sole()) << "buffered messages go without a receive";
}

TEST(SoleGroups, OnlyGroupsOfAllRanks) {
    Job job;
    job.border();
    job.p.groups[0].members = {0};
    EXPECT_FALSE(job.sole());
}

}  // namespace
}  // namespace fabricast::program
