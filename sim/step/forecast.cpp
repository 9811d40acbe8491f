#include "sim/step/forecast.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "models/transformer/software.hpp"
#include "sim/step/fit_hints.hpp"
#include "topologies/builders/degradation.hpp"
#include "topologies/builders/rail_fat_tree.hpp"

namespace fabricast {
namespace {

// Use above this share of capacity is called tight: public runs met allocator stalls above about 85 % predicted use.
constexpr double kTight = 0.90;

std::vector<StageMemory> memory_table(const std::vector<StageSummary>& stages, const GpuSpec& gpu) {
    std::vector<StageMemory> out;
    for (std::size_t s = 0; s < stages.size(); ++s) {
        StageMemory row;
        row.stage = static_cast<int>(s);
        row.total_bytes = stages[s].memory.total;
        row.capacity_bytes = gpu.memory_mib << 20;
        row.parts = stages[s].memory.parts;
        out.push_back(row);
    }
    return out;
}

double bus_factor(Collective kind, double n) {
    return kind == Collective::all_reduce ? 2 * (n - 1) / n : kind == Collective::broadcast ? 1 : (n - 1) / n;
}

// The link that sets the rate of a demand alone on the network.
struct Bottleneck {
    Rate rate = 0;
    LinkId link{};
};
Bottleneck bottleneck(const Links& links, const std::vector<LinkUse>& demand, Rate cap) {
    Bottleneck out;
    for (const LinkUse& use : demand) {
        const auto rate =
            static_cast<Rate>((static_cast<__int128>(links.capacity[index(use.link)]) << 16) / use.coefficient);
        if (out.rate == 0 || rate < out.rate)
            out = {rate, use.link};
    }
    if (cap > 0 && cap < out.rate)
        out.rate = cap;
    return out;
}

std::vector<CommRow> communication_table(const CompiledStep& step, const Cluster& cluster) {
    std::vector<CommRow> out;
    const program::Program& p = step.program;
    for (const CallSummary& call : step.calls) {
        const program::Group& group = p.groups[call.example_group];
        if (group.members.size() < 2)
            continue;
        CommRow row;
        row.what = call.info.what;
        row.kind = collective_name(call.info.kind);
        row.group = call.group;
        row.bytes = call.info.bytes * call.info.share / 1000;
        row.calls_per_rank = call.calls_per_rank;
        row.algorithm = algorithm_name(call.plan.algorithm);
        row.protocol = protocol_name(call.plan.protocol);
        row.channels = call.plan.channels;
        Picoseconds slowest = 0;
        const program::Plan* plan = nullptr;
        for (std::size_t c = 0; c < p.calls.size(); ++c) {
            const program::Plan& candidate = p.plans[c][group.shape];
            if (p.calls[c].bytes == row.bytes && p.calls[c].kind == static_cast<std::uint8_t>(call.info.kind) &&
                p.calls[c].slot == static_cast<std::uint16_t>(call.info.slot) && !candidate.activities.empty())
                plan = &candidate;
        }
        if (plan != nullptr) {
            for (const program::Activity& activity : plan->activities) {
                const Bottleneck b =
                    bottleneck(cluster.links(), p.demands[group.demands[activity.demand_class]], activity.cap);
                const Picoseconds time = engine::Network::duration(activity.work, b.rate);
                if (time <= slowest)
                    continue;
                slowest = time;
                row.limiting_link = cluster.links().name[index(b.link)];
            }
            row.time_s = seconds(plan->latency + slowest);
            row.busbw_bytes_per_s = static_cast<double>(row.bytes) / row.time_s *
                                    bus_factor(call.info.kind, static_cast<double>(group.members.size()));
        }
        constexpr Account kSlotAccounts[] = {Account::comm_tp, Account::comm_parameter, Account::comm_gradient,
                                             Account::comm_other, Account::comm_other};
        row.account = kSlotAccounts[static_cast<std::size_t>(call.info.slot)];
        out.push_back(std::move(row));
    }
    // one row for pipeline messages
    if (!p.routes.empty()) {
        CommRow row;
        row.what = "pipeline send/receive";
        row.kind = "send_recv";
        row.group = fmt::format("pp {}", step.stages.size());
        for (const program::Batch& batch : p.batches) {
            for (const program::MessageHalf& half : batch.halves)
                row.bytes = std::max(row.bytes, half.bytes);
        }
        Picoseconds slowest = 0;
        for (const program::Route& route : p.routes) {
            const Bottleneck b = bottleneck(cluster.links(), p.demands[route.demand], route.cap);
            const Picoseconds time = route.latency + engine::Network::duration(row.bytes, b.rate);
            if (time <= slowest)
                continue;
            slowest = time;
            row.limiting_link = cluster.links().name[index(b.link)];
        }
        row.time_s = seconds(slowest);
        row.busbw_bytes_per_s = static_cast<double>(row.bytes) / row.time_s;
        row.account = Account::comm_pp;
        out.push_back(std::move(row));
    }
    std::stable_sort(out.begin(), out.end(), [](const CommRow& a, const CommRow& b) {
        return a.time_s * static_cast<double>(std::max<std::int64_t>(a.calls_per_rank, 1)) >
               b.time_s * static_cast<double>(std::max<std::int64_t>(b.calls_per_rank, 1));
    });
    return out;
}

void fill_step(Result& result, const engine::EngineResult& run, const CompiledStep& compiled,
               const Scenario& scenario) {
    StepResult& step = result.step;
    step.ps = run.period;
    step.periodic = run.periodic;
    step.steps_simulated = static_cast<int>(run.steps);
    step.by_stage.resize(compiled.stages.size());
    step.ranks_by_stage.resize(compiled.stages.size());
    for (std::size_t rank = 0; rank < run.accounts.size(); ++rank) {
        const auto stage = static_cast<std::size_t>(compiled.stage_of_rank[rank]);
        ++step.ranks_by_stage[stage];
        for (std::size_t a = 0; a < kAccountCount; ++a) {
            step.accounts[a] += run.accounts[rank][a];
            step.by_stage[stage][a] += run.accounts[rank][a];
        }
    }
    // Offsets that have not settled leave windows of different length: the difference is idle.
    __int128 sum = 0;
    for (const __int128 part : step.accounts)
        sum += part;
    const __int128 whole = static_cast<__int128>(step.ps) * step.ranks;
    step.accounts[static_cast<std::size_t>(Account::idle)] += whole - sum;
    (void)scenario;
}

void fill_critical_path(Result& result, const engine::EngineResult& run, const program::Program& program) {
    for (const engine::PathPart& part : engine::critical_path(program, run.path, run.path_begin, run.path_end)) {
        const std::string_view name =
            part.account == Account::idle ? "idle" : std::string_view(program.names[part.name]);
        result.critical_path.push_back({std::string(name), part.time});
    }
}

}  // namespace

namespace {

RailFatTree rail_fabric(const Scenario& s) {
    RailFatTree fabric;
    fabric.nodes = s.nodes;
    fabric.nodes_per_pod = s.fabric.nodes_per_pod;
    fabric.oversubscription = s.oversubscription;
    fabric.switch_latency_s = s.fabric.switch_latency_s;
    fabric.levels = s.levels;
    fabric.pods_per_block = s.pods_per_block;
    fabric.block_oversubscription = s.block_oversubscription;
    fabric.planes = s.planes;
    fabric.routing = s.routing;
    fabric.routing.seed = s.seed;
    fabric.spines = s.spines;
    return fabric;
}

FatTree plain_fabric(const Scenario& s) {
    const RailFatTree rails = rail_fabric(s);
    FatTree fabric;
    fabric.nodes = rails.nodes;
    fabric.nodes_per_leaf = rails.nodes_per_pod;
    fabric.levels = rails.levels;
    fabric.leaves_per_block = rails.pods_per_block;
    fabric.leaf_oversubscription = rails.oversubscription;
    fabric.block_oversubscription = rails.block_oversubscription;
    fabric.switch_latency_s = rails.switch_latency_s;
    fabric.planes = rails.planes;
    fabric.routing = rails.routing;
    fabric.spines = rails.spines;
    return fabric;
}

}  // namespace

Cluster build_cluster(const Scenario& s) {
    NodeShape node;
    node.gpus = s.node.gpus;
    node.nics = s.nodes == 1 && s.node.nics == 0 ? 0 : s.node.nics;
    node.nvlink_bytes_per_s = s.gpu.nvlink_achieved_bytes_per_s;
    node.nvlink_latency_s = s.node.nvlink_latency_s;
    node.pcie_bytes_per_s = s.gpu.pcie_bytes_per_s;
    node.pcie_latency_s = s.node.pcie_latency_s;
    node.nic_bytes_per_s = s.node.nic_bits_per_s / 8 * s.node.nic_efficiency;
    node.nic_latency_s = s.node.nic_latency_s;
    try {
        Cluster cluster = s.rails ? build_rail_fat_tree(node, rail_fabric(s)) : build_fat_tree(node, plain_fabric(s));
        std::vector<Degradation> degraded;
        for (const Scenario::DegradedPart& part : s.degraded) {
            degraded.emplace_back();
            degraded.back().what = part.what;
            degraded.back().factor = part.factor;
        }
        fabricast::apply(cluster, degraded);
        return cluster;
    } catch (const std::invalid_argument& refused) {
        const std::string where = s.degraded_where.empty() ? s.file : s.degraded_where;
        throw ScenarioError(where + ": cluster: " + refused.what());
    }
}

ComputeModel build_compute(const Scenario& s) {
    ComputeOptions options;
    options.attention = resolve_attention(s.software, s.gpu);
    // Unfused attention is priced as GEMMs and memory passes; the model still wants the name of a kernel the GPU has.
    if (options.attention == "unfused")
        options.attention = s.gpu.attention.begin()->first;
    if (s.power_limit_w > 0)
        options.power_fraction = s.power_limit_w / s.gpu.power_w;
    return ComputeModel(s.gpu, options);
}

CommFacts comm_facts(const Scenario& s) {
    CommFacts facts;
    facts.generation = s.gpu.generation;
    facts.nvswitch = s.gpu.nvlink_achieved_bytes_per_s > 0;
    facts.nvls = s.gpu.nvls;
    facts.amd_cpu = s.node.cpu == "amd";
    facts.nvlink_nccl_bytes_per_s = s.gpu.nvlink_nccl_bytes_per_s;
    facts.pcie_nccl_bytes_per_s = s.gpu.generation == GpuGeneration::volta    ? 12e9
                                  : s.gpu.generation == GpuGeneration::ampere ? 24e9
                                                                              : 48e9;
    facts.nic_line_bytes_per_s = s.node.nic_bits_per_s / 8;
    facts.sharp = s.comm.collnet;  // asked for: the switches are taken to reduce
    return facts;
}

Result forecast(const Scenario& scenario, ForecastOptions options) {
    Result result;
    result.version = FABRICAST_VERSION;
    result.scenario = &scenario;
    const ComputeModel compute = build_compute(scenario);
    result.step.ranks = scenario.training.layout.world();
    result.step.tokens =
        static_cast<double>(scenario.training.global_batch) * static_cast<double>(scenario.training.sequence);
    result.step.peak_flops = compute.peak_flops(scenario.training.precision);
    result.ranks_simulated = static_cast<std::uint64_t>(result.step.ranks);

    const std::vector<StageSummary> stages =
        stage_memory(scenario.model, scenario.training, scenario.software, compute);
    result.memory = memory_table(stages, scenario.gpu);
    const auto fullest =
        std::max_element(result.memory.begin(), result.memory.end(),
                         [](const StageMemory& a, const StageMemory& b) { return a.total_bytes < b.total_bytes; });
    const double use = static_cast<double>(fullest->total_bytes) / static_cast<double>(fullest->capacity_bytes);
    if (use > 1) {
        constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
        result.verdict = "out of memory";
        result.failure = fmt::format("out of memory: stage {} needs {:.1f} GiB, a {} has {:.1f} GiB", fullest->stage,
                                     static_cast<double>(fullest->total_bytes) / kGiB, scenario.gpu.name,
                                     static_cast<double>(fullest->capacity_bytes) / kGiB);
        result.hints = what_would_fit(scenario, compute);
        return result;
    }
    result.verdict = use > kTight ? "tight" : "fits";

    const Cluster cluster = build_cluster(scenario);
    const CommModel comm(cluster, comm_facts(scenario), scenario.comm);
    CompiledStep compiled;
    try {
        compiled = compile_step(scenario.model, scenario.training, scenario.software, cluster, compute, comm,
                                options.max_steps);
    } catch (const std::invalid_argument& refused) {  // as the library does: settings that leave a call no algorithm
        result.verdict = "refused by the communication library";
        result.failure = refused.what();
        return result;
    }
    result.step.model_flops = compiled.model_flops;
    result.step.hardware_flops = compiled.hardware_flops;
    result.communication = communication_table(compiled, cluster);

    engine::EngineOptions engine_options;
    engine_options.track_path = true;
    engine::EngineResult run = engine::Engine(compiled.program, cluster.links().capacity, engine_options).run();
    result.events = run.events;
    result.fingerprint = run.fingerprint;
    if (run.outcome != engine::Outcome::done) {
        result.verdict = run.outcome == engine::Outcome::deadlock ? "deadlock" : "mismatch";
        result.failure = run.message;
        return result;
    }
    fill_step(result, run, compiled, scenario);
    fill_critical_path(result, run, compiled.program);
    return result;
}

}  // namespace fabricast
