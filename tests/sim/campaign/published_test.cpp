// Campaigns others have run or simulated.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/campaign/economics.hpp"
#include "tests/sim/campaign/support.hpp"

namespace fabricast::campaign::test {
namespace {

/// AIReSim's defaults (arXiv:2603.07041): 4096 of 4160 servers and 200 more, 256 days of work, 10 random faults per 1000
/// server-days, 15 % of the servers with five times as many more until a repair succeeds (76 %), 20 min a recovery, nothing
/// lost, and only a running job fails.
CampaignSpec airesim() {
    constexpr Nanoseconds kStep = 10 * kSecond;
    CampaignSpec spec = job(4096, 256 * kDay / kStep);
    spec.fleet.spares = 264;
    spec.fleet.components = {component(10, true)};
    // 2 h automatic, 0.8 x 2 days manual
    spec.fleet.components[0].repair = faults::exponential((2 + 0.8 * 48) * 3600);
    spec.fleet.lemons = {0.15, 6, 0.76};
    spec.fleet.strikes_while_down = false;
    spec.checkpoint = {.mode = SaveMode::sync, .every_steps = 1};
    spec.recovery.start = 20 * kMinute;
    spec.replicas = 10;
    return spec;
}

TEST(Published, AIReSimDefaults) {
    StepTimes steps = all_alike(10 * kSecond);
    const CampaignSpec spec = airesim();
    const CampaignResult r = run_campaign(spec, steps);
    const Quantiles ettr = r.of([](const ReplicaResult& x) { return x.ettr(); });
    const Quantiles hours = r.of([](const ReplicaResult& x) { return seconds_of(x.wall) / 3600; });
    const Quantiles stops = r.of([](const ReplicaResult& x) { return static_cast<double>(x.stops); });
    EXPECT_NEAR(ettr.mean, 0.623, 0.003);
    EXPECT_NEAR(hours.mean / 9860, 1, 0.005);
    EXPECT_NEAR(stops.mean / 11146, 1, 0.01);
    EXPECT_EQ(r.mean_spent(Spent::waiting), 0);
}

// With Weibull lives that every failure draws anew for all servers the same run takes 129 835 h. Renewed node by node it
// stays with the exponential one: an aged fleet from the start, a new one after its first weeks.
TEST(Published, WeibullLivesStayWithTheExponentialRate) {
    CampaignSpec spec = airesim();
    spec.fleet.lemons = {};
    spec.replicas = 3;
    StepTimes steps = all_alike(10 * kSecond);
    const auto hours = [&](const CampaignSpec& s) {
        return run_campaign(s, steps).of([](const ReplicaResult& x) { return seconds_of(x.wall) / 3600; }).mean;
    };
    const double exponential = hours(spec);
    spec.fleet.life_shape = 0.7;
    const double weibull = hours(spec);
    EXPECT_NEAR(weibull / exponential, 1, 0.05);
    // A fleet that starts new has its infant mortality in the first weeks: more, but never many times more.
    spec.fleet.aged = false;
    const double young = hours(spec);
    EXPECT_GT(young, weibull);
    EXPECT_LT(young, 1.5 * exponential);
}

/// The catalogue's components on `nodes` nodes for `days` days, default pieces of a recovery.
CampaignSpec fleet_of(std::uint32_t nodes, double days, double step_s) {
    const faults::FaultCatalogue& catalogue = faults::FaultCatalogue::builtin();
    const faults::Defaults& d = catalogue.defaults();
    CampaignSpec spec = job(nodes, std::int64_t{1} << 40);
    spec.horizon = nanoseconds(days * 86400);
    spec.fleet.spares = static_cast<std::uint32_t>(std::ceil(d.spares_share * nodes));
    spec.fleet.components = catalogue.components();
    spec.fleet.node_spread = d.node_spread;
    spec.fleet.burst_cv = d.burst_cv;
    spec.fleet.burst_gap_s = d.burst_gap_s;
    spec.recovery.detect_crash = nanoseconds(d.detect_crash_s);
    spec.recovery.detect_transport = nanoseconds(d.detect_transport_s);
    spec.recovery.detect_hang = nanoseconds(d.detect_hang_s);
    spec.recovery.detect_silent_mean_s = 3600;
    spec.recovery.locate = nanoseconds(d.locate_s);
    spec.recovery.swap = nanoseconds(d.swap_s);
    spec.recovery.start = nanoseconds(d.start_s);
    spec.recovery.communicators = nanoseconds(d.communicators_s);
    spec.checkpoint = {.mode = SaveMode::sync, .every_steps = static_cast<std::int64_t>(3600 / step_s)};
    return spec;
}

double stops(const ReplicaResult& r) { return r.stops; }

// 128 nodes at 3.79 per 1000 node-days: 21.8 stops in 45 days, Poisson 4.7, wider with bursts.
TEST(Published, StopsOf1024Gpus) {
    CampaignSpec spec = fleet_of(128, 45, 3);
    spec.replicas = 400;
    StepTimes steps = all_alike(3 * kSecond);
    const CampaignResult bursts = run_campaign(spec, steps);
    EXPECT_NEAR(bursts.of(stops).mean, 21.8, 1.2);
    spec.fleet.burst_cv = 1;
    spec.fleet.node_spread = 0;
    const CampaignResult poisson = run_campaign(spec, steps);
    EXPECT_NEAR(poisson.of(stops).mean, 21.8, 0.8);
    const auto deviation = [](const CampaignResult& r) {
        double squares = 0;
        const double mean = r.of(stops).mean;
        for (const ReplicaResult& x : r.replicas)
            squares += (x.stops - mean) * (x.stops - mean);
        return std::sqrt(squares / static_cast<double>(r.replicas.size()));
    };
    EXPECT_NEAR(deviation(poisson), 4.7, 0.5);
    EXPECT_GT(deviation(bursts), 5.5);
}

// 16 384 H100 for 54 days: 419 unexpected stops, one in 3.1 h, more than 90 % effective. Checkpoints at the rates such runs
// have; restart about ten minutes.
TEST(Published, Llama3) {
    CampaignSpec spec = fleet_of(2048, 54, 5);
    spec.fleet.burst_cv = 1;
    spec.fleet.node_spread = 0;
    spec.replicas = 40;
    spec.checkpoint = {
        .mode = SaveMode::async, .every_steps = 120, .block = kSecond, .write = 2 * kMinute, .load = kMinute};
    StepTimes steps = all_alike(5 * kSecond);
    const CampaignResult r = run_campaign(spec, steps);
    EXPECT_NEAR(r.of(stops).mean, 419, 10);
    const double ettr = r.of([](const ReplicaResult& x) { return x.ettr(); }).mean;
    EXPECT_GT(ettr, 0.90);
    EXPECT_LT(ettr, 0.95);
}

// 1024 A100 of a new cloud fleet: a stop in 15 h, recovered by hand in hours (an hour to notice, an hour to find the node,
// three for another, 1.6 TB in 992 files to load); 33 days of work took 56 to 63.
TEST(Published, Opt175B) {
    CampaignSpec spec = fleet_of(128, 0, 10);
    const double scale = faults::FaultCatalogue::builtin().defaults().new_fleet_rate / spec.fleet.rate();
    for (faults::Component& c : spec.fleet.components) {
        c.rate *= scale;
        c.recurs = c.node_leaves ? 0.3 : c.recurs;  // the node that came back was often the same bad one
    }
    spec.horizon = kNever;
    spec.fleet.spares = 12;  // its buffer pool grew from 4 over 12 to 18 hosts
    spec.phases[0].steps = 33 * 8640;
    spec.replicas = 40;
    spec.checkpoint = {.mode = SaveMode::sync, .every_steps = 720, .block = 2 * kMinute, .load = kHour};
    spec.recovery.detect_crash = spec.recovery.detect_hang = kHour;
    spec.recovery.locate = kHour;
    spec.recovery.swap = 3 * kHour;
    spec.recovery.start = 17 * kMinute;
    spec.recovery.spread = 0.85;
    StepTimes steps = all_alike(10 * kSecond);
    const CampaignResult r = run_campaign(spec, steps);
    const double ettr = r.of([](const ReplicaResult& x) { return x.ettr(); }).mean;
    EXPECT_GT(ettr, 0.50);
    EXPECT_LT(ettr, 0.65);
}

// 384 GPUs, one dies a week, a save of 40 s every 3 h: 0.37 % for saves, 1.5 h lost at each death.
TEST(Published, Bloom) {
    CampaignSpec spec = job(48, 115 * 864);
    spec.fleet.spares = 4;
    spec.fleet.components = {component(1000.0 / 7 / 48, true, 40)};
    spec.checkpoint = {.mode = SaveMode::sync, .every_steps = 108, .block = 40 * kSecond};
    spec.replicas = 100;
    StepTimes steps = all_alike(100 * kSecond);
    const CampaignResult r = run_campaign(spec, steps);
    EXPECT_NEAR(r.mean_spent(Spent::save) / (r.mean_spent(Spent::steps) + r.mean_spent(Spent::lost)), 0.0037, 0.0001);
    double lost = 0, deaths = 0;
    for (const ReplicaResult& x : r.replicas) {
        lost += seconds_of(spent(x, Spent::lost)) / 3600;
        deaths += x.stops;
    }
    EXPECT_NEAR(deaths / 100, 16.4, 1.2);
    EXPECT_NEAR(lost / deaths, 1.5, 0.06);
}

// The first incident of the post-mortems: silence until a 15-minute watchdog, restart of about 5 minutes, 125 steps of 18 s
// lost of at most an hour.
TEST(Published, PostmortemOfASilentLink) {
    CampaignSpec spec = job(176, std::int64_t{1} << 30);
    spec.horizon = 60 * kDay;
    faults::Component link = component(1);
    link.shows = faults::Shows::hang;
    spec.fleet.components = {link};
    spec.recovery.detect_hang = 905 * kSecond;
    spec.recovery.start = 295 * kSecond;
    spec.checkpoint = {.mode = SaveMode::sync, .every_steps = 200};
    StepTimes steps = all_alike(18 * kSecond);
    const ReplicaResult r = run_replica(spec, steps, 0, true);
    double most = 0;
    for (const Incident& incident : r.incidents)
        if (incident.kind == Incident::Kind::recovered) {
            EXPECT_GE(incident.lasted, 1200 * kSecond);
            most = std::max(most, static_cast<double>(incident.lost_steps));
        }
    EXPECT_GT(most, 100);
    EXPECT_LE(most, 200);
}

// 6 N D arithmetic of case A: 57.9 days at 29 % and 36.5 at 46 %; 2.7 T tokens give its 45 and 28 days; money at 1.90.
TEST(Published, CaseAArithmetic) {
    const auto days = [](double tokens, double mfu) {
        const double step_s = 6 * 70e9 * 2097152 / (1024 * 989.4e12 * mfu);
        CampaignSpec spec = job(128, static_cast<std::int64_t>(tokens / 2097152));
        StepTimes steps = all_alike(nanoseconds(step_s));
        const ReplicaResult r = run_replica(spec, steps, 0, false);
        return economics(spec.fleet, {1.90, 700}, r);
    };
    EXPECT_NEAR(days(3.5e12, 0.29).days, 57.9, 0.1);
    EXPECT_NEAR(days(3.5e12, 0.46).days, 36.5, 0.1);
    EXPECT_NEAR(days(2.7e12, 0.29).days / 45, 1, 0.015);
    EXPECT_NEAR(days(2.7e12, 0.46).days / 28, 1, 0.015);
    EXPECT_NEAR(days(2.7e12, 0.29).cost / 2.1e6, 1, 0.02);
    EXPECT_NEAR(days(2.7e12, 0.46).cost / 1.3e6, 1, 0.02);
}

}  // namespace
}  // namespace fabricast::campaign::test
