// What is read from Chakra traces, and what is refused by file and node.
#include "sim/traces/trace_reader.hpp"

#include <zlib.h>

#include <fstream>

#include <gtest/gtest.h>

#include "sim/traces/chakra_node.hpp"
#include "sim/traces/list_builder.hpp"
#include "sim/traces/node_order.hpp"
#include "sim/traces/trace_file.hpp"
#include "tests/sim/traces/trace_writer.hpp"
#include "topologies/importers/import_error.hpp"

namespace fabricast::traces {
namespace {

using importers::ImportError;
using namespace test;

/// Traces of some ranks in a folder of their own.
class Job {
public:
    explicit Job(const std::vector<TraceText>& traces) {
        for (std::size_t rank = 0; rank < traces.size(); ++rank)
            folder.write("t." + std::to_string(rank) + ".et", traces[rank].bytes());
        ranks_ = static_cast<std::uint32_t>(traces.size());
    }
    Workload read(std::uint32_t dimensions = 1) const {
        return read_traces(folder.path("t"), groups, ranks_, dimensions);
    }
    std::string refusal(std::uint32_t dimensions = 1) const {
        try {
            read(dimensions);
        } catch (const ImportError& error) {
            const std::string text = error.what();
            return text.substr(text.rfind("/t.") == std::string::npos ? text.rfind('/') + 1 : text.rfind("/t.") + 1);
        }
        return "";
    }
    void set_groups(const std::string& text) { groups = folder.write("groups.json", text); }

