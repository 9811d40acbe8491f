// A result made by hand: two stages of a 1024-GPU run, so that views can be tested without a simulation.
#pragma once

#include "sim/report/views.hpp"

namespace fabricast::testing {

inline Scenario sample_scenario() {
    Scenario s;
    s.name = "case-a-after";
    s.file = "scenarios/case-a/after.yaml";
    s.nodes = 128;
    s.node.name = "hgx-h800";
    s.node.gpus = 8;
    s.gpu.name = "H800-SXM-80G";
    s.fabric.name = "rail-fat-tree";
    s.model.name = "llama-70b";
    s.training.layout = {.tp = 8, .pp = 2, .dp = 64, .sequence_parallel = true, .zero = 1};
    s.training.sequence = 4096;
    s.training.global_batch = 512;
    s.training.recompute = Recompute::selective;
    s.tokens = 3.5e12;
    s.price_per_gpu_hour = 1.9;
    s.expect = {{"mfu", 0.40, 0.52, "after.yaml:30:3"}};
    s.assumptions = {{"cluster.node.nic_efficiency", "0.93", Origin::published, "perftest on 400G rails"},
                     {"model.dropout", "0", Origin::guess, ""}};
    return s;
}

/// `scenario` must outlive the result. Accounts sum to ps * ranks; an odd remainder lands in idle.
inline Result sample_result(const Scenario& scenario) {
    Result r;
    r.version = "0.1.0";
    r.scenario = &scenario;
    r.verdict = "fits";
    r.step.ps = 2'019'876'543'211;
    r.step.ranks = 1024;
    r.step.tokens = 512.0 * 4096;
    r.step.model_flops = 9.35e17;
    r.step.hardware_flops = 9.71e17;
    r.step.peak_flops = 989.4e12;
    r.step.steps_simulated = 3;
    r.step.by_stage.resize(2);
    r.step.ranks_by_stage = {512, 512};
    constexpr std::array<int, kAccountCount> kPerMille = {448, 121, 38, 61, 9,  21, 0, 14, 97,
                                                          0,   0,   12, 58, 31, 2,  4, 7,  69};
    for (std::size_t stage = 0; stage < 2; ++stage) {
        __int128 left = static_cast<__int128>(r.step.ps) * 512;
        for (std::size_t i = 0; i + 1 < kAccountCount; ++i) {
            const __int128 part = static_cast<__int128>(r.step.ps) * 512 * kPerMille[i] / 1000;
            r.step.by_stage[stage][i] = part;
            left -= part;
        }
        r.step.by_stage[stage].back() = left;
        for (std::size_t i = 0; i < kAccountCount; ++i)
            r.step.accounts[i] += r.step.by_stage[stage][i];
    }
    const std::int64_t gib = std::int64_t{1} << 30;
    r.memory = {{0, 58 * gib, 85'520'809'984, {9 * gib, 18 * gib, gib, 24 * gib, 0, 0, 2 * gib, 2 * gib, 2 * gib}},
                {1, 51 * gib, 85'520'809'984, {9 * gib, 18 * gib, gib, 16 * gib, gib, 0, 2 * gib, 2 * gib, 2 * gib}}};
    r.communication = {{"tensor all-gather", "all_gather", "tp 8", 67'108'864, 2560, "NVLS", "Simple", 16, 412e-6,
                        142e9, "nvlink of gpu 0", Account::comm_tp},
                       {"gradient reduce-scatter", "reduce_scatter", "dp 64", 17'500'000'000, 1, "Ring", "Simple", 16,
                        0.37, 46.2e9, "nic 0 of node 0 to leaf 0", Account::comm_gradient}};
    r.critical_path = {{"forward gemm", 1'200'000'000'000}, {"gradient reduction", 819'876'543'211}};
    r.events = 3'700'000;
    r.fingerprint = 0x00c0ffee12345678;
    r.ranks_simulated = 1024;
    return r;
}

/// A job that did not fit and never ran a step.
inline Result failed_result(const Scenario& scenario) {
    Result r;
    r.version = "0.1.0";
    r.scenario = &scenario;
    r.verdict = "out of memory";
    r.failure = "stage 0 needs 141.0 GiB per GPU but an H800-SXM-80G has 79.6 GiB; optimizer states hold 70.0 GiB";
    r.step.ranks = 1024;
    r.step.peak_flops = 989.4e12;
    const std::int64_t gib = std::int64_t{1} << 30;
    r.memory = {{0, 141 * gib, 85'520'809'984, {41 * gib, 0, 70 * gib, 30 * gib, 0, 0, 0, 0, 0}}};
    r.hints = {"zero 3 would fit: 61.2 GiB", "recompute full with zero 1 would fit: 71.0 GiB"};
    return r;
}

}  // namespace fabricast::testing
