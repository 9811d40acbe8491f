// The case studies, failures and acceptance cases that are shipped with what they must show (`expect:`): every file is run and
// held to it. What a remedy changes is also held against the job without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "shipped.hpp"
#include "sim/report/comparison.hpp"
#include "sim/report/expectation.hpp"

namespace fabricast::testing {
namespace {

namespace fs = std::filesystem;

/// Files with claims, by path below scenarios/.
std::vector<std::string> claims() {
    std::vector<std::string> all;
    const fs::path root = FABRICAST_SOURCE_DIR "/scenarios";
    const auto add = [&](const char* folder, std::initializer_list<const char*> beginnings) {
        for (const fs::directory_entry& entry : fs::directory_iterator(root / folder)) {
            const std::string name = entry.path().filename().string();
            const bool wanted = std::any_of(beginnings.begin(), beginnings.end(),
                                            [&](const char* beginning) { return name.starts_with(beginning); });
            if (name.ends_with(".yaml") && wanted && !name.starts_with("base"))
                all.push_back(fs::relative(entry.path(), root).string());
        }
    };
    add("acceptance", {"a13-", "a14-", "a7-"});
    add("case-a", {"ramp", "remedy-", "failure-", "campaign-", "half-", "h800-"});
    add("case-b", {""});
    add("postmortems", {""});
    std::sort(all.begin(), all.end());
    return all;
}

class Claims : public ::testing::TestWithParam<std::string> {};
TEST_P(Claims, TheFileMeetsWhatItExpects) {
#ifndef NDEBUG
    GTEST_SKIP() << "millions of events: Release only";
#endif
    const auto ran = run_shipped(GetParam());
    EXPECT_FALSE(failed_unexpectedly(ran->result)) << ran->result.failure;
    for (const ExpectationOutcome& outcome : check_expectations(ran->result))
        EXPECT_TRUE(outcome.met) << describe(outcome);
}
INSTANTIATE_TEST_SUITE_P(Files, Claims, ::testing::ValuesIn(claims()), [](const auto& param) {
    std::string name = param.param.substr(0, param.param.size() - 5);
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == '-' || c == '/'; }, '_');
    return name;
});

double step_s(const std::string& path, const std::vector<std::string>& overrides = {}) {
    return seconds(run_shipped(path, overrides)->result.step.ps);
}

// Claims of 8, 4 and 32 times less traffic, and what they are of a step.
TEST(CaseARemedies, AgainstTheJobWithoutThem) {
#ifndef NDEBUG
    GTEST_SKIP() << "millions of events: Release only";
#endif
    const double before = *figure(run_shipped("case-a/h800-1024-before.yaml")->result, "mfu");
    const double layout = *figure(run_shipped("case-a/remedy-layout.yaml")->result, "mfu");
    EXPECT_GT(layout, before + 0.01);
    EXPECT_LT(layout, before + 0.05);  // 17 points were claimed

    const double each = step_s("case-a/remedy-accumulation-without.yaml"),
                 once = step_s("case-a/remedy-accumulation.yaml");
    EXPECT_GT(each / once, 1.3);
    EXPECT_LT(each / once, 1.7);
    // Sharded gradients are reduced after each micro-batch anyway.
    const std::vector<std::string> eight = {"training.global_batch=8192 sequences"};
    std::vector<std::string> with = eight;
    with.emplace_back("training.reduce_every=micro_batch");
    EXPECT_EQ(step_s("case-a/h800-1024-before.yaml", eight), step_s("case-a/h800-1024-before.yaml", with));

    const std::string fp8 = "case-a/remedy-compression.yaml";
    const double bytes1 = step_s(fp8), bytes2 = step_s(fp8, {"comm.compression.gradients=none"});
    const double bytes4 = step_s(fp8, {"comm.compression.gradients=none", "training.software.fp32_reduce=true"});
    EXPECT_GT(bytes4 / bytes2, 1.03);
    EXPECT_LT(bytes4 / bytes2, 1.10);
    EXPECT_GT(bytes2 / bytes1, 1.02);
    EXPECT_LT(bytes2 / bytes1, 1.07);
    EXPECT_THROW(step_s(fp8, {"comm.compression.gradients=1-bit-adam"}), ScenarioError);

    const double settings = step_s("case-a/remedy-nccl-settings.yaml");
    EXPECT_NEAR(settings / step_s("case-a/h800-1024-tp8-pp2-dp64.yaml"), 0.992, 0.01);
}

