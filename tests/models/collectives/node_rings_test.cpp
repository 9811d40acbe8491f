// Orders over direct NVLinks and PCIe, and what collectives reach on them.
#include "models/collectives/node_rings.hpp"

#include <gtest/gtest.h>

#include "support.hpp"

namespace fabricast::test {
namespace {

struct Pair {
    std::uint32_t a, b, lanes;
};
// DGX-1 with 8 V100, as nvidia-smi lists it.
const std::vector<Pair> kCubeMesh = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {1, 2, 2}, {1, 3, 1}, {2, 3, 2},
                                     {4, 5, 1}, {4, 6, 1}, {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2},
                                     {0, 4, 2}, {1, 5, 2}, {2, 6, 1}, {3, 7, 1}};
std::vector<Pair> full_mesh(std::uint32_t gpus, std::uint32_t lanes) {
    std::vector<Pair> pairs;
    for (std::uint32_t a = 0; a < gpus; ++a) {
        for (std::uint32_t b = a + 1; b < gpus; ++b)
            pairs.push_back({a, b, lanes});
    }
    return pairs;
}

constexpr double kLane = 21.8e9, kPcie = 12e9, kSocket = 6e9;

/// Nodes of GPUs in direct pairs, half of them on each socket, one NIC of 12 GB/s for two neighbours.
Cluster mesh(std::uint32_t gpus, const std::vector<Pair>& pairs, std::uint32_t nodes = 1) {
    ClusterBuilder builder;
    const auto leaf = builder.add_switch(VertexKind::leaf, "leaf");
    for (std::uint32_t n = 0; n < nodes; ++n) {
        const NodeId id{n};
        std::vector<ClusterBuilder::VertexId> vertices;
        const ClusterBuilder::VertexId hosts[] = {builder.add_host(id, 0), builder.add_host(id, 1)};
        builder.add_cable(hosts[0], hosts[1], {.bytes_per_s = kSocket});
        for (std::uint32_t g = 0; g < gpus; ++g)
            vertices.push_back(builder.add_gpu(id));
        ClusterBuilder::VertexId nic = 0;
        for (std::uint32_t g = 0; g < gpus; ++g) {
            const auto host = hosts[2 * g / gpus];
            builder.add_cable(vertices[g], host, {.bytes_per_s = kPcie});
            if (g % 2 == 0) {
                nic = builder.add_nic(id);
                builder.attach(host, nic);
                builder.add_cable(nic, leaf, {.bytes_per_s = 12e9});
            }
            builder.use_nics(vertices[g], {nic});
        }
        for (const Pair& pair : pairs)
            builder.add_cable(vertices[pair.a], vertices[pair.b],
                              {.bytes_per_s = pair.lanes * kLane, .parallel = pair.lanes});
    }
    return std::move(builder).freeze();
}

CommFacts volta() {
    return {.generation = GpuGeneration::volta,
            .nvswitch = true,
            .nvlink_nccl_bytes_per_s = 120e9,
            .nvlink_bytes_per_s = 6 * kLane,
            .pcie_nccl_bytes_per_s = 12e9,
            .socket_nccl_bytes_per_s = kSocket,
            .nic_line_bytes_per_s = 12.5e9};
}

/// Lanes that cycles take of each direct link, as a share of those it has; every hop must be one.
double fullest_link(const Cluster& cluster, const NodeRings& rings) {
    std::map<LinkId, std::uint32_t> taken;
    for (const auto& cycle : rings.cycles) {
        for (std::size_t i = 0; i < cycle.size(); ++i) {
            const GpuId a{cycle[i]}, b{cycle[(i + 1) % cycle.size()]};
            EXPECT_EQ(cluster.path_type(a, b), PathType::nvl);
            std::vector<LinkId> route;
            cluster.route(a, b, route);
            EXPECT_EQ(route.size(), 1u);
            ++taken[route.front()];
        }
    }
    double fullest = 0;
    for (const auto& [link, lanes] : taken)
        fullest = std::max(fullest, static_cast<double>(lanes) / cluster.links().parallel[index(link)]);
    return fullest;
}

TEST(NodeRings, CubeMeshHoldsSixRings) {
    const Cluster cluster = mesh(8, kCubeMesh);
    const NodeRings all = node_rings(cluster, gpus(8));
    EXPECT_EQ(all.cycles.size(), 6u);
    EXPECT_TRUE(all.nvlink);
    EXPECT_NEAR(all.bytes_per_s, 6 * kLane, 1);
    EXPECT_DOUBLE_EQ(fullest_link(cluster, all), 1);
    const NodeRings quad = node_rings(cluster, gpus(4));  // the least of its GPUs has four lanes
    EXPECT_EQ(quad.cycles.size(), 4u);
    EXPECT_LE(fullest_link(cluster, quad), 1);
    const NodeRings two = node_rings(cluster, gpus(2, 0, 3));
    EXPECT_NEAR(two.bytes_per_s, 2 * kLane, 1);
    const NodeRings apart = node_rings(cluster, gpus(2, 0, 5));  // through another GPU
    EXPECT_TRUE(apart.nvlink);
    EXPECT_EQ(cluster.path_type(GpuId{0}, GpuId{5}), PathType::nvb);
    EXPECT_EQ(all.patterns.size(), 24u);
    std::map<std::uint32_t, int> entered, left;  // NIC of two neighbours -> of the first four patterns
    for (std::size_t p = 0; p < 4; ++p) {
        const auto& cycle = all.cycles[all.patterns[p].cycle];
        const auto at =
            static_cast<std::size_t>(std::find(cycle.begin(), cycle.end(), all.patterns[p].entry) - cycle.begin());
        ++entered[cycle[at] / 2];
        ++left[cycle[(at + 7) % 8] / 2];
    }
    EXPECT_EQ(entered.size(), 4u);
    EXPECT_EQ(left.size(), 4u);
}

TEST(NodeRings, ALostLaneLeavesFewerRings) {
    Cluster cluster = mesh(8, kCubeMesh);
    for (const auto& [a, b] : {std::pair{0u, 3u}, {3u, 0u}}) {
        std::vector<LinkId> route;
        cluster.route(GpuId{a}, GpuId{b}, route);
        cluster.degrade(route.front(), cluster.links().capacity[index(route.front())] / 2, 1);
    }
    const NodeRings rings = node_rings(cluster, gpus(8));
    EXPECT_EQ(rings.cycles.size(), 4u);
    EXPECT_LE(fullest_link(cluster, rings), 1);
}

TEST(NodeRings, FullMeshesAndPcie) {
    const Cluster four = mesh(4, full_mesh(4, 4));
    EXPECT_EQ(node_rings(four, gpus(4)).cycles.size(), 12u);
    const Cluster eight = mesh(8, full_mesh(8, 1));
    const NodeRings of_eight = node_rings(eight, gpus(8));
    EXPECT_EQ(of_eight.cycles.size(), 6u) << "seven lanes a GPU make three cycles each way";
    EXPECT_LE(fullest_link(eight, of_eight), 1);
    const Cluster pairs = mesh(4, {{0, 1, 4}, {2, 3, 4}});
    const NodeRings bridged = node_rings(pairs, gpus(4));
    EXPECT_FALSE(bridged.nvlink);
    EXPECT_TRUE(bridged.sockets);
    EXPECT_EQ(bridged.cycles, (std::vector<std::vector<std::uint32_t>>{{0, 1, 2, 3}}));
    EXPECT_NEAR(node_rings(pairs, gpus(2)).bytes_per_s, 4 * kLane, 1);
    EXPECT_FALSE(node_rings(pairs, gpus(1)).sockets);
}

double reached(const Cluster& cluster, const CommFacts& facts, std::uint32_t ranks, Collective kind, Bytes size,
               CommSettings settings = {}) {
    const CommModel model(cluster, facts, std::move(settings));
    const CommGroup group = model.make_group(gpus(ranks));
    const double time = run_seconds(cluster, model, group, kind, model.plan(group, kind, size));
    return bus_gb_per_s(kind, ranks, size, time);
}

// nccl-tests on DGX-1 boards: 130 GB/s (0.87 of 150, models/hardware/gpus_other.yaml).
TEST(NodeRings, CubeMeshAllReduce) {
    const Cluster cluster = mesh(8, kCubeMesh);
    const double all = reached(cluster, volta(), 8, Collective::all_reduce, 4 * kGiB);
    EXPECT_GT(all, 120);
    EXPECT_LT(all, 131);
    EXPECT_LT(reached(cluster, volta(), 4, Collective::all_reduce, 4 * kGiB), 4 * kLane / 1e9);
    const CommModel model(cluster, volta(), {});
    const CommGroup group = model.make_group(gpus(8));
    EXPECT_EQ(group.search.ring.channels, 6);
    EXPECT_TRUE(group.search.nvlink_intra);
    EXPECT_EQ(group.nvls.channels, 0u);
}

TEST(NodeRings, SocketsHoldARingOverPcie) {
    const Cluster cluster = mesh(8, {});
    const double bus = reached(cluster, volta(), 8, Collective::all_reduce, kGiB);
    EXPECT_GT(bus, 5.5);
    EXPECT_LE(bus, 6.001);
    EXPECT_GT(reached(cluster, volta(), 4, Collective::all_reduce, kGiB), 11) << "one socket";
    const CommModel model(cluster, volta(), {});
    const CommGroup group = model.make_group(gpus(8));
    EXPECT_FALSE(group.search.nvlink_intra);
    EXPECT_FALSE(model.plan(group, Collective::all_reduce, kGiB).uses_nvlink);
}

// No setting takes a collective below the wire: nothing beats the rings of a GPU, nor the sockets where all pass.
TEST(NodeRings, NothingBeatsTheWire) {
    const Cluster boards[] = {mesh(8, kCubeMesh), mesh(8, {}), mesh(8, {{0, 1, 6}, {2, 3, 6}, {4, 5, 6}, {6, 7, 6}})};
    for (const Cluster& cluster : boards) {
        const double most = cluster.path_type(GpuId{0}, GpuId{2}) == PathType::nvl ? 6 * kLane : kSocket;
        for (const Collective kind :
             {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter, Collective::broadcast}) {
            for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
                for (const int channels : {1, 4, 64}) {
                    CommSettings settings;
                    settings.protocols = {protocol};
                    settings.min_channels = channels;
                    for (const Bytes size : {Bytes{4096}, kMiB, kGiB}) {
                        try {
                            EXPECT_LE(reached(cluster, volta(), 8, kind, size, settings), most / 1e9 * 1.001)
                                << collective_name(kind) << ' ' << protocol_name(protocol) << ' ' << size;
                        } catch (const std::invalid_argument&) {  // LL128 over PCIe
                            EXPECT_EQ(protocol, Protocol::ll128);
                        }
                    }
                }
            }
        }
        for (const Bytes size : {Bytes{8}, Bytes{1024}})
            EXPECT_LT(reached(cluster, volta(), 8, Collective::all_reduce, size), 0.2) << "small ones are not free";
    }
}

