// Jobs over epochs and under faults: who has which steps, when a job stands still, who says so.
#include <algorithm>

#include "sim/step/job_run.hpp"
#include "sim/step/sampler.hpp"
#include "tests/sim/step/support.hpp"

namespace fabricast {
namespace {

using test::Forecast;
using test::Overrides;

const char* const kSmall = R"(
cluster: {nodes: 1, node: hgx-a100-80g}
model: {name: small, family: llama, layers: 4, hidden: 1024, heads: 8, ffn: 2816, vocab: 32000}
training:
  sequence: 1024 tokens
  global_batch: 16 sequences
  micro_batch: 1
  layout: {dp: 8, zero: 1}
data: {samples: 640, epochs: 3, sampler: {sharding: strided}}
)";

const JobResult& job_of(const Forecast& f) {
    EXPECT_TRUE(f.result.job.has_value());
    static const JobResult none;
    return f.result.job ? *f.result.job : none;
}
bool says(const JobResult& job, const std::string& part) {
    return std::any_of(job.messages.begin(), job.messages.end(),
                       [&](const JobResult::Message& m) { return m.text.find(part) != std::string::npos; });
}
std::vector<std::int64_t> all_but(std::int64_t rank, std::int64_t world = 8) {
    std::vector<std::int64_t> out;
    for (std::int64_t r = 0; r < world; ++r) {
        if (r != rank)
            out.push_back(r);
    }
    return out;
}

TEST(Sampler, DealsSamples) {
    DataPlan d;
    d.samples = 1001;
    d.sharding = DataPlan::Sharding::strided;
    EXPECT_EQ(deal_samples(d, 4, 10, 0).samples, (std::vector<std::int64_t>{251, 250, 250, 250}));
    EXPECT_EQ(deal_samples(d, 4, 10, 0).steps, (std::vector<std::int64_t>{26, 25, 25, 25}));
    d.rotates = true;
    EXPECT_EQ(deal_samples(d, 4, 10, 3).samples, (std::vector<std::int64_t>{250, 251, 250, 250}));
    d.drop_last = true;
    EXPECT_EQ(deal_samples(d, 4, 10, 0).steps, (std::vector<std::int64_t>{25, 25, 25, 25}));
    EXPECT_NEAR(deal_samples(d, 4, 10, 0).missed, 1.0 / 1001, 1e-12);
    d = {};
    d.samples = 1001;
    EXPECT_EQ(deal_samples(d, 4, 10, 0).samples, (std::vector<std::int64_t>{251, 251, 251, 251}));
    EXPECT_NEAR(deal_samples(d, 4, 10, 0).repeated, 3.0 / 1001, 1e-12);
    d.sharding = DataPlan::Sharding::files;
    d.samples = 1003;
    d.files = 10;
    EXPECT_EQ(deal_samples(d, 4, 10, 0).samples, (std::vector<std::int64_t>{301, 301, 201, 200}));
}

TEST(Sampler, WholeSetsLeaveAThirdUnread) {
    DataPlan d;
    d.samples = 8000;
    d.sharding = DataPlan::Sharding::whole;
    EXPECT_NEAR(deal_samples(d, 8, 10, 0).missed, 0.3436, 1e-4);  // (7/8)^8
    EXPECT_NEAR(deal_samples(d, 8, 10, 0).repeated, 1 - 2 * 0.34361 - 0.04909, 2e-4);
    d.own_order = false;
    EXPECT_NEAR(deal_samples(d, 8, 10, 0).missed, 0.875, 1e-9);
}

TEST(Job, EpochsOfEqualShardsAreTheirSteps) {
    const Forecast f = test::run_text(kSmall);
    EXPECT_EQ(f.result.failure, "");
    const JobResult& job = job_of(f);
    ASSERT_EQ(job.epochs.size(), 3u);
    EXPECT_EQ(job.steps_done, 120);
    EXPECT_LT(job.steps_simulated, 60);
    EXPECT_TRUE(job.settled);
    EXPECT_NEAR(seconds(job.end), 120 * f.seconds(), 0.02 * 120 * f.seconds());
}

TEST(Job, SkippedStretchesChangeNothing) {
    for (const Overrides& how :
         {Overrides{}, Overrides{"data.sample_time=1 ms", "data.loader_workers=2"},
          Overrides{"data.sample_time=40 ms", "data.loader_workers=3"},
          Overrides{"data.epoch_end=[{takes: 30 s, grows: 5 s, on: rank 3}]"}, Overrides{"data.samples=648"},
          Overrides{"faults.events=[{what: slow, where: rank 2, by: 1.5, at: 0.3 s}]"},
          Overrides{"faults.events=[{what: slow, where: rank 2, by: 1.5, at: 0.3 s, lasts: 0.2 s}]"}}) {
        const Scenario s = parse_scenario(kSmall, "test.yaml", how);
        const Forecast skipped = test::run_scenario(s), whole = test::run_scenario(s, {.fold = false});
        const JobResult &a = job_of(skipped), &b = job_of(whole);
        EXPECT_TRUE(a.settled) << how.front();
        EXPECT_LT(a.steps_simulated, b.steps_simulated);
        EXPECT_EQ(a.end, b.end) << (how.empty() ? "" : how.front());
        EXPECT_EQ(a.steps_done, b.steps_done);
        EXPECT_EQ(a.longest_step, b.longest_step);
        ASSERT_EQ(a.epochs.size(), b.epochs.size());
        for (std::size_t e = 0; e < a.epochs.size(); ++e)
            EXPECT_EQ(a.epochs[e].end, b.epochs[e].end);
        EXPECT_EQ(skipped.result.failure, whole.result.failure);
    }
}

TEST(Job, UnequalShardsHangAtTheFirstBoundary) {
    const Forecast f = test::run_text(kSmall, {"data.samples=641"});
    const JobResult& job = job_of(f);
    EXPECT_EQ(f.result.verdict, "time-out");
    EXPECT_EQ(job.reporting.size(), 8u);
    EXPECT_FALSE(job.epochs.front().complete);
    EXPECT_EQ(job.epochs.size(), 1u);
    // 40 steps, the others wait at the end of the epoch; rank 0 reaches its own call a little later.
    EXPECT_NEAR(seconds(job.end), 600 + 40 * f.seconds(), 0.05);
    EXPECT_TRUE(says(job, "older than its limit of 600000 ms"));
}

TEST(Job, DroppingTheRemainderCuresThatAndNothingElse) {
    EXPECT_EQ(test::run_text(kSmall, {"data.samples=641", "data.sampler.drop_last=true"}).result.failure, "");
    const Overrides slow = {"data.epoch_end=[{takes: 400 s, grows: 300 s, on: rank 5}]"};
    Overrides dropped = slow;
    dropped.push_back("data.sampler.drop_last=true");
    for (const Overrides& how : {slow, dropped}) {
        const Forecast f = test::run_text(kSmall, how);
        const JobResult& job = job_of(f);
        EXPECT_EQ(f.result.verdict, "time-out");
        EXPECT_EQ(std::count_if(job.epochs.begin(), job.epochs.end(), [](const auto& e) { return e.complete; }), 2);
        EXPECT_EQ(job.reporting, all_but(5));
        EXPECT_EQ(job.silent, std::vector<std::int64_t>{5});
        EXPECT_NEAR(seconds(job.end), 400 + 600 + 80 * f.seconds(), 0.5);
    }
}

TEST(Job, WithoutAMeetingTheHangComesAtTheEnd) {
    // Calls of different epochs meet; the rank with fewer steps is missing in the last three.
    const Forecast f = test::run_text(kSmall, {"data.samples=641", "data.epochs_meet=false"});
    EXPECT_EQ(f.result.verdict, "time-out");
    EXPECT_NEAR(seconds(job_of(f).end), 600 + 120 * f.seconds(), 0.1);
}

TEST(Job, SharesThatMoveCureUnequalCountsWhereRanksDoNotMeet) {
    const Forecast f = test::run_text(
        kSmall, {"data.samples=641", "data.epochs=8", "data.epochs_meet=false", "data.sampler.rotate=true"});
    EXPECT_EQ(f.result.failure, "");
}

TEST(Job, WorkOnRankZeroIsAStallWithinTheTimeOut) {
    const Overrides work = {"data.epoch_end=[{what: evaluation, takes: 500 s, every: 2, on: rank 0}]"};
    const Forecast f = test::run_text(kSmall, work);
    EXPECT_EQ(f.result.failure, "");
    EXPECT_NEAR(seconds(job_of(f).epochs[1].boundary), 500, 0.1);
    EXPECT_NEAR(seconds(job_of(f).epochs[0].boundary), 0, 0.1);
    const Forecast late = test::run_text(kSmall, {work.front(), "comm.time_outs.collective=400 s"});
    EXPECT_EQ(late.result.verdict, "time-out");
    EXPECT_EQ(job_of(late).reporting, all_but(0));
}

TEST(Job, TimeOutsOffIsAnEndlessStall) {
    const Forecast f = test::run_text(kSmall, {"data.samples=641", "comm.time_outs.off=true", "expect.outcome=hang"});
    EXPECT_EQ(f.result.verdict, "hang");
    EXPECT_NE(f.result.failure.find("GPU_UTIL reads 100 %"), std::string::npos);
    EXPECT_TRUE(job_of(f).reporting.empty());
    EXPECT_LT(seconds(job_of(f).stalled_at), 10);
}

TEST(Job, TheOtherLibrarysTimeOut) {
    for (const auto& [library, limit] : {std::pair("hccl 7.0", 1768.0), std::pair("hccl 8.0", 1800.0)}) {
        const Forecast f = test::run_text(kSmall, {"data.samples=641", std::string("comm.library=") + library});
        EXPECT_NEAR(seconds(job_of(f).end), limit + 40 * f.seconds(), 0.05);
        EXPECT_TRUE(says(job_of(f), "EI0002"));
    }
}

const char* const kTwoNodes = R"(
cluster: {nodes: 4, node: hgx-h100}
model: {name: small, family: llama, layers: 4, hidden: 1024, heads: 8, ffn: 2816, vocab: 32000}
training:
  sequence: 1024 tokens
  global_batch: 64 sequences
  micro_batch: 1
  layout: {tp: 8, sp: true, dp: 4, zero: 1}
)";

