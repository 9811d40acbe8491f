// plan end to end, on a machine of eight GPUs.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "binary.hpp"

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
