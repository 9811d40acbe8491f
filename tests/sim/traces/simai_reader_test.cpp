// SimAI workload texts: what is read, what a row takes, what is refused by line.
#include "sim/traces/simai_reader.hpp"

#include <gtest/gtest.h>

#include "sim/traces/run_trace.hpp"
#include "tests/sim/traces/trace_writer.hpp"
#include "topologies/importers/import_error.hpp"

namespace fabricast::traces {
namespace {

using importers::ImportError;
using test::Folder;

constexpr const char* kHeader =
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 ep: 2 pp: 1 vpp: 8 ga: 1 all_gpus: 16 "
    "checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0";

std::string text_of(const std::string& header, const std::vector<std::string>& rows, int told = -1) {
    std::string text = header + "\n" + std::to_string(told < 0 ? static_cast<int>(rows.size()) : told) + "\n";
    for (std::size_t i = 0; i < rows.size(); ++i)
        text += rows[i] + (i + 1 < rows.size() ? "\n" : "");  // no newline at the end
    return text;
}

Workload read(const std::string& text, std::uint32_t ranks = 16) {
    const Folder folder;
    return read_simai(folder.write("w.txt", text), ranks);
}

std::string refusal(const std::string& text, std::uint32_t ranks = 16) {
    try {
        read(text, ranks);
    } catch (const ImportError& error) {
        return (error.line() > 0 ? std::to_string(error.line()) + ": " : "") + error.sentence();
    }
    return "";
}

std::vector<std::string> names(const Workload& workload) {
    std::vector<std::string> out;
    for (const TraceNode& node : workload.lists[0].nodes)
        out.push_back(workload.names[node.name] + (node.kind == NodeKind::collective ? " *" : ""));
    return out;
}

TEST(SimaiReader, RowsRunForwardThenBackward) {
    const Workload workload =
        read(text_of(kHeader, {"a\t-1\t10\tALLGATHER\t4096\t20\tREDUCESCATTER\t4096\t30\tALLREDUCE\t800\t100",
                               "b -1 11 NONE 0 0 NONE 0 31 NONE 0 100"}));
    EXPECT_EQ(names(workload), (std::vector<std::string>{"a forward", "a forward *", "b forward", "b weight gradient",
                                                         "a input gradient", "a input gradient *", "a weight gradient",
                                                         "a weight gradient *", "a update"}));
    const std::vector<TraceNode>& nodes = workload.lists[0].nodes;
    EXPECT_EQ(nodes[0].duration, 10'000) << "10 ns";
    EXPECT_EQ(nodes[1].bytes, 1024) << "an all-gather's size is its whole output";
    EXPECT_EQ(nodes[5].bytes, 4096);
    EXPECT_EQ(workload.lists.size(), 1u);
}

TEST(SimaiReader, GroupsAreWhereTheRanksAre) {
    const Workload workload = read(text_of(kHeader, {"a -1 1 ALLREDUCE 64 1 ALLTOALL_EP 64 1 ALLREDUCE 64 1",
                                                     "b -1 1 NONE 0 1 NONE 0 1 ALLGATHER_DP_EP 64 1"}));
    const auto members = [&](std::uint32_t rank, std::size_t slot) {
        return workload.groups[workload.ranks[rank].groups[slot].group].members;
    };
    using Members = std::vector<std::uint32_t>;
    EXPECT_EQ(members(6, 0), (Members{4, 5, 6, 7})) << "tp";
    EXPECT_EQ(members(6, 1), (Members{2, 6, 10, 14})) << "dp";
    EXPECT_EQ(members(6, 2), (Members{2, 6})) << "ep";
    EXPECT_EQ(members(6, 3), (Members{6, 14})) << "dp of experts";
}

TEST(SimaiReader, CheckpointsRepeatForward) {
    const std::string header =
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 checkpoints: 1 0 checkpoint_initiates: 1 1";
    EXPECT_EQ(names(read(text_of(header, {"a -1 1 NONE 0 2 NONE 0 0 NONE 0 0", "b -1 1 NONE 0 2 NONE 0 0 NONE 0 0",
                                          "c -1 1 NONE 0 2 NONE 0 0 NONE 0 0"}))),
              (std::vector<std::string>{"a forward", "b forward", "c forward", "c input gradient", "a forward again",
                                        "b forward again", "b input gradient", "a input gradient"}));
}

TEST(SimaiReader, ToleratesWhatIsInCirculation) {
    // The colon of pp_comm is missing, its number is no whole one, the number of rows is wrong.
    std::string header = kHeader;
    header.replace(header.find("pp_comm: 0"), 10, "pp_comm 50331648.0");
    header.replace(header.find("pp: 1"), 5, "pp: 2");
    const Workload workload = read(text_of(header, {"a -1 1 BROADCAST 64 1 ALLREDUCEALLTOALL 64 1 NONE 0 1"}, 7));
    ASSERT_EQ(workload.notes.size(), 3u);
    EXPECT_EQ(workload.notes[0], "BROADCAST rows move nothing, as in SimAI");
    EXPECT_EQ(workload.notes[1], "line 2 tells 7 rows, the file has 1: those count");
    EXPECT_EQ(
        workload.notes[2],
        "pp 2: every rank does the rows of one stage; the pipeline's bubble and its messages of 50331648 bytes are "
        "not simulated");
    EXPECT_EQ(workload.lists[0].nodes[2].collective, CollectiveKind::all_reduce);
}

TEST(SimaiReader, RefusesByLine) {
    const std::string row = "a -1 1 NONE 0 1 NONE 0 1 NONE 0 1";
    EXPECT_EQ(refusal("x"), "1: a policy, a number of rows and rows are expected");
    EXPECT_EQ(
        refusal(text_of("HYBRID_DLRM", {row})),
        "1: policy 'HYBRID_DLRM': DATA, MODEL, HYBRID_TRANSFORMER, HYBRID_TRANSFORMER_FWD_IN_BCKWD are simulated");
    EXPECT_EQ(refusal(text_of("DATA al_gpus: 16", {row})), "1: key 'al_gpus' is unknown (did you mean all_gpus?)");
    EXPECT_EQ(refusal(text_of("DATA all_gpus: 8", {row})), "1: all_gpus 8, the network has 16 ranks");
    EXPECT_EQ(refusal(text_of("DATA all_gpus:", {row})), "1: all_gpus has no value");
    EXPECT_EQ(refusal(text_of("MODEL model_parallel_NPU_group: 3", {row})), "1: tp 3 x pp 1 does not divide 16 ranks");
    EXPECT_EQ(refusal(text_of(kHeader, {row, "a -1 1 NONE 0 1 NONE 0 1 NONE 0"})), "4: 11 columns, 12 are expected");
    EXPECT_EQ(refusal(text_of(kHeader, {"a -1 1 ALLREDUSE 8 1 NONE 0 1 NONE 0 1"})).substr(0, 37),
              "3: collective 'ALLREDUSE' is unknown;");
    EXPECT_EQ(refusal(text_of(kHeader, {"a -1 -1 NONE 0 1 NONE 0 1 NONE 0 1"})),
              "3: compute ns '-1': a number from 0 to 1000000000000000 is expected");
    EXPECT_EQ(refusal(text_of("DATA checkpoints: 1 5", {row})), "1: checkpoint at row 5, there are 1");
}

TEST(SimaiReader, RunsOnAGrid) {
    const Folder folder;
    TraceArguments arguments;
    arguments.simai = folder.write(
        "w.txt",
        text_of(kHeader, {"a -1 1000000 ALLREDUCE 67108864 2000000 ALLREDUCE 67108864 1000000 ALLREDUCE 134217728 0",
                          "b -1 1000000 ALLREDUCE 67108864 2000000 ALLREDUCE 67108864 1000000 NONE 0 0"}));
    arguments.network = folder.write("n.yml", test::network_text("Switch, Switch", "4, 4", "400, 50", "0, 0"));
    arguments.system = folder.write("s.json", R"({"preferred-dataset-splits": 1, "endpoint-delay": 0})");
    const TraceResult result = run_trace(arguments);
    ASSERT_EQ(result.failure, "");
    // 8 ms of kernels, four all-reduces of 64 MiB over four ranks at 400 GiB/s; the weight gradients' at 50 GiB/s come last.
    EXPECT_NEAR(seconds(result.step), 8e-3 + 4 * 1.5 / 16 / 400 + 1.5 / 8 / 50, 1e-9);
    EXPECT_EQ(result.templates, 1u);
}

}  // namespace
}  // namespace fabricast::traces
