// Measured GEMM and attention throughput by shape against models/compute.
//
//   error = predicted time / measured time - 1; classes are (GPU, type or kernel, protocol)
//
// A burst (a few replays) is compared with the burst rate, a sustained loop with that rate under a power limit. Fp8 tables include
// the quantisation of the activation: a pass of 3 bytes an element of A is added; prefill tables the write into the cache. Left out with the reason: GPUs and
// kernels the catalogue does not have, operands that were never filled (their power and rate are not those of real data),
// grouped products.
// "Training size": m, n, k >= 1024; attention: sequence >= 2048.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/compute/kernel.hpp"
#include "models/hardware/catalogue.hpp"
#include "validate/score/run_score.hpp"

namespace fabricast {

/// A measured kernel.
struct KernelPoint {
    const GpuSpec* gpu = nullptr;  ///< of the catalogue
    Kernel kernel;
    std::string attention;         ///< key of GpuSpec::attention; empty for other kernels
    bool sustained = false;        ///< a loop at the power limit, not a few replays
    std::int64_t extra_bytes = 0;  ///< a pass that the measured time includes
    double extra_s = 0;
    double measured_s = 0;
    std::string where, group;  ///< "line 17"; class for reports
    bool training_size = true, counts = true;
};
struct KernelPoints {
    std::vector<KernelPoint> points;
    std::map<std::string, std::size_t> left_out;  ///< reason -> points
};
/// Throw IngestError for a file that is no such table.
KernelPoints read_gemm_points(const std::filesystem::path& path);
KernelPoints read_attention_points(const std::filesystem::path& path);
/// With the constants of `gpu`, which may be others than the catalogue's.
double predicted_s(const KernelPoint& point, const GpuSpec& gpu);

struct KernelScore {
    std::string what;                             ///< "gemm" or "attention"
    std::map<std::string, ErrorStats> all, big;   ///< by class; training size only
    ErrorStats total_all, total_big;              ///< gemm: bf16 and fp16; attention: forward
    std::map<std::string, std::size_t> left_out;  ///< reason -> points
};

KernelScore score_points(const std::string& what, const KernelPoints& points);
/// Throws IngestError for a file that is no such table. Columns: gpu, dtype, m, n, k, tflops or latency_us.
KernelScore score_gemm(const std::filesystem::path& path);
/// Columns: gpu, impl or kernel, causal, batch, seq_len or seq, heads, head_dim, tflops or latency_us.
KernelScore score_attention(const std::filesystem::path& path);

std::string kernel_score_text(const KernelScore& score);
nlohmann::ordered_json kernel_score_json(const KernelScore& score);

}  // namespace fabricast