// What half the rate of one adapter adds is the time of its ring on the wire, whatever the batch: 8.6 GB reduced and 8.6 GB
// gathered over 64 ranks, 0.34 s at 50 GB/s, 0.38 s at what adapters reach. None of it hides, since the healthy ring fills its
// windows already.
TEST(CaseAHalfRateAdapter, AddsTheTimeOfItsRing) {
#ifndef NDEBUG
    GTEST_SKIP() << "millions of events: Release only";
#endif
    const std::string sick = "case-a/half-rate-adapter.yaml", well = "case-a/h800-1024-tp8-pp2-dp64.yaml";
    const double wire = 2 * 8.62e9 * 63 / 64 / 50e9;
    for (const char* batch : {"training.global_batch=512 sequences", "training.global_batch=1024 sequences"}) {
        const double healthy = step_s(well, {batch}), more = step_s(sick, {batch}) - healthy;
        EXPECT_NEAR(more, 0.38, 0.02) << batch;
    }
    const double blocking = step_s(sick, {"training.overlap={grad_reduce: false, param_gather: false}"}) -
                            step_s(well, {"training.overlap={grad_reduce: false, param_gather: false}"});
    EXPECT_NEAR(blocking / wire, 1.12, 0.05);
    // On the second stage, whose backward ends before that of the first, some hides.
    const double second = step_s(sick, {"faults.events=[{what: rate, where: nic 93.2, by: 0.5}]"}) - step_s(well);
    EXPECT_GT(second, 0.5 * wire);
    EXPECT_LT(second, wire);
}

TEST(CaseBRemedies, AgainstTheJobWithoutThem) {
#ifndef NDEBUG
    GTEST_SKIP() << "millions of events: Release only";
#endif
    const double healthy = step_s("case-b/healthy.yaml");
    const double small = step_s("case-b/small-buckets.yaml"), larger = step_s("case-b/larger-messages.yaml");
    EXPECT_GT(small, larger);
    EXPECT_GT(larger, healthy);
    EXPECT_NEAR(step_s("case-b/split-buckets.yaml") / healthy, 1, 0.02);
    EXPECT_GT(step_s("case-b/topology.yaml") / healthy, 1.05);
    const double copies = step_s("case-b/pageable-copies.yaml") - healthy;
    EXPECT_GT(copies, 1e-5);
    EXPECT_LT(copies, 1e-3);
    const auto job_s = [](const char* path) { return *figure(run_shipped(path)->result, "job_s"); };
    const double saved = job_s("case-b/healthy.yaml") - job_s("case-b/persistent-workers.yaml");
    EXPECT_GT(saved, 4);  // two starts of 2 s, two first batches
    EXPECT_LT(saved, 6);
}

// Young and Daly think of faults that do not follow one another. In bursts a fault costs less work, and saves may be rarer.
TEST(Acceptance, A13BurstsLengthenTheBestInterval) {
#ifndef NDEBUG
    GTEST_SKIP() << "thousands of replicas: Release only";
#endif
    const std::string path = "acceptance/a13-llama3-405b-1024.yaml";
    const auto alone = run_shipped(path), bursts = run_shipped(path, {"faults.burst_cv=1.5"});
    const auto best = [](const auto& ran) { return *figure(ran->result, "best_to_young"); };
    EXPECT_NEAR(best(alone), 1, 0.15);
    EXPECT_GT(best(bursts), best(alone));
    EXPECT_LT(best(bursts), 1.35);
}

// Save stalls of 1 to 60 s and restarts of 5 to 30 min at one stop in 3.1 h: from 77 to 95 %, so that some pair is 90 to 95 %.
TEST(Acceptance, A13StallsAndRestarts) {
#ifndef NDEBUG
    GTEST_SKIP() << "millions of events: Release only";
#endif
    const auto ran = run_shipped("acceptance/a13-llama3-405b-16384.yaml", {"run.replicas=4"});
    const campaign::IntervalTable& table = ran->result.campaign->intervals;
    int within = 0;
    for (const campaign::IntervalTable::Stall& stall : table.stalls)
        for (std::size_t i = 0; i < table.restarts.size(); ++i) {
            const double ettr = stall.formula[i];
            within += ettr >= 0.90 && ettr <= 0.95;
            if (i > 0) {
                EXPECT_LT(ettr, stall.formula[i - 1]);
            }
        }
    EXPECT_GE(within, 3);
    for (std::size_t i = 1; i < table.rows.size(); ++i)
        EXPECT_GT(table.rows[i].interval, table.rows[i - 1].interval);
}

// An H100-hour is worth 1.8 to 2.6 A100-hours for a 70B at 4 K to 8 K; model cards give 2.0 over whole runs.
TEST(Acceptance, A14BreakEvenPrice) {
#ifndef NDEBUG
    GTEST_SKIP() << "millions of events: Release only";
#endif
    for (const std::vector<std::string>& length :
         {std::vector<std::string>{},
          {"training.sequence=8192 tokens", "training.global_batch=512 sequences", "model=llama3-70b"}}) {
        const auto a100 = run_shipped("acceptance/a14-llama2-70b-a100.yaml", length);
        const auto h100 = run_shipped("acceptance/a14-llama2-70b-h100.yaml", length);
        const Comparison c = compare(a100->result, h100->result, {});
        EXPECT_GT(c.break_even, 1.8);
        EXPECT_LT(c.break_even, 2.6);
        EXPECT_NEAR(c.billed_break_even / c.break_even, 1, 0.1);
        EXPECT_NEAR(c.cost_ratio, 2.5 / 1.5 / c.break_even, 1e-9);
        EXPECT_NEAR(c.tokens_a.billed_cost, 1.5 * c.tokens_a.billed_gpu_hours, 1);
        EXPECT_GT(c.tokens_b.billed_gpu_hours, c.tokens_b.gpu_hours);  // spares, stops
    }
}

}  // namespace
}  // namespace fabricast::testing