TEST(Detection, AHungRankIsMissedByAllOthers) {
    const Forecast f = test::run_text(kTwoNodes, {"faults.events=[{what: hang, where: gpu 1.3, at: 1 h}]"});
    const JobResult& job = job_of(f);
    EXPECT_EQ(f.result.verdict, "time-out");
    EXPECT_NEAR(seconds(job.end), 3600 + 600, 1);
    EXPECT_EQ(job.silent, std::vector<std::int64_t>{11});
    EXPECT_EQ(job.reporting, all_but(11, 32));
    EXPECT_LT(job.steps_simulated, 100);
}

TEST(Detection, ADeadRankIsKnownAtOnce) {
    const Forecast f = test::run_text(kTwoNodes, {"faults.events=[{what: crash, where: gpu 1.3, at: 1 h}]"});
    EXPECT_EQ(f.result.verdict, "crash");
    EXPECT_EQ(seconds(job_of(f).end), 3600);
    EXPECT_EQ(job_of(f).reporting, std::vector<std::int64_t>{11});
}

TEST(Detection, ARankThatNeverComesEndsTheSetUp) {
    const Forecast f =
        test::run_text(kTwoNodes, {"faults.events=[{what: hang, where: gpu 1.3, at: 0 s}]", "comm.library=hccl 8.0"});
    EXPECT_EQ(seconds(job_of(f).end), 140);  // 120 + 20
}

