// Collectives on the engine: several at once, neighbours, sick NICs, members that stay away, message by message.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "models/parallel/collective_program.hpp"
#include "models/parallel/message_steps.hpp"
#include "sim/engine/engine.hpp"
#include "topologies/builders/rail_fat_tree.hpp"

namespace fabricast {
namespace {

constexpr Bytes kMiB = 1 << 20, kGiB = 1 << 30;

Cluster h100(std::uint32_t nodes, std::uint32_t nics = 8) {
    NodeShape node;
    node.nics = nics;
    node.nvlink_bytes_per_s = 367e9;
    node.pcie_bytes_per_s = 51.5e9;
    node.nic_bytes_per_s = 46e9;
    RailFatTree fabric;
    fabric.nodes = nodes;
    return build_rail_fat_tree(node, fabric);
}

CommModel comm_on(const Cluster& cluster, CommSettings settings = {}) {
    CommFacts facts;
    facts.nvls = true;
    facts.nvlink_nccl_bytes_per_s = 370.8e9;
    facts.nic_line_bytes_per_s = 50e9;
    return CommModel(cluster, facts, settings);
}
CommSettings ring_simple() {
    CommSettings s;
    s.algorithms = {Algorithm::ring};
    s.protocols = {Protocol::simple};
    return s;
}

std::vector<std::uint32_t> ranks(std::uint32_t count, std::uint32_t first = 0, std::uint32_t stride = 1) {
    std::vector<std::uint32_t> list;
    for (std::uint32_t i = 0; i < count; ++i)
        list.push_back(first + i * stride);
    return list;
}

double run(const program::Program& p, std::span<const Rate> capacity) {
    EXPECT_EQ(program::validate(p), "");
    const engine::EngineResult r = engine::Engine(p, capacity).run();
    EXPECT_EQ(r.outcome, engine::Outcome::done) << r.message;
    return seconds(r.end);
}
double run(const CollectiveProgram& builder, const Cluster& cluster) {
    return run(builder.build(), cluster.links().capacity);
}

TEST(Collectives, EveryKindEndsAndIsNotFree) {
    for (const std::uint32_t nodes : {1u, 3u}) {
        const Cluster cluster = h100(nodes);
        const CommModel comm = comm_on(cluster);
        for (int k = 0; k < static_cast<int>(Collective::count); ++k) {
            const auto kind = static_cast<Collective>(k);
            double last = 0;
            for (const Bytes size : {Bytes{1024}, kMiB, kGiB}) {
                CollectiveProgram p(cluster, comm);
                p.collective(ranks(8 * nodes), kind, size);
                const double t = run(p, cluster);
                EXPECT_GT(t, 4e-6) << collective_name(kind);
                EXPECT_GE(t, last) << collective_name(kind);
                last = t;
            }
        }
    }
}

// Two groups that cross the same NICs share them: together twice as long, and no link above capacity (the engine checks).
TEST(Contention, GroupsOnSharedNicsShareThem) {
    const Cluster two_nics = h100(4, 2);
    const CommModel comm = comm_on(two_nics, ring_simple());
    const auto time = [&](int groups) {
        CollectiveProgram p(two_nics, comm);
        for (int g = 0; g < groups; ++g)  // local ranks 0, 2, 4, 6 are all on NIC 0
            p.collective(ranks(4, static_cast<std::uint32_t>(2 * g), 8), Collective::all_gather, kGiB);
        return run(p, two_nics);
    };
    EXPECT_NEAR(time(2) / time(1), 2, .02);
    EXPECT_NEAR(time(4) / time(1), 4, .04);
    const Cluster eight_nics = h100(4);
    const CommModel apart = comm_on(eight_nics, ring_simple());
    CollectiveProgram one(eight_nics, apart), both(eight_nics, apart);
    one.collective(ranks(4, 0, 8), Collective::all_gather, kGiB);
    both.collective(ranks(4, 0, 8), Collective::all_gather, kGiB);
    both.collective(ranks(4, 2, 8), Collective::all_gather, kGiB);
    EXPECT_EQ(run(one, eight_nics), run(both, eight_nics));  // other NICs: nothing to share
}

TEST(Contention, LanesOfOneRankRunAtOnce) {
    const Cluster cluster = h100(2);
    const CommModel comm = comm_on(cluster, ring_simple());
    const auto time = [&](std::uint8_t lane) {
        CollectiveProgram p(cluster, comm);
        p.collective(ranks(8), Collective::all_gather, kGiB, 0);               // NVLink of node 0
        p.collective(ranks(2, 0, 8), Collective::all_gather, kGiB / 8, lane);  // NIC of rank 0
        return run(p, cluster);
    };
    EXPECT_LT(time(1), time(0));
}

TEST(Contention, ANeighboursTrafficTakesItsShare) {
    const Cluster cluster = h100(4);
    const CommModel comm = comm_on(cluster, ring_simple());
    CollectiveProgram alone(cluster, comm), beside(cluster, comm);
    for (CollectiveProgram* p : {&alone, &beside})
        p->collective(ranks(2, 0, 8), Collective::all_gather, kGiB);
    beside.traffic(16, 8, 8 * kGiB);  // another job's flow into node 1's NIC 0
    const double quiet = run(alone, cluster);
    const program::Program p = beside.build();
    engine::EngineOptions options;
    options.record_timeline = true;
    const engine::EngineResult r = engine::Engine(p, cluster.links().capacity, options).run();
    ASSERT_EQ(r.outcome, engine::Outcome::done) << r.message;
    double end = 0;
    for (const engine::Record& record : r.timeline) {
        if (record.rank == 0)
            end = std::max(end, seconds(record.finished));
    }
    EXPECT_GT(end, 1.05 * quiet);
    EXPECT_LT(end, 3.0 * quiet);
}

TEST(Contention, AHalfRateNicDominates) {
    const Cluster cluster = h100(4);
    const CommModel comm = comm_on(cluster, ring_simple());
    std::vector<Rate> sick = cluster.links().capacity;
    sick[index(cluster.nic_up(NicId{5}))] /= 2;
    sick[index(cluster.nic_down(NicId{5}))] /= 2;
    for (const Collective kind : {Collective::all_reduce, Collective::all_to_all}) {
        CollectiveProgram p(cluster, comm);
        p.collective(ranks(32), kind, 8 * kGiB);
        const double healthy = run(p, cluster);
        EXPECT_NEAR(run(p.build(), sick) / healthy, 2, .05) << collective_name(kind);
    }
    // with a plan that knows of it, only the slow channels or pairs take long
}

TEST(Collectives, NicsFewerThanRanksAreNotFree) {
    for (const Collective kind : {Collective::all_reduce, Collective::all_gather, Collective::all_to_all}) {
        const auto time = [&](std::uint32_t nics) {
            const Cluster cluster = h100(4, nics);
            const CommModel comm = comm_on(cluster);
            CollectiveProgram p(cluster, comm);
            p.collective(ranks(32), kind, kGiB);
            return run(p, cluster);
        };
        EXPECT_GT(time(4), 1.5 * time(8)) << collective_name(kind);
        EXPECT_GT(time(1), 1.5 * time(4)) << collective_name(kind);
    }
}

TEST(Collectives, AMemberThatStaysAwayIsADeadlockThatNamesIt) {
    const Cluster cluster = h100(1);
    const CommModel comm = comm_on(cluster);
    CollectiveProgram p(cluster, comm);
    p.collective(ranks(8), Collective::all_reduce, kMiB);
    p.stay_away(5);
    const program::Program program = p.build();
    const engine::EngineResult r = engine::Engine(program, cluster.links().capacity).run();
    EXPECT_EQ(r.outcome, engine::Outcome::deadlock);
    EXPECT_NE(r.message.find("missing rank 5"), std::string::npos) << r.message;
}

TEST(Collectives, HierarchicalAllReduce) {
    const Cluster cluster = h100(16);
    const CommModel comm = comm_on(cluster, ring_simple());
    const auto flat = [&](Bytes size) {
        CollectiveProgram p(cluster, comm);
        p.collective(ranks(128), Collective::all_reduce, size);
        return run(p, cluster);
    };
    const auto composed = [&](Bytes size) {
        CollectiveProgram p(cluster, comm);
        p.hierarchical(ranks(128), Collective::all_reduce, size);
        return run(p, cluster);
    };
    EXPECT_LT(composed(kMiB), .5 * flat(kMiB));  // 2 (8 + 16) steps instead of 2 x 128
    const double floor = 2.0 * kGiB / 8 * 15 / 16 / 46e9 + 2.0 * kGiB * 7 / 8 / 367e9;
    EXPECT_GE(composed(kGiB), floor);
    EXPECT_LT(composed(kGiB), 1.2 * floor);
}

TEST(Collectives, ImbalancedAllToAllWaitsForTheHottestRank) {
    const Cluster cluster = h100(4);
    const CommModel comm = comm_on(cluster);
    const auto time = [&](double factor) {
        CollectiveProgram p(cluster, comm);
        p.exchange(ranks(32), imbalanced_all_to_all(32, kGiB, factor));
        return run(p, cluster);
    };
    EXPECT_NEAR(time(3) / time(1), 3, .15);
}

// The stated bound of message_steps.hpp.
TEST(MessageSteps, AgreeWithTheFluidModel) {
    double worst = 0;
    for (const std::uint32_t nodes : {1u, 2u, 4u}) {
        const Cluster cluster = h100(nodes);
        const std::uint32_t n = 8 * nodes;
        for (const bool pxn : {true, false}) {
            CommSettings settings;
            settings.pxn = pxn;
            const CommModel comm = comm_on(cluster, settings);
            for (const Collective kind :
                 {Collective::all_to_all, Collective::send_recv, Collective::gather, Collective::scatter}) {
                for (const Bytes size : {kMiB, 64 * kMiB, kGiB}) {
                    CollectiveProgram p(cluster, comm);
                    p.collective(ranks(n), kind, size);
                    const double fluid = run(p, cluster);
                    const double messages = run(
                        every_message(cluster, comm, GpuGeneration::hopper, ranks(n), traffic_of(kind, n, size), pxn),
                        cluster.links().capacity);
                    worst = std::max(worst, std::abs(messages / fluid - 1));
                    EXPECT_NEAR(messages / fluid, 1, .05)
                        << nodes << " nodes " << collective_name(kind) << ' ' << size << " pxn " << pxn;
                }
            }
        }
    }
    std::printf("exchanges, every message against fluid: at most %.2f %% apart\n", worst * 100);
}

TEST(ChunkChains, BroadcastAndReduceAgreeWithTheFluidModel) {
    double worst = 0;
    for (const std::uint32_t nodes : {1u, 2u, 4u, 8u}) {
        const Cluster cluster = h100(nodes);
        const CommModel comm = comm_on(cluster, ring_simple());
        for (const Collective kind : {Collective::broadcast, Collective::reduce}) {
            for (const Bytes size : {kMiB, 16 * kMiB, 256 * kMiB, kGiB}) {
                CollectiveProgram p(cluster, comm);
                p.collective(ranks(8 * nodes), kind, size);
                const double fluid = run(p, cluster);
                const double chunks =
                    run(every_chunk(cluster, comm, GpuGeneration::hopper, ranks(8 * nodes), kind, size),
                        cluster.links().capacity);
                worst = std::max(worst, std::abs(chunks / fluid - 1));
                const double floor = static_cast<double>(size) / (nodes > 1 ? 8 * 46e9 : 367e9);
                EXPECT_GE(chunks, floor);
                EXPECT_GE(fluid, floor);
            }
        }
    }
    std::printf("chains, every chunk against fluid: at most %.2f %% apart\n", worst * 100);
    EXPECT_LT(worst, .05);
}

}  // namespace
}  // namespace fabricast
