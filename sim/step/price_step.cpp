#include "sim/step/price_step.hpp"

#include <stdexcept>
#include <utility>

#include "sim/step/gpu_speeds.hpp"
#include "sim/step/job_program.hpp"
#include "sim/step/step_faults.hpp"

namespace fabricast {

PricedStep price_step(const Scenario& s, const ComputeModel& compute, const Cluster& cluster, const CommModel& comm,
                      const ForecastOptions& options, const CompileOptions& compiling) {
    PricedStep out;
    CompiledStep compiled;
    try {
        compiled = compile_step(s.model, s.training, s.software, cluster, compute, comm, options.max_steps, compiling);
    } catch (const std::invalid_argument& refused) {
        out.failure = refused.what();
        return out;
    }
    out.stages = compiled.stages;
    out.fits = !compiled.program.ranks.empty();
    if (!out.fits)
        return out;
    if (steps_differ(s)) {  // drawn, or fed by a loader: their mean is taken step by step
        Result mean = forecast(s, options);
        out.failure = std::move(mean.failure);
        out.step = std::move(mean.step);
        out.events = mean.events;
        return out;
    }
    set_gpu_speeds(s, compiled.program);
    set_lateness(s, compiled.program);
    slow_by_faults(s, compiled.stage_of_rank, compiled.program);
    engine::EngineOptions engine_options;
    engine_options.fold_time = options.fold_time;
    engine_options.quantum = s.quantum;
    engine_options.brief = true;
    const StepRun run =
        run_program(std::move(compiled.program), cluster.links().capacity, options.fold, engine_options);
    out.events = run.engine.events;
    if (run.engine.outcome != engine::Outcome::done) {
        out.failure = run.engine.message;
        return out;
    }
    out.step = step_of(s, compute);
    out.step.model_flops = compiled.model_flops;
    out.step.hardware_flops = compiled.hardware_flops;
    fill_step(out.step, run, compiled);
    return out;
}

FullestStage fullest_stage(const std::vector<StageSummary>& stages) {
    FullestStage out;
    for (std::size_t s = 0; s < stages.size(); ++s) {
        if (stages[s].memory.total > out.total)
            out = {static_cast<int>(s), stages[s].memory.total};
    }
    return out;
}

}  // namespace fabricast
