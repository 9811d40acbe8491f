// plan end to end, on a machine of eight GPUs.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "binary.hpp"
#include "sim/cli/progress_bar.hpp"

namespace fabricast::testing {
namespace {

using nlohmann::json;

std::string plan(const std::string& options) {
    return "plan '" + scenario_path("acceptance/a6-llama-13b-tp4.yaml") + "' --jobs 1 --quiet " +
           "--set 'plan={tp: [2, 4], pp: [1, 2], vpp: 1, zero: 1, recompute: none}' " + options;
}

TEST(PlanVerb, JsonNamesTheKeysThatRunTakes) {
    const Ended ended =
        fabricast(plan("--json --tokens 1T --price a100=1.50 --what-if 'cluster.node.gpu.hbm -> 1.5 TB/s'"));
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(ended.err, "");
    const json result = json::parse(ended.out);
    ASSERT_GE(result["ranking"].size(), 2u);
    const json& first = result["ranking"][0];
    EXPECT_GT(first["cost"].get<double>(), 0);
    EXPECT_GT(result["what_ifs"][0]["ranking"][0]["step_change"].get<double>(), 0);
    std::string run = "run '" + scenario_path("acceptance/a6-llama-13b-tp4.yaml") + "' --json --quiet";
    for (const json& key : first["set"])
        run += " --set '" + key.get<std::string>() + "'";
    const Ended same = fabricast(run);
    EXPECT_EQ(json::parse(same.out)["step"]["ps"], first["step_ps"]) << same.err;
}

TEST(PlanVerb, ExportsTheWinnerForImportersToRead) {
    const Scratch scratch;
    const json first = json::parse(fabricast(plan("--json")).out)["ranking"][0];
    const Ended script = fabricast(plan("--export megatron"));
    ASSERT_EQ(script.code, 0) << script.err;
    std::ofstream(scratch.path("launch.sh")) << script.out;
    const Ended read =
        fabricast("import megatron '" + scratch.path("launch.sh") + "' --output '" + scratch.path("back.yaml") + "'");
    ASSERT_EQ(read.code, 0) << read.err;
    const Ended run = fabricast("run '" + scratch.path("back.yaml") +
                                "' --json --quiet --set 'cluster={nodes: 1, node: hgx-a100-80g}'");
    ASSERT_EQ(run.code, 0) << run.err;
    for (const json& key : first["set"]) {
        const std::string text = key.get<std::string>();
        for (const char* name : {"tp", "pp", "dp", "zero", "sp"}) {
            const std::string begin = std::string("training.layout.") + name + "=";
            if (text.starts_with(begin)) {
                EXPECT_TRUE(contains(read_text(scratch.path("back.yaml")),
                                     std::string(name) + ": " + text.substr(begin.size())))
                    << text;
            }
        }
    }
    const Ended second = fabricast(plan("--export torchtitan:2"));
    EXPECT_EQ(second.code, 0) << second.err;
    EXPECT_TRUE(contains(second.out, "tensor_parallel_degree = ")) << second.out;
    EXPECT_TRUE(contains(second.err, "not said in it: ZeRO stage 1")) << second.err;
    EXPECT_EQ(json::parse(fabricast(plan("--export deepspeed")).out)["zero_optimization"]["stage"], 1);
    for (const char* wrong : {"--export nemo", "--export megatron:0", "--export megatron:x", "--export megatron:99999",
                              "--export megatron --json"})
        EXPECT_EQ(fabricast(plan(wrong)).code, 2) << wrong;
    EXPECT_TRUE(contains(fabricast(plan("--export megatorn")).err, "did you mean"))
        << fabricast(plan("--export megatorn")).err;
}

TEST(PlanVerb, ProgressIsForTerminalsOnly) {
    EXPECT_EQ(cli::progress_line({.looked_at = 50, .size = 100}, 0),
              "[##########----------] 50 of 100 layouts looked at");
    EXPECT_EQ(cli::progress_line({.looked_at = 9, .size = 9, .evaluated = 30, .known = 10, .ahead = 90}, 10),
              "[#####---------------] 30 of about 120 simulated, 10 known, 2.0 a second, about 0:45 left");
    EXPECT_EQ(cli::progress_line({.looked_at = 9, .size = 9}, 0), "[--------------------] 0 of about 0 simulated");
    std::string loud = plan("");
    loud.replace(loud.find(" --quiet"), 8, "");
    const Ended ended = fabricast(loud, "TERM=xterm");
    EXPECT_TRUE(contains(ended.err, " simulated in ")) << ended.err;
    EXPECT_FALSE(contains(ended.err, "\r")) << ended.err;
}

TEST(PlanVerb, ExitCodes) {
    EXPECT_EQ(fabricast(plan("--where 'tp > 4'")).code, 2);
    EXPECT_EQ(fabricast(plan("--where 'tp >'")).code, 2);
    EXPECT_EQ(fabricast(plan("--gpus 12")).code, 2);
    EXPECT_EQ(fabricast(plan("--what-if 'nic 1'")).code, 2);
    EXPECT_EQ(fabricast("plan").code, 2);
    const Ended full = fabricast(plan("--set 'cluster.node.gpu_memory=20 GiB'"));
    EXPECT_EQ(full.code, 3);
    EXPECT_TRUE(contains(full.err, "does not fit in memory")) << full.err;
}

}  // namespace
}  // namespace fabricast::testing
