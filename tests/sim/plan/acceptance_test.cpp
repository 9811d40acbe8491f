// Questions of users that a plan answers (the acceptance cases A1, A6 and A7; case A from scratch).
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/plan/plan.hpp"

namespace fabricast::plan {
namespace {

PlanResult plan_of(const std::string& file, std::vector<std::string> overrides) {
    PlanRequest request;
    request.source.file = std::string(FABRICAST_SOURCE_DIR) + "/scenarios/" + file;
    request.source.overrides = std::move(overrides);
    request.search.threads = 1;
    return make_plan(request);
}

double tflops(const PlanRow& row) { return row.figures.mfu * row.evaluation.step.peak_flops / 1e12; }

// 296.5 TFLOP/s a GPU with TP8 PP8 and full recomputation: plans without it fit and are predicted above 380.
TEST(Acceptance, A1ProposesALayoutAbove380) {
    const PlanResult plan = plan_of("acceptance/a1-llama-70b-128.yaml",
                                    {"plan={tp: [4, 8], pp: [2, 4, 8], vpp: 1, micro_batch: 1, zero: 1}"});
    ASSERT_FALSE(plan.ranking.empty());
    const PlanRow& best = plan.rows()[plan.ranking.front()];
    EXPECT_GT(tflops(best), 380);
    EXPECT_NE(best.plan.recompute, Recompute::full);
    ASSERT_TRUE(plan.yours && plan.yours->evaluation.ran());
    EXPECT_LT(best.figures.days, plan.yours->figures.days * 0.85);
}

// TP4 is not needed for memory: less tensor parallelism, with the stack of the vendor's table instead of autocast, is at least
// 15 % faster within 80 GB. With autocast kept, a larger micro-batch is what helps most, and 12 % is what there is.
TEST(Acceptance, A6ProposesLessTensorParallelism) {
    const char* file = "acceptance/a6-llama-13b-tp4.yaml";
    const PlanResult kept = plan_of(file, {"plan={vpp: 1, cp: 1}"});
    ASSERT_TRUE(kept.yours && kept.yours->evaluation.ran());
    EXPECT_TRUE(kept.yours->change.starts_with("micro-batch 1 -> ")) << kept.yours->change;
    EXPECT_GT(kept.rows()[kept.ranking.front()].figures.tokens_per_s, 1.1 * kept.yours->figures.tokens_per_s);
    EXPECT_LT(kept.rows()[kept.ranking.front()].figures.tokens_per_s, 1.15 * kept.yours->figures.tokens_per_s);
    // any tp may win here
    const PlanResult plan =
        plan_of(file, {"plan={vpp: 1, cp: 1}", "training.software={preset: nemo-2024, tp_hidden_fraction: 0}"});
    ASSERT_FALSE(plan.ranking.empty());
    const PlanRow& best = plan.rows()[plan.ranking.front()];
    EXPECT_GT(best.figures.tokens_per_s, 1.15 * kept.yours->figures.tokens_per_s);
    EXPECT_LT(best.plan.layout.tp, 4);
    EXPECT_EQ(plan.yours->change, "tp 4 -> 2");
    EXPECT_LT(best.evaluation.memory, 80'000'000'000);
}

// ZeRO-3 of 80B over 340 Gb/s a node is slower a GPU than 176B with tensor and pipeline parallelism over 140 Gb/s; more of the
// network and ZeRO-3 hides behind compute.
TEST(Acceptance, A7TheSmallerModelOnTheFasterNetworkIsSlower) {
    const auto scenario = [](const char* shape, const char* nic, const char* plan) {
        PlanRequest request;
        request.source.file = "a7.yaml";
        request.source.text =
            std::string(
                "name: a7\ncluster: {nodes: 32, node: {preset: hgx-a100-80g, nics: 4}, "
                "fabric: {nic: ") +
            nic + "}}\nmodel: {" + shape +
            ", vocab: 50304}\ntraining: {sequence: 2048 tokens, global_batch: 1024 sequences}\nplan: {" + plan + "}\n";
        request.search.threads = 1;
        return make_plan(request);
    };
    const char* zero3 = "tp: 1, pp: 1, vpp: 1, zero: 3, micro_batch: [1, 2, 4], recompute: full, overlap: both, nic: [";
    const char* small = "family: gpt, layers: 64, hidden: 10240, heads: 80, max_positions: 2048";
    const PlanResult gathered =
        scenario(small, "85 Gb/s", (std::string(zero3) + "85 Gb/s, 400 Gb/s, 1600 Gb/s]").c_str());
    const PlanResult cut = scenario("family: gpt, layers: 70, hidden: 14336, heads: 112, max_positions: 2048",
                                    "35 Gb/s", "tp: 4, pp: 8, vpp: 1, zero: 1, micro_batch: [1, 2], recompute: full");
    const auto best = [](const PlanResult& plan, std::uint32_t cluster, std::int64_t micro) {
        double out = 0;
        for (const PlanRow& row : plan.rows()) {
            if (row.cluster == cluster && (micro == 0 || row.plan.micro_batch == micro))
                out = std::max(out, tflops(row));
        }
        return out;
    };
    ASSERT_FALSE(cut.ranking.empty());
    EXPECT_LT(best(gathered, 0, 1), 0.8 * best(cut, 0, 0));
    // break-even: with a micro-batch of 1 communication is exposed at 85 Gb/s an adapter and hidden at 1600
    const auto exposed = [&](std::uint32_t cluster) {
        for (const PlanRow& row : gathered.rows()) {
            if (row.cluster == cluster && row.plan.micro_batch == 1)
                return row.figures.exposed;
        }
        return -1.0;
    };
    EXPECT_GT(exposed(0), 0.3);
    EXPECT_GT(exposed(0), exposed(1));
    EXPECT_GE(exposed(1), exposed(2));
    EXPECT_LT(exposed(2), 0.1);
}

// From scratch at least as fast as TP8 PP2 DP64, within the schedules of that job.
TEST(Acceptance, CaseAFromScratch) {
    const PlanResult plan =
        plan_of("plan/case-a.yaml", {"plan.schedule=1f1b", "plan.pp=[1, 2]", "plan.recompute=[none, selective]"});
    ASSERT_FALSE(plan.ranking.empty());
    ASSERT_TRUE(plan.yours && plan.yours->evaluation.ran());
    EXPECT_LT(plan.rows()[plan.ranking.front()].figures.days, plan.yours->figures.days);
    EXPECT_FALSE(plan.yours->change.empty());
}

}  // namespace
}  // namespace fabricast::plan
