#include "models/compute/attention.hpp"

#include <algorithm>

namespace fabricast {

namespace {

constexpr std::int64_t kBlockRows = 128;
constexpr double kBackwardFlops = 2.5;  // five matrix products instead of two
constexpr double kBackwardBytes = 2;    // reads O and dO too, writes dQ, dK, dV
constexpr double kHiddenMemory = 0.7;   // share of the shorter of compute and memory that disappears

double scores(const Kernel& kernel) {
    const double sq = static_cast<double>(kernel.sq), sk = static_cast<double>(kernel.sk);
    if (kernel.document > 0 && kernel.document < kernel.sk) {
        const double d = static_cast<double>(kernel.document), w = static_cast<double>(kernel.window);
        if (w > 0 && w < d)
            return sq * (w - w * w / 2 / d);
        return kernel.causal ? sq * d / 2 : sq * d;
    }
    if (!kernel.causal)
        return sq * sk;
    const double all = kernel.balanced ? sq * sk / 2 : sq <= sk ? sq * (sk - sq / 2) : sk * sk / 2;
    if (kernel.window <= 0 || kernel.window >= kernel.sk)
        return all;
    // Rows see at most w keys; the first w of a sequence see fewer, w^2/2 scores in all, w^2 sq/(2 sk) for a rank's share.
    const double w = static_cast<double>(kernel.window);
    return std::min(all, sq * w - w * w / 2 * std::min(1.0, sq / sk));
}

// Of a score: half of the width of a query head and half of a value head.
double width(const Kernel& kernel) {
    const std::int64_t value = kernel.value_dim > 0 ? kernel.value_dim : kernel.head_dim;
    return static_cast<double>(kernel.head_dim + value) / 2;
}

double efficiency(const AttentionConstants& c, std::int64_t head_dim) {
    if (head_dim >= 128)
        return c.e128;
    if (head_dim <= 64)
        return c.e64;
    return c.e64 + (c.e128 - c.e64) * static_cast<double>(head_dim - 64) / 64;
}

}  // namespace

double attention_flops(const Kernel& kernel) {
    const double forward =
        4 * static_cast<double>(kernel.batch) * static_cast<double>(kernel.heads) * width(kernel) * scores(kernel);
    return kernel.kind == KernelKind::attention_backward ? kBackwardFlops * forward : forward;
}

double attention_time(const GpuSpec& gpu, const AttentionConstants& c, const Kernel& kernel, double peak,
                      const Available& left) {
    const bool backward = kernel.kind == KernelKind::attention_backward;
    const double d = width(kernel);
    std::int64_t longest_row = kernel.window > 0 ? std::min(kernel.window, kernel.sk) : kernel.sk;
    if (kernel.document > 0)
        longest_row = std::min(longest_row, kernel.document);
    const double e = efficiency(c, kernel.head_dim) * (backward ? c.backward_rate : 1);
    const double s0 = c.s0 * (backward ? 2 : 1);
    const double sm_rate = peak / static_cast<double>(gpu.sms) * e;
    const double blocks =
        static_cast<double>(kernel.batch * kernel.heads * ((kernel.sq + kBlockRows - 1) / kBlockRows));
    const double keys = scores(kernel) / static_cast<double>(kernel.sq);
    const double rate = sm_rate * std::min(left.sms, blocks) * keys / (keys + s0 / 2);
    const double longest = 4 * static_cast<double>(kBlockRows) * static_cast<double>(longest_row) * d *
                           (backward ? kBackwardFlops : 1) / sm_rate;
    const double compute = std::max(attention_flops(kernel) / rate, longest);
    const double bytes = 4 * static_cast<double>(kernel.batch) * d *
                         static_cast<double>(kernel.heads * kernel.sq + kernel.kv_heads * kernel.sk) *
                         (backward ? kBackwardBytes : 1);
    const double memory = bytes / (left.hbm_bytes_per_s * c.bandwidth);
    return c.t0_s + std::max(compute, memory) + (1 - kHiddenMemory) * std::min(compute, memory);
}

}  // namespace fabricast