TEST(Detection, FlapsWithinTheTransportsBudgetAreStalls) {
    const Forecast f =
        test::run_text(kTwoNodes, {"faults.events=[{what: flap, where: nic 2.5, at: 10 min, lasts: 9 s}]"});
    EXPECT_EQ(f.result.failure, "");
    EXPECT_GT(seconds(job_of(f).longest_step), 8.9);
    EXPECT_LT(seconds(job_of(f).longest_step), 9.0 + 3 * f.seconds());
}

TEST(Detection, BeyondItThoseWhoTalkToThePeerReport) {
    const Overrides down = {"faults.events=[{what: down, where: nic 2.5, at: 10 min}]"};
    const Forecast f = test::run_text(kTwoNodes, down);
    const JobResult& job = job_of(f);
    EXPECT_EQ(f.result.verdict, "transport error");
    EXPECT_NEAR(seconds(job.end), 600 + 4.096e-6 * (1 << 20) * 7, 2 * f.seconds());  // 30.06 s after the first use
    // Rank 21 is behind the adapter; 13 and 29 are its neighbours in the ring of its rail.
    EXPECT_EQ(job.reporting, (std::vector<std::int64_t>{13, 21, 29}));
    const Forecast longer = test::run_text(kTwoNodes, {down.front(), "comm.env.NCCL_IB_TIMEOUT=22"});
    EXPECT_NEAR(seconds(job_of(longer).end), 600 + 120.26, 2 * f.seconds());
}

