// fabricast topo: machines, fabrics, scenarios, refusals.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "binary.hpp"

namespace fabricast::testing {
namespace {

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

constexpr const char* kTwoGpus =
    "\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tNV2\tPIX\t0-15\t0\n"
    "GPU1\tNV2\t X \tSYS\t16-31\t1\n"
    "mlx5_0\tPIX\tSYS\t X \n"
    "\n"
    "Legend:\n"
    "\n"
    "  X    = Self\n";

TEST(Topo, MachineFromNvidiaSmi) {
    const Scratch scratch;
    write(scratch.path("topo.txt"), kTwoGpus);
    const Ended text = fabricast("topo '" + scratch.path("topo.txt") + "'");
    EXPECT_EQ(text.code, 0) << text.err;
    for (const char* part : {"2 GPUs, 1 NICs", "NV2", "mlx5_0", "NUMA", "PIX"})
        EXPECT_TRUE(contains(text.out, part)) << part << '\n' << text.out;
    const Ended json = fabricast("topo '" + scratch.path("topo.txt") + "' --json");
    EXPECT_EQ(json.code, 0) << json.err;
    const auto j = nlohmann::json::parse(json.out);
    EXPECT_EQ(j["what"], "machine");
    EXPECT_EQ(j["gpus"].size(), 2u);
    EXPECT_EQ(j["gpu_links"]["NV2"], 1);
    EXPECT_EQ(j["gpus"][0]["nics"][0], "mlx5_0");
}

TEST(Topo, BoardsAndClustersWithoutAModel) {
    const Scratch scratch;
    write(scratch.path("v100.yaml"), "cluster: {node: dgx1-v100, degraded: gpu 0.0 nvlink gpu 3 loses 1 lane}\n");
    const Ended v100 = fabricast("topo '" + scratch.path("v100.yaml") + "'");
    EXPECT_EQ(v100.code, 0) << v100.err;
    for (const char* part : {"board cube-mesh", "NV2 7 pairs", "NV1 9 pairs", "NVB 12 pairs", "4 over NVLink"})
        EXPECT_TRUE(contains(v100.out, part)) << part << '\n' << v100.out;
    write(scratch.path("pcie.yaml"), "cluster: {node: {preset: a100-pcie-8, pcie_layout: node}}\n");
    const Ended pcie = fabricast("topo '" + scratch.path("pcie.yaml") + "'");
    EXPECT_EQ(pcie.code, 0) << pcie.err;
    for (const char* part : {"board pcie", "NODE 12 pairs", "SYS 16 pairs", "between sockets"})
        EXPECT_TRUE(contains(pcie.out, part)) << part << '\n' << pcie.out;
    write(scratch.path("topo.txt"), kTwoGpus);
    write(scratch.path("own.yaml"), "cluster: {nodes: 2, node: {preset: dgx1-v100, topology: topo.txt}}\n");
    const Ended own = fabricast("topo '" + scratch.path("own.yaml") + "'");  // the path is beside the scenario
    EXPECT_EQ(own.code, 0) << own.err;
    EXPECT_TRUE(contains(own.out, "NV2 1 pair")) << own.out;
    const Ended timed = fabricast("nccl --cluster '" + scratch.path("own.yaml") + "' -b 1G -e 1G --json");
    EXPECT_EQ(timed.code, 0) << timed.err;
    EXPECT_EQ(nlohmann::json::parse(timed.out)["ranks"], 4);
    write(scratch.path("grid.yaml"),
          "cluster: {node: hgx-h100, fabric: {dimensions: [{kind: ring, size: 4, bandwidth: 50 GB/s}]}}\n");
    const Ended grid = fabricast("nccl --cluster '" + scratch.path("grid.yaml") + "' --nodes 2");
    EXPECT_EQ(grid.code, 2);
    EXPECT_TRUE(contains(grid.err, "grid lists its 1 nodes")) << grid.err;
}

TEST(Topo, FabricFromSlurm) {
    const Scratch scratch;
    write(scratch.path("topology.conf"),
          "SwitchName=leaf0 Nodes=n[0-3]\nSwitchName=leaf1 Nodes=n[4-7]\nSwitchName=spine Switches=leaf[0-1]\n");
    const Ended json = fabricast("topo '" + scratch.path("topology.conf") + "' --json");
    EXPECT_EQ(json.code, 0) << json.err;
    const auto j = nlohmann::json::parse(json.out);
    EXPECT_EQ(j["what"], "fabric");
    EXPECT_EQ(j["hosts"], 8);
    EXPECT_EQ(j["switches"], 3);
    const Ended text = fabricast("topo '" + scratch.path("topology.conf") + "'");
    EXPECT_TRUE(contains(text.out, "8 hosts, 3 switches")) << text.out;
}

TEST(Topo, ClusterOfAScenario) {
    const std::string file = "'" + scenario_path("case-a/h800-1024-before.yaml") + "'";
    const Ended text = fabricast("topo " + file);
    EXPECT_EQ(text.code, 0) << text.err;
    for (const char* part : {"1024 GPUs", "NVLink", "NIC", "fabric", "8 rails", "links"})
        EXPECT_TRUE(contains(text.out, part)) << part;
    const auto j = nlohmann::json::parse(fabricast("topo " + file + " --json").out);
    EXPECT_EQ(j["what"], "scenario");
    EXPECT_EQ(j["gpus"], 1024);
}

TEST(Topo, RefusalsEndWithTwo) {
    const Scratch scratch;
    write(scratch.path("story.txt"), "once upon a time there was a cluster\n");
    write(scratch.path("empty.txt"), "");
    const std::pair<std::string, const char*> kCases[] = {{"", "no file given"},
                                                          {"'" + scratch.path("story.txt") + "'", "story.txt"},
                                                          {"'" + scratch.path("empty.txt") + "'", "empty.txt"},
                                                          {"'" + scratch.path("missing.txt") + "'", "missing.txt"}};
    for (const auto& [arguments, sentence] : kCases) {
        const Ended ended = fabricast("topo " + arguments);
        EXPECT_EQ(ended.code, 2) << arguments;
        EXPECT_EQ(ended.out, "");
        EXPECT_TRUE(contains(ended.err, sentence)) << ended.err;
    }
    write(scratch.path("topo.txt"), kTwoGpus);
    EXPECT_EQ(fabricast("topo '" + scratch.path("topo.txt") + "' --set cluster.nodes=2").code, 2);
}

}  // namespace
}  // namespace fabricast::testing
