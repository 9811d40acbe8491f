#include "sim/scenario/calibration_keys.hpp"

#include "sim/scenario/calibration.hpp"

namespace fabricast {
namespace {

constexpr CalibrationKey kGpu[] = {
    {"gemm.t0", "us", 1e-6, 0.1e-6, 100e-6},
    {"gemm.c_pro", "us", 1e-6, 0, 20e-6},
    {"gemm.emax", "", 1, 0.1, 1.5},
    {"gemm.fall", "", 1, 0, 200},
    {"gemm.bandwidth", "", 1, 0.1, 1.2},
    {"gemm.cap", "", 1, 0.05, 1},
    {"gemm.wave", "", 1, 0, 1},
    {"gemm.sustained", "", 1, 0.2, 1},
    {"memory_bound.fused", "", 1, 0.05, 1},
    {"memory_bound.compiled", "", 1, 0.05, 1},
    {"memory_bound.eager", "", 1, 0.05, 1},
    {"memory_bound.copy", "", 1, 0.05, 1},
    {"memory_bound.floor", "us", 1e-6, 0.1e-6, 100e-6},
    {"nvlink_achieved", "GB/s", 1e9, 1e9, 2000e9},
    {"pcie", "GB/s", 1e9, 0.5e9, 1000e9},
    {"network_channel", "GB/s", 1e9, 0.1e9, 1000e9},
};
constexpr CalibrationKey kAttention[] = {
    {"t0", "us", 1e-6, 0.1e-6, 200e-6},
    {"e128", "", 1, 0.01, 1},
    {"e64", "", 1, 0.01, 1},
    {"s0", "", 1, 0, 10000},
    {"bandwidth", "", 1, 0.05, 1},
    {"backward_rate", "", 1, 0.2, 1.5},
};
constexpr CalibrationKey kNetwork[] = {
    {"efficiency", "", 1, 0.005, 1},     {"ll_hop", "us", 1e-6, 0, 0.01}, {"ll128_hop", "us", 1e-6, 0, 0.01},
    {"simple_hop", "us", 1e-6, 0, 0.01}, {"slot", "us", 1e-6, 0, 0.01},   {"nic_latency", "us", 1e-6, 0, 0.001},
};
constexpr CalibrationKey kCollective[] = {{"latency", "us", 1e-6, 0, 0.1}, {"rate", "", 1, 0.02, 1}};
constexpr CalibrationKey kSoftware[] = {
    {"host_per_kernel", "us", 1e-6, 0, 1e-3},
    {"host_per_layer", "us", 1e-6, 0, 0.05},
    {"host_per_step", "us", 1e-6, 0, 10},
    {"tp_hidden_fraction", "", 1, 0, 0.95},
};
constexpr CalibrationKey kHost[] = {
    {"peak", "GFLOP/s", 1e9, 1e6, 1e15},
    {"gemm.t0", "us", 1e-6, 0, 0.1},
    {"gemm.rate", "GFLOP/s", 1e9, 1e6, 1e15},
    {"gemm.bandwidth", "GB/s", 1e9, 1e6, 1e13},
    {"gemm.small", "", 1, 0, 1e6},
    {"memory", "GB/s", 1e9, 1e6, 1e13},
    {"memory.cache", "GB/s", 1e9, 1e6, 1e14},
    {"memory.cache_size", "MiB", 1048576, 1e3, 1e12},
    {"memory.t0", "us", 1e-6, 0, 0.1},
    {"threads.hop", "us", 1e-6, 0, 1},
    {"threads.bandwidth", "GB/s", 1e9, 1e5, 1e13},
    {"loopback.hop", "us", 1e-6, 0, 1},
    {"loopback.bandwidth", "GB/s", 1e9, 1e5, 1e13},
};

}  // namespace

std::span<const CalibrationKey> calibration_key_table(std::string_view part) {
    if (part == "gpus")
        return kGpu;
    if (part == "attention")
        return kAttention;
    if (part == "networks")
        return kNetwork;
    if (part == "collectives")
        return kCollective;
    if (part == "software")
        return kSoftware;
    return kHost;
}

const CalibrationKey* find_calibration_key(std::string_view part, std::string_view key) {
    constexpr std::string_view kPrefix = "attention.";
    if (part == "gpus" && key.starts_with(kPrefix)) {
        const std::size_t dot = key.find('.', kPrefix.size());
        return dot == std::string_view::npos || dot == kPrefix.size()
                   ? nullptr
                   : find_calibration_key("attention", key.substr(dot + 1));
    }
    for (const CalibrationKey& one : calibration_key_table(part)) {
        if (one.key == key)
            return &one;
    }
    return nullptr;
}

std::vector<std::string> calibration_keys(std::string_view part) {
    std::vector<std::string> out;
    for (const CalibrationKey& one : calibration_key_table(part))
        out.emplace_back(one.key);
    if (part == "gpus") {
        for (const CalibrationKey& one : kAttention)
            out.push_back("attention.KERNEL." + std::string(one.key));
    }
    return out;
}

double* calibrated_value(GpuSpec& gpu, std::string_view key) {
    GemmConstants& g = gpu.gemm;
    MemoryConstants& m = gpu.memory;
    const std::pair<std::string_view, double*> plain[] = {
        {"gemm.t0", &g.t0_s},
        {"gemm.c_pro", &g.c_pro_s},
        {"gemm.emax", &g.emax},
        {"gemm.fall", &g.fall},
        {"gemm.bandwidth", &g.bandwidth},
        {"gemm.cap", &g.cap},
        {"gemm.wave", &g.wave},
        {"gemm.sustained", &g.sustained},
        {"memory_bound.fused", &m.fused},
        {"memory_bound.compiled", &m.compiled},
        {"memory_bound.eager", &m.eager},
        {"memory_bound.copy", &m.copy},
        {"memory_bound.floor", &m.floor_s},
        {"nvlink_achieved", &gpu.nvlink_achieved_bytes_per_s},
        {"pcie", &gpu.pcie_bytes_per_s},
        {"network_channel", &gpu.network_channel_bytes_per_s},
    };
    for (const auto& [name, value] : plain) {
        if (name == key)
            return value;
    }
    constexpr std::string_view kPrefix = "attention.";
    if (!key.starts_with(kPrefix))
        return nullptr;
    const std::string_view rest = key.substr(kPrefix.size());
    const std::size_t dot = rest.find('.');
    const auto kernel = gpu.attention.find(rest.substr(0, dot));
    if (dot == std::string_view::npos || kernel == gpu.attention.end())
        return nullptr;
    AttentionConstants& a = kernel->second;
    const std::string_view word = rest.substr(dot + 1);
    const std::pair<std::string_view, double*> attention[] = {
        {"t0", &a.t0_s}, {"e128", &a.e128},           {"e64", &a.e64},
        {"s0", &a.s0},   {"bandwidth", &a.bandwidth}, {"backward_rate", &a.backward_rate}};
    for (const auto& [name, value] : attention) {
        if (name == word)
            return value;
    }
    return nullptr;
}

double* calibrated_value(NetworkSpec& n, std::string_view key) {
    return key == "efficiency"   ? &n.efficiency
           : key == "ll_hop"     ? &n.ll_hop_us
           : key == "ll128_hop"  ? &n.ll128_hop_us
           : key == "simple_hop" ? &n.simple_hop_us
           : key == "slot"       ? &n.slot_us
                                 : nullptr;
}

double* calibrated_value(SoftwareFeatures& f, std::string_view key) {
    return key == "host_per_kernel"      ? &f.host_per_kernel_s
           : key == "host_per_layer"     ? &f.host_per_layer_s
           : key == "host_per_step"      ? &f.host_per_step_s
           : key == "tp_hidden_fraction" ? &f.tp_hidden_fraction
                                         : nullptr;
}

}  // namespace fabricast