TEST(NodeRings, SeveralNodesUseAllTheirNics) {
    const Cluster cluster = mesh(8, kCubeMesh, 2);
    CommSettings rings;
    rings.algorithms = {Algorithm::ring};
    const CommModel model(cluster, volta(), rings);
    const CommGroup group = model.make_group(gpus(16));
    const auto bytes =
        link_bytes(model, group, Collective::all_reduce, model.plan(group, Collective::all_reduce, kGiB));
    for (std::uint32_t nic = 0; nic < 8; ++nic)
        EXPECT_GT(bytes.count(cluster.nic_up(NicId{nic})), 0u) << nic;
    EXPECT_NEAR(reached(cluster, volta(), 16, Collective::all_reduce, kGiB, rings), 48, 3);
}

/// Servers of two GPUs, two or more of them on one NVSwitch, a NIC a GPU.
Cluster racks(std::uint32_t servers, std::uint32_t on_one) {
    ClusterBuilder builder;
    const auto leaf = builder.add_switch(VertexKind::leaf, "leaf");
    ClusterBuilder::VertexId domain = 0;
    for (std::uint32_t n = 0; n < servers; ++n) {
        if (n % on_one == 0)
            domain = builder.add_nvlink_domain("domain " + std::to_string(n / on_one));
        for (std::uint32_t g = 0; g < 2; ++g) {
            const auto gpu = builder.add_gpu(NodeId{n});
            const auto pcie = builder.add_in_node(VertexKind::pcie_switch, NodeId{n});
            const auto nic = builder.add_nic(NodeId{n});
            builder.add_cable(gpu, domain, {.bytes_per_s = 700e9});
            builder.add_cable(gpu, pcie, {.bytes_per_s = 50e9});
            builder.attach(pcie, nic);
            builder.add_cable(nic, leaf, {.bytes_per_s = 46e9});
        }
    }
    return std::move(builder).freeze();
}

