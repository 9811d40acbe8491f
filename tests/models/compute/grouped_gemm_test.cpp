// The grouped product against published measurements, and the properties it promises on every GPU.
//
//   data/grouped_gemm_sample.csv  products alone, as training launches them (sources in the rows)
//   data/moe_sample.csv           whole layers of a serving engine: routing, first product, activation, second product,
//                                 combination; every expert on the GPU and equal counts; a thinned share of the tables
#include <string>

#include <gtest/gtest.h>

#include "models/compute/compute_model.hpp"
#include "models/compute/grouped_gemm.hpp"
#include "tests/models/compute/measured.hpp"

namespace fabricast {
namespace {

Kernel grouped(std::int64_t tokens, std::int64_t out, std::int64_t in, std::int64_t experts) {
    Kernel kernel;
    kernel.kind = KernelKind::grouped_gemm;
    kernel.account = Account::gemm_ideal;
    kernel.m = tokens;
    kernel.n = out;
    kernel.k = in;
    kernel.batch = experts;
    return kernel;
}

Kernel weight_gradient(std::int64_t tokens, std::int64_t out, std::int64_t in, std::int64_t experts) {
    Kernel kernel = grouped(out, in, tokens, experts);
    kernel.tokens_in_k = true;
    kernel.accumulate_fp32 = true;
    return kernel;
}

const GpuSpec& gpu_named(std::string_view name) { return *Catalogue::builtin().find_gpu(name); }

ComputeModel model(const GpuSpec& gpu, bool sustained = true) {
    ComputeOptions options;
    options.attention = gpu.attention.begin()->first;
    options.sustained = sustained;
    return ComputeModel(gpu, options);
}

/// Equal counts, burst.
double even(const ComputeModel& compute, const Kernel& kernel) {
    const GpuSpec& gpu = compute.gpu();
    return grouped_gemm_time(gpu, kernel, compute.peak_flops(kernel.precision), available(gpu, Interference::alone), 0);
}

Precision precision(const test::CsvRow& row) {
    return row.at("dtype") == "fp8_block" ? Precision::fp8 : Precision::bf16;
}

/// Predicted over measured rate of products alone, with equal counts as all of these were measured.
double product_error(const test::CsvRow& row, double rate) {
    const ComputeModel compute = model(gpu_named(row.at("gpu")));
    const std::int64_t tokens = test::whole(row, "tokens_per_expert"), out = test::whole(row, "out");
    const std::int64_t in = test::whole(row, "in"), experts = test::whole(row, "experts");
    const std::string& what = row.at("what");
    double seconds = 0, flops = 0;
    const auto add = [&](Kernel kernel) {
        kernel.precision = precision(row);
        seconds += even(compute, kernel) / rate;
        flops += gemm_flops(kernel);
    };
    if (what == "forward" || what == "all three")
        add(grouped(tokens, out, in, experts));
    if (what == "data" || what == "all three")
        add(grouped(tokens, in, out, experts));
    if (what == "weight" || what == "all three") {
        Kernel kernel = weight_gradient(tokens, out, in, experts);
        kernel.accumulate_fp32 = what == "weight";
        add(kernel);
    }
    return seconds / (flops / (test::number(row, "tflops") * 1e12)) - 1;
}

test::Errors product_errors(const std::string& gpu, double rate, const std::string& left_out = "") {
    test::Errors out;
    for (const test::CsvRow& row : test::read_csv("grouped_gemm_sample.csv"))
        if (row.at("gpu") == gpu && row.at("what") != left_out)
            out.signed_error.push_back(product_error(row, rate));
    out.print(gpu + " grouped products");
    return out;
}

TEST(GroupedGemm, TrainingProductsOnA100) {
    const test::Errors e = product_errors("A100-PCIe-80G", gpu_named("A100-PCIe-80G").gemm.sustained);
    EXPECT_LT(e.median(), 0.05);
    EXPECT_LT(e.p90(), 0.13);
}

TEST(GroupedGemm, Fp8ProductsOnHopper) {
    const test::Errors e = product_errors("H800-SXM-80G", 1);
    EXPECT_LT(e.median(), 0.09);
    EXPECT_LT(e.p90(), 0.25);
    // The weight gradient of that library runs at 0.37 of its forward; it is a kernel of its own and not modelled.
    const test::Errors h100 = product_errors("H100-SXM-80G", 1, "weight");
    EXPECT_LT(h100.p90(), 0.12);
}

// PyTorch's 16-bit kernel is slow on this GPU even with one expert and 128k tokens: the forecast, the rate of dense products in
// training, is a quarter to a half above it.
TEST(GroupedGemm, PytorchOnB200IsSlowAtAnySize) {
    const test::Errors e = product_errors("B200-SXM-180G", gpu_named("B200-SXM-180G").gemm.sustained);
    EXPECT_LT(e.bias(), -0.15);
    EXPECT_GT(e.bias(), -0.35);
}

// 8x B200, training, all counts equal: 0.08-0.21 of peak at 128-154 tokens an expert, forward to weight gradient, and
// 0.30-0.39 at 308 (SimuMax system file, summary).
TEST(GroupedGemm, FewTokensOnB200) {
    const ComputeModel compute = model(gpu_named("B200-SXM-180G"));
    const auto share = [&](const Kernel& kernel) {
        return gemm_flops(kernel) * compute.gpu().gemm.sustained /
               (even(compute, kernel) * compute.peak_flops(Precision::bf16));
    };
    EXPECT_NEAR(share(grouped(154, 3072, 5120, 40)), 0.20, 0.03);
    EXPECT_NEAR(share(weight_gradient(154, 3072, 5120, 40)), 0.07, 0.02);
    EXPECT_NEAR(share(grouped(308, 3072, 5120, 40)), 0.33, 0.04);
}

/// A layer as the serving engine runs it; nothing of it is training but the two products.
double layer_seconds(const test::CsvRow& row) {
    const ComputeModel compute = model(gpu_named(row.at("gpu")), false);
    const std::int64_t tokens = test::whole(row, "tokens"), hidden = test::whole(row, "hidden");
    const std::int64_t experts = test::whole(row, "experts"), copies = tokens * test::whole(row, "topk");
    const std::int64_t width = test::whole(row, "inter") / test::whole(row, "tp");
    const std::int64_t busy = std::min(experts, copies);
    const std::int64_t each = std::max<std::int64_t>(1, (copies + experts / 2) / experts);
    double seconds = 0;
    const auto product = [&](std::int64_t out, std::int64_t in) {
        Kernel kernel = grouped(each, out, in, busy);
        kernel.precision = precision(row);
        seconds += even(compute, kernel);
    };
    const auto pass = [&](std::int64_t bytes, std::int64_t count) {
        Kernel kernel;
        kernel.bytes = bytes;
        kernel.count = count;
        seconds += compute.time(kernel).total_s;
    };
    pass(12 * copies, 4);  // top-k, sorting of copies by expert
    product(2 * width, hidden);
    pass(6 * copies * width, 1);
    product(hidden, width);
    pass(2 * (copies + tokens) * hidden, 1);
    if (row.at("dtype") == "fp8_block") {
        pass(3 * tokens * hidden, 1);
        pass(3 * copies * width, 1);
    }
    return seconds;
}

test::Errors layer_errors(const std::string& gpu, const std::string& dtype, const std::string& kernel) {
    test::Errors out;
    for (const test::CsvRow& row : test::read_csv("moe_sample.csv"))
        if (row.at("gpu") == gpu && row.at("dtype") == dtype && row.at("kernel") == kernel)
            out.signed_error.push_back(layer_seconds(row) / (test::number(row, "latency_us") * 1e-6) - 1);
    out.print(gpu + " " + dtype + " " + kernel);
    return out;
}

// Wide bars, because the tables are of kernels that training does not use: shapes without tuned tiles take 1.5 to 3 times as
// long as tuned ones of the same size (forecast too fast), CUTLASS on Hopper longer still; the generated 16-bit kernels of
// Blackwell were timed on weights of zero, which saves power, and fetch weights ahead (forecast too slow).
TEST(GroupedGemm, ServingLayers) {
    struct Row {
        const char *gpu, *dtype, *kernel;
        double median, p90;
    };
    constexpr Row kRows[] = {
        {"A100-SXM-80G", "bf16", "sglang_fused_moe_triton", 0.28, 0.52},
        {"H100-SXM-80G", "bf16", "sglang_fused_moe_triton", 0.39, 0.62},
        {"H100-SXM-80G", "fp8_block", "sglang_fused_moe_triton", 0.34, 0.50},
        {"H100-SXM-80G", "bf16", "sglang_flashinfer_cutlass_moe", 0.67, 0.85},
        {"H200-SXM-141G", "bf16", "sglang_fused_moe_triton", 0.32, 0.64},
        {"H200-SXM-141G", "fp8_block", "sglang_fused_moe_triton", 0.32, 0.59},
        {"B200-SXM-180G", "bf16", "sglang_flashinfer_trtllm_moe", 0.50, 1.12},
        {"B200-SXM-180G", "bf16", "sglang_fused_moe_triton", 0.29, 0.69},
        {"B200-SXM-180G", "fp8_block", "sglang_flashinfer_trtllm_moe", 0.25, 0.60},
        {"GB200", "bf16", "sglang_flashinfer_trtllm_moe", 0.47, 1.12},
        {"GB200", "bf16", "sglang_fused_moe_triton", 0.54, 0.73},
        {"GB200", "fp8_block", "sglang_flashinfer_trtllm_moe", 0.28, 0.60},
    };
    for (const Row& row : kRows) {
        const test::Errors e = layer_errors(row.gpu, row.dtype, row.kernel);
        EXPECT_LT(e.median(), row.median) << row.gpu << ' ' << row.kernel;
        EXPECT_LT(e.p90(), row.p90) << row.gpu << ' ' << row.kernel;
    }
}

TEST(GroupedGemm, OneExpertIsADenseProduct) {
    for (const GpuSpec& gpu : Catalogue::builtin().gpus()) {
        const ComputeModel compute = model(gpu);
        for (const std::int64_t tokens : {1, 37, 300, 1024, 5000}) {
            Kernel kernel = grouped(tokens, 3072, 2048, 1);
            const double one = compute.time(kernel).total_s;
            kernel.kind = KernelKind::gemm;
            EXPECT_DOUBLE_EQ(one, compute.time(kernel).total_s) << gpu.name;
        }
    }
}

TEST(GroupedGemm, ManyTokensRunAtTheDenseRate) {
    for (const GpuSpec& gpu : Catalogue::builtin().gpus()) {
        const ComputeModel compute = model(gpu);
        const auto slower = [&](std::int64_t tokens) {
            const Kernel kernel = grouped(tokens, 4096, 4096, 8);
            Kernel dense = grouped(8 * tokens, 4096, 4096, 1);
            dense.kind = KernelKind::gemm;
            return compute.time(kernel).total_s / compute.time(dense).total_s;
        };
        EXPECT_LT(slower(16384), 1.03) << gpu.name;
        EXPECT_LT(slower(4096), 1.12) << gpu.name;
        EXPECT_GT(slower(128), slower(1024)) << gpu.name;
        EXPECT_GT(slower(1024), slower(8192) - 1e-9) << gpu.name;
        EXPECT_GE(slower(512), 1) << gpu.name;
    }
}

TEST(GroupedGemm, NeverFasterWhenLargerAndUnderTheCeiling) {
    for (const GpuSpec& gpu : Catalogue::builtin().gpus()) {
        const ComputeModel compute = model(gpu, false);
        for (const Precision p : {Precision::bf16, Precision::fp8}) {
            if (p == Precision::fp8 && gpu.peak_fp8 == 0)
                continue;
            for (const std::int64_t experts : {2, 3, 8, 40, 128})
                for (const std::int64_t width : {128, 768, 4096}) {
                    double previous[6] = {};
                    for (std::int64_t i = 1; i <= 96; ++i) {
                        const std::int64_t tokens = i <= 32 ? i : i * i / 32;
                        Kernel grown[] = {
                            grouped(tokens, width, 2048, experts), weight_gradient(tokens, width, 2048, experts),
                            grouped(200, 64 * i, width, experts),  weight_gradient(200, 64 * i, width, experts),
                            grouped(8 * experts, width, 2048, i),  weight_gradient(8 * experts, width, 2048, i)};
                        for (std::size_t axis = 0; axis < std::size(grown); ++axis) {
                            grown[axis].precision = p;
                            const KernelTime t = compute.time(grown[axis]);
                            ASSERT_GE(t.total_s, previous[axis] * (1 - 1e-12))
                                << gpu.name << " axis " << axis << " step " << i << " experts " << experts << " width "
                                << width;
                            ASSERT_LE(t.flops / t.total_s, gpu.gemm.cap * compute.peak_flops(p));
                            previous[axis] = t.total_s;
                        }
                    }
                }
        }
    }
}

TEST(GroupedGemm, SmoothInTokens) {
    for (const char* name : {"A100-SXM-80G", "H100-SXM-80G", "GB200"}) {
        const ComputeModel compute = model(gpu_named(name));
        double previous = 0, weight = 0;
        for (std::int64_t tokens = 1; tokens <= 1500; ++tokens) {
            const double t = compute.time(grouped(tokens, 1536, 2048, 16)).total_s;
            const double w = compute.time(weight_gradient(tokens, 1536, 2048, 16)).total_s;
            ASSERT_GE(t, previous * (1 - 1e-12)) << name << ' ' << tokens;
            ASSERT_GE(w, weight * (1 - 1e-12)) << name << ' ' << tokens;
            if (tokens > 16) {  // whole waves on A100, as of dense products
                ASSERT_LT(t, 1.15 * previous) << name << ' ' << tokens;
                ASSERT_LT(w, 1.15 * weight) << name << ' ' << tokens;
            }
            previous = t;
            weight = w;
        }
    }
}

TEST(GroupedGemm, UnevenCountsCost) {
    for (const char* name : {"A100-SXM-80G", "H100-SXM-80G", "B200-SXM-180G"}) {
        const ComputeModel compute = model(gpu_named(name), false);
        // Equal counts that fill their tiles; drawn counts leave half a tile an expert empty. At the power ceiling a waste
        // of some per cent does not show.
        const Kernel few = grouped(128, 4096, 4096, 32), more = grouped(512, 4096, 4096, 32);
        const Kernel gradient = weight_gradient(512, 4096, 4096, 4);
        EXPECT_GT(compute.time(few).total_s, 1.002 * even(compute, few)) << name;
        EXPECT_LT(compute.time(few).total_s, 1.60 * even(compute, few)) << name;
        EXPECT_GE(compute.time(more).total_s, even(compute, more)) << name;
        EXPECT_GE(compute.time(gradient).total_s, even(compute, gradient)) << name;
        // Bound by weights: eight tokens an expert cost hardly more than two.
        const double two = compute.time(grouped(2, 4096, 4096, 64)).total_s;
        EXPECT_LT(compute.time(grouped(8, 4096, 4096, 64)).total_s, 1.25 * two) << name;
    }
}

TEST(GroupedGemm, MeanOfPartlyFilledTiles) {
    EXPECT_EQ(mean_steps(129, 0, 1, 128), 2);
    EXPECT_EQ(mean_steps(128, 0, 1, 128), 1);
    // Wide against the tile: half a tile more than tokens / tile, less half a token.
    EXPECT_NEAR(mean_steps(4096, 4096, 1, 64), 64 + 0.5 - 0.5 / 64, 0.01);
    // Poisson with mean 20: P(x > 16) = 0.7789, P(x > 32) = 0.0044.
    EXPECT_NEAR(mean_steps(20, 20, 1, 16), 1 + 0.7789 + 0.0044, 0.01);
    EXPECT_NEAR(mean_steps(1, 1, 0.632, 64), 0.632, 1e-6);
}

}  // namespace
}  // namespace fabricast