// ---- faults of a step ----------------------------------------------------------------------------------------------

double slower(const char* base, const std::string& fault, const Overrides& more = {}) {
    Scenario s = parse_scenario(base, "test.yaml", more);
    const double healthy = test::run_scenario(s).seconds();
    inject_fault(s, fault);
    return test::run_scenario(s).seconds() / healthy;
}

// Wide enough that the GPU is the limit, not the CPU that feeds it.
const Overrides kBig = {"model.hidden=8192", "model.heads=64", "model.ffn=28672", "training.sequence=4096 tokens"};

TEST(StepFaults, AClockHeldDownSlowsTheStepByAtMostItsShare) {
    const double all = slower(kTwoNodes, "all clock 1200 MHz", kBig);
    const double one = slower(kTwoNodes, "gpu 1.3 clock 1200 MHz", kBig);
    EXPECT_GT(one, 1.05);
    EXPECT_LE(one, 1830.0 / 1200 + 0.01);
    EXPECT_LE(one, all + 1e-9);
}

TEST(StepFaults, ASlowNode) {
    const double factor = slower(kTwoNodes, "node 1 slow 1.057", kBig);
    EXPECT_GT(factor, 1.0);
    EXPECT_LE(factor, 1.058);
}

TEST(StepFaults, LinksBelowTheirRate) {
    for (const char* fault : {"nic 2.5 rate 0.5", "nic 2.5 collision", "gpu 1.0 nvlink lanes 4", "network congestion 2",
                              "nic 2.5 loss 0.01"}) {
        const double factor = slower(kTwoNodes, fault, kBig);
        EXPECT_GT(factor, 1.0) << fault;
        EXPECT_LT(factor, 2.0) << fault;
    }
    EXPECT_LT(slower(kTwoNodes, "nic 2.5 loss 0.0001", kBig), slower(kTwoNodes, "nic 2.5 loss 0.01", kBig));
}

TEST(StepFaults, GarbageOfManyRanksCostsMoreThanOfOne) {
    const Forecast base = test::run_text(kTwoNodes);
    Scenario apart = parse_scenario(kTwoNodes, "test.yaml"), together = apart;
    inject_fault(apart, "all garbage 300 ms every 32");
    inject_fault(together, "all garbage 300 ms every 32 synchronised");
    const Forecast a = test::run_scenario(apart), t = test::run_scenario(together);
    // Synchronised: one stop in 32 steps. Apart: nearly every step has one.
    EXPECT_NEAR(t.seconds() - base.seconds(), 0.3 / 32, 0.002);
    EXPECT_GT(a.seconds() - base.seconds(), 0.3 * 0.5);
    EXPECT_LE(a.seconds() - base.seconds(), 0.3 + 1e-6);
    test::expect_exact_accounts(a);
}

TEST(StepFaults, LengthsOfSequences) {
    const double even = slower(kTwoNodes, "all sequence 0.3");
    EXPECT_GT(even, 1.03);  // the longest of four replicas counts
    EXPECT_LT(even, 1.6);
}

