#include "models/compute/gemm.hpp"

#include <algorithm>
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
constexpr std::int64_t kSmallestChunk = 256;  ///< of k, when split

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

double ceil_positive(double x) {
    const double whole = static_cast<double>(static_cast<std::int64_t>(x));
    return whole < x ? whole + 1 : whole;
}

double compute_time(const GpuSpec& gpu, const Kernel& kernel, double peak, const Available& left) {
    const GemmConstants& c = gpu.gemm;
    const double sm_peak = peak / static_cast<double>(gpu.sms);
    const double waves_per_tile = 1 / left.sms;
    const double split_s = 8 * static_cast<double>(kernel.m) * static_cast<double>(kernel.n) *
                           static_cast<double>(kernel.batch) / (left.hbm_bytes_per_s * c.bandwidth * c.split_cost);
    double chunk[kSplitCount];
    for (std::size_t i = 0; i < kSplitCount; ++i) {
        const std::int64_t rounded = ceil_div(ceil_div(kernel.k, kSplits[i]), 64) * 64;
        chunk[i] = static_cast<double>(i == 0 ? rounded : std::max(rounded, kSmallestChunk));
    }
    double best = std::numeric_limits<double>::infinity();
    for (const Tile& tile : kTiles) {
        const double area = static_cast<double>(tile.m * tile.n);
        const double ratio = c.fall * static_cast<double>(tile.m + tile.n) / area;
        const double s_per_k = 2 * area * (1 + ratio * ratio) / (sm_peak * c.emax);
        const double tiles = static_cast<double>(ceil_div(kernel.m, tile.m)) *
                             static_cast<double>(ceil_div(kernel.n, tile.n)) * static_cast<double>(kernel.batch);
        for (std::size_t i = 0; i < kSplitCount; ++i) {
            const double split = static_cast<double>(kSplits[i]);
            const double x = tiles * split * waves_per_tile;
            const double waves = x <= 1 ? 1 : (1 - c.wave) * x + c.wave * ceil_positive(x);
            const double t = waves * (chunk[i] * s_per_k + c.c_pro_s) + (i == 0 ? 0 : split * split_s);
            best = std::min(best, t);
        }
    }
    return best;
}

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

double memory_time(const GpuSpec& gpu, const Kernel& kernel, const Available& left) {
    const GemmConstants& c = gpu.gemm;
    const double m = static_cast<double>(kernel.m), n = static_cast<double>(kernel.n);
    const double k = static_cast<double>(kernel.k), operand = operand_bytes(kernel.precision);
    const double result = kernel.accumulate_fp32 ? 8 : std::max(operand, 2.0);
    const double bytes = static_cast<double>(kernel.batch) * ((m * k + k * n) * operand + m * n * result);
    const double spill = bytes / (gpu.l2_bytes / 2);
    return bytes / (left.hbm_bytes_per_s * c.bandwidth * (1 + (c.hot - 1) / (1 + spill * spill)));
}

}  // namespace

double grouped_efficiency(const GpuSpec& gpu, std::int64_t tokens) {
    const double least = gpu.generation == GpuGeneration::blackwell ? 0.70 : 0.86;
    constexpr double kLog2 = 0.69314718055994531;
    const double steps = math::log(4096.0 / static_cast<double>(std::max<std::int64_t>(tokens, 1))) / kLog2 / 3;
    return 1 - (1 - least) * std::clamp(steps, 0.0, 1.0);
}

double gemm_flops(const Kernel& kernel) {
    return 2 * static_cast<double>(kernel.m) * static_cast<double>(kernel.n) * static_cast<double>(kernel.k) *
           static_cast<double>(kernel.batch);
}

double gemm_time(const GpuSpec& gpu, const Kernel& kernel, double peak, const Available& left) {
    const GemmConstants& c = gpu.gemm;
    if (kernel.precision == Precision::fp8)
        peak *= kFp8Envelope;
    const double compute = compute_time(gpu, kernel, peak, left);
    const double memory = memory_time(gpu, kernel, left);
    const double longer = std::max(compute, memory), shorter = std::min(compute, memory);
    const double smooth = longer * math::pow(1 + math::pow(shorter / longer, c.p), 1 / c.p);
    const double floor = gemm_flops(kernel) / (peak * c.cap * left.sms / static_cast<double>(gpu.sms));
    return c.t0_s + std::max(smooth, floor);
}

}  // namespace fabricast
