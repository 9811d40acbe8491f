// What a campaign rests on and nobody said: rates, pieces of a recovery, storage.
#include <fmt/format.h>

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
    if (run.checkpoint.mode != RunPlan::Save::none)
        say("run.checkpoint.write", fmt::format("{:.3g} GB/s", run.checkpoint.write_bytes_per_s / 1e9),
            "defaults.storage_rate");
}

}  // namespace fabricast