TEST(StepFaults, ALoaderThatKeepsUpCostsNothingASlowOneSetsThePace) {
    const Forecast base = test::run_text(kTwoNodes);
    const Overrides loader = {"data.loader_workers=4", "data.sample_time=1 ms"};
    EXPECT_NEAR(test::run_text(kTwoNodes, loader).seconds(), base.seconds(), 1e-6);
    // 16 sequences a replica and step at 40 ms by 4 workers: 160 ms a step.
    const Forecast slow = test::run_text(kTwoNodes, {"data.loader_workers=4", "data.sample_time=40 ms"});
    EXPECT_NEAR(slow.seconds(), 0.160, 0.002);
    EXPECT_GT(slow.account(Account::data_wait), 0.2);
    Scenario storage = parse_scenario(kTwoNodes, "test.yaml", {"data.loader_workers=4", "data.sample_time=40 ms"});
    inject_fault(storage, "storage 3");
    EXPECT_NEAR(test::run_scenario(storage).seconds(), 0.480, 0.005);
}

TEST(StepFaults, ALeakRampsOnceTheSlackIsGone) {
    // 100 steps of at least 0.1 s; reading grows threefold over the run.
    Scenario s = parse_scenario(
        kSmall, "test.yaml", {"data.samples=1600", "data.epochs=1", "data.loader_workers=2", "data.sample_time=5 ms"});
    inject_fault(s, "leak 20000");
    const Forecast f = test::run_scenario(s);
    const std::vector<Picoseconds>& steps = job_of(f).steps;
    ASSERT_EQ(steps.size(), 100u);
    EXPECT_LT(steps[10], 1.5 * static_cast<double>(f.result.job->typical_step) + 1);
    EXPECT_GT(seconds(steps.back() + steps[98]), 1.3 * seconds(steps[5] + steps[6]));
}

TEST(StepFaults, StrikeInTheMiddleOfARun) {
    Scenario s = parse_scenario(kTwoNodes, "test.yaml");
    inject_fault(s, "gpu 1.3 clock 1200 MHz at 2 h for 1 h");
    const Forecast f = test::run_scenario(s);
    const JobResult& job = job_of(f);
    EXPECT_EQ(f.result.failure, "");
    EXPECT_LT(job.steps_simulated, 600);
    EXPECT_EQ(job.steps.front() > 0, true);
    EXPECT_NEAR(seconds(job.steps.back()), f.seconds(), 1e-6);  // over again
    EXPECT_GT(seconds(job.longest_step), 1.02 * f.seconds());
}

// ---- the checks of the case studies --------------------------------------------------------------------------------

TEST(CaseA, AHalfRateAdapterIsMissedByARuleOfOneAndAHalf) {
    Scenario s = load_scenario(std::string(FABRICAST_SOURCE_DIR) + "/scenarios/case-a/h800-1024-tp8-pp2-dp64.yaml",
                               {"training.global_batch=1024 sequences"});  // the 4M tokens of the arithmetic
    const double healthy = test::run_scenario(s).seconds();
    inject_fault(s, "nic 29.2 rate 0.5");
    const double factor = test::run_scenario(s).seconds() / healthy;
    EXPECT_GE(factor, 1.0);
    EXPECT_LE(factor, 1.09);
}

TEST(CaseA, OneClockAt1200MegahertzCostsUpToHalf) {
    Scenario s = load_scenario(std::string(FABRICAST_SOURCE_DIR) + "/scenarios/case-a/h800-1024-tp8-pp2-dp64.yaml", {});
    const double healthy = test::run_scenario(s).seconds();
    inject_fault(s, "gpu 29.2 clock 1200 MHz");
    const double factor = test::run_scenario(s).seconds() / healthy;
    EXPECT_GT(factor, 1.1);
    EXPECT_LE(factor, 1830.0 / 1200);
}