TEST(NodeRings, AnNvlinkDomainOfSeveralServersIsOneNode) {
    const Cluster cluster = racks(4, 2);
    const CommFacts facts = {.generation = GpuGeneration::blackwell,
                             .nvls = true,
                             .nvlink_nccl_bytes_per_s = 721.8e9,
                             .nic_line_bytes_per_s = 50e9};
    const CommModel model(cluster, facts, {});
    const CommGroup rack = model.make_group(gpus(4)), both = model.make_group(gpus(8));
    EXPECT_EQ(rack.nodes, 1u);
    EXPECT_EQ(both.nodes, 2u);
    const CollectivePlan plan = model.plan(rack, Collective::all_reduce, kGiB);
    EXPECT_FALSE(plan.uses_network);
    EXPECT_TRUE(plan.uses_nvlink);
    for (const auto& [link, bytes] : link_bytes(model, rack, Collective::all_reduce, plan))
        EXPECT_EQ(cluster.links().kind[index(link)], LinkKind::nvlink);
    EXPECT_FALSE(model.message(GpuId{0}, GpuId{3}, kMiB).uses_network) << "other server, same NVSwitch";
    EXPECT_TRUE(model.message(GpuId{0}, GpuId{4}, kMiB).uses_network);
    const double inside = reached(cluster, facts, 4, Collective::all_to_all, kGiB);
    const double beyond = reached(cluster, facts, 8, Collective::all_to_all, kGiB);
    EXPECT_GT(inside, 300);
    EXPECT_LT(beyond, 46 * 7.0 / 4 * 1.01) << "four of seven peers are behind the NIC";
    EXPECT_GT(beyond, 46 * 7.0 / 4 * 0.9);
}

}  // namespace
}  // namespace fabricast::test
