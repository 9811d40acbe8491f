// Steps beside which a save is written over the job's own network.
#include "sim/step/storage_traffic.hpp"

#include <gtest/gtest.h>

#include "support.hpp"

namespace fabricast {
namespace {

const std::string kJob =
    "cluster: {nodes: 16, node: hgx-h100, fabric: {kind: rail-fat-tree, nodes_per_pod: 4, oversubscription: 2}}\n"
    "model: llama-70b\n"
    "training:\n"
    "  sequence: 4096 tokens\n"
    "  global_batch: 64 sequences\n"
    "  layout: {tp: 8, sp: true, pp: 2, dp: 8, zero: 1}\n"
    "  recompute: selective\n"
    "  overlap: {grad_reduce: true, param_gather: true}\n";

struct Saved {
    double healthy = 0, saving = 0, bytes = 0;
};
Saved save(const std::string& rate, double bytes = 1e12, bool fold = true) {
    const Scenario s = parse_scenario(kJob, "t.yaml", {"run.checkpoint.write=" + rate});
    const Picoseconds healthy = test::run_scenario(s).step().ps;
    const SavingStep saving = step_while_saving(s, bytes, healthy, fold);
    return {seconds(healthy), seconds(saving.step), saving.bytes};
}

TEST(StorageTraffic, SlowsTheStepByWhatItTakesFromTheAdapters) {
    // 50 GB/s over 128 adapters are 0.8 % of what each carries.
    const Saved usual = save("50 GB/s");
    EXPECT_NEAR(usual.bytes, 0.98 * 50e9 * usual.healthy, 1);
    EXPECT_GE(usual.saving, usual.healthy);
    EXPECT_LT(usual.saving, 1.005 * usual.healthy);
    // Half of them: traffic of the step waits for its half.
    const Saved much = save("3 TB/s", 1e14);
    EXPECT_GT(much.saving, 1.02 * much.healthy);
    EXPECT_LT(much.saving, 2 * much.healthy);
    double last = 0;
    for (const char* rate : {"50 GB/s", "500 GB/s", "1 TB/s", "2 TB/s", "3 TB/s"}) {
        const double step = save(rate, 1e14).saving;
        EXPECT_GE(step, last) << rate;
        last = step;
    }
}

TEST(StorageTraffic, NoMoreThanTheSave) {
    const Saved small = save("2 TB/s", 1e11);
    EXPECT_NEAR(small.bytes, 1e11, 1);
    EXPECT_LT(small.saving, save("2 TB/s", 1e14).saving);
}

TEST(StorageTraffic, FoldedAndRankByRankAlike) {
    for (const char* rate : {"50 GB/s", "2 TB/s"})
        EXPECT_EQ(save(rate, 1e12, true).saving, save(rate, 1e12, false).saving) << rate;
}

}  // namespace
}  // namespace fabricast
