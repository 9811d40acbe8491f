// Layouts of GPT-3 175B on 1024 A100 (1536 sequences of 2048 tokens): how many are simulated a second of one core, and how many
// are decided, most of them by rules, memory and the lower bound. CPU time.
#include <benchmark/benchmark.h>

#include "sim/plan/bound.hpp"
#include "sim/plan/plan.hpp"

namespace fabricast::plan {
namespace {

const char* const kScenario = R"(name: gpt3-175b
cluster: {nodes: 128, node: hgx-a100-80g, fabric: {kind: rail-fat-tree}}
model: gpt3-175b
training: {sequence: 2048 tokens, global_batch: 1536 sequences}
)";

struct Space {
    explicit Space(const char* schedules) {
        PlanSource source;
        source.file = "bench.yaml";
        source.text = kScenario;
        source.overrides = {schedules};
        const Scenario s = source.load({});
        clusters = plan_clusters(source, s.plan);
        layouts = std::make_unique<PlanSpace>(s.plan, clusters);
    }
    std::vector<std::unique_ptr<PlanCluster>> clusters;
    std::unique_ptr<PlanSpace> layouts;
};

void plan_layouts(benchmark::State& state, const char* schedules) {
    const Space of(schedules);
    std::uint64_t simulated = 0, decided = 0, events = 0;
    for (auto _ : state) {
        const SearchResult found = search(*of.layouts, of.clusters, {}, {.top = 10, .threads = 1});
        const auto same = found.removed.find("same");
        simulated += found.rows.size();
        decided += found.looked_at - (same == found.removed.end() ? 0 : same->second.count);
        events += found.events;
    }
    using benchmark::Counter;
    state.counters["simulated"] = Counter(static_cast<double>(simulated), Counter::kIsRate);
    state.counters["decided"] = Counter(static_cast<double>(decided), Counter::kIsRate);
    state.counters["events"] = Counter(static_cast<double>(events), Counter::kIsRate);
}
BENCHMARK_CAPTURE(plan_layouts, one_f_one_b, "plan.schedule=1f1b")->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK_CAPTURE(plan_layouts, all, "plan.schedule=[1f1b, interleaved]")->Unit(benchmark::kMillisecond)->Iterations(1);

// The lower bound alone: prices of kernels and collectives, and every pass of the schedule in time.
void bound_layouts(benchmark::State& state, const char* schedules) {
    const Space of(schedules);
    std::uint64_t bounded = 0;
    for (auto _ : state) {
        BoundBook book(*of.clusters.front());
        for (std::uint64_t index = 0; index < of.layouts->size(); ++index) {
            std::string rule, why;
            const TrainingPlan plan = of.layouts->plan(of.layouts->at(index), rule, why);
            if (!rule.empty())
                continue;
            benchmark::DoNotOptimize(book.step_s(plan));
            ++bounded;
        }
    }
    state.counters["bounded"] = benchmark::Counter(static_cast<double>(bounded), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(bound_layouts, one_f_one_b, "plan.schedule=1f1b")->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK_CAPTURE(bound_layouts, all, "plan.schedule=[1f1b, interleaved]")
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

}  // namespace
}  // namespace fabricast::plan
