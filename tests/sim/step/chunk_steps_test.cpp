// Chunk steps against the fluid model on one and two nodes.
#include "models/parallel/chunk_steps.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <numeric>

#include "sim/engine/engine.hpp"
#include "topologies/builders/rail_fat_tree.hpp"

namespace fabricast {
namespace {

struct Bench {
    Cluster cluster;
    CommModel comm;
};

Cluster h100(std::uint32_t nodes) {
    NodeShape node;
    node.nvlink_bytes_per_s = 367e9;
    node.nvlink_latency_s = 0.6e-6;
    node.pcie_bytes_per_s = 51.5e9;
    node.pcie_latency_s = 1e-6;
    node.nic_bytes_per_s = 46e9;
    node.nic_latency_s = 0.6e-6;
    RailFatTree fabric;
    fabric.nodes = nodes;
    fabric.switch_latency_s = 0.25e-6;
    return build_rail_fat_tree(node, fabric);
}

CommModel ring_only(const Cluster& cluster, Protocol protocol = Protocol::simple) {
    CommFacts facts;
    facts.nvls = true;
    facts.nvlink_nccl_bytes_per_s = 370.8e9;
    facts.nic_line_bytes_per_s = 50e9;
    CommSettings settings;
    settings.algorithms = {Algorithm::ring};
    settings.protocols = {protocol};
    return CommModel(cluster, facts, settings);
}

struct Times {
    double fluid_s, chunk_s, latency_s;
};

Times both(const Cluster& cluster, const CommModel& comm, std::uint32_t ranks, Collective kind, Bytes size) {
    std::vector<std::uint32_t> members(ranks);
    std::iota(members.begin(), members.end(), 0u);
    std::vector<CallInfo> infos;
    const program::Program fluid = single_collective(cluster, comm, members, kind, size, infos);
    EXPECT_EQ(program::validate(fluid), "");
    const program::Program chunks = expand_chunk_steps(fluid, infos, comm, cluster, GpuGeneration::hopper);
    EXPECT_EQ(program::validate(chunks), "");
    const engine::EngineResult a = engine::Engine(fluid, cluster.links().capacity).run();
    const engine::EngineResult b = engine::Engine(chunks, cluster.links().capacity).run();
    EXPECT_EQ(a.outcome, engine::Outcome::done) << a.message;
    EXPECT_EQ(b.outcome, engine::Outcome::done) << b.message;
    EXPECT_GT(b.events, a.events);
    return {seconds(a.end), seconds(b.end), seconds(fluid.plans[0][0].latency)};
}

// The stated bound: 1 % on one node, the latency of the plan (and 1 %) over several.
TEST(ChunkSteps, AgreeWithTheFluidModel) {
    for (const std::uint32_t nodes : {1u, 2u, 4u}) {
        const Cluster cluster = h100(nodes);
        const CommModel comm = ring_only(cluster);
        for (const Collective kind : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter}) {
            for (const Bytes size : {Bytes{1} << 20, Bytes{1} << 24, Bytes{1} << 28, Bytes{1} << 30}) {
                const Times t = both(cluster, comm, nodes * 8, kind, size);
                const double off = t.chunk_s / t.fluid_s - 1;
                std::printf("%u nodes %-14s %10lld B: fluid %9.1f us (latency %6.1f), chunk steps %9.1f us, %+.1f %%\n",
                            nodes, std::string(collective_name(kind)).c_str(), static_cast<long long>(size),
                            t.fluid_s * 1e6, t.latency_s * 1e6, t.chunk_s * 1e6, off * 100);
                EXPECT_LT(std::abs(t.chunk_s - t.fluid_s), 0.01 * t.fluid_s + (nodes > 1 ? t.latency_s : 0))
                    << nodes << " nodes " << size << " B";
            }
        }
    }
}

// The ceiling of the library's channels holds chunks too: LL reaches a third of the wire.
TEST(ChunkSteps, KeepTheCeilingOfTheProtocol) {
    const Cluster cluster = h100(1);
    for (const Protocol protocol : {Protocol::ll, Protocol::ll128}) {
        const CommModel comm = ring_only(cluster, protocol);
        for (const Bytes size : {Bytes{1} << 20, Bytes{1} << 24, Bytes{1} << 28}) {
            const Times t = both(cluster, comm, 8, Collective::all_reduce, size);
            EXPECT_NEAR(t.chunk_s / t.fluid_s, 1, 0.01) << protocol_name(protocol) << ' ' << size;
        }
    }
    const Cluster two = h100(2);
    const CommModel comm = ring_only(two, Protocol::ll);
    const Times t = both(two, comm, 16, Collective::all_gather, Bytes{1} << 28);
    EXPECT_LT(std::abs(t.chunk_s - t.fluid_s), 0.01 * t.fluid_s + t.latency_s);
}

// No chunk schedule beats the wire.
TEST(ChunkSteps, NeverBelowTheWireFloor) {
    const Cluster cluster = h100(1);
    const CommModel comm = ring_only(cluster);
    for (const std::uint32_t ranks : {2u, 3u, 5u, 8u}) {
        const Bytes size = Bytes{1} << 26;
        const Times t = both(cluster, comm, ranks, Collective::all_reduce, size);
        const double floor = 2.0 * static_cast<double>(size) * (ranks - 1) / ranks / 367e9;
        EXPECT_GE(t.chunk_s, floor);
        EXPECT_GE(t.fluid_s, floor);
    }
}

TEST(ChunkSteps, LeavesLargeGroupsAndOtherAlgorithmsAlone) {
    const Cluster cluster = h100(1);
    const CommModel comm = ring_only(cluster);
    std::vector<std::uint32_t> members(8);
    std::iota(members.begin(), members.end(), 0u);
    std::vector<CallInfo> infos;
    const program::Program fluid = single_collective(cluster, comm, members, Collective::all_gather, 1 << 20, infos);
    const program::Program same =
        expand_chunk_steps(fluid, infos, comm, cluster, GpuGeneration::hopper, {.max_ranks = 4});
    EXPECT_EQ(same.templates[0].operations.size(), fluid.templates[0].operations.size());
}

}  // namespace
}  // namespace fabricast
