// The GEMM model against published measurements (data/gemm_sample.csv: every n-th row with M,N,K >= 1024 of the
// measured bf16 tables; A100 constants and one rate factor for Hopper were fitted on the same tables, the other
// constants on other engines), and the properties it promises for every shape and GPU.
#include <gtest/gtest.h>

#include "models/compute/compute_model.hpp"
#include "models/compute/gemm.hpp"
#include "tests/models/compute/measured.hpp"

namespace fabricast {
namespace {

Kernel gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
    Kernel kernel;
    kernel.kind = KernelKind::gemm;
    kernel.account = Account::gemm_ideal;
    kernel.m = m;
    kernel.n = n;
    kernel.k = k;
    return kernel;
}

ComputeModel model(const GpuSpec& gpu, bool sustained) {
    ComputeOptions options;
    options.sustained = sustained;
    return ComputeModel(gpu, options);
}

ComputeModel model(std::string_view gpu, bool sustained) {
    return model(*Catalogue::builtin().find_gpu(gpu), sustained);
}

test::Errors errors(const std::string& gpu, const std::string& protocol) {
    const ComputeModel compute = model(gpu, protocol == "sustained");
    test::Errors out;
    for (const test::CsvRow& row : test::read_csv("gemm_sample.csv")) {
        if (row.at("gpu") != gpu || row.at("protocol") != protocol)
            continue;
        const Kernel kernel = gemm(test::whole(row, "m"), test::whole(row, "n"), test::whole(row, "k"));
        out.signed_error.push_back(compute.time(kernel).total_s / (test::number(row, "latency_us") * 1e-6) - 1);
    }
    out.print(gpu + " gemm " + protocol);
    return out;
}

constexpr std::int64_t kSizes[] = {64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 5120, 8192, 28672};

TEST(Gemm, MeasuredBurstA100) {
    const test::Errors e = errors("A100-SXM-80G", "burst");
    EXPECT_LT(e.median(), 0.05);
    EXPECT_LT(e.p90(), 0.15);
}

TEST(Gemm, MeasuredBurstH100) {
    const test::Errors e = errors("H100-SXM-80G", "burst");
    EXPECT_LT(e.median(), 0.06);
    EXPECT_LT(e.p90(), 0.15);
}

// Two engines differ by 8 % median and 24 % p90 on this table, which sets the bar.
TEST(Gemm, MeasuredBurstH200) {
    const test::Errors e = errors("H200-SXM-141G", "burst");
    EXPECT_LT(e.median(), 0.08);
    EXPECT_LT(e.p90(), 0.20);
}

// Training runs are slower than a loop of one kernel at the power cap: cold operands, fp32 accumulation, layouts.
TEST(Gemm, TrainingIsNotFasterThanMeasuredSustainedLoop) {
    const test::Errors e = errors("H200-SXM-141G", "sustained");
    EXPECT_GT(e.bias(), 0);
    EXPECT_LT(e.bias(), 0.15);
}

TEST(Gemm, NeverFasterWhenLarger) {
    for (const GpuSpec& gpu : Catalogue::builtin().gpus()) {
        const ComputeModel compute = model(gpu, false);
        for (const std::int64_t a : kSizes)
            for (const std::int64_t b : kSizes) {
                double previous[4] = {};
                for (std::int64_t c = 64; c <= 4096; c += 64) {
                    Kernel batched = gemm(a, b, 128);
                    batched.batch = c / 64;
                    const Kernel grown[] = {gemm(c, a, b), gemm(a, c, b), gemm(a, b, c), batched};
                    for (std::size_t i = 0; i < 4; ++i) {
                        const double t = compute.time(grown[i]).total_s;
                        ASSERT_GE(t, previous[i]) << gpu.name << " axis " << i << ": " << a << ' ' << b << ' ' << c;
                        previous[i] = t;
                    }
                }
            }
    }
}

TEST(Gemm, UnderTheCeilingAndSustainedNotFasterThanBurst) {
    for (const GpuSpec& gpu : Catalogue::builtin().gpus()) {
        const ComputeModel burst = model(gpu, false), sustained = model(gpu, true);
        for (const Precision precision : {Precision::bf16, Precision::fp8}) {
            if (precision == Precision::fp8 && gpu.peak_fp8 == 0)
                continue;
            for (const std::int64_t m : kSizes)
                for (const std::int64_t n : kSizes)
                    for (const std::int64_t k : kSizes) {
                        Kernel kernel = gemm(m, n, k);
                        kernel.precision = precision;
                        const KernelTime b = burst.time(kernel), s = sustained.time(kernel);
                        ASSERT_LE(b.flops / b.total_s, gpu.gemm.cap * burst.peak_flops(precision));
                        ASSERT_GE(s.total_s, b.total_s);
                        ASSERT_LT(b.ideal_s, b.total_s);
                    }
        }
    }
}

TEST(Gemm, BigProductsReachTheKnownTrainingRates) {
    const auto tflops = [](std::string_view gpu, Precision precision) {
        Kernel kernel = gemm(8192, 8192, 8192);
        kernel.precision = precision;
        const KernelTime t = model(gpu, true).time(kernel);
        return t.flops / t.total_s / 1e12;
    };
    EXPECT_NEAR(tflops("A100-SXM-80G", Precision::bf16), 233, 8);
    EXPECT_NEAR(tflops("H100-SXM-80G", Precision::bf16), 625, 15);
    EXPECT_NEAR(tflops("H200-SXM-141G", Precision::bf16), 618, 15);
    EXPECT_NEAR(tflops("H100-SXM-80G", Precision::fp8), 1130, 40);
    EXPECT_NEAR(tflops("GB200", Precision::bf16), 1270, 40);
}

TEST(Gemm, AccumulationMovesMoreBytesAndPowerLimitSlows) {
    const GpuSpec& gpu = *Catalogue::builtin().find_gpu("H100-SXM-80G");
    Kernel kernel = gemm(8192, 8192, 128);
    const double plain = model(gpu, true).time(kernel).total_s;
    kernel.accumulate_fp32 = true;
    EXPECT_GT(model(gpu, true).time(kernel).total_s, 1.5 * plain);

    ComputeOptions limited;
    limited.power_fraction = 500.0 / 700;
    const double slow = ComputeModel(gpu, limited).time(gemm(8192, 8192, 8192)).total_s;
    EXPECT_NEAR(slow / model(gpu, true).time(gemm(8192, 8192, 8192)).total_s, 1.183, 0.001);
}

TEST(Gemm, CountMultipliesAndFp16EqualsBf16) {
    const ComputeModel compute = model("H100-SXM-80G", true);
    Kernel kernel = gemm(4096, 4096, 4096);
    const KernelTime one = compute.time(kernel);
    kernel.count = 7;
    kernel.precision = Precision::fp16;
    const KernelTime seven = compute.time(kernel);
    EXPECT_DOUBLE_EQ(seven.total_s, 7 * one.total_s);
    EXPECT_DOUBLE_EQ(seven.flops, 7 * one.flops);
    EXPECT_DOUBLE_EQ(seven.ideal_s, seven.flops / compute.peak_flops(Precision::bf16));
    kernel.m = 0;
    EXPECT_EQ(compute.time(kernel).total_s, 0);
}

TEST(Gemm, RefusesWhatItCannotPrice) {
    const ComputeModel a100 = model("A100-SXM-80G", true);
    Kernel kernel = gemm(1024, 1024, 1024);
    kernel.precision = Precision::fp8;
    EXPECT_THROW(a100.time(kernel), std::invalid_argument);
    kernel = gemm(1024, -1, 1024);
    EXPECT_THROW(a100.time(kernel), std::invalid_argument);
    ComputeOptions options;
    options.attention = "fa9";
    try {
        ComputeModel refused(a100.gpu(), options);
        FAIL() << "accepted an unknown attention implementation";
    } catch (const std::invalid_argument& error) {
        EXPECT_NE(std::string(error.what()).find("cudnn, fa1, fa2"), std::string::npos) << error.what();
    }
    options = {};
    options.power_fraction = 0;
    EXPECT_THROW(ComputeModel(a100.gpu(), options), std::invalid_argument);
}

}  // namespace
}  // namespace fabricast
