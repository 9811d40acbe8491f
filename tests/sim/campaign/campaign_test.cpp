// Many replicas: the same on any number of threads, quantiles, advice, money.
#include "sim/campaign/campaign.hpp"

#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include "sim/campaign/economics.hpp"
#include "tests/sim/campaign/support.hpp"

namespace fabricast::campaign::test {
namespace {

CampaignSpec stormy() {
    CampaignSpec spec = job(64, 200000);
    spec.fleet.spares = 3;
    spec.fleet.components = {component(8, true, 50), component(2)};
    spec.fleet.node_spread = 1;
    spec.fleet.burst_cv = 1.5;
    spec.fleet.burst_gap_s = 1000;
    spec.conditions.congestions_per_day = 1;
    spec.conditions.congestion_mean_s = 1440;
    spec.conditions.flaps_per_day = 2;
    spec.conditions.flap_low_s = 1;
    spec.conditions.flap_high_s = 10;
    spec.checkpoint = {
        .mode = SaveMode::async, .every_steps = 500, .block = kSecond, .write = 20 * kSecond, .load = kMinute};
    spec.recovery.detect_crash = 30 * kSecond;
    spec.recovery.start = 5 * kMinute;
    spec.recovery.spread = 0.85;
    spec.replicas = 60;
    return spec;
}

StepTimes congested() {
    return StepTimes(1, 1, [](const Condition& c) { return c.degraded ? 4 * kSecond : 3 * kSecond; });
}

TEST(Campaign, SameOnAnyNumberOfThreads) {
    const CampaignSpec spec = stormy();
    StepTimes steps = congested();
    const auto walls = [&](std::size_t threads) {
        const oneapi::tbb::global_control limit(oneapi::tbb::global_control::max_allowed_parallelism, threads);
        std::vector<Nanoseconds> all;
        for (const ReplicaResult& r : run_campaign(spec, steps).replicas) {
            all.push_back(r.wall);
            all.insert(all.end(), r.spent.begin(), r.spent.end());
        }
        return all;
    };
    const std::vector<Nanoseconds> one = walls(1);
    EXPECT_EQ(one, walls(2));
    EXPECT_EQ(one, walls(7));
}

TEST(Campaign, EveryReplicaSumsAndTheShownOneIsTheMedian) {
    const CampaignSpec spec = stormy();
    StepTimes steps = congested();
    const CampaignResult r = run_campaign(spec, steps);
    for (const ReplicaResult& replica : r.replicas)
        expect_sums(replica);
    const Quantiles ettr = r.of([](const ReplicaResult& x) { return x.ettr(); });
    EXPECT_LT(ettr.p10, ettr.p50);
    EXPECT_LT(ettr.p50, ettr.p90);
    EXPECT_EQ(r.shown.ettr(), ettr.p50);
    EXPECT_FALSE(r.shown.incidents.empty());
    double sum = 0;
    for (std::size_t i = 0; i < kSpentCount; ++i)
        sum += r.mean_spent(static_cast<Spent>(i));
    EXPECT_NEAR(sum, 1, 1e-12);
}

TEST(Campaign, SeedsDiffer) {
    CampaignSpec spec = stormy();
    StepTimes steps = congested();
    const Nanoseconds first = run_replica(spec, steps, 0, false).wall;
    EXPECT_NE(first, run_replica(spec, steps, 1, false).wall);
    spec.seed = 2;
    EXPECT_NE(first, run_replica(spec, steps, 0, false).wall);
}

TEST(Campaign, QuantilesAreOrderStatistics) {
    CampaignResult r;
    for (int i = 10; i > 0; --i) {
        ReplicaResult x;
        x.stops = static_cast<std::uint32_t>(i);
        r.replicas.push_back(x);
    }
    const Quantiles q = r.of([](const ReplicaResult& x) { return static_cast<double>(x.stops); });
    EXPECT_EQ(q.p10, 1);
    EXPECT_EQ(q.p50, 5);
    EXPECT_EQ(q.p90, 9);
    EXPECT_EQ(q.mean, 5.5);
}

TEST(Campaign, AdvisesAnInterval) {
    CampaignSpec spec = job(128, 1000);
    spec.fleet.components = {component(24000 / 49.5 / 128)};
    spec.checkpoint = {.mode = SaveMode::sync, .every_steps = 3600, .block = 40 * kSecond};
    spec.recovery.start = 15 * kMinute;
    const IntervalAdvice a = advise(spec, 3 * kSecond);
    EXPECT_NEAR(a.given.mttf / 3600, 49.5, 1e-6);
    EXPECT_NEAR(a.interval, 3 * 3600, 1e-6);
    EXPECT_NEAR(a.young / 60, 63, 0.5);
    EXPECT_NEAR(a.daly / a.best, 1, 0.01);
    EXPECT_NEAR(a.ettr, 0.961, 0.001);
    EXPECT_NEAR(a.ettr_best, 0.974, 0.001);
}

TEST(Economics, SparesAndDownTimeAreBilled) {
    FleetSpec fleet;
    fleet.nodes = 128;
    fleet.spares = 6;
    ReplicaResult r;
    r.wall = 45 * kDay;
    r.spent[static_cast<std::size_t>(Spent::steps)] = 40 * kDay;
    r.spent[static_cast<std::size_t>(Spent::waiting)] = 5 * kDay;
    const Economics e = economics(fleet, {2, 700}, r);
    EXPECT_EQ(e.days, 45);
    EXPECT_NEAR(e.gpu_hours, 134 * 8 * 45 * 24, 1e-6);
    EXPECT_NEAR(e.cost, 2 * e.gpu_hours, 1e-6);
    const double busy = 1024.0 * 40 * 24;
    EXPECT_NEAR(e.energy_kwh, 0.7 * (busy + 0.1 * (e.gpu_hours - busy) + 0.5 * e.gpu_hours), 1);
}

TEST(StepTimes, SimulatesAConditionOnce) {
    int asked = 0;
    StepTimes steps(2, 3, [&](const Condition& c) {
        ++asked;
        return static_cast<Nanoseconds>(100 * c.key + c.degraded);
    });
    EXPECT_EQ(steps.step({1, 5}), 105);
    EXPECT_EQ(steps.step({1, 5}), 105);
    EXPECT_EQ(steps.step({0, 7}), 7);
    EXPECT_EQ(asked, 2);
    EXPECT_EQ(steps.step({0, 0}), 1);  // never nothing
}

}  // namespace
}  // namespace fabricast::campaign::test
