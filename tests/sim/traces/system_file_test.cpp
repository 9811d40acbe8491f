// System and memory files: every key checked, every refusal by name and line.
#include "sim/traces/system_file.hpp"

#include <gtest/gtest.h>

#include "tests/sim/traces/trace_writer.hpp"
#include "topologies/importers/import_error.hpp"

namespace fabricast::traces {
namespace {

using importers::ImportError;

template <typename Read>
std::string refusal(const std::string& text, Read read) {
    const test::Folder folder;
    const std::string path = folder.write("sys.json", text);
    try {
        read(path);
    } catch (const ImportError& error) {
        const std::string what = error.what();
        return what.substr(what.find("sys.json") + 8);
    }
    return "";
}
std::string refused(const std::string& text, std::uint32_t dimensions = 2) {
    return refusal(text, [&](const std::string& path) { read_system_file(path, dimensions); });
}
std::string memory_refused(const std::string& text) {
    return refusal(text, [](const std::string& path) { read_remote_memory(path); });
}

std::string data(const std::string& name) { return std::string(FABRICAST_SOURCE_DIR "/tests/sim/traces/data/") + name; }

TEST(SystemFile, ReadsWhatItSays) {
    const SystemConfig system = read_system_file(data("sys2d.json"), 2);
    EXPECT_EQ(system.splits, 4u);
    EXPECT_EQ(system.active_chunks, 2u);
    EXPECT_DOUBLE_EQ(system.endpoint_s, 10e-9);
    EXPECT_TRUE(system.local_bandwidth_aware);
    EXPECT_DOUBLE_EQ(system.memory_bytes_per_s, 3350e9) << "10^9 here, 2^30 in network files";
    EXPECT_FALSE(system.roofline);
    ASSERT_EQ(system.notes.size(), 2u);
    EXPECT_EQ(system.notes[0], "system key boost-mode has no effect, as in ASTRA-sim of today");
    const test::Folder folder;
    const SystemConfig other = read_system_file(
        folder.write("s.json",
                     R"({"preferred-dataset-splits": 8, "all-reduce-implementation": ["direct16", "halvingDoubling"],
                                   "all-gather-implementation": ["oneRing"], "peak-perf": 312.5})"),
        2);
    EXPECT_EQ(other.of(Implemented::all_reduce)[0].window, 16u);
    EXPECT_EQ(other.of(Implemented::all_reduce)[1].kind, AlgorithmKind::halving_doubling);
    EXPECT_EQ(other.of(Implemented::all_gather).size(), 1u);
    EXPECT_EQ(other.of(Implemented::all_to_all).size(), 2u) << "rings where nothing is said";
    EXPECT_DOUBLE_EQ(other.flops_per_s, 312.5e12);
    const SystemConfig adding =
        read_system_file(folder.write("add.json", R"({"preferred-dataset-splits": 1, "local-reduction-delay": 5})"), 2);
    ASSERT_EQ(adding.notes.size(), 1u);
    EXPECT_NE(adding.notes[0].find("local-reduction-delay"), std::string::npos);
}

TEST(SystemFile, RefusesByKeyAndLine) {
    try {
        read_system_file(data("sysbad.json"), 1);
        ADD_FAILURE();
    } catch (const ImportError& error) {
        EXPECT_EQ(error.sentence(), "key 'nonsense-key' is unknown");
        EXPECT_EQ(error.line(), 20u);
    }
    EXPECT_EQ(refused("{}"), ": preferred-dataset-splits: is missing: into how many chunks a collective is cut");
    EXPECT_EQ(refused("{\n\"preferred-dataset-split\": 4}"),
              ":2: key 'preferred-dataset-split' is unknown (did you mean preferred-dataset-splits?)");
    EXPECT_EQ(refused(R"({"preferred-dataset-splits": 0})"),
              ":1: preferred-dataset-splits: '0': a number from 1 to 4096 is expected");
    EXPECT_EQ(refused(R"({"preferred-dataset-splits": 1.5})"),
              ":1: preferred-dataset-splits: 1.5: a whole number is expected");
    EXPECT_EQ(refused(R"({"preferred-dataset-splits": 1, "endpoint-delay": "10"})"),
              ":1: endpoint-delay: '\"10\"': a number from 0 to 1000000000000 is expected");
    EXPECT_EQ(refused(R"({"preferred-dataset-splits": 1, "scheduling-policy": "lifo"})"),
              ":1: scheduling-policy: LIFO, FIFO, EXPLICIT is expected, not 'lifo' (did you mean LIFO?)");
    EXPECT_EQ(refused(R"({"preferred-dataset-splits": 1, "all-reduce-implementation": ["ring"]})"),
              ":1: all-reduce-implementation: 1 algorithms, the network has 2 dimensions: one each is expected");
    EXPECT_EQ(refused(R"({"preferred-dataset-splits": 1, "all-reduce-implementation": ["ring", "oneRing"]})"),
              ":1: all-reduce-implementation: one... algorithms run over all dimensions as one; they do not mix with "
              "others");
    EXPECT_EQ(
        refused(R"({"preferred-dataset-splits": 1, "all-reduce-implementation": ["ring", "rings"]})").substr(0, 57),
        ":1: all-reduce-implementation: algorithm 'rings' is unkno");
    EXPECT_EQ(refused(R"({"preferred-dataset-splits": 1, "all-reduce-implementation-custom": ["x"]})"),
              ":1: all-reduce-implementation-custom: algorithms given as traces are not simulated; name one instead");
    EXPECT_EQ(refused(R"({"preferred-dataset-splits": 1, "roofline-enabled": 1})"),
              ":1: roofline-enabled: needs peak-perf and local-mem-bw above 0");
    EXPECT_EQ(refused(R"({"preferred-dataset-splits": 1, "preferred-dataset-splits": 2})"),
              ":1: key 'preferred-dataset-splits' is there twice");
    EXPECT_EQ(refused("[1]"), ":1: a JSON object, {\"key\": value, ...}, is expected");
}

TEST(RemoteMemoryFile, RefusesByKey) {
    EXPECT_EQ(memory_refused(R"({"memory-type": "POOL"})").substr(0, 15), ":1: memory-type");
    EXPECT_EQ(memory_refused(R"({"memory-type": "MEMORY_POOL"})"), ": remote-mem-bw: is missing: bytes a ns");
    EXPECT_EQ(memory_refused(R"({"memory-type": "PER_NODE_MEMORY_EXPANSION", "remote-mem-bw": 1})"),
              ": num-npus-per-node: is missing: GPUs that share a memory");
    EXPECT_EQ(memory_refused(R"({"memory-type": "NO_MEMORY_EXPANSION"})"), "");
}

}  // namespace
}  // namespace fabricast::traces
