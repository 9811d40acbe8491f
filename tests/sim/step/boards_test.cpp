// Servers and fabrics of every kind, from a scenario to a time.
#include <fstream>
#include <numeric>

#include <gtest/gtest.h>

#include "sim/step/collective_time.hpp"
#include "support.hpp"

namespace fabricast {
namespace {

constexpr Bytes kGiB = Bytes{1} << 30;

struct Built {
    Scenario scenario;
    Cluster cluster;
};
Built build(const std::string& cluster, const test::Overrides& overrides = {}) {
    Built built{parse_scenario("cluster: " + cluster, "test.yaml", overrides, Scope::cluster), {}};
    built.cluster = build_cluster(built.scenario);
    return built;
}

CollectiveTime timed(const Built& built, Collective kind, Bytes size) {
    const CommModel comm(built.cluster, comm_facts(built.scenario, built.cluster), built.scenario.comm);
    CollectiveRequest request;
    request.kind = kind;
    request.members.resize(built.cluster.gpu_count());
    std::iota(request.members.begin(), request.members.end(), 0u);
    return time_collective(built.cluster, comm, request, size);
}
double bus(const std::string& cluster, const test::Overrides& overrides = {},
           Collective kind = Collective::all_reduce) {
    return timed(build(cluster, overrides), kind, kGiB).bus_bytes_per_s / 1e9;
}
std::string refused(const std::string& cluster, const test::Overrides& overrides = {}) {
    try {
        build(cluster, overrides);
    } catch (const ScenarioError& error) {
        return error.what();
    }
    return {};
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Boards, AllReduceOfOneServer) {
    const auto between = [](const std::string& node, double low, double high) {
        const double reached = bus("{node: " + node + "}");
        EXPECT_GT(reached, low) << node;
        EXPECT_LT(reached, high) << node;
    };
    between("dgx1-v100", 118, 131);    // measured: about 130
    between("a100-pcie-8", 9, 10.01);  // UPI of two sockets
    between("a100-pcie-8-amd", 14, 16.01);
    between("rtx4090-server", 14, 16.01);
    between("l40s-server", 18, 22.01);
    between("a100-pcie-pairs", 9, 10.01);  // bridges do not help a ring over all
    between("hgx-a100-4", 200, 235);
    between("alps-gh200", 280, 367);
}

TEST(Boards, PcieLayouts) {
    const std::string box = "{node: {preset: a100-pcie-8-amd, socket: 12 GB/s}}";
    for (const auto& [layout, near, far] : {std::tuple{"pix", PathType::pix, PathType::phb},
                                            {"pxb", PathType::pix, PathType::pxb},
                                            {"phb", PathType::phb, PathType::phb},
                                            {"node", PathType::node, PathType::node},
                                            {"sys", PathType::sys, PathType::sys}}) {
        const Built built = build(box, {std::string("cluster.node.pcie_layout=") + layout});
        EXPECT_EQ(built.cluster.path_type(GpuId{0}, GpuId{1}), near) << layout;
        EXPECT_EQ(built.cluster.path_type(GpuId{0}, GpuId{3}), far) << layout;
        EXPECT_EQ(built.cluster.path_type(GpuId{0}, GpuId{4}), PathType::sys) << layout;
        EXPECT_NEAR(timed(built, Collective::all_reduce, kGiB).bus_bytes_per_s / 1e9, 12, 0.3) << layout;
    }
    EXPECT_NEAR(bus(box, {"cluster.node.socket=40 GB/s"}), 25.5, 1.0) << "then PCIe itself";
    EXPECT_LT(
        bus(box, {"cluster.node.socket=40 GB/s", "cluster.node.pcie_layout=phb", "cluster.node.host_bridge=30 GB/s"}),
        7.6)
        << "four of five hops of a socket share its host bridge";
    const CollectiveTime time = timed(build(box), Collective::all_reduce, kGiB);
    EXPECT_TRUE(has(time.limit, "host 0 to node 0 host 1") || has(time.limit, "host 1 to node 0 host 0")) << time.limit;
}

TEST(Boards, SocketsNobodySpokeOf) {
    EXPECT_NEAR(bus("{node: {preset: hgx-a100-80g, board: pcie}}"), 16, 0.1) << "EPYC";
    EXPECT_NEAR(bus("{node: {preset: hgx-a100-80g, board: pcie, cpu: intel}}"), 10, 0.1);
    EXPECT_NEAR(bus("{node: {preset: hgx-h100, board: pcie}}"), 22, 0.3);
}

TEST(Boards, FewerNicsAreNotFree) {
    const std::string pair = "{nodes: 2, node: {preset: hgx-h100, gpus: 8}}";
    const double eight = bus(pair), four = bus(pair, {"cluster.node.nics=4"}), one = bus(pair, {"cluster.node.nics=1"});
    EXPECT_LT(four, 0.6 * eight);
    EXPECT_LT(one, 0.3 * four);
    const std::string mesh = "{nodes: 2, node: dgx1-v100}";
    EXPECT_LT(bus(mesh, {"cluster.node.nics=1"}), 0.3 * bus(mesh));
}

TEST(Boards, MessagesPayTheSlowestHop) {
    const Built built = build("{nodes: 2, node: a100-pcie-8}");
    const CommModel comm(built.cluster, comm_facts(built.scenario, built.cluster), {});
    for (std::uint32_t to = 1; to < 16; ++to) {
        const CommModel::Message message = comm.message(GpuId{0}, GpuId{to}, kGiB);
        std::vector<LinkId> route;
        built.cluster.route(GpuId{0}, GpuId{to}, route);
        EXPECT_EQ(message.links.size(), route.size());
        EXPECT_GT(message.latency, 0);
        EXPECT_EQ(message.uses_network, to >= 8);
        EXPECT_FALSE(message.uses_nvlink);
    }
}

TEST(Boards, DegradedParts) {
    const double whole = bus("{node: dgx1-v100}");
    const double lane = bus("{node: dgx1-v100, degraded: gpu 0.0 nvlink gpu 3 loses 1 lane}");
    EXPECT_LT(lane, 0.72 * whole) << "four of six rings remain";
    EXPECT_GT(lane, 0.60 * whole);
    EXPECT_LT(bus("{node: dgx1-v100, degraded: gpu 0.0 nvlink gpu 3 at 0.5}"), 0.55 * whole) << "as the slowest ring";
    EXPECT_NEAR(bus("{node: a100-pcie-8, degraded: gpu 0.2 pcie loses 12 lanes}"), 25.5 / 4, 0.2);
    const std::string two = "nodes: 2, node: dgx1-v100";
    EXPECT_LT(bus("{" + two + ", degraded: nic 1.2 at 0.5}"), 0.7 * bus("{" + two + "}"))
        << "channels hold the trees of two nodes a little below their NICs";
    EXPECT_TRUE(has(refused("{node: a100-pcie-8, degraded: gpu 0.2 nvlink at 0.5}"), "has no NVLink"));
    EXPECT_TRUE(has(refused("{node: dgx1-v100, degraded: gpu 0.0 nvlink gpu 3 loses 2 lanes}"), "lanes lost of 2"));
    EXPECT_TRUE(has(refused("{node: dgx1-v100, degraded: gpu 0.0 nvlink loses}"), "test.yaml:1:"));
}

TEST(Boards, RacksOverInfiniband) {
    const std::string rack = "{nodes: 18, node: gb200-nvl72-tray}";
    EXPECT_NEAR(bus(rack) / bus("{node: gb200-nvl72}"), 1, 0.02) << "the same rack as one node of 72";
    const Built two = build("{nodes: 4, node: {preset: gb200-nvl72-tray, nvlink_domain: 2}}");
    EXPECT_EQ(two.cluster.nvlink_domain_count(), 2u);
    const CollectiveTime across = timed(two, Collective::all_to_all, kGiB);
    EXPECT_TRUE(has(across.limit, "nic")) << across.limit;
    EXPECT_TRUE(has(refused("{nodes: 2, node: {preset: dgx1-v100, nvlink_domain: 2}}"), "cluster.node.nvlink_domain"));
}

TEST(Boards, Networks) {
    const std::string pair = "{nodes: 2, node: hgx-a100-80g, fabric: {network: ib}}";
    const auto small = [&](const std::string& network) {
        const Built built = build(pair, {"cluster.fabric.network=" + network});
        EXPECT_EQ(built.scenario.network->name, network);
        return seconds(timed(built, Collective::all_reduce, 1024).time);
    };
    EXPECT_GT(small("efa_gen1"), small("efa"));
    EXPECT_GT(small("efa"), small("ib"));
    EXPECT_NEAR(bus(pair, {"cluster.fabric.network=sockets"}) / bus(pair), 0.134 / 0.939, 0.06);
    const Built slingshot = build(pair, {"cluster.fabric.network=slingshot_ofi"});
    EXPECT_EQ(slingshot.scenario.comm.protocols, (std::vector<Protocol>{Protocol::ll, Protocol::simple}));
    EXPECT_FALSE(build("{nodes: 2, node: hgx-h100}").scenario.network) << "nobody named one";
    EXPECT_EQ(build("{nodes: 2, node: aws-p5}").scenario.network->name, "efa");
    EXPECT_DOUBLE_EQ(build("{nodes: 2, node: {preset: hgx-h100, nic_efficiency: 0.5}, fabric: {network: roce}}")
                         .scenario.node.nic_efficiency,
                     0.5);
    EXPECT_TRUE(has(refused(pair, {"cluster.fabric.network=rocee"}), "did you mean `roce`"));
}

// --- files ---

std::string sample(const std::string& name) {
    return std::string(FABRICAST_SOURCE_DIR) + "/tests/topologies/importers/data/" + name;
}

TEST(Boards, ServersFromTheirOwnFiles) {
    const auto with = [](const std::string& node, const std::string& file, const char* nodes = "1") {
        return "{nodes: " + std::string(nodes) + ", node: {preset: " + node + ", topology: " + sample(file) + "}}";
    };
    const double board = bus("{node: dgx1-v100}");
    EXPECT_NEAR(bus(with("dgx1-v100", "8xv100-sxm2_dgx1-cube-mesh_4mlx5_ucxpy.txt")) / board, 1, 0.01);
    EXPECT_NEAR(bus(with("hgx-h100", "8xh100_azure-ndv5_topo.xml", "2")) / bus("{nodes: 2, node: hgx-h100}"), 1, 0.05);
    const Built pairs = build(with("a100-pcie-pairs", "4xa100-pcie_nvlink-pairs_4numa.txt"));
    EXPECT_EQ(pairs.cluster.gpus_per_node(), 4u);
    EXPECT_EQ(pairs.cluster.path_type(GpuId{0}, GpuId{1}), PathType::nvl);
    EXPECT_LT(timed(pairs, Collective::all_reduce, kGiB).bus_bytes_per_s, 10.01e9);

    EXPECT_TRUE(has(refused("{node: {preset: hgx-h100, topology: none.txt}}"), "test.yaml:1:"));
    EXPECT_TRUE(has(refused("{node: {preset: hgx-h100, topology: none.txt}}"), "none.txt"));
    EXPECT_TRUE(has(refused("{node: {preset: hgx-h100, gpus: 4, topology: " + sample("8xh100-sxm_nv18.txt") + "}}"),
                    "cluster.node.gpus: the file of cluster.node.topology says it"));
}

std::string written(const std::string& name, const std::string& text) {
    const std::string path = ::testing::TempDir() + name;
    std::ofstream(path) << text;
    return path;
}

TEST(Boards, FabricsFromTheirOwnFiles) {
    const std::string slurm = written("boards_topology.conf",
                                      "SwitchName=leaf0 Nodes=n[0-3]\nSwitchName=leaf1 Nodes=n[4-7]\n"
                                      "SwitchName=spine Switches=leaf[0-1]\n");
    const std::string file = "{node: hgx-h100, fabric: {file: " + slurm + ", hosts: \"n[2-5]\"}}";
    const Built some = build(file);
    EXPECT_EQ(some.cluster.node_count(), 4u);
    EXPECT_NEAR(timed(some, Collective::all_reduce, kGiB).bus_bytes_per_s / 1e9 / bus("{nodes: 4, node: hgx-h100}"), 1,
                0.05);
    EXPECT_LT(bus(file, {"cluster.fabric.oversubscription=16"}), 0.6 * bus(file));
    EXPECT_EQ(build("{node: hgx-h100, fabric: {file: " + slurm + "}}").cluster.node_count(), 8u);
    EXPECT_EQ(build("{nodes: 3, node: hgx-h100, fabric: {file: " + slurm + "}}").cluster.node_count(), 3u);
    EXPECT_TRUE(has(refused("{nodes: 9, node: hgx-h100, fabric: {file: " + slurm + "}}"), "lists 8 hosts"));
    EXPECT_TRUE(has(refused(file, {"cluster.fabric.hosts=n[2-9]"}), "'n8' is not in"));

    const std::string astra = written("boards_network.yml",
                                      "topology: [ Ring, Switch ]\nnpus_count: [ 4, 4 ]\nbandwidth: [ 100.0, 25.0 ]\n"
                                      "latency: [ 500.0, 1000.0 ]\n");
    const Built grid = build("{node: hgx-h100, fabric: {file: " + astra + "}}");
    EXPECT_EQ(grid.cluster.gpus_per_node(), 4u);
    EXPECT_EQ(grid.cluster.node_count(), 4u);
    EXPECT_TRUE(has(refused("{node: hgx-h100, fabric: {file: " + sample("8xh100-sxm_nv18.txt") + "}}"),
                    "cluster.node.topology"));
}

TEST(Boards, Grids) {
    const std::string grid =
        "{node: hgx-h100, fabric: {kind: grid, dimensions: [{kind: ring, size: 8, bandwidth: 100 GB/s, latency: 0.5 "
        "us}, "
        "{kind: switch, size: 4, bandwidth: 25 GB/s, latency: 1 us}]}}";
    const Built built = build(grid);
    EXPECT_EQ(built.cluster.gpu_count(), 32u);
    const double reached = timed(built, Collective::all_reduce, kGiB).bus_bytes_per_s / 1e9;
    EXPECT_GT(reached, 150);
    EXPECT_LE(reached, 200.1) << "two links of 100, or eight ports of 25";
    EXPECT_EQ(build(grid, {"cluster.fabric.inner_dimensions=0"}).cluster.gpus_per_node(), 1u);
    EXPECT_TRUE(has(refused("{node: hgx-h100, fabric: {kind: grid}}"), "cluster.fabric.dimensions is missing"));
    EXPECT_TRUE(has(refused("{node: hgx-h100, fabric: {kind: grid, dimensions: [{kind: ring, size: 8}]}}"),
                    "cluster.fabric.dimensions[0].bandwidth is missing"));
    EXPECT_TRUE(has(refused("{nodes: 3, " + grid.substr(1)), "cluster.nodes: 3, but the grid has 4"));
}

const std::string kGraph =
    "\n  node: hgx-h100\n  graph:\n    nodes:\n"
    "      - {name: g0, kind: gpu, server: 0}\n      - {name: g1, kind: gpu, server: 0}\n"
    "      - {name: g2, kind: gpu, server: 1}\n      - {name: g3, kind: gpu, server: 1}\n"
    "      - {name: s0, kind: switch}\n      - {name: s1, kind: switch}\n"
    "    links:\n"
    "      - {from: g0, to: g1, bandwidth: 100 GB/s, latency: 0.6 us, lanes: 4}\n"
    "      - {from: g2, to: g3, bandwidth: 100 GB/s, latency: 0.6 us, lanes: 4}\n"
    "      - {from: g0, to: s0, bandwidth: 200 Gb/s, latency: 1 us}\n"
    "      - {from: g1, to: s0, bandwidth: 200 Gb/s, latency: 1 us}\n"
    "      - {from: g2, to: s1, bandwidth: 200 Gb/s, latency: 1 us}\n"
    "      - {from: g3, to: s1, bandwidth: 200 Gb/s, latency: 1 us}\n"
    "      - {from: s0, to: s1, bandwidth: 100 Gb/s, latency: 1 us}\n";

std::string changed(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
}

TEST(Boards, Graphs) {
    const Built built = build(kGraph);
    EXPECT_EQ(built.cluster.node_count(), 2u);
    EXPECT_EQ(built.cluster.gpus_per_node(), 2u);
    EXPECT_EQ(built.cluster.path_type(GpuId{0}, GpuId{1}), PathType::nvl);
    const double reached = timed(built, Collective::all_reduce, kGiB).bus_bytes_per_s / 1e9;
    EXPECT_LE(reached, 12.5 * 1.5 * 1.001) << "a tree over two nodes sends half of what a ring does";
    EXPECT_GT(reached, 12);
    EXPECT_GT(bus(changed(kGraph, "bandwidth: 100 Gb/s", "bandwidth: 400 Gb/s")), 1.5 * reached);

    EXPECT_EQ(refused(changed(kGraph, "to: s1, bandwidth: 100", "to: s7, bandwidth: 100")),
              "test.yaml:18:9: cluster.graph.links[6]: no node is called `s7`");
    EXPECT_TRUE(
        has(refused(changed(kGraph, "g0, to: g1", "g0, to: g2")), "test.yaml:12:9: cluster.graph.links[0]: `g0`"));
    EXPECT_TRUE(
        has(refused(changed(kGraph, "name: g1", "name: g0")), "test.yaml:6:9: cluster.graph.nodes[1]: gpu `g0`"));
    EXPECT_TRUE(has(refused(changed(kGraph, "server: 1}", "sever: 1}")), "did you mean `server`"));
    EXPECT_TRUE(has(refused(changed(kGraph, "      - {from: s0, to: s1, bandwidth: 100 Gb/s, latency: 1 us}\n", "")),
                    "cluster.graph: no route from"));
    EXPECT_TRUE(has(refused(changed(kGraph, "100 Gb/s", "100 furlongs")), "test.yaml:18:"));
    EXPECT_TRUE(has(refused(kGraph + "  fabric: {oversubscription: 2}\n"), "has no effect beside cluster.graph"));
}

TEST(Boards, WrongOnes) {
    EXPECT_TRUE(has(refused("{node: {preset: l40s-server, board: cube-mesh}}"), "L40S-48G has none"));
    EXPECT_TRUE(has(refused("{node: {preset: dgx1-v100, gpus: 4}}"), "a cube mesh joins 8 GPUs, not 4"));
    EXPECT_TRUE(has(refused("{node: {preset: a100-pcie-pairs, gpus: 5, nics: 1}}"), "5 GPUs are no pairs"));
    EXPECT_TRUE(has(refused("{node: {preset: hgx-h100, board: nvlink}}"), "is not one of"));
}

// USERS.md A8, InternLM/InternLM#22: 2105 tokens/s/GPU over PCIe 4.0 against 4234 over NVLink.
TEST(CaseA8, PcieHalvesASevenBillionModel) {
    const test::Forecast nvlink = test::run_file("scenarios/case-a8/a100-nvlink.yaml");
    const test::Forecast pcie = test::run_file("scenarios/case-a8/a100-pcie.yaml");
    const auto rate = [](const test::Forecast& run) {
        return run.step().tokens / run.seconds() / static_cast<double>(run.step().ranks);
    };
    fmt::print("tokens/s/GPU: {:.0f} over PCIe, {:.0f} over NVLink, ratio {:.2f}\n", rate(pcie), rate(nvlink),
               rate(nvlink) / rate(pcie));
    EXPECT_NEAR(rate(nvlink) / rate(pcie), 2.0, 0.4);
    EXPECT_NEAR(rate(pcie) / 2105, 1, 0.2);
    EXPECT_NEAR(rate(nvlink) / 4234, 1, 0.2);
    EXPECT_GT(test::exposed(pcie), 0.3);
    EXPECT_LT(test::exposed(nvlink), 0.1);
    ASSERT_EQ(pcie.result.hints.size(), 1u);
    EXPECT_TRUE(has(pcie.result.hints.front(), "inside the node is the limit")) << pcie.result.hints.front();
    EXPECT_TRUE(has(pcie.result.hints.front(), "gradients and parameters are exposed")) << pcie.result.hints.front();
    EXPECT_TRUE(nvlink.result.hints.empty());
    test::expect_exact_accounts(pcie);
}

}  // namespace
}  // namespace fabricast
