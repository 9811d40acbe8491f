// Two small jobs and the logs of runs of theirs in which one fault is injected by the simulator.
//
//   kWide      64 GPUs, tp 8, dp 8 over 8 nodes, gradients not overlapped: what slows links and GPUs shows
//   kDeep      16 GPUs, pp 4, dp 4 with a loader: what slows data, hosts, stages, sequences shows
//
// Steps of a log are simulated by the step simulator with the fault in the scenario, as `fabricast run --inject` does, times
// normal noise of 2 % and a bias of the whole job.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "models/compute/spread.hpp"
#include "models/faults/random.hpp"
#include "sim/diagnose/diagnosis.hpp"
#include "sim/diagnose/fault_steps.hpp"
#include "sim/step/forecast.hpp"

namespace fabricast::test {

inline const char* const kWide = R"(
cluster: {nodes: 8, node: hgx-h800}
model: {name: wide, family: llama, layers: 8, hidden: 8192, heads: 64, ffn: 28672, vocab: 32000}
training:
  sequence: 4096 tokens
  global_batch: 64 sequences
  micro_batch: 2
  layout: {tp: 8, sp: true, pp: 1, dp: 8, zero: 1}
  overlap: {grad_reduce: false, param_gather: false}
)";
inline const char* const kDeep = R"(
cluster: {nodes: 2, node: hgx-h100}
model: {name: deep, family: llama, layers: 8, hidden: 8192, heads: 64, ffn: 28672, vocab: 32000}
training:
  sequence: 4096 tokens
  global_batch: 64 sequences
  micro_batch: 2
  layout: {tp: 1, pp: 4, dp: 4, zero: 1}
  recompute: full
data: {loader_workers: 2, sample_time: 60 ms}
)";

class Job {
public:
    explicit Job(const char* yaml)
        : scenario(parse_scenario(yaml, "job.yaml")),
          healthy(forecast(scenario, {.critical_path = false})),
          simulated(scenario, healthy) {
        step_s = seconds(healthy.step.ps);
    }
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    /// Step under a fault that is there from the start.
    double under(const std::string& fault) const {
        double& known = known_[fault];
        if (known > 0)
            return known;
        Scenario s = scenario;
        inject_fault(s, fault);
        return known = seconds(forecast(s, {.critical_path = false}).step.ps);
    }
    /// Steps one by one, s.
    std::vector<double> steps(const std::string& fault, std::int64_t count) const {
        std::vector<double> out = simulated.series(fault, count);
        for (double& ratio : out)
            ratio *= simulated.healthy_s();
        return out;
    }
    ForecastInterval interval() const { return {step_s / 1.080, step_s / 0.944, "dense runs on H100"}; }

    Scenario scenario;
    Result healthy;
    mutable FaultSteps simulated;  ///< kept from test to test
    double step_s = 0;

private:
    mutable std::map<std::string, double> known_;
};

/// A log of `rows` rows of `every` steps; clean(i, t) is the step time of a row that begins at t.
inline StepSeries log_of(std::size_t rows, std::int64_t every, std::uint64_t seed,
                         const std::function<double(std::size_t, double)>& clean, double noise = 0.02,
                         double bias = 1) {
    faults::Draws draws(seed, faults::Purpose::replica, 4711);
    StepSeries s;
    s.attempts = {0};
    s.every = every;
    double now = 0;
    for (std::size_t i = 0; i < rows; ++i) {
        s.step.push_back(static_cast<std::int64_t>(i + 1) * every);
        s.step_s.push_back(bias * clean(i, now) * (1 + noise * normal_quantile(draws.next())));
        now += s.step_s.back() * static_cast<double>(every);
        s.time_s.push_back(now);
    }
    return s;
}

inline std::size_t rank_of(const std::vector<Cause>& causes, const std::string& name) {
    for (std::size_t i = 0; i < causes.size(); ++i)
        if (causes[i].what->name == name)
            return i + 1;
    return 99;
}

}  // namespace fabricast::test
