// fabricast import: scenario on stdout, remarks on stderr, refusals.
#include <gtest/gtest.h>

#include "binary.hpp"

namespace fabricast::testing {
namespace {

std::string data(const std::string& name) {
    return std::string("'") + FABRICAST_SOURCE_DIR + "/tests/sim/import/data/" + name + "'";
}

TEST(Import, ScenarioOnStdoutRemarksOnStderr) {
    const Ended ended = fabricast("import hf " + data("hf/mixtral-8x7b-v0.1.json"));
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_TRUE(contains(ended.out, "# 46702792704 parameters, 12879925248 active a token"));
    EXPECT_TRUE(contains(ended.out, "moe: {experts: 8, top_k: 2, ffn: 14336}"));
    EXPECT_TRUE(contains(ended.err, "not used: architectures"));
    EXPECT_TRUE(contains(ended.err, "still to be said: training.sequence"));
    EXPECT_FALSE(contains(ended.out, "not used"));
}

TEST(Import, WritesAFileThatRunsOnceTheClusterIsNamed) {
    const Scratch scratch;
    const std::string file = scratch.path("run.yaml");
    const Ended made = fabricast("import torchtitan " + data("frameworks/torchtitan_llama3-405b_2026.toml") +
                                 " --gpus 128 -o '" + file + "'");
    EXPECT_EQ(made.code, 0) << made.err;
    EXPECT_EQ(made.out, "");
    const Ended ran = fabricast("run '" + file + "' --set cluster.nodes=16 --set cluster.node=hgx-h200 --json");
    EXPECT_TRUE(ran.code == 0 || ran.code == 3) << ran.err;
}

TEST(Import, RefusalsEndWithTwo) {
    for (const auto& [arguments, words] :
         {std::pair{std::string("import"), "known are hf, megatron"},
          {"import torchtitn x", "did you mean `torchtitan`?"},
          {"import hf", "no file given, such as config.json"},
          {"import hf /nowhere/config.json", "there is no file"},
          {"import nemo " + data("frameworks/nemo_mlperf-405b_env-interpolation.yaml"), "MINIBS"},
          {"import nemo x.yaml --env A", "needs NAME=VALUE"},
          {"import hf x.json --gpus 0", "from 1 to"}}) {
        const Ended ended = fabricast(arguments);
        EXPECT_EQ(ended.code, 2) << arguments;
        EXPECT_TRUE(contains(ended.err, words)) << ended.err;
        EXPECT_EQ(ended.out, "");
    }
}

}  // namespace
}  // namespace fabricast::testing
