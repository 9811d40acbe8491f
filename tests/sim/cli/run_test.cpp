// End to end on scenarios/quickstart.yaml, one 8-GPU node.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "binary.hpp"
#include "sim/report/text.hpp"

namespace fabricast::testing {
namespace {

using nlohmann::json;

std::string quickstart() { return "'" + scenario_path("quickstart.yaml") + "'"; }

TEST(Run, FirstScreenFitsATerminal) {
    const Ended ended = fabricast("run " + quickstart());
    ASSERT_EQ(ended.code, 0) << ended.err;
    std::istringstream lines(ended.out);
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count)
        EXPECT_LE(report::width(line), 100u) << line;
    EXPECT_LE(count, 25u);
    for (const char* part : {"MFU", "Step time", "Tokens/s", "Memory", "assumption"})
        EXPECT_TRUE(contains(ended.out, part)) << part;
    EXPECT_FALSE(contains(ended.out, "\x1b"));  // a pipe is no terminal
    EXPECT_TRUE(contains(ended.err, "events"));
}

TEST(Run, QuietSaysNothingOnStderr) {
    const Ended ended = fabricast("run --quiet " + quickstart());
    EXPECT_EQ(ended.code, 0);
    EXPECT_EQ(ended.err, "");
    EXPECT_NE(ended.out, "");
}

TEST(Run, JsonIsTheSameOnStdoutAndInTheFileEveryTime) {
    const Scratch scratch;
    const Ended first = fabricast("run --json --output '" + scratch.path("a.json") + "' " + quickstart());
    const Ended second = fabricast("run --json --stats '" + scratch.path("stats.json") + "' " + quickstart());
    ASSERT_EQ(first.code, 0) << first.err;
    EXPECT_EQ(first.out, second.out);
    EXPECT_EQ(first.out, read_text(scratch.path("a.json")));

    const json result = json::parse(first.out);
    std::int64_t sum = 0;
    for (const json& row : result["step"]["waterfall"])
        sum += row["rank_ps"].get<std::int64_t>();
    EXPECT_EQ(sum, result["step"]["ps"].get<std::int64_t>() * result["engine"]["ranks"].get<std::int64_t>());
    EXPECT_GT(result["step"]["mfu"].get<double>(), 0.1);
    EXPECT_LT(result["step"]["mfu"].get<double>(), 1.0);

    const json stats = json::parse(read_text(scratch.path("stats.json")));
    for (const char* key : {"wall_s", "peak_rss_bytes", "events", "ns_per_event"})
        EXPECT_TRUE(stats.contains(key)) << key;
}

TEST(Run, QuantumIsToldWithItsBound) {
    const Ended exact = fabricast("run --json --quiet " + quickstart());
    const Ended zero = fabricast("run --json --quiet --quantum 0s " + quickstart());
    const Ended batched = fabricast("run --json --quiet --quantum 1us " + quickstart());
    ASSERT_EQ(batched.code, 0) << batched.err;
    EXPECT_EQ(exact.out, zero.out);
    const json before = json::parse(exact.out), after = json::parse(batched.out);
    EXPECT_FALSE(before["engine"].contains("quantum"));
    const json& quantum = after["engine"]["quantum"];
    EXPECT_EQ(quantum["ps"], 1'000'000);
    EXPECT_LE(quantum["longest_wait_ps"].get<std::int64_t>(), 1'000'000);
    const std::int64_t over = after["step"]["ps"].get<std::int64_t>() - before["step"]["ps"].get<std::int64_t>();
    EXPECT_LE(over, quantum["step_too_long_by_at_most_ps"].get<std::int64_t>());
    const Ended text = fabricast("run --full --quiet --quantum 1us " + quickstart());
    EXPECT_TRUE(contains(text.out, "an exact step is at most"));
    EXPECT_EQ(fabricast("run --quantum 1furlong " + quickstart()).code, 2);
}

TEST(Run, SetAndSeedReachTheScenario) {
    const Ended ended = fabricast("run --json --quiet --seed 7 --set name=changed " + quickstart());
    ASSERT_EQ(ended.code, 0) << ended.err;
    const json result = json::parse(ended.out);
    EXPECT_EQ(result["scenario"]["name"], "changed");
    EXPECT_EQ(result["scenario"]["seed"], 7);
}

TEST(Run, SeveralFilesGiveAnArray) {
    const Ended ended = fabricast("run --json --quiet " + quickstart() + " " + quickstart());
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(json::parse(ended.out).size(), 2u);
}

TEST(Run, FailedExpectationIsExitOne) {
    const Ended ended = fabricast("run --set 'expect.mfu=[0.98,0.99]' " + quickstart());
    EXPECT_EQ(ended.code, 1) << ended.err;
    EXPECT_TRUE(contains(ended.out, "is below [0.98, 0.99]")) << ended.out;
    const Ended as_json = fabricast("run --json --set 'expect.mfu=[0.98,0.99]' " + quickstart());
    EXPECT_EQ(as_json.code, 1);
    EXPECT_TRUE(json::accept(as_json.out));
    EXPECT_TRUE(contains(as_json.err, "is below")) << as_json.err;
}

TEST(Run, OutOfMemoryIsExitThreeAndStillWritesTheResult) {
    const Scratch scratch;
    const Ended ended = fabricast("run --set 'cluster.node.gpu_memory=4 GiB' --output '" + scratch.path("r.json") +
                                  "' " + quickstart());
    EXPECT_EQ(ended.code, 3) << ended.err << ended.out;
    EXPECT_TRUE(contains(ended.out, "out of memory")) << ended.out;
    EXPECT_EQ(json::parse(read_text(scratch.path("r.json")))["verdict"], "out of memory");
}

TEST(Run, FullTextAndTextFileHoldTheTables) {
    const Scratch scratch;
    const Ended ended = fabricast("run --full --output '" + scratch.path("r.txt") + "' " + quickstart());
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_TRUE(contains(ended.out, "gemm_loss"));
    EXPECT_TRUE(contains(read_text(scratch.path("r.txt")), "gemm_loss"));
}

TEST(Run, FaultsAddTheCampaign) {
    const std::string faults = "--set faults=default --set run.replicas=20 --set run.days='30 d' ";
    const Ended ended = fabricast("run " + faults + quickstart());
    ASSERT_EQ(ended.code, 0) << ended.err;
    std::istringstream lines(ended.out);
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count)
        EXPECT_LE(report::width(line), 100u) << line;
    EXPECT_LE(count, 60u);
    for (const char* part : {"20 lives, 1 + 0 nodes", "P90", "ETTR", "steps that were kept", "Checkpoints: sync"})
        EXPECT_TRUE(contains(ended.out, part)) << part;
    const Ended as_json = fabricast("run --json --quiet " + faults + quickstart());
    EXPECT_EQ(as_json.out, fabricast("run --json --quiet " + faults + quickstart()).out);
    const json campaign = json::parse(as_json.out)["campaign"];
    EXPECT_GT(campaign["ettr"]["p50"].get<double>(), 0.9);
    std::int64_t sum = 0;
    for (const json& row : campaign["wall"])
        sum += row["shown_ns"].get<std::int64_t>();
    EXPECT_NEAR(static_cast<double>(sum) / 1e9, campaign["shown"]["wall_s"].get<double>(), 1e-3);
    EXPECT_TRUE(json::parse(fabricast("run --json --quiet " + quickstart()).out)["campaign"].is_null());
    const Ended failed = fabricast("run " + faults + "--set 'expect.ettr=[0.1,0.2]' " + quickstart());
    EXPECT_EQ(failed.code, 1);
    EXPECT_TRUE(contains(failed.out, "ettr")) << failed.out;
}

