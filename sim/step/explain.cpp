#include "sim/step/explain.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "sim/step/communication_total.hpp"
#include "sim/step/program_edits.hpp"

namespace fabricast {
namespace {

using program::Program;

class Explainer {
public:
    Explainer(const Scenario& scenario, ForecastOptions options, Explanation& out)
        : scenario_(scenario), options_(options), out_(out), built_(build(scenario, {})) {}

    void run() {
        const Program& p = built_->compiled.program;
        out_.events = out_.run.events;
        out_.communication = communication_total(p, built_->cluster.links());
        const std::optional<StepResult> equal = split_waiting();
        perfect_overlap();
        no_bubble();
        equal_work(equal);
        infinite_network();
        infinite_nvlink();
        no_recompute();
        without_interference();
        dense_peak();
        without_launches();
        without_stragglers();
        without_host();
    }

private:
    const Result& base() const { return out_.run; }
    bool has(Account account) const { return base().step.accounts[static_cast<std::size_t>(account)] > 0; }

    std::optional<BuiltStep> build(const Scenario& scenario, ComputeOptions changed) const {
        ComputeOptions options = compute_options(scenario);
        options.gemm_at_peak = changed.gemm_at_peak;
        return build_step(scenario, ComputeModel(scenario.gpu, options), options_.max_steps);
    }

    /// Nothing when the re-run does not end (then it is no ceiling).
    std::optional<StepResult> simulate(const CompiledStep& compiled, const Program& program,
                                       const std::vector<Rate>& capacity) {
        const StepRun run = run_program(program, capacity, options_.fold,
                                        {.quantum = scenario_.quantum, .fold_time = options_.fold_time});
        out_.events += run.engine.events;
        if (run.engine.outcome != engine::Outcome::done)
            return std::nullopt;
        StepResult step = base().step;
        step.accounts = {};
        step.by_stage.clear();
        step.ranks_by_stage.clear();
        fill_step(step, run, compiled);
        return step;
    }
    template <typename Edit>
    std::optional<StepResult> edited(Edit edit) {
        Program program = built_->compiled.program;
        edit(program);
        return simulate(built_->compiled, program, built_->cluster.links().capacity);
    }

    void add(Ceiling ceiling, bool present, const std::optional<StepResult>& step) {
        const StepResult& run = base().step;
        ceiling.present = present && step.has_value();
        ceiling.rerun_ps = ceiling.present ? step->ps : run.ps;
        ceiling.ps = std::min(ceiling.rerun_ps, run.ps);
        if (present && !step)
            ceiling.note = "the re-run did not end";
        if (ceiling.rerun_ps > run.ps)
            ceiling.note = fmt::format("no gain: traffic meets at other moments, the re-run took {:.3f} s",
                                       seconds(ceiling.rerun_ps));
        ceiling.mfu = run.model_flops / (seconds(ceiling.ps) * static_cast<double>(run.ranks) * run.peak_flops);
        out_.ceilings.push_back(std::move(ceiling));
    }

    std::optional<StepResult> split_waiting() {
        if (built_->compiled.stages.size() < 2)
            return std::nullopt;
        std::optional<StepResult> equal = edited([](Program& p) { equal_stages(p); });
        if (!equal)
            return equal;
        out_.run.waiting = waiting_split(base().step, *equal);
        return equal;
    }

    void perfect_overlap() {
        bool any = false;
        for (const __int128 time : out_.communication)
            any |= time > 0;
        std::optional<StepResult> step;
        if (any)
            step = edited([](Program& p) { free_communication(p); });
        add({.key = "perfect_overlap",
             .name = "perfect overlap",
             .how =
                 "re-run in which every collective and message takes no time and compute runs undisturbed; ranks still "
                 "wait for each other"},
            any, step);
    }

    void no_bubble() {
        const bool pipeline = built_->compiled.stages.size() > 1;
        std::optional<StepResult> step;
        if (pipeline)
            step = edited([](Program& p) {
                equal_stages(p);
                full_pipeline(p);
            });
        add({.key = "no_bubble",
             .name = "no pipeline bubble",
             .how = "re-run in which no stage waits for another's message and all stages have the mean work; messages "
                    "still load the links"},
            pipeline, step);
    }

    void equal_work(const std::optional<StepResult>& equal) {
        add({.key = "equal_stages",
             .name = "equal stages",
             .how = "re-run in which the compute of forward, backward and the rest is the mean over stages in every "
                    "stage"},
            built_->compiled.stages.size() > 1, equal);
    }