    Folder folder;
    std::string groups;

private:
    std::uint32_t ranks_ = 0;
};

NodeText kernel(std::uint64_t id, std::uint64_t us = 10) {
    NodeText node(id, "k" + std::to_string(id), kCompute);
    node.takes(us);
    return node;
}
NodeText message(std::uint64_t id, bool is_send, int peer, std::int64_t bytes, std::int64_t tag = 1) {
    NodeText node(id, is_send ? "s" : "r", is_send ? kSend : kReceive);
    node.with(is_send ? "comm_dst" : "comm_src", peer).with("comm_size", bytes).with("comm_tag", tag);
    return node;
}
TraceText trace(const std::vector<NodeText>& nodes) {
    TraceText out;
    for (const NodeText& node : nodes)
        out.add(node);
    return out;
}

TEST(ChakraNode, TakesAnyArmForAnyNumber) {
    for (const int arm : {7, 9, 11, 13, 27}) {
        NodeText text(5, "x", kCollective);
        text.with("comm_type", 0, arm).with("comm_size", 1, arm).with("is_cpu_op", 1, arm);
        ChakraNode node;
        decode_chakra_node(text.text(), node);
        EXPECT_EQ(node.comm_size, 1u) << arm;
        EXPECT_TRUE(node.cpu) << arm;
        EXPECT_TRUE((node.has & ChakraNode::kCommType) != 0) << "a zero is written all the same";
    }
    NodeText text(5, "x", kCompute);
    text.attribute("num_ops", [](protozero::pbf_writer& w) { w.add_double(3, 1e12); });
    text.attribute("tensor_size", [](protozero::pbf_writer& w) { w.add_sint64(17, 12345); });
    text.attribute("comm_size", [](protozero::pbf_writer& w) { w.add_fixed64(21, 77); });
    text.attribute("comm_tag", [](protozero::pbf_writer& w) { w.add_float(5, 3); });
    ChakraNode node;
    decode_chakra_node(text.text(), node);
    EXPECT_EQ(node.ops, 1e12);
    EXPECT_EQ(node.tensor_size, 12345u);
    EXPECT_EQ(node.comm_size, 77u);
    EXPECT_EQ(node.tag, 3u);
    EXPECT_FALSE(node.cpu) << "absent means GPU";
}

TEST(ChakraNode, ReadsParentsPackedOrNotAndListsOfDimensions) {
    NodeText text(9, "x", kCollective);
    text.after({1, 300}).after({7}, true, false);
    text.attribute("involved_dim", [](protozero::pbf_writer& w) {
        std::string list;
        const std::vector<bool> dims = {true, false, true};
        protozero::pbf_writer(list).add_packed_bool(1, dims.begin(), dims.end());
        w.add_message(28, list);
    });
    ChakraNode node;
    decode_chakra_node(text.text(), node);
    EXPECT_EQ(node.parents, (std::vector<std::uint64_t>{1, 300, 7}));
    EXPECT_EQ(node.involved, 5u);
    EXPECT_EQ(node.involved_count, 3u);
}

TEST(TraceReader, RanksThatDifferInGroupsAndPeersShareAList) {
    std::vector<TraceText> traces;
    for (int rank = 0; rank < 8; ++rank) {
        traces.push_back(
            trace({kernel(0),
                   NodeText(1, "tp", kCollective).after({0}).collective(kAllReduce, 4096, std::to_string(1 + rank / 4)),
                   message(2, true, (rank + 1) % 8, 100), message(3, false, (rank + 7) % 8, 100)}));
    }
    Job job(traces);
    job.set_groups(R"({"1": [0,1,2,3], "2": [4,5,6,7]})");
    const Workload workload = job.read();
    ASSERT_EQ(workload.lists.size(), 1u);
    EXPECT_EQ(workload.nodes_read, 32u);
    EXPECT_EQ(workload.groups.size(), 3u);
    EXPECT_EQ(workload.ranks[5].groups[0].group, 2u);
    EXPECT_EQ(workload.ranks[5].messages[0].peer, 6u);
    EXPECT_EQ(workload.ranks[5].messages[1].peer, 4u);
}

TEST(TraceReader, IdsAreNamesOnly) {
    std::vector<TraceText> traces;
    for (std::uint64_t rank = 0; rank < 4; ++rank) {
        traces.push_back(trace({NodeText(100 * rank, "a", kCompute).takes(5),
                                NodeText(100 * rank + 7, "b", kCompute).takes(6).after({100 * rank})}));
    }
    EXPECT_EQ(Job(traces).read().lists.size(), 1u);
}

TEST(TraceReader, ParentsMayComeLaterAndNodesTwice) {
    const Workload workload = Job({trace({kernel(2).after({0, 1, 1}), kernel(0), kernel(1), kernel(0)})}).read();
    ASSERT_EQ(workload.lists[0].nodes.size(), 3u);
    EXPECT_EQ(workload.lists[0].nodes[2].id, 2u);
    EXPECT_EQ(workload.lists[0].nodes[2].parent_count, 2u);
    ASSERT_EQ(workload.notes.size(), 1u);
    EXPECT_EQ(workload.notes[0], "1 nodes were written twice and count once");
}

TEST(TraceReader, ReadsGzip) {
    const Job job({trace({kernel(0), kernel(1).after({0})})});
    const std::string plain = trace({kernel(0), kernel(1).after({0})}).bytes();
    gzFile file = gzopen(job.folder.path("t.0.et").c_str(), "wb");
    gzwrite(file, plain.data(), static_cast<unsigned>(plain.size()));
    gzclose(file);
    EXPECT_EQ(job.read().lists[0].nodes.size(), 2u);
    std::ifstream in(job.folder.path("t.0.et"), std::ios::binary);
    std::string packed((std::istreambuf_iterator<char>(in)), {});
    job.folder.write("t.0.et", packed.substr(0, packed.size() / 2));
    EXPECT_EQ(job.refusal(), "t.0.et: gzip data are damaged or end early");
}

TEST(TraceReader, GroupsOfPyTorchComeFromMetadata) {
    std::vector<TraceText> traces;
    for (int rank = 0; rank < 4; ++rank) {
        const std::string ranks = rank < 2 ? "[0, 1]" : "[2, 3]";
        traces.push_back(trace(
            {NodeText(1, "use", kCollective).collective(kAllReduce, 64, "3"),
             NodeText(2, "all", kCollective).collective(kAllReduce, 64, "7"),
             NodeText(0, "## process_group:init ##", kMetadata)
                 .inputs(R"(["[{"pg_name": "3", "ranks": )" + ranks + R"(}, {"pg_name": "7", "ranks": []}]"])")}));
    }
    const Workload workload = Job(traces).read();
    ASSERT_EQ(workload.groups.size(), 3u) << "all ranks and one name for two groups";
    EXPECT_EQ(workload.ranks[1].groups[0].group, workload.ranks[0].groups[0].group);
    EXPECT_NE(workload.ranks[2].groups[0].group, workload.ranks[0].groups[0].group);
    EXPECT_EQ(workload.ranks[2].groups[1].group, 0u);
    EXPECT_EQ(workload.lists.size(), 1u);
}

TEST(TraceReader, AGroupOfOneIsNoCommunication) {
    Job job({trace({NodeText(0, "c", kCollective).collective(kAllReduce, 64, "1")}),
             trace({NodeText(0, "c", kCollective).collective(kAllReduce, 64, "2")})});
    job.set_groups(R"({"1": [0], "2": [1]})");
    const Workload workload = job.read();
    EXPECT_EQ(workload.lists[0].nodes[0].kind, NodeKind::skipped);
}

TEST(TraceReader, RefusesByFileAndNode) {
    const auto two = [](const std::vector<NodeText>& first) {
        return Job({trace(first), trace({kernel(0)})}).refusal();
    };
    EXPECT_EQ(two({kernel(0).after({5})}), "t.0.et: node 0 'k0' depends on node 5, which the file does not have");
    EXPECT_EQ(two({kernel(0).after({1}), kernel(1).after({2}), kernel(2).after({1})}),
              "t.0.et: nodes wait for each other in a circle: node 1 'k1' for node 2 'k2' for node 1");
    EXPECT_EQ(two({kernel(0), kernel(0, 99)}), "t.0.et: id 0 occurs twice, as 'k0' and as 'k0'");
    EXPECT_EQ(two({NodeText(0, "x", 9)}), "t.0.et: record 1, node 0 'x': node type 9 is unknown, 0 to 7 are");
    EXPECT_EQ(two({NodeText(4, "c", kCollective).with("comm_size", 8)}),
              "t.0.et: node 4 'c': a collective without comm_type");
    EXPECT_EQ(two({NodeText(4, "c", kCollective).with("comm_type", 0)}),
              "t.0.et: node 4 'c': a collective without comm_size");
    EXPECT_EQ(two({NodeText(4, "c", kCollective).collective(10, 8)}),
              "t.0.et: node 4 'c': comm_type 10 is unknown, 0 to 9 are");
    EXPECT_EQ(two({NodeText(4, "c", kCollective).collective(0, 8, "3")}),
              "t.0.et: node 4 'c': group '3' (pg_name): no groups are known, give them with --groups");
    EXPECT_EQ(two({NodeText(4, "c", kCollective).collective(0, -8)}),
              "t.0.et: record 1, node 4 'c': attribute comm_size is -8: a number from 0 is expected");
    EXPECT_EQ(two({message(0, true, 0, 8)}), "t.0.et: node 0 's': sends to itself (comm_dst)");
    EXPECT_EQ(two({message(0, true, 7, 8)}), "t.0.et: node 0 's': rank 7 does not exist, the network has 2");
    EXPECT_EQ(two({message(0, true, 1, 8).with("comm_src", 1)}),
              "t.0.et: node 0 's': rank 0 sends in the name of rank 1");
}

TEST(TraceReader, AFileThatBelongsToAnotherRankIsRefused) {
    const TraceText sender = trace({message(0, true, 1, 8).with("comm_src", 0)});
    EXPECT_EQ(Job({sender, trace({kernel(0)}), sender}).refusal(),
              "t.2.et: node 0 's': rank 2 sends in the name of rank 0");
    const TraceText member = trace({NodeText(0, "c", kCollective).collective(kAllReduce, 64, "1")});
    Job job({member, member, member});
    job.set_groups(R"({"1": [0, 1]})");
    EXPECT_EQ(job.refusal(), "t.2.et: node 0 'c': rank 2 is no member of group '1'");
}

TEST(TraceReader, EveryRankNeedsItsFileAndNoneIsLeftOver) {
    const Job job({trace({kernel(0)}), trace({kernel(0)})});
    const auto refusal = [&](std::uint32_t ranks) {
        try {
            read_traces(job.folder.path("t"), "", ranks, 1);
        } catch (const ImportError& error) {
            return error.sentence();
        }
        return std::string();
    };
    EXPECT_EQ(refusal(3), "does not exist; the network has 3 ranks, each needs its trace");
    EXPECT_EQ(refusal(1), "a trace too many: the network has 1 ranks, 0 to 0");
    EXPECT_EQ(refusal(2), "");
}

TEST(GroupFile, RefusesByGroup) {
    const auto refusal = [](const std::string& text) {
        Job job({trace({kernel(0)}), trace({kernel(0)})});
        job.set_groups(text);
        return job.refusal();
    };
    EXPECT_EQ(refusal(R"({"a": [0]})"), "groups.json:1: group 'a': a whole number is expected as its name");
    EXPECT_EQ(refusal(R"({"0": [0]})"), "groups.json:1: group 0 is kept for all ranks");
    EXPECT_EQ(refusal("{\"1\": [0],\n \"2\": [0, 5]}"),
              "groups.json:2: group 2: rank 5 does not exist, the network has 2");
    EXPECT_EQ(refusal(R"({"1": [0, 0]})"), "groups.json:1: group 1: rank 0 is there twice");
    EXPECT_EQ(refusal(R"({"1": [0], "1": [1]})"), "groups.json: group '1' is there twice");
    EXPECT_EQ(refusal(R"({"1": []})"), "groups.json:1: group 1: a group without ranks");
    EXPECT_EQ(refusal(R"([[0]])"), R"(groups.json:1: groups are written {"1": [0, 1], "2": [2, 3]})");
    EXPECT_EQ(refusal("{\"1\": [0,\n"), R"(groups.json:1: no JSON; groups are written {"1": [0, 1], "2": [2, 3]})");
}

/// Reads the bytes of rank 0's file; false when they are refused.
bool reads(const std::string& bytes) {
    Workload workload;
    workload.groups = {{"all ranks", {0, 1}}, {"1", {0, 1}}};
    NodeBinding binding(workload, 2, 1);
    binding.begin(0, "t.0.et");
    ListBuilder builder(binding);
    try {
        Records records(bytes, binding.file());
        std::string_view record;
        std::vector<RecordPlace> places;
        if (!records.next(record))
            return false;
        check_chakra_metadata(record);
        while (records.next(record))
            places.push_back({records.offset() - record.size(), record.size()});
        builder.build(bytes, places, {{"1", 1}});
        return true;
    } catch (const ImportError& error) {
        EXPECT_FALSE(error.sentence().empty());
    } catch (const std::runtime_error& error) {
        EXPECT_EQ(std::string(error.what()).substr(0, 16), "the first record");
    }
    return false;
}

// Whatever becomes of a file, it is read whole or refused in one sentence.
TEST(TraceReader, CutAndGarbledFilesAreReadOrRefused) {
    NodeText everything(4, "x", kCollective);
    everything.collective(kAllReduce, 4096, "1").after({0, 1}).after({2}, true, false);
    everything.attribute("num_ops", [](protozero::pbf_writer& w) { w.add_double(3, 1e12); });
    everything.attribute("involved_dim", [](protozero::pbf_writer& w) {
        std::string list;
        const std::vector<bool> dims = {true, false, true};
        protozero::pbf_writer(list).add_packed_bool(1, dims.begin(), dims.end());
        w.add_message(28, list);
    });
    const std::string whole =
        trace({kernel(0), NodeText(1, "tp", kCollective).after({0}).collective(kAllReduce, 4096, "1"),
               message(2, true, 1, 100).after({1}),
               NodeText(3, "pg", kMetadata).inputs(R"(["[{"pg_name": "3", "ranks": [0]}]"])"), everything})
            .bytes();
    ASSERT_TRUE(reads(whole));
    std::size_t read = 0;
    for (std::size_t length = 0; length <= whole.size(); ++length)
        read += reads(whole.substr(0, length)) ? 1 : 0;
    EXPECT_EQ(read, 6u) << "whole records: metadata, or that and one to five nodes";
    std::uint64_t random = 1;
    read = 0;
    constexpr int kTurns = 20000;
    for (int turn = 0; turn < kTurns; ++turn) {
        std::string bytes = whole;
        for (int change = 0; change <= turn % 3; ++change) {
            random = random * 6364136223846793005ull + 1442695040888963407ull;
            bytes[(random >> 33) % bytes.size()] = static_cast<char>(random >> 20);
        }
        read += reads(bytes) ? 1 : 0;
    }
    EXPECT_GT(read, kTurns / 20u);
    EXPECT_LT(read, kTurns * 3 / 4u);
}

TEST(NodeOrder, TakesTheLowestIdThatIsReady) {
    NodeList list;
    list.nodes.resize(4);
    list.parents = {0};  // node 1 after node 0
    list.nodes[1].parent_count = 1;
    const std::vector<std::uint32_t> resource = {1, 0, 0, 0};
    const std::vector<Picoseconds> duration = {15, 10, 10, 10};
    // Node 1 becomes ready at 15: node 2 runs before it, node 3 after it.
    EXPECT_EQ(issue_order(list, resource, 2, duration), (std::vector<std::uint32_t>{2, 0, 3, 1}));
    const std::vector<Picoseconds> sooner = {5, 10, 10, 10};
    EXPECT_EQ(issue_order(list, resource, 2, sooner), (std::vector<std::uint32_t>{2, 0, 1, 3}));
}

}  // namespace
}  // namespace fabricast::traces
