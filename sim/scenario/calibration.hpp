// A site's own constants, laid over the catalogue: what `fabricast-validate fit` writes and `--calibration FILE` reads.
//
//   calibration: 1                  # version of the format
//   name: mysite
//   provenance: {date: 2026-11-30, method: "...", devices: [...], driver: ..., libraries: [...], clocks: ..., files: [...]}
//   gpus:
//     H100-SXM-80G: {gemm.sustained: 0.85, memory_bound.copy: 0.88, nvlink_achieved: 385 GB/s}
//   networks:
//     ib: {efficiency: 0.98, ll128_hop: 11 us, nic_latency: 0.5 us}
//   collectives:                    # what one collective lacks beyond its link class: `node` or a network
//     ib: {send_recv: {latency: 4 us, rate: 0.9}}
//   software:
//     megatron-deepspeed-2023: {host_per_layer: 800 us}
//   host:                           # a processor measured without a GPU; scored, never part of a cluster
//     cpu: {flops: 80 GFLOP/s, ...}
//   fits:
//     - {what: networks ib, points: 100, median: 0.02, default_median: 0.05, p10: 0.97, p90: 1.04}
//   outliers: ["file:line: sentence"]
//
// Order: catalogue, calibration, scenario: what the scenario states wins. A value of a collective only slows (rate at most
// 1, latency at least 0): rates of links belong to the links. Unknown keys, units, GPUs, networks and stacks and values out
// of their range are refused with file:line:column. p10 and p90 are predicted / measured.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/collectives/comm_model.hpp"
#include "models/hardware/catalogue.hpp"
#include "models/transformer/layer.hpp"

namespace fabricast {

/// What one class of measurements showed with the fitted constants and with the default ones.
struct CalibrationFit {
    std::string what;  ///< "gpus H100-SXM-80G gemm", "networks ib", "steps dense H100-SXM-80G"
    int points = 0;
    double median = 0, default_median = 0;  ///< absolute error of predicted times, as a fraction
    double p10 = 1, p90 = 1;                ///< predicted / measured
    std::vector<std::int64_t> gpus;         ///< of the jobs measured: fewest and most; empty for anything but steps
};

struct Calibration {
    using Values = std::vector<std::pair<std::string, double>>;  ///< key, value in base units
    using Owned = std::vector<std::pair<std::string, Values>>;   ///< owner, its values
    struct CollectiveRow {
        std::string link;  ///< "node" or a network
        Collective kind = Collective::all_reduce;
        CollectiveCorrection correction;
    };
    std::string file, name;
    std::vector<std::pair<std::string, std::vector<std::string>>> provenance;
    Owned gpus, networks, software, hosts;
    std::vector<CollectiveRow> collectives;
    std::vector<CalibrationFit> fits;
    std::vector<std::string> outliers;

    bool empty() const { return gpus.empty() && networks.empty() && software.empty() && collectives.empty(); }
    const Values* find(const Owned& part, std::string_view owner) const;
    const CalibrationFit* fit(std::string_view what) const;
};

/// Throws ScenarioError.
Calibration read_calibration(const std::string& path);
Calibration parse_calibration(const std::string& text, const std::string& file);
/// The text that parse_calibration reads back to equal values.
std::string calibration_yaml(const Calibration& calibration);

/// Lay the values over a spec; its sources say "fitted from FILE". False when the calibration has nothing for it.
bool apply(const Calibration& calibration, GpuSpec& gpu);
bool apply(const Calibration& calibration, NetworkSpec& network);
bool apply(const Calibration& calibration, NodeSpec& node);  ///< nic_latency of its network
bool apply(const Calibration& calibration, SoftwareFeatures& software);
/// Corrections of collectives, inside a node and over `network`.
void apply(const Calibration& calibration, std::string_view network, CommFacts& facts);

/// "3.5 us". Precondition: a key of that part.
std::string calibration_value_text(std::string_view part, std::string_view key, double value);

/// Every key a GPU, a network or a stack takes, for messages and tests.
std::vector<std::string> calibration_keys(std::string_view part);
/// The place of a value in a spec by its key; nullptr for one that the spec does not have.
double* calibrated_value(GpuSpec& gpu, std::string_view key);
double* calibrated_value(NetworkSpec& network, std::string_view key);  ///< nic_latency is a node's
double* calibrated_value(SoftwareFeatures& software, std::string_view key);

/// One sentence on where the constants come from, for reports: "mysite.yaml: 2 x H100, driver 550, NCCL 2.28; ...".
std::string provenance_sentence(const Calibration& calibration);

}  // namespace fabricast