TEST(RunInput, MissingFileIsExitTwo) {
    const Ended ended = fabricast("run no-such-file.yaml");
    EXPECT_EQ(ended.code, 2);
    EXPECT_EQ(ended.out, "");
    EXPECT_TRUE(contains(ended.err, "no-such-file.yaml")) << ended.err;
    EXPECT_FALSE(contains(ended.err, "bug"));
}

TEST(RunInput, BadOptionsAreExitTwoWithOneSentence) {
    const auto says = [](const std::string& arguments, std::string_view part) {
        const Ended ended = fabricast("run " + arguments);
        EXPECT_EQ(ended.code, 2) << arguments;
        EXPECT_EQ(ended.out, "") << arguments;
        EXPECT_TRUE(contains(ended.err, part)) << arguments << "\n" << ended.err;
    };
    says("", "no scenario file");
    says(quickstart() + " --output result.xml", ".json, .txt, .html, .md, .csv and .prom");
    says(quickstart() + " --output .json", ".json, .txt, .html, .md, .csv and .prom");
    says(quickstart() + " --output no-such-folder/r.json", "does not exist");
    says(quickstart() + " --stats no-such-folder/s.json", "does not exist");
    says(quickstart() + " --seed -1", "whole number");
    says(quickstart() + " --seed 1.5", "whole number");
    says(quickstart() + " --json --full", "exclude");
    says(quickstart() + " " + quickstart() + " --output r.json", "takes one scenario");
    says(quickstart() + " --output a.json --stats a.json", "same file");
    says(quickstart() + " --set", "--set");
    says(quickstart() + " --set nonsense", "nonsense");
    says(quickstart() + " --set training.layuot.tp=2", "layout");
}

TEST(RunInput, BadInputLeavesNoFile) {
    const Scratch scratch;
    const Ended ended = fabricast("run --set nonsense=1 --output '" + scratch.path("r.json") + "' " + quickstart());
    EXPECT_EQ(ended.code, 2);
    EXPECT_EQ(scratch.files(), 0u);
}

TEST(RunInput, WriteFailureIsTold) {
    const Ended ended = fabricast("run --quiet --output /proc/r.json " + quickstart());
    EXPECT_EQ(ended.code, 2);
    EXPECT_TRUE(contains(ended.err, "cannot write /proc/r.json")) << ended.err;
}

}  // namespace
}  // namespace fabricast::testing
