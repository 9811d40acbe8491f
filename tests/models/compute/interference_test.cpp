// Kernels slowed by communication beside them, over the kernels of transformer layers; memory-bound pricing.
#include <cstdio>

#include <gtest/gtest.h>

#include "models/compute/compute_model.hpp"
#include "models/compute/interference.hpp"
#include "models/compute/memory_bound.hpp"

namespace fabricast {
namespace {

Kernel moved(std::int64_t bytes) {
    Kernel kernel;
    kernel.bytes = bytes;
    return kernel;
}

/// Forward kernels of one layer: 4096 tokens, hidden size h, MLP 8/3 h, `tp` tensor-parallel ranks.
std::vector<Kernel> layer(std::int64_t h, std::int64_t tp) {
    const std::int64_t tokens = 4096, ffn = 8 * h / 3 / tp;
    std::vector<Kernel> out;
    const auto product = [&](std::int64_t n, std::int64_t k) {
        Kernel kernel;
        kernel.kind = KernelKind::gemm;
        kernel.m = tokens;
        kernel.n = n;
        kernel.k = k;
        out.push_back(kernel);
    };
    product(3 * h / tp, h);
    product(h, h / tp);
    product(2 * ffn, h);
    product(h, ffn);
    Kernel attention;
    attention.kind = KernelKind::attention_forward;
    attention.heads = attention.kv_heads = h / 128 / tp;
    attention.sq = attention.sk = tokens;
    attention.head_dim = 128;
    out.push_back(attention);
    for (const std::int64_t bytes : {4 * tokens * h / tp, 4 * tokens * h / tp, 6 * tokens * h, 6 * tokens * ffn})
        out.push_back(moved(bytes));
    return out;
}

struct Mean {
    double alone = 0, disturbed = 0;
    double slowdown() const { return disturbed / alone; }
};

Mean mean_slowdown(const GpuSpec& gpu, Interference state) {
    const ComputeModel compute(gpu, {});
    Mean mean;
    for (const std::int64_t h : {2048, 4096, 8192})
        for (const std::int64_t tp : {1, 4, 8})
            for (const Kernel& kernel : layer(h, tp)) {
                const double alone = compute.time(kernel).total_s, with = compute.time(kernel, state).total_s;
                EXPECT_GE(with, alone);
                EXPECT_LE(with, kMaxSlowdown * alone * (1 + 1e-12));
                mean.alone += alone;
                mean.disturbed += with;
            }
    return mean;
}

TEST(Interference, MeanLossIsNearThePublishedOne) {
    double sum = 0;
    for (const char* name : {"A100-SXM-80G", "H100-SXM-80G", "H200-SXM-141G"}) {
        const GpuSpec& gpu = *Catalogue::builtin().find_gpu(name);
        const double waiting = mean_slowdown(gpu, Interference::kernel_waiting).slowdown();
        const double network = mean_slowdown(gpu, Interference::network).slowdown();
        const double nvlink = mean_slowdown(gpu, Interference::nvlink).slowdown();
        const double both = mean_slowdown(gpu, Interference::both).slowdown();
        std::printf("%-14s waiting %.3f  network %.3f  nvlink %.3f  both %.3f\n", name, waiting, network, nvlink, both);
        EXPECT_NEAR(network, 1.05, 0.02) << name;
        EXPECT_NEAR(nvlink, 1.19, 0.04) << name;
        EXPECT_LT(both, 1.40) << name;
        sum += nvlink;
    }
    EXPECT_NEAR(sum / 3, 1.18, 0.02);
}

TEST(Interference, StatesAreOrderedForEveryKernel) {
    for (const GpuSpec& gpu : Catalogue::builtin().gpus()) {
        const ComputeModel compute(gpu, {});
        for (const std::int64_t h : {2048, 8192})
            for (const std::int64_t tp : {1, 8})
                for (const Kernel& kernel : layer(h, tp)) {
                    double previous = 0;
                    for (std::size_t i = 0; i < kInterferenceCount; ++i) {
                        const double t = compute.time(kernel, static_cast<Interference>(i)).total_s;
                        EXPECT_GE(t, previous) << gpu.name << " state " << i;
                        previous = t;
                    }
                }
    }
}

TEST(Interference, AWaitingKernelMovesNothing) {
    const GpuSpec& gpu = *Catalogue::builtin().find_gpu("H100-SXM-80G");
    const ComputeModel compute(gpu, {});
    EXPECT_EQ(compute.time(moved(1 << 30)).total_s, compute.time(moved(1 << 30), Interference::kernel_waiting).total_s);
    EXPECT_EQ(available(gpu, Interference::alone).sms, 132);
    EXPECT_EQ(available(gpu, Interference::alone).hbm_bytes_per_s, gpu.hbm_bytes_per_s);
}

TEST(Interference, OneWaveProductCanLoseItsWave) {
    const GpuSpec& gpu = *Catalogue::builtin().find_gpu("A100-SXM-80G");  // full wave quantisation
    const ComputeModel compute(gpu, {});
    Kernel kernel;
    kernel.kind = KernelKind::gemm;
    kernel.m = 12 * 256;
    kernel.n = 9 * 128;  // 108 tiles of 256x128 on 108 SMs
    kernel.k = 4096;
    const double slowdown = compute.time(kernel, Interference::nvlink).total_s / compute.time(kernel).total_s;
    EXPECT_GT(slowdown, 1.2);
    EXPECT_LE(slowdown, kMaxSlowdown);
}

TEST(MemoryBound, FloorThenBandwidth) {
    const GpuSpec& gpu = *Catalogue::builtin().find_gpu("H100-SXM-80G");
    const ComputeModel compute(gpu, {});
    const double tiny = compute.time(moved(4096)).total_s;
    EXPECT_DOUBLE_EQ(tiny, gpu.memory.floor_s + kKernelGapSeconds);
    Kernel big = moved(std::int64_t{10} << 30);
    const double fused = compute.time(big).total_s;
    EXPECT_NEAR(static_cast<double>(big.bytes) / fused / gpu.hbm_bytes_per_s, gpu.memory.fused, 0.001);
    big.fusion = Fusion::eager;
    EXPECT_GT(compute.time(big).total_s, fused);
    EXPECT_EQ(compute.time(moved(0)).total_s, 0);
    double previous = 0;
    for (std::int64_t bytes = 1; bytes < (std::int64_t{1} << 34); bytes *= 2) {
        const double t = compute.time(moved(bytes)).total_s;
        ASSERT_GE(t, previous);
        previous = t;
    }
}

}  // namespace
}  // namespace fabricast
