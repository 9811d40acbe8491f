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

#include "validate/score/run_score.hpp"

namespace fabricast {

struct KernelScore {
    std::string what;                             ///< "gemm" or "attention"
    std::map<std::string, ErrorStats> all, big;   ///< by class; training size only
    ErrorStats total_all, total_big;              ///< gemm: bf16 and fp16; attention: forward
    std::map<std::string, std::size_t> left_out;  ///< reason -> points
};

/// Throws IngestError for a file that is no such table. Columns: gpu, dtype, m, n, k, tflops or latency_us.
KernelScore score_gemm(const std::filesystem::path& path);
/// Columns: gpu, impl or kernel, causal, batch, seq_len or seq, heads, head_dim, tflops or latency_us.
KernelScore score_attention(const std::filesystem::path& path);

std::string kernel_score_text(const KernelScore& score);
nlohmann::ordered_json kernel_score_json(const KernelScore& score);

}  // namespace fabricast
