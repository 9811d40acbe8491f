// Steps under a fault, simulated: the job is compiled once, a fault changes capacities and speeds of a copy.
//
//   step      period of repeated steps under a fault of links or speeds; choices of the communication library stay those of
//             the healthy machine, as in a running job
//   series    steps one by one, under faults of the loader, stops, and lengths (sim/step/job_program.hpp)
//   stall     what a step takes longer when a link is down for a while in it
//
// One place stands for all alike: a rank of the stage that computes most, its node and adapter. Every answer is remembered.
// A scenario without data.sample_time gets a loader that needs kAssumedLoad of a step, where data are asked for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/step/forecast.hpp"

namespace fabricast {

inline constexpr double kAssumedLoad = 0.8;

class FaultSteps {
public:
    /// The scenario outlives it, healthy is its forecast. Throws what build_step throws.
    FaultSteps(const Scenario& scenario, const Result& healthy);

    double healthy_s() const { return healthy_s_; }
    /// Text of a fault with its places filled in: {gpu}, {node}, {nic}, {stage}; {} is the severity as written.
    std::string placed(const std::string& inject, const std::string& severity) const;
    /// Step under a fault; nothing where this job has no such place or part.
    std::optional<double> step_s(const std::string& fault);
    /// Simulates those of them that are not known yet, on all processors; step_s() then answers at once.
    void prepare(const std::vector<std::string>& faults);
    /// Ratio of `steps` steps to the healthy one, after the loader has settled; empty where the fault is refused.
    const std::vector<double>& series(const std::string& fault, std::int64_t steps);
    /// How much longer the step takes in which adapter {nic} is down for so long, s.
    std::optional<double> stall_s(double lasts_s);

    double nominal_mhz() const { return nominal_mhz_; }  ///< 0: not known
    double loader_s() const { return loader_s_; }        ///< of a batch, by all workers of a rank together
    bool loader_is_assumed() const { return loader_assumed_; }
    /// Share of packets lost on {nic} that leaves so much of its rate; 0 without one.
    double loss_that_keeps(double keeps) const;
    double compute_share() const { return compute_share_; }  ///< of the step, in the stage that computes most
    std::int64_t workers() const { return loading_.data.workers; }
    std::uint64_t events() const { return events_; }
    std::int64_t simulated() const { return simulated_; }

private:
    struct Simulated {
        std::optional<double> step_s;
        std::uint64_t events = 0;
        bool ran = false;
    };
    Simulated simulate(const std::string& fault) const;
    std::optional<Scenario> with(const Scenario& base, const std::string& fault) const;

    const Scenario& scenario_;
    Scenario plain_;    ///< one step, without faults of its own beyond those of the build
    Scenario loading_;  ///< the same with a loader
    BuiltStep built_;
    double healthy_s_ = 0, nominal_mhz_ = 0, loader_s_ = 0, compute_share_ = 1;
    bool loader_assumed_ = false;
    std::uint32_t place_ = 0;  ///< rank
    std::map<std::string, std::optional<double>> steps_;
    std::map<std::string, std::vector<double>> series_;
    std::map<double, std::optional<double>> stalls_;
    std::uint64_t events_ = 0;
    std::int64_t simulated_ = 0;
};

}  // namespace fabricast
