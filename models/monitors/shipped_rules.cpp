#include "models/monitors/shipped_rules.hpp"

#include "models/monitors/noise.hpp"

namespace fabricast::monitors {
namespace {

constexpr double kMinute = 60, kHour = 3600;
constexpr double kKeep = 4 * kHour;  // as long as Alertmanager waits by default before it tells the same alert again

Rule rule(const char* name, Metric metric, Of of, bool below, double warning, double critical, double hold_s,
          const char* reason) {
    Rule r;
    r.name = name;
    r.set = "default";
    r.metric = metric;
    r.of = of;
    r.below = below;
    r.warning = warning;
    r.critical = critical;
    r.hold_s = hold_s;
    r.keep_s = hold_s > 0 ? kKeep : 0;
    r.reason = reason;
    return r;
}

/// Over so many steps at least that the level is kSigmas of the noise of one step away.
Rule averaged(Rule r, double window_s) {
    constexpr double kSigmas = 7;  // peers of 16 384 GPUs, every hour of 45 days: 2e7 values, 5.5 sigma
    r.window_s = window_s;
    const double away = kSigmas * kStepNoise / (r.warning > 1 ? r.warning - 1 : 1 - r.warning);
    r.least_steps = away * away;
    return r;
}

Rule patient(Rule r) {
    r.waits_for_pauses = true;
    return r;
}

}  // namespace

std::vector<Rule> default_rules() {
    std::vector<Rule> all;
    const auto add = [&](Rule r) { all.push_back(std::move(r)); };
    add(rule("step_time", Metric::step_time, Of::base, false, 1.5, 2, 5 * kMinute,
             "usual warning and critical levels; catches hangs, leaks and heavy throttles only"));

    Rule change =
        rule("step_change", Metric::step_time, Of::baseline, false, 0.75, kNoLevel, 0,
             "a change of 5-10 % that lasts for tens of steps; drift half of 5 %, the level 16 sigma of a minute "
             "of long steps");
    change.test = Test::cusum;
    change.drift = 0.025;
    add(change);

    add(patient(rule("no_progress", Metric::since_step, Of::value, false, 300, 480, 0,
                     "half of the collective library's time-out of 600 s; pauses and two steps are added")));
    add(patient(rule("no_traffic", Metric::ib_bw, Of::base, true, 0.02, kNoLevel, 3 * kMinute,
                     "minutes without network traffic while GPUs read 100 % busy: the signature of a hang")));
    add(rule("job_down", Metric::job_up, Of::value, true, kNoLevel, 0.5, 0,
             "missing data are an alert of their own; planned stops are announced"));
    add(rule("loss_nan", Metric::loss_is_nan, Of::value, false, kNoLevel, 0.5, 0, "every later step would be lost"));
    add(rule("xid", Metric::xid, Of::value, false, kNoLevel, 46, 0,
             "any new Xid outside the application group (13, 31, 43, 45)"));
    add(rule("ecc", Metric::ecc_uncorrectable, Of::value, false, kNoLevel, 0.5, 0,
             "no uncorrectable error is allowed (Meta GCM)"));
    add(rule("port_rate", Metric::port_rate, Of::peers, true, 0.95, 0.75, 0,
             "a port negotiates its rate exactly; half of it is the commonest silent fault"));
    add(averaged(rule("ib_busbw", Metric::ib_busbw, Of::peers, true, 0.9, 0.7, 0,
                      "bus bandwidth inside collectives against other rings; Azure's node check warns 5 % below"),
                 10 * kMinute));
    add(averaged(
        rule("nvlink_busbw", Metric::nvlink_busbw, Of::peers, true, 0.97, 0.9, 0, "a lane of 18 is 5.6 %, of 8 12.5 %"),
        kHour));
    add(averaged(
        rule("compute_time", Metric::compute_time, Of::peers, false, 1.055, 1.1, 0,
             "a slow rank never waits in collectives, its peers do; 5.5 % is beyond the spread of good GPUs, below "
             "the 7 % of a slow one"),
        kHour));
    add(rule("sm_clock", Metric::sm_clock, Of::peers, true, 0.95, 0.8, 5 * kMinute,
             "beyond the spread of good GPUs; straggler scores alarm at 0.75"));
    add(rule("gpu_temp", Metric::gpu_temp, Of::value, false, 83, 85, 2 * kMinute,
             "critical 84-85 C (Meta GCM), 4 K before the slowdown of A100 and H100"));
    add(rule("gpu_temp_peers", Metric::gpu_temp, Of::peers_difference, false, 12, kNoLevel, 5 * kMinute,
             "five times the spread of good coolers"));
    add(rule("data_wait", Metric::data_wait, Of::value, false, 0.1, 0.3, 10 * kMinute,
             "prefetch is used up: steps wait for the loader"));
    add(rule("host_memory", Metric::host_memory_free, Of::value, true, 0.1, 0.05, 10 * kMinute,
             "a leak shows here before it shows in steps"));
    return all;
}

std::vector<Rule> case_a_rules() {
    std::vector<Rule> all = {
        rule("step_time", Metric::step_time, Of::base, false, 1.5, 2, 0, "step_time > 1.5x / > 2x baseline"),
        rule("gpu_temp", Metric::gpu_temp, Of::value, false, 80, 85, 0, "GPU > 80 / > 85 C"),
        rule("loss_nan", Metric::loss_is_nan, Of::value, false, kNoLevel, 0.5, 0, "loss is NaN"),
        rule("ib_traffic", Metric::ib_bw, Of::value, true, 300, 200, 0, "IB < 300 / < 200 Gb/s, read of traffic"),
        rule("ib_port", Metric::port_rate, Of::value, true, 300, 200, 0, "IB < 300 / < 200 Gb/s, read of the port"),
    };
    for (Rule& r : all)  // holds 0: an alarm falls with the next good sample
        r.set = "case-a";
    return all;
}

}  // namespace fabricast::monitors
