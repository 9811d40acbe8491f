#include "sim/step/forecast.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "models/parallel/memory.hpp"
#include "models/parallel/placement.hpp"
#include "models/parallel/ranks.hpp"
#include "models/transformer/software.hpp"
#include "sim/step/build_cluster.hpp"
#include "sim/step/communication_table.hpp"
#include "sim/step/fit_hints.hpp"
#include "sim/step/gpu_speeds.hpp"
#include "sim/step/job_program.hpp"
#include "sim/step/job_run.hpp"
#include "sim/step/limit_hints.hpp"
#include "sim/step/program_edits.hpp"
#include "sim/step/step_faults.hpp"

namespace fabricast {
namespace {

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

void fill_critical_path(Result& result, const engine::EngineResult& run, const program::Program& program) {
    for (const engine::PathPart& part : engine::critical_path(program, run.path, run.path_begin, run.path_end)) {
        const std::string_view name =
            part.account == Account::idle ? "idle" : std::string_view(program.names[part.name]);
        result.critical_path.push_back({std::string(name), part.time});
    }
}

}  // namespace

ComputeOptions compute_options(const Scenario& s) {
    ComputeOptions options;
    options.attention = resolve_attention(s.software, s.gpu);
    // Unfused attention is priced as GEMMs and memory passes; the model still wants the name of a kernel the GPU has.
    if (options.attention == "unfused")
        options.attention = s.gpu.attention.begin()->first;
    if (s.power_limit_w > 0)
        options.power_fraction = s.power_limit_w / s.gpu.power_w;
    return options;
}

ComputeModel build_compute(const Scenario& s) { return ComputeModel(s.gpu, compute_options(s)); }

BuiltStep build_step(const Scenario& s, const ComputeModel& compute, int max_steps, const CompileOptions& compiling) {
    BuiltStep built{build_cluster(s), {}, 0};
    if (s.training.offload.active() && !built.cluster.has_pcie())
        throw ScenarioError(s.offload_where +
                            ": training.offload: the cluster is described without PCIe links, over which state would "
                            "travel");
    const CommModel comm(built.cluster, comm_facts(s, built.cluster), s.comm);
    built.compiled = compile_step(s.model, s.training, s.software, built.cluster, compute, comm, max_steps, compiling);
    set_gpu_speeds(s, built.compiled.program);
    set_lateness(s, built.compiled.program);
    slow_by_faults(s, built.compiled.stage_of_rank, built.compiled.program);
    if (s.data.samples > 0) {
        std::vector<GpuId> all;
        for (std::uint32_t rank = 0; rank < built.compiled.program.ranks.size(); ++rank)
            all.push_back(GpuId{rank});
        built.meeting = comm.plan(comm.make_group(all), Collective::barrier, 0).latency;
    }
    return built;
}

// Recomputation runs a forward, a third of the whole, again.
StepResult step_of(const Scenario& s, const ComputeModel& compute) {
    const TrainingPlan& plan = s.training;
    StepResult step;
    step.ranks = plan.layout.world();
    step.tokens = static_cast<double>(plan.global_batch) * static_cast<double>(plan.sequence);
    step.peak_flops = compute.peak_flops(plan.precision);
    const auto batch = static_cast<double>(plan.global_batch), length = static_cast<double>(plan.sequence);
    const auto document = static_cast<double>(plan.document);
    step.model_flops = model_flops(s.model, batch, length, padded_vocab(s.model, plan.layout.tp), document);
    step.attention_flops = attention_flops(s.model, batch, length, document);
    step.attention_flops_whole = attention_flops(s.model, batch, length);
    step.attention_hardware_flops = step.attention_flops;
    if (plan.recompute != Recompute::none)
        step.attention_hardware_flops *= 1 + recomputed_share(s.model, plan.layout, plan.recompute_layers) / 3;
    return step;
}

void fill_step(StepResult& step, const StepRun& run, const CompiledStep& compiled) {
    step.ps = run.engine.period;
    step.periodic = run.engine.periodic;
    step.steps_simulated = static_cast<int>(run.engine.steps);
    step.by_stage.resize(compiled.stages.size());
    step.ranks_by_stage.resize(compiled.stages.size());
    for (std::size_t row = 0; row < run.rows.size(); ++row) {
        const auto stage = static_cast<std::size_t>(compiled.stage_of_rank[run.rows[row].rank]);
        step.ranks_by_stage[stage] += run.rows[row].copies;
        for (std::size_t a = 0; a < kAccountCount; ++a) {
            const __int128 time = static_cast<__int128>(run.engine.accounts[row][a]) * run.rows[row].copies;
            step.accounts[a] += time;
            step.by_stage[stage][a] += time;
        }
    }
    // Offsets that have not settled leave windows of different length; the period is the longest, the rest is idle.
    __int128 sum = 0;
    for (const __int128 part : step.accounts)
        sum += part;
    const __int128 whole = static_cast<__int128>(step.ps) * step.ranks;
    step.accounts[static_cast<std::size_t>(Account::idle)] += whole - sum;
}

WaitingSplit waiting_split(const StepResult& run, const StepResult& equal) {
    const auto vanished = [&](Account account) {
        const auto a = static_cast<std::size_t>(account);
        return std::max<__int128>(run.accounts[a] - equal.accounts[a], 0);
    };
    return {.bubble_imbalance = vanished(Account::bubble), .straggler_imbalance = vanished(Account::straggler)};
}

namespace {

// Equal stages tell no ranks apart that were alike before: what was folded stays folded.
void split_waiting(Result& result, const BuiltStep& built, const StepRun& run, bool fold_time) {
    if (built.compiled.stages.size() < 2)
        return;
    program::Program program = run.is_folded ? run.folded : built.compiled.program;
    equal_stages(program);
    StepRun again;
    again.rows = run.rows;
    const std::vector<Rate>& capacity = run.is_folded ? run.capacity : built.cluster.links().capacity;
    again.engine =
        engine::Engine(program, capacity, {.quantum = result.scenario->quantum, .fold_time = fold_time}).run();
    if (again.engine.outcome != engine::Outcome::done)
        return;
    StepResult equal;
    equal.ranks = result.step.ranks;
    fill_step(equal, again, built.compiled);
    result.waiting = waiting_split(result.step, equal);
    result.waiting->events = again.engine.events;
}

// Training state of the fullest server in host memory.
Bytes most_on_host(const Scenario& s, const std::vector<StageSummary>& stages) {
    const RankMap map(s.training.layout);
    Bytes most = 0, here = 0;
    for (std::uint32_t rank = 0; rank < map.world(); ++rank) {
        if (rank % s.node.gpus == 0)
            here = 0;
        here += stages[static_cast<std::size_t>(map.at(rank).pp)].host;
        most = std::max(most, here);
    }
    return most;
}

// Steps before compression begins, for the length of the run.
Picoseconds warming_step(const Scenario& scenario, ForecastOptions options) {
    Scenario before = scenario;
    before.training.compression.warming_up = true;
    before.compression_warmup = 0;
    options.over_memory = true;
    options.critical_path = false;
    return forecast(before, options).step.ps;
}

}  // namespace

Result forecast(const Scenario& scenario, ForecastOptions options) {
    Result result;
    result.version = FABRICAST_VERSION;
    result.scenario = &scenario;
    const ComputeModel compute = build_compute(scenario);
    result.step = step_of(scenario, compute);
    result.ranks_simulated = static_cast<std::uint64_t>(result.step.ranks);

    const std::vector<StageSummary> stages =
        stage_memory(scenario.model, scenario.training, scenario.software, compute);
    result.memory = memory_table(stages, scenario.gpu);
    result.checkpoint_bytes = checkpoint_bytes(scenario.model, scenario.training);
    constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
    if (scenario.training.offload.active()) {
        result.host_bytes = most_on_host(scenario, stages);
        const auto capacity = static_cast<std::int64_t>(scenario.node.host_memory_bytes);
        if (capacity > 0 && result.host_bytes > capacity && !options.over_memory) {
            result.verdict = "out of host memory";
            result.failure =
                fmt::format("out of host memory: offloaded state of a server needs {:.1f} GiB, a {} has {:.1f} GiB",
                            static_cast<double>(result.host_bytes) / kGiB, scenario.node.name,
                            static_cast<double>(capacity) / kGiB);
            return result;
        }
    }
    const auto fullest =
        std::max_element(result.memory.begin(), result.memory.end(),
                         [](const StageMemory& a, const StageMemory& b) { return a.total_bytes < b.total_bytes; });
    const double use = static_cast<double>(fullest->total_bytes) / static_cast<double>(fullest->capacity_bytes);
    if (use > 1 && !options.over_memory) {
        result.verdict = "out of memory";
        result.failure = fmt::format("out of memory: stage {} needs {:.1f} GiB, a {} has {:.1f} GiB", fullest->stage,
                                     static_cast<double>(fullest->total_bytes) / kGiB, scenario.gpu.name,
                                     static_cast<double>(fullest->capacity_bytes) / kGiB);
        result.hints = what_would_fit(scenario, compute);
        return result;
    }
    result.verdict = use > 1 ? "out of memory" : use > kTightUse ? "tight" : "fits";

    std::optional<BuiltStep> built;
    try {
        built = build_step(scenario, compute, options.max_steps);
    } catch (const std::invalid_argument& refused) {  // as the library does: settings that leave a call no algorithm
        result.verdict = "refused by the communication library";
        result.failure = refused.what();
        return result;
    }
    const CompiledStep& compiled = built->compiled;
    const Cluster& cluster = built->cluster;
    result.step.model_flops = compiled.model_flops;
    result.step.hardware_flops = compiled.hardware_flops;
    result.communication = communication_table(compiled, cluster);

    engine::EngineOptions engine_options;
    engine_options.track_path = options.critical_path;
    engine_options.fold_time = options.fold_time;
    engine_options.quantum = scenario.quantum;
    const StepRun step_run = run_program(compiled.program, cluster.links().capacity, options.fold, engine_options);
    const engine::EngineResult& run = step_run.engine;
    result.events = run.events;
    result.fingerprint = run.fingerprint;
    result.ranks_simulated = step_run.rows.size();
    if (scenario.quantum > 0)
        result.quantum = {run.batching.completions, run.batching.put_off, run.batching.held, run.batching.longest,
                          run.late};
    if (run.outcome != engine::Outcome::done) {
        result.verdict = run.outcome == engine::Outcome::deadlock ? "deadlock" : "mismatch";
        result.failure = run.message;
        return result;
    }
    fill_step(result.step, step_run, compiled);
    if (options.split_waiting)
        split_waiting(result, *built, step_run, options.fold_time);
    if (options.critical_path)
        fill_critical_path(result, run, step_run.is_folded ? step_run.folded : compiled.program);
    result.hints = limit_hints(result);
    if (steps_differ(scenario))
        run_differing_steps(scenario, *built, result);
    if (runs_as_job(scenario))
        run_job(scenario, *built, options.fold && options.memo, result);
    if (scenario.compression_warmup > 0)
        result.warmup_ps = warming_step(scenario, options);
    return result;
}

}  // namespace fabricast
