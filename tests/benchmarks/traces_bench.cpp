// Speed of traces, reading included: a training step of 1024 ranks, a two-level all-reduce of 4096.
//
// Counters: nodes read, events, read: seconds of reading and decoding alone.
#include <benchmark/benchmark.h>

#include <string>

#include "sim/traces/run_trace.hpp"
#include "sim/traces/trace_reader.hpp"
#include "tests/sim/traces/trace_writer.hpp"

namespace fabricast::traces {
namespace {

using namespace test;

// Two-level network of ASTRA-sim's examples: 400 GiB/s inside eight ranks, 50 GiB/s between.
std::string two_levels(std::uint32_t outer) {
    return network_text("Switch, Switch", "8, " + std::to_string(outer), "400, 50", "936.25, 5000");
}
constexpr const char* kSystem = R"({"preferred-dataset-splits": 4, "active-chunks-per-dimension": 2,
    "endpoint-delay": 10, "collective-optimization": "localBWAware", "local-mem-bw": 3350,
    "all-reduce-implementation": ["ring", "ring"]})";

void run(benchmark::State& state, const TraceArguments& arguments) {
    std::uint64_t events = 0, nodes = 0;
    for (auto _ : state) {
        const TraceResult result = run_trace(arguments);
        if (!result.failure.empty()) {
            state.SkipWithError(result.failure.c_str());
            return;
        }
        events = result.events;
        nodes = result.nodes;
    }
    state.counters["events"] = static_cast<double>(events);
    state.counters["nodes"] = static_cast<double>(nodes);
}

void trace_training_step(benchmark::State& state) {
    const auto ranks = static_cast<std::uint32_t>(state.range(0));
    const Folder folder;
    write_training_step(folder.path("t"), ranks, 8, 8);
    TraceArguments arguments;
    arguments.chakra = folder.path("t");
    arguments.groups = folder.path("t-groups.json");
    arguments.network = folder.write("net.yml", two_levels(ranks / 8));
    arguments.system = folder.write("system.json", kSystem);
    run(state, arguments);
}
BENCHMARK(trace_training_step)->Arg(64)->Arg(1024)->Unit(benchmark::kMillisecond);

void trace_reading(benchmark::State& state) {
    const auto ranks = static_cast<std::uint32_t>(state.range(0));
    const Folder folder;
    const std::size_t bytes = write_training_step(folder.path("t"), ranks, 8, 8);
    for (auto _ : state)
        benchmark::DoNotOptimize(read_traces(folder.path("t"), folder.path("t-groups.json"), ranks, 2).nodes_read);
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}
BENCHMARK(trace_reading)->Arg(1024)->Unit(benchmark::kMillisecond);

void trace_two_level_all_reduce(benchmark::State& state) {
    const auto ranks = static_cast<std::uint32_t>(state.range(0));
    const Folder folder;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        TraceText trace;
        trace.add(NodeText(rank, "all_reduce", kCollective).collective(kAllReduce, 1 << 30));
        folder.write("t." + std::to_string(rank) + ".et", trace.bytes());
    }
    TraceArguments arguments;
    arguments.chakra = folder.path("t");
    arguments.network = folder.write("net.yml", two_levels(ranks / 8));
    arguments.system = folder.write("system.json", kSystem);
    run(state, arguments);
}
BENCHMARK(trace_two_level_all_reduce)->Arg(1024)->Arg(4096)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fabricast::traces
