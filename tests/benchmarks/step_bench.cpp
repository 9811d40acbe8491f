// A whole forecast from scenario text: cluster, program, folding, engine. Counters: ranks simulated, events, ns an event.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>

#include "sim/scenario/scenario.hpp"
#include "sim/step/forecast.hpp"

namespace fabricast {
namespace {

/// 405B-like on H100: TP8 PP16, 16 micro-batches a replica.
Scenario scenario_of(std::int64_t gpus, const char* cluster) {
    const std::int64_t dp = gpus / 128;
    return parse_scenario(
        fmt::format("name: step\n"
                    "cluster: {{nodes: {}, node: hgx-h100, fabric: {{kind: rail-fat-tree}}, {}}}\n"
                    "model: {{layers: 126, hidden: 16384, heads: 128, kv_heads: 8, ffn: 53248, vocab: 128256}}\n"
                    "training:\n"
                    "  sequence: 8192 tokens\n"
                    "  global_batch: {} sequences\n"
                    "  layout: {{tp: 8, pp: 16, dp: {}, zero: 1, stage_layers: [7,8,8,8,8,8,8,8,8,8,8,8,8,8,8,7]}}\n"
                    "  schedule: 1f1b\n"
                    "  recompute: full\n  software: megatron-core-2024\n",
                    gpus / 8, cluster, dp * 16, dp),
        "bench.yaml", {});
}

void run(benchmark::State& state, const char* cluster, bool fold) {
    const Scenario scenario = scenario_of(state.range(0), cluster);
    Result result;
    for (auto _ : state)
        result = forecast(scenario, {.fold = fold});
    if (!result.failure.empty())
        state.SkipWithError(result.failure.c_str());
    state.counters["ranks"] = static_cast<double>(result.ranks_simulated);
    state.counters["events"] = static_cast<double>(result.events);
    state.counters["per_event"] =
        benchmark::Counter(static_cast<double>(result.events) * static_cast<double>(state.iterations()),
                           benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void step_folded(benchmark::State& state) { run(state, "gpu_spread: 0", true); }
BENCHMARK(step_folded)->Arg(1024)->Arg(4096)->Arg(16384)->Arg(98304)->Unit(benchmark::kMillisecond);

/// One slow GPU and one adapter at half rate.
void step_folded_with_faults(benchmark::State& state) {
    run(state, "gpu_spread: 0.02, degraded: nic 5.2 at 0.5", true);
}
BENCHMARK(step_folded_with_faults)->Arg(1024)->Arg(4096)->Arg(16384)->Arg(98304)->Unit(benchmark::kMillisecond);

void step_every_rank(benchmark::State& state) { run(state, "gpu_spread: 0", false); }
BENCHMARK(step_every_rank)->Arg(256)->Arg(1024)->Arg(4096)->Arg(16384)->Unit(benchmark::kMillisecond);
// A minute and gigabytes: asked for by FABRICAST_SLOW=1.
[[maybe_unused]] const auto* const largest = std::getenv("FABRICAST_SLOW") == nullptr
                                                 ? nullptr
                                                 : benchmark::RegisterBenchmark("step_every_rank", step_every_rank)
                                                       -> Arg(98304) -> Iterations(1) -> Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fabricast