    void infinite_network() {
        const bool network = built_->cluster.node_count() > 1;
        std::optional<StepResult> step;
        if (network)
            step = simulate(built_->compiled, built_->compiled.program,
                            unlimited(built_->cluster.links(), {LinkKind::nic, LinkKind::fabric}));
        add({.key = "infinite_network",
             .name = "infinite network",
             .how = "re-run with adapters and switches between nodes of 1 PB/s a link; latency, NVLink, PCIe and the "
                    "library's channels as they are"},
            network, step);
    }

    void infinite_nvlink() {
        const Links& links = built_->cluster.links();
        const bool nvlink = std::find(links.kind.begin(), links.kind.end(), LinkKind::nvlink) != links.kind.end();
        std::optional<StepResult> step;
        if (nvlink)
            step = simulate(built_->compiled, built_->compiled.program, unlimited(links, {LinkKind::nvlink}));
        add({.key = "infinite_nvlink",
             .name = "infinite NVLink",
             .how = "re-run with NVLink and its switches of 1 PB/s a link; latency, the network and the library's "
                    "channels as they are"},
            nvlink, step);
    }

    void no_recompute() {
        const bool recomputes = scenario_.training.recompute != Recompute::none;
        Ceiling ceiling = {.key = "no_recompute",
                           .name = "no recomputation",
                           .how = "recompiled with recompute: none and re-run; whether it fits is told beside it"};
        std::optional<StepResult> step;
        if (recomputes) {
            Scenario changed = scenario_;
            changed.training.recompute = Recompute::none;
            const std::optional<BuiltStep> built = build(changed, {});
            step = simulate(built->compiled, built->compiled.program, built->cluster.links().capacity);
            Bytes most = 0;
            for (const StageSummary& stage : built->compiled.stages)
                most = std::max<Bytes>(most, stage.memory.total);
            const double gib = static_cast<double>(most) / (1024.0 * 1024.0 * 1024.0);
            const double has = static_cast<double>(scenario_.gpu.memory_mib) / 1024.0;
            ceiling.note = gib > has ? fmt::format("does not fit: needs {:.1f} of {:.1f} GiB", gib, has)
                                     : fmt::format("fits: {:.1f} of {:.1f} GiB", gib, has);
        }
        add(std::move(ceiling), recomputes, step);
    }

    void without_interference() {
        std::optional<StepResult> step;
        if (has(Account::interference))
            step = edited([](Program& p) { no_interference(p); });
        add({.key = "no_interference",
             .name = "no interference",
             .how = "re-run in which compute keeps its full speed while data move"},
            has(Account::interference), step);
    }

    void dense_peak() {
        ComputeOptions at_peak;
        at_peak.gemm_at_peak = true;
        const std::optional<BuiltStep> built = build(scenario_, at_peak);
        add({.key = "dense_peak_gemms",
             .name = "matrix products at dense peak",
             .how = "recompiled with every matrix product, also a recomputed one, at the dense peak, and re-run"},
            true, simulate(built->compiled, built->compiled.program, built->cluster.links().capacity));
    }

    void without_launches() {
        if (!has(Account::host_bound))
            return;
        add({.key = "free_launches",
             .name = "free kernel launches",
             .how = "re-run in which the CPU issues work in no time"},
            true, edited([](Program& p) { free_launches(p); }));
    }

    void without_host() {
        if (!scenario_.training.offload.active())
            return;
        add({.key = "free_host",
             .name = "free host memory",
             .how = "re-run in which copies to and from the host and updates on its CPU take no time"},
            true, edited([](Program& p) { free_host(p); }));
    }

    void without_stragglers() {
        const Program& p = built_->compiled.program;
        const auto slow = [](const program::Rank& rank) { return rank.slowness > program::kFullSpeed; };
        const auto late = [](const program::Template& t) {
            return std::any_of(t.operations.begin(), t.operations.end(), [](const auto& op) { return op.late > 0; });
        };
        if (std::none_of(p.ranks.begin(), p.ranks.end(), slow) &&
            std::none_of(p.templates.begin(), p.templates.end(), late))
            return;
        add({.key = "equal_ranks",
             .name = "no slow GPUs",
             .how = "re-run in which every GPU is as fast as the nominal one, at all times"},
            true, edited([](Program& edited) { equal_ranks(edited); }));
    }

    const Scenario& scenario_;
    ForecastOptions options_;
    Explanation& out_;
    std::optional<BuiltStep> built_;
};

}  // namespace

Explanation explain(const Scenario& scenario, ForecastOptions options) {
    Explanation out;
    out.run = forecast(scenario, options);
    out.events = out.run.events;
    if (out.run.step.ps > 0)
        Explainer(scenario, options, out).run();
    return out;
}

}  // namespace fabricast
