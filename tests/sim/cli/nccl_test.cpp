// fabricast nccl: sizes, table, choices, errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "binary.hpp"
#include "sim/cli/nccl_sizes.hpp"

namespace fabricast::testing {
namespace {

TEST(NcclSizes, SyntaxOfTheTestPrograms) {
    using cli::parse_size;
    EXPECT_EQ(parse_size("8"), 8);
    EXPECT_EQ(parse_size("4K"), 4096);
    EXPECT_EQ(parse_size("4k"), 4096);
    EXPECT_EQ(parse_size("1.5M"), 3 << 19);
    EXPECT_EQ(parse_size("8G"), Bytes{8} << 30);
    EXPECT_EQ(parse_size("2GiB"), Bytes{2} << 30);
    for (const char* bad : {"", "x", "8T", "-1", "8GB", "1K2", "1e300", "nan"})
        EXPECT_FALSE(parse_size(bad).has_value()) << bad;
}

// Rows of public logs: 20 and 80 ranks, type double.
TEST(NcclSizes, RoundedAsTheTestProgramsDo) {
    const cli::TestedSize twenty = cli::tested_size(Collective::all_gather, 33554432, 8, 20);
    EXPECT_EQ(twenty.bytes, 33554240);
    EXPECT_EQ(twenty.count, 209714);
    const cli::TestedSize eighty = cli::tested_size(Collective::all_to_all, 33554432, 8, 80);
    EXPECT_EQ(eighty.bytes, 33553920);
    EXPECT_EQ(eighty.count, 52428);
    EXPECT_EQ(cli::tested_size(Collective::all_reduce, 33554432, 8, 20).bytes, 33554432);
    EXPECT_EQ(cli::tested_size(Collective::reduce_scatter, 8, 4, 16).bytes, 0);
    EXPECT_EQ(cli::tested_size(Collective::send_recv, 9, 4, 16).bytes, 8);
}

TEST(Nccl, TableOnAPreset) {
    const Ended ended = fabricast("nccl --cluster hgx-h100 -b 1M -e 1G -f 32");
    EXPECT_EQ(ended.code, 0) << ended.err;
    for (const char* part :
         {"all_reduce of 8 ranks", "busbw", "1048576", "33554432", "1073741824", "NVLS", "Ring", "limited by"})
        EXPECT_TRUE(contains(ended.out, part)) << part;
}

TEST(Nccl, ChunkStepsStandBesideTheFluidTime) {
    const Ended ring = fabricast("nccl --cluster hgx-h100 --algo Ring -b 64M -e 64M --chunk-steps --json");
    ASSERT_EQ(ring.code, 0) << ring.err;
    const nlohmann::json row = nlohmann::json::parse(ring.out)["rows"][0];
    EXPECT_NEAR(row["steps_time_s"].get<double>() / row["time_s"].get<double>(), 1, 0.01);
    const Ended table =
        fabricast("nccl --cluster hgx-h100 --nodes 2 --algo Ring -b 1M -e 64M --chunk-steps --no-color");
    EXPECT_NE(table.out.find("bound 5 %"), std::string::npos) << table.out;
    const Ended nvls = fabricast("nccl --cluster hgx-h100 -b 64M -e 64M --chunk-steps --json");
    EXPECT_TRUE(nlohmann::json::parse(nvls.out)["rows"][0]["steps_time_s"].is_null()) << "NVLS is not taken apart";
}

TEST(Nccl, JsonAndCsvSayTheSame) {
    const std::string arguments = "nccl --cluster hgx-h100 --nodes 2 --op alltoall_perf -b 1G -e 1G ";
    const Ended json = fabricast(arguments + "--json"), csv = fabricast(arguments + "--csv");
    ASSERT_EQ(json.code, 0) << json.err;
    ASSERT_EQ(csv.code, 0) << csv.err;
    const auto row = nlohmann::json::parse(json.out)["rows"][0];
    EXPECT_EQ(row["algorithm"], "P2P");
    EXPECT_EQ(row["redop"], "none");
    // half of a rank's bytes cross its NIC; public log of 2x8 H100: 92 GB/s
    EXPECT_NEAR(row["busbw_bytes_per_s"].get<double>() / 1e9, 92, .1 * 92);
    EXPECT_TRUE(contains(row["limit"].get<std::string>(), "nic"));
    EXPECT_TRUE(contains(csv.out, "size_bytes,count,type"));
    EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 2);
    EXPECT_EQ(json.out, fabricast(arguments + "--json").out);
}

TEST(Nccl, EveryCollectiveOfEveryShape) {
    for (const char* op : {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all",
                           "send_recv", "gather", "scatter", "barrier"}) {
        for (const char* shape : {"", "--ranks 1", "--nodes 3", "--nodes 3 --ranks-per-node 2", "--nodes 3 --ranks 13",
                                  "--nodes 2 --ranks-per-node 1 --no-pxn"}) {
            const Ended ended =
                fabricast(std::string("nccl --cluster hgx-h100 -b 64K -e 64M -f 32 --csv --op ") + op + " " + shape);
            EXPECT_EQ(ended.code, 0) << op << ' ' << shape << ended.err;
        }
    }
}

TEST(Nccl, ForcedChoices) {
    EXPECT_TRUE(contains(fabricast("nccl --cluster hgx-h100 --algo ring --proto ll -b 1G -e 1G").out, "Ring       LL"));
    const Ended sharp = fabricast("nccl --cluster hgx-h100 --nodes 4 --collnet --algo CollNetChain -b 1G -e 1G");
    EXPECT_EQ(sharp.code, 0) << sharp.err;
    EXPECT_TRUE(contains(sharp.out, "CollNetChain"));
    EXPECT_TRUE(
        contains(fabricast("nccl --cluster hgx-h100 --nodes 4 --hierarchical -b 1G -e 1G").out, "hierarchical"));
    EXPECT_EQ(fabricast("nccl --cluster hgx-h100 --nodes 4 --op all_to_all --imbalance 2 -b 1G -e 1G").code, 0);
}

TEST(Nccl, ScenarioFilesWork) {
    const Ended ended = fabricast("nccl --cluster '" + scenario_path("quickstart.yaml") + "' -b 1M -e 1M --json");
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(nlohmann::json::parse(ended.out)["ranks"], 8);
}

TEST(Nccl, BadInputIsTold) {
    const std::pair<const char*, const char*> kCases[] = {
        {"", "no cluster given"},
        {"--cluster hgx-h100 --op all_redcue", "unknown collective `all_redcue`; did you mean `all_reduce`?"},
        {"--cluster hgx-h100 -b 8T", "`8T` is not a size"},
        {"--cluster hgx-h100 -b 1G -e 1M", "is above"},
        {"--cluster hgx-h100 -f 1", "must be above 1"},
        {"--cluster hgx-h100 --algo Rnig", "did you mean `Ring`?"},
        {"--cluster hgx-h100 --datatype floaty", "is not known"},
        {"--cluster hgx-h100 --ranks 9", "have 8"},
        {"--cluster hgx-h100 --ranks-per-node 9", "a node has 8 GPUs"},
        {"--cluster hgx-h100 --algo Tree --op all_gather", "cannot run with the algorithms and protocols allowed"},
        {"--cluster hgx-h100 --algo CollNetChain", "no algorithm"},
        {"--cluster hgx-h100 --json --csv", "exclude each other"},
        {"--cluster no-such.yaml", "no-such.yaml"},
        {"--cluster hgx-h100 --hierarchical --op broadcast", "no hierarchical form"},
        {"--cluster hgx-h100 --op all_to_all --imbalance 0.5", "imbalance"},
    };
    for (const auto& [arguments, sentence] : kCases) {
        const Ended ended = fabricast(std::string("nccl ") + arguments);
        EXPECT_EQ(ended.code, 2) << arguments;
        EXPECT_EQ(ended.out, "") << arguments;
        EXPECT_TRUE(contains(ended.err, sentence)) << arguments << ": " << ended.err;
    }
}

// FP8 moves a quarter of the bytes (exchange of shards, gather of sums) and pays for encoding; what keeps FP32 is as
// before.
TEST(Nccl, CompressedGradients) {
    const std::string slow =
        "nccl --cluster hgx-a100-80g --nodes 8 --ranks-per-node 1 -b 1G -e 1G --json --set cluster.fabric.nic=50Gb/s ";
    const auto row = [&](const std::string& more) {
        const Ended ended = fabricast(slow + more);
        EXPECT_EQ(ended.code, 0) << ended.err;
        return nlohmann::json::parse(ended.out)["rows"][0];
    };
    const auto fp8 = row("--compression fp8");
    EXPECT_NEAR(fp8["compressed"]["wire_bytes"].get<double>() / fp8["size_bytes"].get<double>(), 0.25, 0.002);
    EXPECT_GT(fp8["compressed"]["encode_s"].get<double>(), 0);
    EXPECT_LT(fp8["compressed"]["time_s"].get<double>(), fp8["time_s"].get<double>());
    EXPECT_GT(fp8["compressed"]["time_s"].get<double>(), fp8["time_s"].get<double>() / 4);
    for (const char* kept : {"--compression fp8 --tensor embedding", "--compression 1-bit-adam --warm-up"}) {
        const auto same = row(kept);
        EXPECT_EQ(same["compressed"]["wire_bytes"], same["size_bytes"]) << kept;
        EXPECT_EQ(same["compressed"]["time_s"], same["time_s"]) << kept;
    }
    const Ended wrong = fabricast("nccl --cluster hgx-h100 --compression fp9");
    EXPECT_EQ(wrong.code, 2);
    EXPECT_TRUE(contains(wrong.err, "did you mean `fp8`") || contains(wrong.err, "known are")) << wrong.err;
    EXPECT_EQ(fabricast("nccl --cluster hgx-h100 --op all_gather --compression fp8").code, 2);
}

}  // namespace
}  // namespace fabricast::testing
