// End to end on traces of peers: exit codes, JSON, what is refused.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "binary.hpp"
#include "sim/report/text.hpp"

namespace fabricast::testing {
namespace {

using nlohmann::json;

std::string data(const std::string& name) {
    return "'" + std::string(FABRICAST_SOURCE_DIR "/tests/sim/traces/data/") + name + "'";
}
std::string job(const std::string& trace, const std::string& network, const std::string& system = "sys1d.json") {
    return "run --chakra " + data(trace + "/t") + " --network " + data(network) + " --system " + data(system);
}

TEST(TraceJob, TextAndJsonTellTheSame) {
    const Scratch scratch;
    const Ended text = fabricast(job("cpuop", "switch_8.yml"));
    ASSERT_EQ(text.code, 0) << text.err;
    std::istringstream lines(text.out);
    for (std::string line; std::getline(lines, line);)
        EXPECT_LE(report::width(line), 100u) << line;
    for (const char* part : {"Step time", "CPU operations", "all_reduce", "8 ranks", "Switch 8"})
        EXPECT_TRUE(contains(text.out, part)) << part;

    const Ended first = fabricast(job("cpuop", "switch_8.yml") + " --json --output '" + scratch.path("a.json") + "'");
    const Ended second = fabricast(job("cpuop", "switch_8.yml") + " --json --stats '" + scratch.path("s.json") + "'");
    EXPECT_EQ(first.out, second.out);
    EXPECT_EQ(first.out, read_text(scratch.path("a.json")));
    const json result = json::parse(first.out);
    EXPECT_EQ(result["schema_version"], 1);
    EXPECT_EQ(result["kind"], "trace");
    EXPECT_EQ(result["verdict"], "done");
    std::int64_t sum = 0;
    for (const json& row : result["step"]["waterfall"])
        sum += row["rank_ps"].get<std::int64_t>();
    EXPECT_EQ(sum, result["step"]["ps"].get<std::int64_t>() * 8);
    EXPECT_EQ(result["ranks"][0]["ranks"], "0-7");
    EXPECT_EQ(result["communication"][0]["calls"], 8);
    EXPECT_TRUE(json::parse(read_text(scratch.path("s.json"))).contains("wall_s"));
    EXPECT_FALSE(contains(first.out, FABRICAST_SOURCE_DIR)) << "no path of this machine";
}

TEST(TraceJob, ARankThatStaysAwayIsAFailedJob) {
    const Ended ended = fabricast(job("mism", "switch_8.yml"));
    EXPECT_EQ(ended.code, 3);
    EXPECT_TRUE(contains(ended.out, "deadlock"));
    EXPECT_TRUE(contains(ended.out, "rank 0 in ar waits in group all ranks (7 of 8 members arrived;")) << ended.out;
    const Ended as_json = fabricast(job("mism", "switch_8.yml") + " --json");
    EXPECT_EQ(as_json.code, 3);
    EXPECT_TRUE(contains(json::parse(as_json.out)["failure"].get<std::string>(), "missing rank 3"));
    EXPECT_TRUE(json::parse(as_json.out)["step"]["time_s"].is_null());
    EXPECT_TRUE(contains(as_json.err, "missing rank 3"));
}

TEST(TraceJob, BadFilesAreBadInput) {
    const auto refused = [](const std::string& arguments, const std::string& part) {
        const Ended ended = fabricast(arguments);
        EXPECT_EQ(ended.code, 2) << arguments;
        EXPECT_EQ(ended.out, "");
        EXPECT_TRUE(contains(ended.err, part)) << ended.err;
    };
    refused(job("cpuop", "bad.yml"), "key 'npu_count'");
    refused(job("cpuop", "switch_8.yml", "sysbad.json"), "sysbad.json:20: key 'nonsense-key' is unknown");
    refused(job("cpuop", "sw2d_64.yml", "sys2d.json"), "t.8.et: does not exist; the network has 64 ranks");
    refused(job("nothing", "switch_8.yml"), "t.0.et: does not exist");
    refused("run --chakra x", "traces need a network");
    refused("run --network x", "--network goes with --chakra or --simai");
    refused("run --chakra x --network y a.yaml", "a FILE belongs to scenarios");
    refused("run --chakra x --network y --seed 3", "--seed belongs to scenarios");
    refused("run --chakra x --simai y --network z", "exclude each other");
    refused("run --chakra '' --network z", "--chakra needs a name");
}

TEST(TraceJob, RunsAWorkloadText) {
    const Scratch scratch;
    std::ofstream(scratch.path("w.txt"))
        << "HYBRID_TRANSFORMER model_parallel_NPU_group: 8 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 8\n"
           "1\nlayer\t-1\t1000\tALLREDUCE\t1048576\t2000\tNONE\t0\t1000\tNONE\t0\t0\n";
    const Ended ended =
        fabricast("run --simai '" + scratch.path("w.txt") + "' --network " + data("switch_8.yml") + " --json");
    ASSERT_EQ(ended.code, 0) << ended.err;
    const json result = json::parse(ended.out);
    EXPECT_EQ(result["communication"][0]["ranks"], 8);
    EXPECT_GT(result["step"]["time_s"].get<double>(), 4e-6 + 2 * 7.0 / 8 / 1024 / 400);
}

}  // namespace
}  // namespace fabricast::testing
