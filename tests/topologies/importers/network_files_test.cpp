// ns-3 topologies, ASTRA-sim grids, Slurm topologies and placement.
#include <gtest/gtest.h>

#include "tests/topologies/importers/samples.hpp"
#include "topologies/importers/astra_network.hpp"
#include "topologies/importers/node_list.hpp"
#include "topologies/importers/ns3_topology.hpp"

namespace fabricast::importers::test {
namespace {

FabricDescription read(const std::string& text, const std::string& name = "x") {
    return std::get<FabricDescription>(import_text(SourceText::from_text(name, text)));
}

using Names = std::vector<std::string>;
Names expand(const std::string& list) { return expand_node_list(list, "list"); }

const std::string kAstraNs3 =
    "5 1 4\n4\n0 4 200Gbps 0.0005ms 0\n1 4 200Gbps 0.0005ms 0\n2 4 25GBps 500ns 0.01\n3 4 200Gbps 0.0005ms 0\n";

TEST(Ns3Topology, AstraForm) {
    const FabricDescription fabric = read(kAstraNs3);
    EXPECT_EQ(fabric.format, "ASTRA-sim ns-3 topology");
    EXPECT_EQ(fabric.count(NodeKind::gpu), 4u);
    EXPECT_EQ(fabric.count(NodeKind::network_switch), 1u);
    ASSERT_EQ(fabric.links.size(), 4u);
    for (const FabricLink& link : fabric.links) {
        EXPECT_DOUBLE_EQ(link.bytes_per_s, 25e9);
        EXPECT_DOUBLE_EQ(link.latency_s, 5e-7);
    }
    EXPECT_DOUBLE_EQ(fabric.links[2].error_rate, 0.01);
    EXPECT_EQ(fabric.nodes[4].level, 0);
}

TEST(Ns3Topology, SimAiForm) {
    // Two servers of two GPUs, an NVSwitch each, two switches.
    const FabricDescription fabric = read(
        "8 2 2 2 10 H100\n4 5 6 7\n"
        "0 4 2880Gbps 0.000025ms 0\n1 4 2880Gbps 0.000025ms 0\n2 5 2880Gbps 0.000025ms 0\n3 5 2880Gbps 0.000025ms 0\n"
        "0 6 400Gbps 0.0005ms 0\n1 7 400Gbps 0.0005ms 0\n2 6 400Gbps 0.0005ms 0\n3 7 400Gbps 0.0005ms 0\n"
        "6 7 400Gbps 0.0005ms 0\n6 7 400Gbps 0.0005ms 0");
    EXPECT_EQ(fabric.gpu_model, "H100");
    EXPECT_EQ(fabric.count(NodeKind::nvswitch), 2u);
    EXPECT_EQ(fabric.nodes[3].server, 1);
    EXPECT_HAS(all_notes(fabric.notes), "1 links join a pair that already has one");
}

TEST(Ns3Topology, Units) {
    bool unit = false;
    EXPECT_DOUBLE_EQ(*ns3_bytes_per_s("100Gb/s", unit), 12.5e9);
    EXPECT_DOUBLE_EQ(*ns3_bytes_per_s("1GiB/s", unit), 1073741824.0);
    EXPECT_DOUBLE_EQ(*ns3_bytes_per_s("8Kbps", unit), 1000.0);
    EXPECT_TRUE(unit);
    EXPECT_DOUBLE_EQ(*ns3_bytes_per_s("800", unit), 100.0);
    EXPECT_FALSE(unit);
    EXPECT_FALSE(ns3_bytes_per_s("100Gbit", unit));
    EXPECT_FALSE(ns3_bytes_per_s("fast", unit));
    EXPECT_DOUBLE_EQ(*ns3_seconds("1us", unit), 1e-6);
    EXPECT_DOUBLE_EQ(*ns3_seconds("1e-3ms", unit), 1e-6);
    EXPECT_FALSE(ns3_seconds("1 us", unit));
}

TEST(Ns3Topology, Refusals) {
    EXPECT_HAS(refusal("5 1 5" + kAstraNs3.substr(5)), "the first line says 5 links, the file ends before link 5");
    EXPECT_HAS(refusal("5 1 3" + kAstraNs3.substr(5)), "x:6: the first line says 3 links, here is more: '3'");
    EXPECT_HAS(refusal("3 1 1\n2\n0 3 1Gbps 1us 0\n"), "x:3: link end '3': a node id from 0 to 2");
    EXPECT_HAS(refusal("3 1 1\n2\n2 2 1Gbps 1us 0\n"), "a link from node 2 to itself");
    EXPECT_HAS(refusal("3 1 1\n2\n0 2 1Gbitps 1us 0\n"), "bandwidth '1Gbitps'");
    EXPECT_HAS(refusal("3 1 1\n2\n0 2 0Gbps 1us 0\n"), "a positive number");
    EXPECT_HAS(refusal("3 1 1\n2\n0 2 1Gbps 1us 2\n"), "error rate '2': 0 to 1");
    EXPECT_HAS(refusal("4 2 1\n2 2\n0 2 1Gbps 1us 0\n"), "switch id 2 is there twice");
    EXPECT_HAS(refusal("8 3 2 2 10 H100\n4 5 6 7\n"), "4 GPUs are no multiple of 3");
    EXPECT_HAS(refusal("8 2 2 2 10 H100\n3 5 6 7\n"), "ids below 4 are GPUs");
    EXPECT_HAS(refusal("99999999999 1 1\n0\n"), "nodes of which 1 are switches");
    EXPECT_HAS(all_notes(read("3 1 2\n2\n0 2 800 0.001 0\n1 2 1Gbps 0 0\n").notes), "1 bandwidths without a unit");
}

// ring_8.yml, sw2d_64.yml, sw2d_1024.yml, ring_1024.yml, switch_8.yml and bad.yml of the Chakra corpus, word for word.
TEST(AstraNetwork, CorpusFiles) {
    const FabricDescription ring =
        read("topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n");
    EXPECT_EQ(ring.links.size(), 8u);
    EXPECT_DOUBLE_EQ(ring.links[0].bytes_per_s, 50.0 * 1073741824);
    EXPECT_DOUBLE_EQ(ring.links[0].latency_s, 5e-7);
    EXPECT_EQ(ring.links[7].from, 7u);
    EXPECT_EQ(ring.links[7].to, 0u);
    const FabricDescription two = read(
        "topology: [ Switch, Switch ]\nnpus_count: [ 8, 8 ]\nbandwidth: [ 400.0, 50.0 ]\nlatency: [ 936.25, 5000.0 "
        "]\n");
    EXPECT_EQ(two.count(NodeKind::gpu), 64u);
    EXPECT_EQ(two.count(NodeKind::network_switch), 16u);
    EXPECT_EQ(two.links.size(), 128u);
    EXPECT_EQ(two.dimensions[1].kind, GridDimension::Kind::network_switch);
    const FabricDescription large = read(
        "topology: [ Switch, Switch ]\nnpus_count: [ 8, 128 ]\nbandwidth: [ 400.0, 50.0 ]\nlatency: [ 936.25, 5000.0 "
        "]\n");
    EXPECT_EQ(large.count(NodeKind::gpu), 1024u);
    EXPECT_EQ(read("topology: [ Ring ]\nnpus_count: [ 1024 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n").links.size(),
              1024u);
    EXPECT_EQ(read("topology: [ Switch ]\nnpus_count: [ 8 ]\nbandwidth: [ 400.0 ]\nlatency: [ 936.25 ]\n").links.size(),
              8u);
    EXPECT_HAS(refusal("topology: [ Ring ]\nnpu_count: [ 8 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n", "bad.yml"),
               "bad.yml:2: key 'npu_count': topology, npus_count, bandwidth and latency are expected (did you mean "
               "npus_count?)");
}

TEST(AstraNetwork, Grids) {
    const FabricDescription full =
        read("topology: [FullyConnected, Ring]\nnpus_count: [4, 2]\nbandwidth: [1, 1]\nlatency: [0, 0]\n");
    EXPECT_EQ(full.links.size(), 2u * 6 + 4u * 1);
    EXPECT_EQ(full.links[0].to, 1u);
    EXPECT_EQ(full.links.back().from, 3u);
    EXPECT_EQ(full.links.back().to, 7u);
    const FabricDescription huge =
        read("topology: [FullyConnected]\nnpus_count: [100000]\nbandwidth: [1]\nlatency: [0]\n");
    EXPECT_FALSE(huge.expanded);
    EXPECT_TRUE(huge.links.empty());
    EXPECT_EQ(
        read("{\"topology\": [\"Ring\"], \"npus_count\": [4], \"bandwidth\": [1], \"latency\": [1]}").links.size(), 4u);
}

TEST(AstraNetwork, Refusals) {
    const auto with = [](const std::string& topology, const std::string& count, const std::string& bandwidth,
                         const std::string& latency) {
        return refusal("topology: " + topology + "\nnpus_count: " + count + "\nbandwidth: " + bandwidth +
                       "\nlatency: " + latency + "\n");
    };
    EXPECT_HAS(with("[ring]", "[8]", "[1]", "[1]"),
               "x:1: topology 'ring': Ring, FullyConnected or Switch is expected, spelt so (did you mean Ring?)");
    EXPECT_HAS(with("[Ring]", "[1]", "[1]", "[1]"), "x:2: npus_count '1': a whole number of 2 or more");
    EXPECT_HAS(with("[Ring]", "[8.5]", "[1]", "[1]"), "npus_count '8.5'");
    EXPECT_HAS(with("[Ring]", "[8]", "[50 GB/s]", "[1]"),
               "bandwidth '50 GB/s': a number above 0 is expected, without a unit");
    EXPECT_HAS(with("[Ring]", "[8]", "[0]", "[1]"), "bandwidth '0'");
    EXPECT_HAS(with("[Ring]", "[8]", "[1]", "[-1]"), "latency '-1': a number of 0 or more");
    EXPECT_HAS(with("[Ring, Ring]", "[8]", "[1]", "[1]"), "one a dimension is expected");
    EXPECT_HAS(with("Ring", "[8]", "[1]", "[1]"), "x:1: topology: a list in brackets");
    EXPECT_HAS(with("[Ring]", "[8]", "[1]", "[1]\nlatency: [2]"), "x:5: key 'latency' is there twice");
    EXPECT_HAS(refusal("topology: [Ring]\nnpus_count: [8]\nbandwidth: [1]\n"), "key 'latency' is missing");
    EXPECT_HAS(refusal("topology: [Ring\nnpus_count: [8]\n"), "no YAML");
    EXPECT_HAS(refusal("{\n \"topology-name\": \"Hierarchical\",\n \"dimensions-count\": 1\n}\n"),
               "x:2: key 'topology-name' of the retired JSON form");
    EXPECT_HAS(refusal("{\"logical-dims\": [\"8\",\"4\"]}"), "only the logical shape");
}

TEST(NodeList, Expands) {
    EXPECT_EQ(expand("n[0-3,7]"), (Names{"n0", "n1", "n2", "n3", "n7"}));
    EXPECT_EQ(expand("n[008-010],login1"), (Names{"n008", "n009", "n010", "login1"}));
    EXPECT_EQ(expand("r[0-1]n[1-2]-ib"), (Names{"r0n1-ib", "r0n2-ib", "r1n1-ib", "r1n2-ib"}));
    EXPECT_EQ(expand(" a , b "), (Names{"a", "b"}));
    EXPECT_EQ(expand("n[9-10]"), (Names{"n9", "n10"}));
    for (const auto& [list, why] :
         std::vector<std::pair<std::string, std::string>>{{"n[3-0]", "runs downwards"},
                                                          {"n[0-3", "closing bracket is missing"},
                                                          {"n0-3]", "without an opening one"},
                                                          {"n[[0]]", "a bracket inside a bracket"},
                                                          {"n[]", "a number or a range"},
                                                          {"n[a-b]", "a number or a range"},
                                                          {"n[0-9999999999]", "more than 1000000 names"},
                                                          {"a[0-9999]b[0-9999]", "more than 1000000 names"},
                                                          {"a,,b", "a name is missing"},
                                                          {"", "a name is missing"},
                                                          {"a b", "is no node name"}}) {
        try {
            expand(list);
            FAIL() << list;
        } catch (const ImportError& error) {
            EXPECT_HAS(std::string(error.what()), why);
        }
    }
}

const std::string kTree =
    "# two leaves\n"
    "SwitchName=leaf0 Nodes=n[0-3]\n"
    "switchname=leaf1 nodes=n[4-7] LinkSpeed=100\n"
    "SwitchName=core \\\n  Switches=leaf[0-1]\n";

TEST(SlurmTopology, Tree) {
    const FabricDescription fabric = read(kTree);
    EXPECT_EQ(fabric.format, "Slurm topology.conf (tree)");
    EXPECT_EQ(fabric.count(NodeKind::host), 8u);
    EXPECT_EQ(fabric.count(NodeKind::network_switch), 3u);
    EXPECT_EQ(fabric.links.size(), 10u);
    EXPECT_EQ(fabric.nodes[2].name, "core");
    EXPECT_EQ(fabric.nodes[2].level, 1);
    EXPECT_EQ(all_notes(fabric.notes), "");
}

TEST(SlurmTopology, Placement) {
    const FabricDescription fabric = read(kTree);
    const Placement placement = place(fabric, "n[1-2,5]");
    ASSERT_EQ(placement.nodes.size(), 3u);
    EXPECT_EQ(fabric.nodes[placement.leaves[0].at(0)].name, "leaf0");
    EXPECT_EQ(fabric.nodes[placement.leaves[2].at(0)].name, "leaf1");
    for (const auto& [list, why] : std::vector<std::pair<std::string, std::string>>{
             {"n[6-8]", "node 'n8' is not in x (did you mean"}, {"n1,n[0-2]", "node 'n1' is listed twice"}}) {
        try {
            place(fabric, list);
            FAIL() << list;
        } catch (const ImportError& error) {
            EXPECT_HAS(std::string(error.what()), why);
        }
    }
}

TEST(SlurmTopology, BlocksAndRefusals) {
    const FabricDescription blocks =
        read("BlockName=b0 Nodes=g[0-17]\nBlockName=b1 Nodes=g[18-35]\nBlockSizes=18,36\n");
    EXPECT_EQ(blocks.block_sizes, (std::vector<std::uint32_t>{18, 36}));
    EXPECT_EQ(blocks.count(NodeKind::host), 36u);
    EXPECT_HAS(all_notes(blocks.notes), "falls into 2 parts");
    EXPECT_HAS(refusal("SwitchName=a Nodes=n1\nBlockName=b Nodes=n2\n"), "x:2: switches and blocks in one file");
    EXPECT_HAS(refusal("SwitchName=a Node=n1\n"), "(did you mean Nodes?)");
    EXPECT_HAS(refusal("SwitchName=a Switches=leafe\nSwitchName=leaf Nodes=n1\n"),
               "x:1: switch 'leafe' under 'a' is defined nowhere (did you mean leaf?)");
    EXPECT_HAS(refusal("SwitchName=a Switches=b\nSwitchName=b Switches=a\n"), "is above itself");
    EXPECT_HAS(refusal("SwitchName=a Switches=a\n"), "its own child");
    EXPECT_HAS(refusal("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n"), "x:2: switch 'a' is defined twice");
    EXPECT_HAS(refusal("SwitchName=a[0-1] Nodes=n1\n"), "x:1: 'a[0-1]': one name is expected");
    EXPECT_HAS(refusal("SwitchName=a\n"), "neither Nodes= nor Switches=");
    EXPECT_HAS(all_notes(read("SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n2\n").notes),
               "node n2 is under a second switch");
}

}  // namespace
}  // namespace fabricast::importers::test
