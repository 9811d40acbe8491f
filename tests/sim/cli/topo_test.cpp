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
