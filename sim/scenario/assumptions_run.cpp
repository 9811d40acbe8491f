// What a campaign rests on and nobody said: rates, pieces of a recovery, storage.
#include <fmt/format.h>

#include <algorithm>

#include "models/monitors/noise.hpp"
#include "models/monitors/thermal.hpp"
#include "sim/scenario/fill.hpp"

namespace fabricast {
namespace {

std::string minutes(double s) { return s < 120 ? fmt::format("{:.4g} s", s) : fmt::format("{:.4g} min", s / 60); }

}  // namespace

void list_run(const Answers& answers, Scenario& s) {
    if (!s.run.given)
        return;
    const faults::FaultCatalogue& catalogue = faults::FaultCatalogue::builtin();
    const RunPlan& run = s.run;
    const auto say = [&](const char* key, std::string value, const char* source) {
        if (answers.given(key))
            return;
        const std::string sentence = catalogue.source(source);
        s.assumptions.push_back({key, std::move(value), origin_of(sentence), sentence});
    };
    double stops = 0;
    for (const faults::Component& c : run.faults.components)
        stops += c.rate;
    const bool fresh = answers.given("faults.rates") && answers.given("faults.rates")->text == "new";
    say("faults.per_1000_node_days", fmt::format("{:.3g}", stops * 1000),
        fresh ? "defaults.new_fleet_rate" : "components.gpu.stops");
    for (const faults::Degradation& d : run.faults.degradations)
        if (d.rate > 0)
            say(("faults.degradations." + d.name).c_str(), fmt::format("{:.3g} per 1000 node-days", d.rate * 1000),
                ("degradations." + d.name + ".rate").c_str());
    for (std::size_t i = 0; i < run.faults.degradations.size(); ++i) {
        const faults::Degradation& d = run.faults.degradations[i];
        const bool occurs =
            d.rate > 0 || std::any_of(run.faults.events.begin(), run.faults.events.end(), [&](const auto& e) {
                return e.kind == RunPlan::Faults::Event::Kind::slow && e.which == i;
            });
        if (d.name == "hot_gpu" && occurs)
            say("faults.degradations.hot_gpu.keeps", fmt::format("{:.3g} of its clock", d.keeps),
                "degradations.hot_gpu.keeps");
    }
    if (run.faults.episodes.congestions_per_day > 0)
        say("faults.congestions_per_day", fmt::format("{:.3g}", run.faults.episodes.congestions_per_day),
            "episodes.congestion.per_day");
    if (run.faults.episodes.flaps_per_link_month > 0)
        say("faults.flaps_per_link_month", fmt::format("{:.3g}", run.faults.episodes.flaps_per_link_month),
            "episodes.flap.per_link_month");
    say("faults.burst_cv", fmt::format("{:.3g}", run.faults.burst_cv), "defaults.burst_cv");
    say("faults.node_spread", fmt::format("{:.3g}", run.faults.node_spread), "defaults.node_spread");
    say("run.spares", fmt::format("{} nodes", run.spares), "defaults.spares_share");
    say("run.recovery.crash", minutes(run.recovery.crash_s), "defaults.detect_crash");
    say("run.recovery.transport", minutes(run.recovery.transport_s), "defaults.detect_transport");
    say("run.recovery.silent", minutes(run.recovery.silent_s), "");
    say("run.watchdog.time_out", minutes(run.watchdog.time_out_s), "defaults.detect_hang");
    say("run.recovery.locate", minutes(run.recovery.locate_s), "defaults.locate");
    say("run.recovery.swap", minutes(run.recovery.swap_s), "defaults.swap");
    say("run.recovery.start", minutes(run.recovery.start_s), "defaults.start");
    say("run.recovery.communicators", minutes(run.recovery.communicators_s), "defaults.communicators");
    say("run.recovery.spread", fmt::format("{:.3g}", run.recovery.spread), "defaults.restart_spread");
    if (run.monitors.given) {
        const auto tell = [&](const char* what, std::string value, Origin origin, const char* source) {
            s.assumptions.push_back({what, std::move(value), origin, source});
        };
        tell("monitor.step_noise", fmt::format("{:.3g} %", monitors::kStepNoise * 100), Origin::published,
             "3079 jobs of 128 and more GPUs (arXiv:2505.05713): a step over its job's mean has P90 1.06");
        tell("monitor.gpu_temp",
             fmt::format("{:.3g} C at board power, inlet {:.3g} C", monitors::kLoadedC, monitors::kInletC),
             Origin::published, "65-75 C of H100 boards in training; middle of ASHRAE's recommended inlet");
        tell("monitor.gpu_temp_tau", fmt::format("{:.3g} s", monitors::kThermalTauS), Origin::published,
             "a V100's rise under load is over within 60 s");
        tell("monitor.waiting_power", fmt::format("{:.3g} of board power", monitors::kWaitingPower), Origin::published,
             "129-152 W of 700 W with kernels waiting in a collective (NVIDIA/nccl issue 1550)");
        tell("monitor.gpu_temp_spread",
             fmt::format("{:.3g} % of the rise over the inlet", monitors::kThermalSpread * 100), Origin::guess,
             "estimate; GPUs of one node at 129-152 W lie 34-38 C (NVIDIA/nccl issue 1550)");
        tell("monitor.failed_cooling", fmt::format("{:.3g} times the resistance", monitors::kFailedCooling),
             Origin::guess, "assumed; the GPU's own slowdown holds it then");
        tell("monitor.host_memory_free",
             fmt::format("{:.3g} at the start, {:.3g} when a leak has used it up", monitors::kFreeAtStart,
                         monitors::kFreeAtLeast),
             Origin::guess, "assumed");
    }
    if (run.checkpoint.mode != RunPlan::Save::none)
        say("run.checkpoint.write", fmt::format("{:.3g} GB/s", run.checkpoint.write_bytes_per_s / 1e9),
            "defaults.storage_rate");
}

}  // namespace fabricast
