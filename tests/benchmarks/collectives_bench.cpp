// Collectives between one GPU a node: a ring all-reduce in chunk steps, every message simulated, and all-to-all as the
// library's model sums it (pairs of one class are one activity).
//
// ring_chunk_steps runs 2 (n - 1) steps of n messages: 2.1 million for 1024 ranks. Counters: messages, events, per_message.
#include <benchmark/benchmark.h>

#include <numeric>
#include <vector>

#include "models/parallel/chunk_steps.hpp"
#include "sim/engine/engine.hpp"
#include "topologies/builders/rail_fat_tree.hpp"

namespace fabricast {
namespace {

Cluster single_gpu_nodes(std::uint32_t ranks) {
    NodeShape node;
    node.gpus = node.nics = 1;
    node.pcie_bytes_per_s = 51.5e9;
    node.pcie_latency_s = 1e-6;
    node.nic_bytes_per_s = 46e9;
    node.nic_latency_s = 0.6e-6;
    RailFatTree fabric;
    fabric.nodes = ranks;
    fabric.switch_latency_s = 0.25e-6;
    return build_rail_fat_tree(node, fabric);
}

CommModel model_of(const Cluster& cluster) {
    CommFacts facts;
    facts.nic_line_bytes_per_s = 50e9;
    CommSettings settings;
    settings.algorithms = {Algorithm::ring};
    settings.protocols = {Protocol::simple};
    return CommModel(cluster, facts, settings);
}

std::vector<std::uint32_t> first_ranks(std::uint32_t ranks) {
    std::vector<std::uint32_t> members(ranks);
    std::iota(members.begin(), members.end(), 0u);
    return members;
}

void ring_chunk_steps(benchmark::State& state) {
    const auto ranks = static_cast<std::uint32_t>(state.range(0));
    const Cluster cluster = single_gpu_nodes(ranks);
    const CommModel comm = model_of(cluster);
    std::vector<CallInfo> infos;
    const program::Program fluid =
        single_collective(cluster, comm, first_ranks(ranks), Collective::all_reduce, Bytes{1} << 28, infos);
    const program::Program chunks =
        expand_chunk_steps(fluid, infos, comm, cluster, GpuGeneration::hopper, {.max_ranks = ranks});
    if (const std::string broken = program::validate(chunks); !broken.empty()) {
        state.SkipWithError(broken.c_str());
        return;
    }
    engine::EngineResult result;
    for (auto _ : state)
        result = engine::Engine(chunks, cluster.links().capacity).run();
    if (result.outcome != engine::Outcome::done)
        state.SkipWithError(result.message.c_str());
    const double messages = 2.0 * (ranks - 1) * ranks;
    state.counters["messages"] = messages;
    state.counters["events"] = static_cast<double>(result.events);
    state.counters["per_message"] = benchmark::Counter(messages * static_cast<double>(state.iterations()),
                                                       benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(ring_chunk_steps)->Arg(64)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);

/// Plan and run: the sum over all pairs, then one or two activities.
void all_to_all_summed(benchmark::State& state) {
    const auto ranks = static_cast<std::uint32_t>(state.range(0));
    const Cluster cluster = single_gpu_nodes(ranks);
    const CommModel comm = model_of(cluster);
    engine::EngineResult result;
    for (auto _ : state) {
        std::vector<CallInfo> infos;
        const program::Program program =
            single_collective(cluster, comm, first_ranks(ranks), Collective::all_to_all, Bytes{1} << 28, infos);
        result = engine::Engine(program, cluster.links().capacity).run();
    }
    state.counters["pairs"] = static_cast<double>(ranks) * (ranks - 1);
    state.counters["activities"] = static_cast<double>(result.activities_touched);
}
BENCHMARK(all_to_all_summed)->Arg(64)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fabricast
