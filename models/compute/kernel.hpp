// A GPU kernel as a shape: what is computed, not how long it takes.
#pragma once

#include <cstdint>
#include <string>

#include "models/program/account.hpp"

namespace fabricast {

enum class Precision : std::uint8_t { fp32, tf32, bf16, fp16, fp8 };
enum class KernelKind : std::uint8_t { gemm, grouped_gemm, attention_forward, attention_backward, memory_bound };
enum class Fusion : std::uint8_t { fused, compiled, eager };  ///< which memory-bound efficiency applies

/// One kernel or `count` equal ones in a row.
struct Kernel {
    KernelKind kind = KernelKind::memory_bound;
    Account account = Account::memory_bound;  ///< for gemm: gemm_ideal stands for the pair ideal + loss
    std::int64_t count = 1;
    // gemm: C[m,n] (+)= A[m,k] B[k,n], `batch` independent products; grouped_gemm: one launch of `batch` products, one an
    // expert, whose token dimension is the mean over experts: m forward and data, k for weight gradients
    std::int64_t m = 0, n = 0, k = 0, batch = 1;
    Precision precision = Precision::bf16;
    bool tokens_in_k = false;      ///< grouped_gemm: k is the token dimension (weight gradients)
    bool accumulate_fp32 = false;  ///< C is fp32, read and written (weight gradients)
    // attention: batch sequences, heads query heads, kv_heads, sq x sk scores, head_dim d
    std::int64_t heads = 0, kv_heads = 0, sq = 0, sk = 0, head_dim = 0;
    std::int64_t value_dim = 0;  ///< of a value head where it differs from head_dim; 0 = the same
    std::int64_t window = 0;     ///< keys a query sees at most; 0 = no limit
    std::int64_t document = 0;   ///< packed: tokens of a query's document on average; 0 = the sequence is one
    bool causal = true;
    bool balanced = false;  ///< causal, sq < sk: rows taken evenly from all positions, so half of sq sk scores
    // memory_bound: bytes read + written
    std::int64_t bytes = 0;
    Fusion fusion = Fusion::fused;
};

/// What else runs on the GPU while the kernel does.
enum class Interference : std::uint8_t { alone, kernel_waiting, network, nvlink, both, count };
inline constexpr std::size_t kInterferenceCount = static_cast<std::size_t>(Interference::count);

}  // namespace fabricast
