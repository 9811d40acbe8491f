#include "sim/campaign/condition_steps.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/step/forecast.hpp"

namespace fabricast::campaign {
namespace {

void degrade(Scenario& s, const faults::Degradation& d) {
    if (d.name == "slow_gpu" || d.name == "hot_gpu") {
        s.slow_gpu = std::max(s.slow_gpu, 1 / d.keeps);
    } else if (d.lane_bytes_per_s > 0) {
        const double nominal = s.gpu.nvlink_nominal_bytes_per_s;
        if (nominal > d.lane_bytes_per_s && s.node.gpus > 1 && s.node.board == Board::nvswitch)
            s.degraded.push_back({"gpu 0.0 nvlink", 1 - d.lane_bytes_per_s / nominal, 0, 0});
    } else if (s.nodes > 1) {
        const auto nic = std::find_if(s.degraded.begin(), s.degraded.end(),
                                      [](const Scenario::DegradedPart& part) { return part.what == "nic 0.0"; });
        if (nic == s.degraded.end())
            s.degraded.push_back({"nic 0.0", d.keeps, 0, 0});
        else
            nic->factor = std::min(nic->factor, d.keeps);
    }
}

}  // namespace

Scenario under(const Scenario& scenario, const Condition& condition) {
    Scenario s = scenario;
    const auto& kinds = s.run.faults.degradations;
    const std::size_t phases = s.run.phases.size();
    if (condition.key < phases)
        apply_phase(s.run.phases[condition.key], std::int64_t{s.nodes} * s.node.gpus, s.training);
    else if (condition.key > 0)
        s.training.compression.warming_up = true;
    for (std::size_t i = 0; i < kinds.size(); ++i)
        if (condition.degraded >> i & 1)
            degrade(s, scenario.run.faults.degradations[i]);
    if (condition.degraded >> kinds.size() & 1)
        s.node.nic_efficiency /= s.run.faults.episodes.congestion_factor;
    s.compression_warmup = 0;
    // One step, not the job: epochs and what goes wrong at a time are no part of it.
    s.data.samples = 0;
    std::erase_if(s.faults, [](const StepFault& fault) { return fault.timed(); });
    return s;
}

StepTimes condition_steps(const Scenario& scenario, const Result& healthy, bool memo, const StepSeen& seen) {
    const bool warms_up = scenario.run.phases.empty() && healthy.warmup_ps > 0;
    const auto keys = static_cast<std::uint32_t>(std::max<std::size_t>(1, scenario.run.phases.size()) + warms_up);
    const int kinds = static_cast<int>(scenario.run.faults.degradations.size()) + 1;
    const auto simulate = [&scenario, &healthy, memo, seen](const Condition& condition) {
        const auto round = [](Picoseconds ps) { return (ps + 500) / 1000; };
        if (memo && condition.key == 0 && condition.degraded == 0 && scenario.run.phases.empty()) {
            if (seen)
                seen(condition, scenario, healthy);
            return round(healthy.step.ps);
        }
        const Scenario changed = under(scenario, condition);
        const Result result = forecast(changed, {.critical_path = false});
        if (!result.failure.empty()) {
            const bool phase = condition.key < scenario.run.phases.size();
            throw ScenarioError(phase ? fmt::format("{}: run.phases[{}]: {}", scenario.run.phases[condition.key].where,
                                                    condition.key, result.failure)
                                      : fmt::format("{}: under degradation: {}", scenario.file, result.failure));
        }
        if (seen)
            seen(condition, changed, result);
        return round(result.step.ps);
    };
    return StepTimes(keys, kinds, simulate, memo);
}

}  // namespace fabricast::campaign
