// explain and compare end to end.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "binary.hpp"

namespace fabricast::testing {
namespace {

using nlohmann::json;

std::string scenario(const std::string& name) { return "'" + scenario_path(name) + "'"; }

TEST(ExplainVerb, JsonSumsAndEveryCeilingIsBelowTheRun) {
    const Ended ended = fabricast("explain --json --quiet " + scenario("quickstart.yaml"));
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(ended.err, "");
    const json result = json::parse(ended.out);
    const auto ps = result["step"]["ps"].get<std::int64_t>();
    std::int64_t sum = 0;
    for (const json& row : result["explain"]["causes"])
        sum += row["rank_ps"].get<std::int64_t>();
    EXPECT_EQ(sum, ps * result["engine"]["ranks"].get<std::int64_t>());
    for (const json& row : result["explain"]["ceilings"]) {
        EXPECT_LE(row["ps"].get<std::int64_t>(), ps) << row["ceiling"];
        EXPECT_LE(row["rerun_ps"].get<std::int64_t>(), ps) << row["ceiling"];
    }
    EXPECT_EQ(fabricast("explain --json --quiet " + scenario("quickstart.yaml")).out, ended.out);
}

TEST(ExplainVerb, TextOutputAndExitCodes) {
    const Scratch scratch;
    const Ended ended = fabricast("explain --output '" + scratch.path("e.txt") + "' " + scenario("quickstart.yaml"));
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_TRUE(contains(ended.out, "perfect overlap"));
    EXPECT_EQ(read_text(scratch.path("e.txt")), ended.out);
    EXPECT_EQ(fabricast("explain --set 'expect.mfu=[0.98,0.99]' " + scenario("quickstart.yaml")).code, 1);
    EXPECT_EQ(fabricast("explain --set 'cluster.node.gpu_memory=4 GiB' " + scenario("quickstart.yaml")).code, 3);
    const Ended two = fabricast("explain " + scenario("quickstart.yaml") + " " + scenario("quickstart.yaml"));
    EXPECT_EQ(two.code, 2);
    EXPECT_TRUE(contains(two.err, "compare"));
    EXPECT_EQ(fabricast("explain").code, 2);
}

TEST(ExplainVerb, TheNetworkAStepNeeds) {
    const std::string a7 = scenario("acceptance/a7-gpt-80b-zero3.yaml");
    const Ended ended = fabricast("explain --network --json --quiet " + a7);
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(ended.err, "");
    EXPECT_EQ(fabricast("explain --network --json --quiet " + a7).out, ended.out);
    const json network = json::parse(ended.out)["network"];
    EXPECT_EQ(network["has_bits_per_s_per_node"], 340e9);
    EXPECT_TRUE(contains(network["verdict"][0].get<std::string>(), "has 340 Gb/s")) << network["verdict"];
    double sent = 0;
    for (const json& row : network["sent"])
        sent += row["network_bytes_per_gpu"].get<double>();
    int own = 0;
    for (const json& row : network["curve"]) {
        EXPECT_GT(row["needs_bits_per_s_per_node"], row["short_bits_per_s_per_node"]);
        EXPECT_NEAR(row["needs_bits_per_s_per_gpu"].get<double>() * 8 / row["needs_bits_per_s_per_node"].get<double>(),
                    1, 1e-12);
        if (row["own"]) {
            ++own;
            EXPECT_NEAR(sent / row["network_bytes_per_gpu"].get<double>(), 1, 1e-9);
        }
    }
    EXPECT_EQ(own, 1);

    const Scratch scratch;
    const Ended text = fabricast("explain --network --output '" + scratch.path("n.txt") + "' " + a7);
    EXPECT_EQ(text.code, 0) << text.err;
    EXPECT_EQ(read_text(scratch.path("n.txt")), text.out);
    for (const char* part : {"has 340 Gb/s", "step waits for the network", "parameter gathering", "\xE2\x86\x90 yours",
                             "what there is", "at most 5 % above"})
        EXPECT_TRUE(contains(text.out, part)) << part << "\n" << text.out;
    EXPECT_TRUE(
        contains(fabricast("explain --network --measured tflops_per_gpu=90 --quiet " + a7).out, "tflops_per_gpu 90"));

    const Ended one = fabricast("explain --network " + scenario("quickstart.yaml"));
    EXPECT_EQ(one.code, 2);
    EXPECT_TRUE(contains(one.err, "one node")) << one.err;
    const Ended both = fabricast("explain --network --observed train.log " + a7);
    EXPECT_EQ(both.code, 2);
    EXPECT_TRUE(contains(both.err, "leave one out")) << both.err;
    EXPECT_EQ(fabricast("explain --network --quiet --set 'cluster.node.gpu_memory=12 GiB' " + a7).code, 3);
}

TEST(MeasuredOption, AboveThePeakIsExitTwoAndSuspiciousIsAWarning) {
    const std::string a9 = scenario("acceptance/a9-llama-7b-a800.yaml");
    for (const std::string& verb : {std::string("run "), std::string("explain "), "compare " + a9 + " "}) {
        const Ended refused = fabricast(verb + a9 + " --measured tokens_per_s_per_gpu=8707.8");
        EXPECT_EQ(refused.code, 2) << verb;
        EXPECT_EQ(refused.out, "") << verb;
        EXPECT_TRUE(contains(refused.err, "peak") && contains(refused.err, "MFU of 128.6 %")) << refused.err;
    }
    const Ended warned =
        fabricast("run " + scenario("acceptance/a9-llama-7b-a800-tp4.yaml") + " --measured step_s=5.2");
    EXPECT_EQ(warned.code, 0);
    EXPECT_TRUE(contains(warned.err, "warning: --measured step_s=5.2")) << warned.err;
    EXPECT_TRUE(contains(warned.out, "Measured")) << warned.out;
    const Ended as_json =
        fabricast("run --json --quiet " + scenario("quickstart.yaml") + " --measured tokens_per_s_per_gpu=7000");
    ASSERT_EQ(as_json.code, 0) << as_json.err;
    const json measured = json::parse(as_json.out)["measured"][0];
    EXPECT_NEAR(measured["forecast_over_measured"].get<double>(), 1, 0.1);
    EXPECT_EQ(measured["suspicious"], false);
    EXPECT_EQ(fabricast("run --measured mfu=many " + scenario("quickstart.yaml")).code, 2);
    EXPECT_EQ(
        fabricast("run --measured mfu=0.3 " + scenario("quickstart.yaml") + " " + scenario("quickstart.yaml")).code, 2);
}

TEST(CompareVerb, SaysWhatDiffersAndSums) {
    const Ended ended = fabricast("compare --json --quiet " + scenario("acceptance/a10-gpt-13b-bf16.yaml") + " " +
                                  scenario("acceptance/a10-gpt-13b-fp8.yaml"));
    ASSERT_EQ(ended.code, 0) << ended.err;
    const json result = json::parse(ended.out);
    ASSERT_EQ(result["keys"].size(), 1u);
    EXPECT_EQ(result["keys"][0]["key"], "training.precision");
    double sum = 0;
    for (const json& row : result["accounts"])
        sum += row["difference_s"].get<double>();
    EXPECT_NEAR(sum, result["step_difference_ps"].get<double>() / 1e12, 1e-9);
}

TEST(CompareVerb, OneFileWithOneKeyChanged) {
    const Ended ended =
        fabricast("compare " + scenario("quickstart.yaml") + " --set-b 'training.global_batch=128 sequences'");
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_TRUE(contains(ended.out, "compare by tokens, not by iteration time")) << ended.out;
    EXPECT_TRUE(contains(ended.out, "training.global_batch")) << ended.out;
    EXPECT_EQ(fabricast("compare " + scenario("quickstart.yaml")).code, 2);
    EXPECT_EQ(fabricast("compare " + scenario("quickstart.yaml") + " --set-b 'cluster.node.gpu_memory=4 GiB'").code, 3);
    EXPECT_EQ(fabricast("compare " + scenario("quickstart.yaml") + " --set-b nonsense=1").code, 2);
    const Ended measured = fabricast("compare " + scenario("quickstart.yaml") +
                                     " --set-b training.recompute=none --measured mfu=0.35 --measured b:mfu=0.36");
    EXPECT_EQ(measured.code, 0) << measured.err;
    EXPECT_TRUE(contains(measured.out, "Measured A") && contains(measured.out, "Measured B")) << measured.out;
}

}  // namespace
}  // namespace fabricast::testing
