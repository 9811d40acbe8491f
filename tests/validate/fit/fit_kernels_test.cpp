#include "validate/fit/fit_kernels.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "sim/observed/ingest_error.hpp"

namespace fabricast {
namespace {

const GpuSpec& h100() { return *Catalogue::builtin().find_gpu("H100-SXM-80G"); }

KernelPoint product(std::int64_t m, std::int64_t n, std::int64_t k) {
    KernelPoint p;
    p.gpu = &h100();
    p.kernel.kind = KernelKind::gemm;
    p.kernel.m = m;
    p.kernel.n = n;
    p.kernel.k = k;
    p.group = "gemm bf16";
    p.where = "here";
    return p;
}

/// What a card with other constants would show.
std::vector<KernelPoint> of_another_card(double cap, double t0_us) {
    GpuSpec slow = h100();
    slow.gemm.cap = cap;
    slow.gemm.t0_s = t0_us * 1e-6;
    std::vector<KernelPoint> out;
    for (const std::int64_t m : {128, 512, 1024, 4096, 8192}) {
        for (const std::int64_t n : {256, 1024, 4096, 8192}) {
            for (const std::int64_t k : {512, 4096}) {
                KernelPoint p = product(m, n, k);
                p.measured_s = kernel_s(p, slow) * (1 + .01 * std::sin(static_cast<double>(m + 3 * n + 7 * k)));
                out.push_back(p);
            }
        }
    }
    return out;
}

double value(const Calibration::Owned& gpus, const std::string& key) {
    for (const auto& [name, x] : gpus.at(0).second) {
        if (name == key)
            return x;
    }
    return 0;
}

TEST(FitKernels, FindsTheConstantsOfASlowerCard) {
    std::vector<KernelPoint> points = of_another_card(.62, 4);
    points[3].measured_s *= 2;  // a bad sample
    const KernelFit fit = fit_kernels(points, "node.json");
    ASSERT_EQ(fit.parts.size(), 1u);
    EXPECT_TRUE(fit.parts[0].kept);
    EXPECT_NEAR(value(fit.gpus, "gemm.cap"), .62, .03);
    EXPECT_NEAR(value(fit.gpus, "gemm.t0") * 1e6, 4, .8);
    EXPECT_LT(fit.parts[0].cross_median, .03);
    EXPECT_TRUE(fit.parts[0].points[3].outlier);
    EXPECT_GT(fit.parts[0].default_median, .05);
}

TEST(FitKernels, RefusesWhatIsAboveThePeak) {
    std::vector<KernelPoint> points = of_another_card(.7, 3);
    points[39].measured_s = 2.0 * 8192 * 8192 * 4096 / (1.31 * h100().peak_bf16);
    points[39].kernel.m = points[39].kernel.n = 8192;
    points[39].kernel.k = 4096;
    try {
        fit_kernels(points, "node.json");
        FAIL() << "accepted";
    } catch (const IngestError& error) {
        const std::string said = error.what();
        EXPECT_NE(
            said.find("131.0 % of the dense bf16 peak of H100-SXM-80G, 989.4 TFLOP/s: no GPU can be above its peak"),
            std::string::npos)
            << said;
    }
    KernelPoint copy;
    copy.gpu = &h100();
    copy.kernel.bytes = 1 << 30;
    copy.measured_s = 1e-4;
    EXPECT_NE(above_peak(h100(), copy).find("nominal memory bandwidth"), std::string::npos);
    copy.measured_s = 4e-4;
    EXPECT_EQ(above_peak(h100(), copy), "");
}

TEST(FitKernels, KnowsDevicesByTheNamesOfDrivers) {
    for (const auto& [device, gpu] : {std::pair{"NVIDIA H100 80GB HBM3", "H100-SXM-80G"},
                                      {"NVIDIA H200", "H200-SXM-141G"},
                                      {"NVIDIA A100-SXM4-80GB", "A100-SXM-80G"},
                                      {"NVIDIA A100-SXM4-40GB", "A100-SXM-40G"},
                                      {"NVIDIA B200", "B200-SXM-180G"},
                                      {"NVIDIA GB200", "GB200"},
                                      {"NVIDIA L40S", "L40S-48G"}}) {
        const GpuSpec* found = gpu_of_device(device);
        ASSERT_NE(found, nullptr) << device;
        EXPECT_EQ(found->name, gpu) << device;
    }
    EXPECT_EQ(gpu_of_device("NVIDIA T4"), nullptr);
}

}  // namespace
}  // namespace fabricast
