// run: how long, how it is saved, how it comes back.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/parallel/memory.hpp"
#include "sim/scenario/fill.hpp"

namespace fabricast {
namespace {

const faults::Defaults& defaults() { return faults::FaultCatalogue::builtin().defaults(); }

/// What the scenario says, else `otherwise`.
double number(const Answers& answers, const std::string& key, double otherwise) {
    const Answer* answer = answers.given(key);
    return answer ? answer->number : otherwise;
}

void fill_checkpoint(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    RunPlan::Checkpoint& c = s.run.checkpoint;
    const std::string mode = answers.get("run.checkpoint.mode").text;
    c.mode = mode == "none"    ? RunPlan::Save::none
             : mode == "sync"  ? RunPlan::Save::sync
             : mode == "async" ? RunPlan::Save::async
                               : RunPlan::Save::memory;
    c.every_s = number(answers, "run.checkpoint.every", 0);
    c.every_steps = static_cast<std::int64_t>(number(answers, "run.checkpoint.every_steps", 0));
    if (c.every_s > 0 && c.every_steps > 0)
        diagnostics.error(answers.place("run.checkpoint.every_steps"),
                          "run.checkpoint: every and every_steps say the same thing twice; leave one out");
    c.write_bytes_per_s = number(answers, "run.checkpoint.write", defaults().storage_bytes_per_s);
    c.read_bytes_per_s = number(answers, "run.checkpoint.read", c.write_bytes_per_s);
    c.on_job_network = answers.get("run.checkpoint.network").text == "job" && s.nodes > 1;
    c.copies_every = answers.get("run.checkpoint.copies_every").integer;
    c.spread = number(answers, "run.checkpoint.spread", 0);
    const std::int64_t keep = answers.get("run.checkpoint.keep").integer;
    const Answer* capacity = answers.given("run.checkpoint.capacity");
    if (!capacity || c.mode == RunPlan::Save::none)
        return;
    const auto bytes = static_cast<double>(checkpoint_bytes(s.model, s.training));
    if (bytes * static_cast<double>(keep) > capacity->number)
        diagnostics.error(
            capacity->place,
            fmt::format("run.checkpoint.capacity: `{}` does not hold {} checkpoint{} of {:.3g} TB (weights and "
                        "optimizer state); it needs at least {:.3g} TB",
                        capacity->text, keep, keep == 1 ? "" : "s", bytes / 1e12,
                        bytes * static_cast<double>(keep) / 1e12));
}

void fill_recovery(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    RunPlan::Recovery& r = s.run.recovery;
    const std::string style = answers.get("run.recovery.style").text;
    r.style = style == "restart"     ? RunPlan::Style::restart
              : style == "shrink"    ? RunPlan::Style::shrink
              : style == "hot-spare" ? RunPlan::Style::hot_spare
                                     : RunPlan::Style::replicas;
    constexpr double kSilent = 3600, kMembership = 10;
    r.crash_s = number(answers, "run.recovery.crash", defaults().detect_crash_s);
    r.transport_s = number(answers, "run.recovery.transport", defaults().detect_transport_s);
    r.silent_s = number(answers, "run.recovery.silent", kSilent);
    r.locate_s = number(answers, "run.recovery.locate", defaults().locate_s);
    r.swap_s = number(answers, "run.recovery.swap", defaults().swap_s);
    r.start_s = number(answers, "run.recovery.start", defaults().start_s);
    r.communicators_s = number(answers, "run.recovery.communicators", defaults().communicators_s);
    r.membership_s = number(answers, "run.recovery.membership", kMembership);
    r.spread = number(answers, "run.recovery.spread", defaults().restart_spread);
    const bool partial = r.style == RunPlan::Style::shrink || r.style == RunPlan::Style::replicas;
    if (partial && s.training.layout.dp < 2)
        diagnostics.error(
            answers.place("run.recovery.style"),
            fmt::format("run.recovery.style: `{}` needs data-parallel replicas that can go on without each "
                        "other, but dp is {}",
                        style, s.training.layout.dp));
    s.run.watchdog.time_out_s = number(answers, "run.watchdog.time_out", defaults().detect_hang_s);
    s.run.watchdog.save_grace_s = number(answers, "run.watchdog.save_grace", 0);
    s.run.watchdog.watches_saves = answers.given("run.watchdog.time_out") != nullptr;
    s.run.watchdog.where = answers.place("run.watchdog.time_out").text();
}

void fill_stops(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    RunPlan& run = s.run;
    const auto pair = [&](const char* section, const char* every, const char* lasts) {
        if (!answers.given(section))
            return;
        for (const char* key : {every, lasts})
            if (!answers.given(key))
                missing(answers, key, "", diagnostics);
    };
    pair("run.evaluation", "run.evaluation.every_steps", "run.evaluation.lasts");
    pair("run.maintenance", "run.maintenance.every", "run.maintenance.lasts");
    run.evaluate_every = static_cast<std::int64_t>(number(answers, "run.evaluation.every_steps", 0));
    run.evaluation_s = number(answers, "run.evaluation.lasts", 0);
    run.maintenance_every_s = number(answers, "run.maintenance.every", 0);
    run.maintenance_s = number(answers, "run.maintenance.lasts", 0);
    run.limit_s = number(answers, "run.limit.time", 0);
    run.requeue_s = number(answers, "run.limit.requeue", 0);
    run.final_save = answers.get("run.limit.final_save").flag;
}

/// The layout of a phase on all GPUs; what is broken is said at the phase.
void check_phase(const RunPlan::Phase& phase, const Scenario& s, const Place& place, Diagnostics& diagnostics) {
    TrainingPlan plan = s.training;
    apply_phase(phase, std::int64_t{s.nodes} * s.node.gpus, plan);
    std::string field;
    const std::string problem = check_layout(s.model, plan, std::int64_t{s.nodes} * s.node.gpus, field);
    if (!problem.empty())
        diagnostics.error(place, fmt::format("run.phases: {}", problem));
    if (s.model.max_positions > 0 && plan.sequence > s.model.max_positions)
        diagnostics.error(place, fmt::format("run.phases: {} tokens, but {} has {} learned positions", plan.sequence,
                                             s.model.name, s.model.max_positions));
}

void fill_phases(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    const Answer* list = answers.given("run.phases");
    if (!list)
        return;
    double said = 0;
    for (std::int64_t i = 0; i < list->integer; ++i) {
        const std::string path = fmt::format("run.phases[{}]", i);
        const auto whole = [&](const char* key) {
            return static_cast<std::int64_t>(number(answers, path + "." + key, 0));
        };
        RunPlan::Phase phase{.tokens = number(answers, path + ".tokens", 0),
                             .sequence = whole("sequence"),
                             .global_batch = whole("global_batch"),
                             .micro_batch = whole("micro_batch"),
                             .tp = whole("tp"),
                             .pp = whole("pp"),
                             .cp = whole("cp"),
                             .where = answers.place(path).text()};
        const Place place = answers.place(path);
        if (phase.tokens == 0 && (i + 1 < list->integer || s.tokens == 0))
            diagnostics.error(place,
                              fmt::format("{}: tokens is missing; only the last phase of a run with run.tokens may "
                                          "leave it out",
                                          path));
        said += phase.tokens;
        if (i + 1 == list->integer && phase.tokens == 0)
            phase.tokens = s.tokens - said;
        if (diagnostics.ok())
            check_phase(phase, s, place, diagnostics);
        s.run.phases.push_back(phase);
    }
    const bool open = !s.run.phases.empty() && !answers.given(fmt::format("run.phases[{}].tokens", list->integer - 1));
    if (s.tokens > 0 && (said > s.tokens || (!open && said < s.tokens)))
        diagnostics.error(
            list->place,
            fmt::format("run.phases: the phases have {:.4g} tokens together, run.tokens is {:.4g}", said, s.tokens));
}

}  // namespace

void apply_phase(const RunPlan::Phase& phase, std::int64_t gpus, TrainingPlan& plan) {
    const auto set = [](std::int64_t value, std::int64_t& to) { to = value > 0 ? value : to; };
    set(phase.sequence, plan.sequence);
    set(phase.global_batch, plan.global_batch);
    set(phase.micro_batch, plan.micro_batch);
    set(phase.tp, plan.layout.tp);
    set(phase.pp, plan.layout.pp);
    set(phase.cp, plan.layout.cp);
    plan.layout.dp = std::max<std::int64_t>(1, gpus / (plan.layout.tp * plan.layout.pp * plan.layout.cp));
}

void fill_campaign(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    s.run.days = number(answers, "run.days", 0) / 86400;
    const bool faults = faults_of_campaign(answers);
    s.run.given = faults && (s.tokens > 0 || s.run.days > 0);
    s.run.replicas = static_cast<std::uint32_t>(answers.get("run.replicas").integer);
    const double spares = std::ceil(defaults().spares_share * s.nodes);
    s.run.spares = static_cast<std::uint32_t>(number(answers, "run.spares", s.nodes > 1 ? spares : 0));
    fill_checkpoint(answers, s, diagnostics);
    fill_recovery(answers, s, diagnostics);
    fill_stops(answers, s, diagnostics);
    fill_phases(answers, s, diagnostics);
    fill_faults(answers, s, diagnostics);
    fill_monitors(answers, s, diagnostics);
    if (faults && !s.run.given)
        s.notes.push_back("faults: nothing runs long enough to break; give run.tokens or run.days");
    if (!faults)
        for (const char* key :
             {"run.checkpoint", "run.recovery", "run.days", "run.phases", "run.maintenance", "run.limit"})
            if (answers.given(key))
                s.notes.push_back(
                    fmt::format("{}: used by a campaign; say what breaks (faults: default, or none)", key));
}

}  // namespace fabricast
