#include "models/compute/gemm.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/compute/math.hpp"

namespace fabricast {

namespace {

struct Tile {
    std::int64_t m, n;
};
constexpr Tile kTiles[] = {{256, 256}, {256, 192}, {256, 128}, {128, 256}, {192, 128}, {128, 192},
                           {128, 128}, {128, 64},  {64, 256},  {256, 64},  {64, 128},  {64, 64},
                           {128, 32},  {32, 128},  {16, 64},   {64, 32},   {32, 64},   {16, 128}};
constexpr std::int64_t kSplits[] = {1, 2, 3, 4, 6, 8, 16};
constexpr std::size_t kSplitCount = std::size(kSplits);
constexpr double kSmallestChunk = 256;  ///< of k, when split

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

double ceil_positive(double x) {
    const double whole = static_cast<double>(static_cast<std::int64_t>(x));
    return whole < x ? whole + 1 : whole;
}

/// Normal distribution by a logistic curve, within 1.5e-4.
double below(double z) { return 1 / (1 + math::exp(-z * (1.5976 + 0.07056 * z * z))); }

double compute_time(const GpuSpec& gpu, const Kernel& kernel, double peak, const Available& left,
                    const Uneven& uneven) {
    const GemmConstants& c = gpu.gemm;
    const double sm_peak = peak / static_cast<double>(gpu.sms);
    const double waves_per_tile = 1 / left.sms;
    const double split_s = 8 * static_cast<double>(kernel.m) * static_cast<double>(kernel.n) *
                           static_cast<double>(kernel.batch) / (left.hbm_bytes_per_s * c.bandwidth * c.split_cost);
    double chunk[kSplitCount];
    for (std::size_t i = 0; i < kSplitCount; ++i) {
        const double rounded = 64 * mean_steps(kernel.k, uneven.k_variance, uneven.visited, 64 * kSplits[i]);
        chunk[i] = i == 0 ? rounded : std::max(rounded, kSmallestChunk);
    }
    std::int64_t height = 0;
    double rows = 0;
    double best = std::numeric_limits<double>::infinity();
    for (const Tile& tile : kTiles) {
        const double area = static_cast<double>(tile.m * tile.n);
        const double ratio = c.fall * static_cast<double>(tile.m + tile.n) / area;
        const double s_per_k = 2 * area * (1 + ratio * ratio) / (sm_peak * c.emax);
        if (tile.m != height) {
            height = tile.m;
            rows = mean_steps(kernel.m, uneven.m_variance, uneven.visited, height);
        }
        const double tiles = rows * static_cast<double>(ceil_div(kernel.n, tile.n)) * static_cast<double>(kernel.batch);
        for (std::size_t i = 0; i < kSplitCount; ++i) {
            const double split = static_cast<double>(kSplits[i]);
            const double x = tiles * split * waves_per_tile;
            const double waves = x <= 1 ? 1 : (1 - c.wave) * x + c.wave * ceil_positive(x);
            const double t = waves * (chunk[i] * s_per_k + c.c_pro_s) + uneven.longest_k / split * s_per_k +
                             (i == 0 ? 0 : split * split_s);
            best = std::min(best, t);
        }
    }
    return best;
}

double memory_time(const GpuSpec& gpu, const Kernel& kernel, const Available& left, double visited) {
    const GemmConstants& c = gpu.gemm;
    const double m = static_cast<double>(kernel.m), n = static_cast<double>(kernel.n);
    const double k = static_cast<double>(kernel.k), operand = operand_bytes(kernel.precision);
    const double result = result_bytes(kernel);
    // What does not grow with tokens is met by visited products alone.
    const double weights = kernel.tokens_in_k ? m * n * result : k * n * operand;
    const double tokens = kernel.tokens_in_k ? (m * k + k * n) * operand : m * k * operand + m * n * result;
    const double bytes = static_cast<double>(kernel.batch) * (tokens + visited * weights);
    const double spill = bytes / (gpu.l2_bytes / 2);
    return bytes / (left.hbm_bytes_per_s * c.bandwidth * (1 + (c.hot - 1) / (1 + spill * spill)));
}

}  // namespace

double operand_bytes(Precision precision) {
    switch (precision) {
        case Precision::fp32:
        case Precision::tf32: return 4;
        case Precision::bf16:
        case Precision::fp16: return 2;
        case Precision::fp8: return 1;
    }
    return 2;
}

double result_bytes(const Kernel& kernel) {
    return kernel.accumulate_fp32 ? 8 : std::max(operand_bytes(kernel.precision), 2.0);
}

double gemm_flops(const Kernel& kernel) {
    return 2 * static_cast<double>(kernel.m) * static_cast<double>(kernel.n) * static_cast<double>(kernel.k) *
           static_cast<double>(kernel.batch);
}

double mean_steps(std::int64_t mean, double variance, double visited, std::int64_t step) {
    if (!(variance > 0))
        return static_cast<double>(ceil_div(mean, step));
    // The sum over j >= 0 of P(x > j step); certain while j step lies 6 deviations under the mean.
    constexpr double kFar = 6;
    const double m = static_cast<double>(mean), width = static_cast<double>(step), sigma = std::sqrt(variance);
    const double certain = (m - kFar * sigma) / width;
    double j = certain > 1 ? static_cast<double>(static_cast<std::int64_t>(certain)) : 1;
    double sum = j > 1 ? j : visited;
    for (; j * width < m + kFar * sigma; ++j)
        sum += below((m - j * width - 0.5) / sigma);  // whole x: half way to the next
    return sum;
}

double gemm_time(const GpuSpec& gpu, const Kernel& kernel, double peak, const Available& left, const Uneven& uneven) {
    const GemmConstants& c = gpu.gemm;
    if (kernel.precision == Precision::fp8)
        peak *= kFp8Envelope;
    const double compute = compute_time(gpu, kernel, peak, left, uneven);
    const double memory = memory_time(gpu, kernel, left, uneven.visited);
    const double longer = std::max(compute, memory), shorter = std::min(compute, memory);
    const double smooth = longer * math::pow(1 + math::pow(shorter / longer, c.p), 1 / c.p);
    const double floor = gemm_flops(kernel) / (peak * c.cap * left.sms / static_cast<double>(gpu.sms));
    return c.t0_s + std::max(smooth, floor) + uneven.exposed_s;
}

}  // namespace fabricast
