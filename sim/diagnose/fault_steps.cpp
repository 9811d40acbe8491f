#include "sim/diagnose/fault_steps.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include "sim/step/build_cluster.hpp"
#include "sim/step/job_program.hpp"
#include "sim/step/step_faults.hpp"

namespace fabricast {
namespace {

constexpr std::int64_t kAssumedWorkers = 2;  // PyTorch's scripts of the frameworks take 2

std::uint32_t busiest_rank(const StepResult& step, const std::vector<int>& stage_of_rank, double& compute_share) {
    std::size_t busiest = 0;
    double most = -1;
    for (std::size_t s = 0; s < step.by_stage.size(); ++s) {
        double sum = 0;
        for (auto a = static_cast<std::size_t>(Account::gemm_ideal); a <= static_cast<std::size_t>(Account::host_bound);
             ++a)
            sum += static_cast<double>(step.by_stage[s][a]);
        sum /= static_cast<double>(std::max<std::int64_t>(step.ranks_by_stage[s], 1));
        if (sum > most * (1 + 1e-9)) {
            most = sum;
            busiest = s;
            compute_share = sum / static_cast<double>(step.ps);
        }
    }
    const auto at = std::find(stage_of_rank.begin(), stage_of_rank.end(), static_cast<int>(busiest));
    return at == stage_of_rank.end() ? 0 : static_cast<std::uint32_t>(at - stage_of_rank.begin());
}

void replace(std::string& text, std::string_view what, const std::string& by) {
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
        text.replace(at, what.size(), by);
}

}  // namespace

FaultSteps::FaultSteps(const Scenario& scenario, const Result& healthy)
    : scenario_(scenario),
      plain_(scenario),
      built_(build_step(scenario, build_compute(scenario), ForecastOptions().max_steps)) {
    plain_.data.samples = 0;
    plain_.data.boundaries.clear();
    plain_.faults.clear();
    place_ = busiest_rank(healthy.step, built_.compiled.stage_of_rank, compute_share_);
    const StepRun run =
        run_program(built_.compiled.program, built_.cluster.links().capacity, true, {.quantum = scenario.quantum});
    events_ += run.engine.events;
    healthy_s_ = seconds(run.engine.period);
    loading_ = plain_;
    DataPlan& d = loading_.data;
    const auto batch = static_cast<double>(scenario.training.global_batch / scenario.training.layout.dp);
    if (d.sample_s <= 0) {
        loader_assumed_ = true;
        d.workers = d.workers > 0 ? d.workers : kAssumedWorkers;
        d.sample_s = kAssumedLoad * healthy_s_ * static_cast<double>(d.workers) / batch;
    }
    loader_s_ = batch * d.sample_s / static_cast<double>(std::max<std::int64_t>(d.workers, 1));
    if (const std::optional<Scenario> held = with(plain_, placed("gpu {gpu} clock {} MHz", "1000")))
        nominal_mhz_ = held->faults.back().factor * 1000;
}

std::optional<Scenario> FaultSteps::with(const Scenario& base, const std::string& fault) const {
    Scenario out = base;
    try {
        inject_fault(out, fault);
    } catch (const ScenarioError&) {  // this cluster has no such part
        return std::nullopt;
    }
    return out;
}

std::string FaultSteps::placed(const std::string& inject, const std::string& severity) const {
    std::string text = inject;
    const std::uint32_t per_node = std::max<std::uint32_t>(1, scenario_.node.gpus), node = place_ / per_node,
                        gpu = place_ % per_node;
    const std::uint32_t nics = std::max<std::uint32_t>(1, built_.cluster.nics_per_node());
    replace(text, "{gpu}", fmt::format("{}.{}", node, gpu));
    replace(text, "{node}", fmt::format("{}", node));
    replace(text, "{nic}", fmt::format("{}.{}", node, gpu * nics / per_node));
    replace(text, "{stage}", fmt::format("{}", std::max<std::size_t>(built_.compiled.stages.size(), 1) - 1));
    replace(text, "{}", severity);
    return text;
}

FaultSteps::Simulated FaultSteps::simulate(const std::string& fault) const {
    Simulated out;
    const std::optional<Scenario> s = with(plain_, fault);
    if (!s)
        return out;
    try {
        Cluster cluster = build_cluster(scenario_);  // routes and links are those of built_
        program::Program program = built_.compiled.program;
        degrade_by_faults(*s, cluster);
        slow_by_faults(*s, built_.compiled.stage_of_rank, program);
        const StepRun run = run_program(program, cluster.links().capacity, true, {.quantum = scenario_.quantum});
        out.events = run.engine.events;
        out.ran = true;
        if (run.engine.outcome == engine::Outcome::done)
            out.step_s = seconds(run.engine.period);
    } catch (const ScenarioError&) {  // this cluster has no such part
    }
    return out;
}

void FaultSteps::prepare(const std::vector<std::string>& faults) {
    std::vector<std::string> missing;
    for (const std::string& fault : faults)
        if (steps_.count(fault) == 0 && std::find(missing.begin(), missing.end(), fault) == missing.end())
            missing.push_back(fault);
    std::vector<Simulated> all(missing.size());
    tbb::parallel_for(std::size_t{0}, missing.size(), [&](std::size_t i) { all[i] = simulate(missing[i]); });
    for (std::size_t i = 0; i < missing.size(); ++i) {
        steps_[missing[i]] = all[i].step_s;
        events_ += all[i].events;
        simulated_ += all[i].ran ? 1 : 0;
    }
}

std::optional<double> FaultSteps::step_s(const std::string& fault) {
    if (steps_.count(fault) == 0)
        prepare({fault});
    return steps_.at(fault);
}

double FaultSteps::loss_that_keeps(double keeps) const {
    return fabricast::loss_that_keeps(built_.cluster, placed("nic {nic}", ""), keeps);
}

const std::vector<double>& FaultSteps::series(const std::string& fault, std::int64_t steps) {
    const std::string key = fmt::format("{} x {}", fault, steps);
    const auto known = series_.find(key);
    if (known != series_.end())
        return known->second;
    std::vector<double>& out = series_[key];
    const std::optional<Scenario> s = with(loading_, fault);
    if (!s)
        return out;
    // Without a fault of the loader, data are there: nothing to settle.
    Scenario run_as = *s;
    using Kind = StepFault::Kind;
    const Kind kind = run_as.faults.back().kind;
    const bool loads = kind == Kind::storage || kind == Kind::loader || kind == Kind::wandering || kind == Kind::leak;
    if (!loads)
        run_as.data.sample_s = 0;
    const std::int64_t settling = kSettlingSteps + (loads ? run_as.data.workers * (run_as.data.prefetch + 1) : 0);
    JobShape shape;
    shape.step = picoseconds_from_s(healthy_s_);
    shape.steps = {
        std::vector<std::int64_t>(static_cast<std::size_t>(scenario_.training.layout.world()), settling + steps)};
    const program::Program program = job_program(run_as, built_.compiled, shape);
    engine::EngineOptions options;
    options.stop_when_periodic = false;
    options.keep_step_ends = true;
    const StepRun run = run_program(program, built_.cluster.links().capacity, true, options);
    events_ += run.engine.events;
    simulated_ += settling + steps;
    if (run.engine.outcome != engine::Outcome::done || run.engine.step_ends.empty())
        return out;
    const std::vector<Picoseconds>& ends = run.engine.step_ends.front();
    for (std::size_t i = static_cast<std::size_t>(settling); i < ends.size(); ++i)
        out.push_back(seconds(ends[i] - ends[i - 1]) / healthy_s_);
    return out;
}

std::optional<double> FaultSteps::stall_s(double lasts_s) {
    const auto known = stalls_.find(lasts_s);
    if (known != stalls_.end())
        return known->second;
    std::optional<double>& out = stalls_[lasts_s];
    const double at = 1.3 * healthy_s_;
    const std::optional<Scenario> s =
        with(plain_, placed(fmt::format("nic {{nic}} flap at {:.9f} s for {:.6f} s", at, lasts_s), ""));
    if (!s)
        return out;
    try {
        engine::EngineOptions options;
        options.stop_when_periodic = false;
        options.keep_step_ends = true;
        options.changes = changes_of_faults(*s, built_.cluster, built_.compiled.program, built_.compiled.stage_of_rank);
        for (engine::Change& change : options.changes)
            change.patience = picoseconds_from_s(1e6);  // whether the transport gives up is another question
        const engine::EngineResult run =
            engine::Engine(built_.compiled.program, built_.cluster.links().capacity, options).run();
        events_ += run.events;
        ++simulated_;
        if (run.outcome == engine::Outcome::done && !run.step_ends.empty() && !run.step_ends[0].empty())
            out = seconds(run.step_ends[0].back()) - static_cast<double>(run.step_ends[0].size()) * healthy_s_;
    } catch (const ScenarioError&) {
    }
    return out;
}

}  // namespace fabricast