class CaseB : public testing::TestWithParam<const char*> {};
TEST_P(CaseB, MeetsWhatItsFileExpects) {
    const Scenario s =
        load_scenario(std::string(FABRICAST_SOURCE_DIR) + "/scenarios/case-b/" + GetParam() + ".yaml", {});
    const Forecast f = test::run_scenario(s);
    EXPECT_EQ(f.result.failure.empty(), s.expect_outcome == "ok") << f.result.failure;
    const JobResult& job = job_of(f);
    for (const Scenario::Expectation& e : s.expect) {
        if (e.what == "epochs_done") {
            const auto done =
                std::count_if(job.epochs.begin(), job.epochs.end(), [](const auto& epoch) { return epoch.complete; });
            EXPECT_TRUE(static_cast<double>(done) >= e.low && static_cast<double>(done) <= e.high) << done;
        } else if (e.what == "reporting_ranks") {
            const auto n = static_cast<double>(job.reporting.size());
            EXPECT_TRUE(n >= e.low && n <= e.high) << n;
        } else if (e.what == "samples_missed") {
            EXPECT_TRUE(job.missed >= e.low && job.missed <= e.high) << job.missed;
        } else if (e.what == "failed_at_s" || e.what == "job_s") {
            EXPECT_TRUE(seconds(job.end) >= e.low && seconds(job.end) <= e.high) << seconds(job.end);
        } else if (e.what == "longest_step_s") {
            EXPECT_TRUE(seconds(job.longest_step) >= e.low && seconds(job.longest_step) <= e.high)
                << seconds(job.longest_step);
        } else if (e.what == "step_time_s") {
            EXPECT_TRUE(f.seconds() >= e.low && f.seconds() <= e.high) << f.seconds();
        }
    }
}
INSTANTIATE_TEST_SUITE_P(Files, CaseB,
                         testing::Values("healthy", "unequal-shards", "unequal-shards-dropped",
                                         "unequal-shards-longer-time-out", "unequal-shards-no-time-out",
                                         "overlapping-shards", "growing-boundary", "growing-boundary-dropped",
                                         "rank-0-evaluation", "rank-0-evaluation-longer-time-out", "small-buckets"),
                         [](const auto& param) {
                             std::string name = param.param;
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

// ---- refusals ------------------------------------------------------------------------------------------------------

void refused(const Overrides& how, const std::string& part) {
    try {
        test::run_text(kSmall, how);
        FAIL() << "accepted: " << how.front();
    } catch (const ScenarioError& error) {
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
}

TEST(JobRefuses, WhatCannotBe) {
    refused({"faults.events=[{what: hang, where: gpu 1.0, at: 1 h}]"},
            "there is no gpu 1.0: the cluster has nodes 0 to 0");
    refused({"faults.events=[{what: slow, where: rank 8, by: 1.1}]"}, "there is no rank 8");
    refused({"faults.events=[{what: rate, where: nic 0.9, by: 0.5}]"}, "there is no nic 0.9");
    refused({"faults.events=[{what: rate, where: gpu 0.1 nvlnk, by: 0.5}]"}, "no link of this cluster");
    refused({"faults.events=[{what: clock, where: gpu 0.1, to: 9000 MHz}]"}, "at most the 1411 MHz");
    refused({"faults.events=[{what: flap, where: nic 0.1, at: 1 h}]"}, "a time and a length");
    refused({"faults.events=[{what: slow, where: rank 1, by: 0.5}]"}, "a factor of at least 1");
    refused({"comm.time_outs.collective=1 ms"}, "is shorter than a step");
    refused({"data.sampler.counts=[80, 80]"}, "2 counts for 8 data-parallel ranks");
    refused({"data.samples=10"}, "do not fill one step");
    refused({"data.epoch_end=[{takes: 3 s, on: nic 0.1}]"}, "names no rank");
    refused({"data.epoch_end=[{what: nothing}]"}, "takes no time");
}

TEST(JobRefuses, OnTheCommandLine) {
    Scenario s = parse_scenario(kSmall, "test.yaml");
    for (const auto& [text, part] :
         {std::pair("gpu 0.1 clok 1200 MHz", "did you mean `clock`"),
          std::pair("gpu 7.1 hang at 1 h", "there is no gpu 7.1"), std::pair("gpu 0.1 clock 1200", "no clock"),
          std::pair("gpu 0.1 hang", "needs a time"), std::pair("nic 0.1 down at soon", "`soon`"),
          std::pair("rank 1 garbage 300 ms every x", "number of steps")}) {
        try {
            inject_fault(s, text);
            FAIL() << text;
        } catch (const ScenarioError& error) {
            EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
            EXPECT_NE(std::string(error.what()).find("--inject"), std::string::npos);
        }
    }
}

}  // namespace
}  // namespace fabricast
