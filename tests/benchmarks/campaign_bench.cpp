// 1000 lives of a 45-day run on 1024 GPUs: bare (one step time), and with degradations, congestion and flaps.
#include <benchmark/benchmark.h>

#include "sim/campaign/campaign.hpp"

namespace fabricast::campaign {
namespace {

CampaignSpec forty_five_days() {
    const faults::FaultCatalogue& catalogue = faults::FaultCatalogue::builtin();
    CampaignSpec spec;
    spec.fleet.nodes = 128;
    spec.fleet.spares = 6;
    spec.fleet.components = catalogue.components();
    spec.checkpoint = {.mode = SaveMode::sync, .every_steps = 1200, .block = 20 * kSecond, .load = 20 * kSecond};
    spec.recovery.start = 8 * kMinute;
    spec.recovery.detect_crash = 30 * kSecond;
    spec.phases = {{45 * 28800, 0, 1}};
    return spec;
}

void run_all(benchmark::State& state, const CampaignSpec& spec) {
    StepTimes steps(1, kMaxKinds, [](const Condition& c) { return 3 * kSecond + c.degraded * kSecond / 100; });
    std::int64_t stops = 0;
    for (auto _ : state)
        for (std::uint32_t i = 0; i < 1000; ++i)
            stops += run_replica(spec, steps, i, false).stops;
    state.counters["stops"] = static_cast<double>(stops) / static_cast<double>(state.iterations()) / 1000;
}

void campaign_bare(benchmark::State& state) { run_all(state, forty_five_days()); }
BENCHMARK(campaign_bare)->Unit(benchmark::kMillisecond);

void campaign_with_conditions(benchmark::State& state) {
    CampaignSpec spec = forty_five_days();
    spec.fleet.node_spread = 1;
    spec.fleet.burst_cv = 1.5;
    spec.fleet.burst_gap_s = 1000;
    for (const faults::Degradation& d : faults::FaultCatalogue::builtin().degradations())
        spec.conditions.degradations.push_back({d, false});
    spec.conditions.congestions_per_day = 1;
    spec.conditions.congestion_mean_s = 1440;
    spec.conditions.flaps_per_day = 0.5 * 1024 / 30;
    spec.conditions.flap_low_s = 1;
    spec.conditions.flap_high_s = 10;
    run_all(state, spec);
}
BENCHMARK(campaign_with_conditions)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fabricast::campaign
