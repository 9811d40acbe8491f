// Attention against published measurements (data/attention_sample.csv) and against its own promises.
#include <gtest/gtest.h>

#include "models/compute/attention.hpp"
#include "models/compute/compute_model.hpp"
#include "tests/models/compute/measured.hpp"

namespace fabricast {
namespace {

Kernel attention(std::int64_t batch, std::int64_t heads, std::int64_t seq, std::int64_t head_dim, bool causal) {
    Kernel kernel;
    kernel.kind = KernelKind::attention_forward;
    kernel.account = Account::attention;
    kernel.batch = batch;
    kernel.heads = kernel.kv_heads = heads;
    kernel.sq = kernel.sk = seq;
    kernel.head_dim = head_dim;
    kernel.causal = causal;
    return kernel;
}

ComputeModel model(std::string_view gpu, const std::string& implementation) {
    ComputeOptions options;
    options.attention = implementation;
    return ComputeModel(*Catalogue::builtin().find_gpu(gpu), options);
}

test::Errors errors(const std::string& gpu, const std::string& implementation, const std::string& direction,
                    bool paper) {
    const ComputeModel compute = model(gpu, implementation);
    test::Errors out;
    for (const test::CsvRow& row : test::read_csv("attention_sample.csv")) {
        const bool from_paper = row.at("source").find("paper") != std::string::npos;
        if (row.at("gpu") != gpu || row.at("implementation") != implementation || row.at("direction") != direction ||
            from_paper != paper)
            continue;
        Kernel kernel = attention(test::whole(row, "batch"), test::whole(row, "heads"), test::whole(row, "seq"),
                                  test::whole(row, "head_dim"), row.at("causal") == "1");
        kernel.kv_heads = test::whole(row, "kv_heads");
        if (direction == "backward")
            kernel.kind = KernelKind::attention_backward;
        const KernelTime t = compute.time(kernel);
        out.signed_error.push_back(test::number(row, "tflops") * 1e12 / (t.flops / t.total_s) - 1);
    }
    out.print(gpu + ' ' + implementation + ' ' + direction + (paper ? " (paper)" : " (serving)"));
    return out;
}

TEST(Attention, MeasuredLongSequences) {
    EXPECT_LT(errors("A100-SXM-80G", "fa2", "forward", false).median(), 0.06);
    // Serving kernels write the cache as well, so training constants come out faster.
    const test::Errors h100 = errors("H100-SXM-80G", "fa3", "forward", false);
    const test::Errors h200 = errors("H200-SXM-141G", "fa3", "forward", false);
    EXPECT_LT(h100.median(), 0.10);
    EXPECT_LT(h200.median(), 0.10);
}

TEST(Attention, PublishedTrainingKernelsOnHopper) {
    for (const char* implementation : {"fa2", "cudnn", "fa3"}) {
        EXPECT_LT(errors("H100-SXM-80G", implementation, "forward", true).median(), 0.09) << implementation;
        EXPECT_LT(errors("H100-SXM-80G", implementation, "backward", true).median(), 0.20) << implementation;
    }
}

TEST(Attention, FlopsFollowTheConvention) {
    EXPECT_DOUBLE_EQ(attention_flops(attention(2, 16, 4096, 128, false)), 4.0 * 2 * 16 * 4096 * 4096 * 128);
    EXPECT_DOUBLE_EQ(attention_flops(attention(2, 16, 4096, 128, true)), 2.0 * 2 * 16 * 4096 * 4096 * 128);
    Kernel backward = attention(2, 16, 4096, 128, true);
    backward.kind = KernelKind::attention_backward;
    EXPECT_DOUBLE_EQ(attention_flops(backward), 5.0 * 2 * 16 * 4096 * 4096 * 128);
    Kernel chunk = attention(1, 1, 1024, 128, true);  // the last quarter of the queries of 4096 keys
    chunk.sk = 4096;
    EXPECT_DOUBLE_EQ(attention_flops(chunk), 4.0 * 128 * 1024 * (4096 - 512));
}

TEST(Attention, BackwardTakesTwoAndAHalfForwardsDividedByItsRate) {
    for (const GpuSpec& gpu : Catalogue::builtin().gpus())
        for (const auto& [name, constants] : gpu.attention) {
            const ComputeModel compute = model(gpu.name, name);
            Kernel kernel = attention(1, 64, 65536, 128, true);
            const double forward = compute.time(kernel).total_s;
            kernel.kind = KernelKind::attention_backward;
            const double ratio = compute.time(kernel).total_s / forward;
            EXPECT_NEAR(ratio, 2.5 / constants.backward_rate, 0.06) << gpu.name << ' ' << name;
        }
}

TEST(Attention, NeverFasterWhenLarger) {
    for (const GpuSpec& gpu : Catalogue::builtin().gpus())
        for (const auto& [name, constants] : gpu.attention) {
            const ComputeModel compute = model(gpu.name, name);
            for (const bool causal : {false, true})
                for (const KernelKind kind : {KernelKind::attention_forward, KernelKind::attention_backward}) {
                    double by_length = 0, by_heads = 0, by_batch = 0;
                    for (std::int64_t i = 1; i <= 64; ++i) {
                        Kernel longer = attention(1, 8, 128 * i, 128, causal);
                        Kernel more_heads = attention(1, i, 2048, 128, causal);
                        Kernel more_batch = attention(i, 4, 1024, 64, causal);
                        longer.kind = more_heads.kind = more_batch.kind = kind;
                        const double a = compute.time(longer).total_s, b = compute.time(more_heads).total_s,
                                     c = compute.time(more_batch).total_s;
                        ASSERT_GE(a, by_length) << gpu.name << ' ' << name << ' ' << i;
                        ASSERT_GE(b, by_heads) << gpu.name << ' ' << name << ' ' << i;
                        ASSERT_GE(c, by_batch) << gpu.name << ' ' << name << ' ' << i;
                        by_length = a;
                        by_heads = b;
                        by_batch = c;
                    }
                }
        }
}

TEST(Attention, RatesStayUnderTheirEfficiencyAndGroupedHeadsHelpALittle) {
    const GpuSpec& gpu = *Catalogue::builtin().find_gpu("H100-SXM-80G");
    const ComputeModel compute = model(gpu.name, "fa3");
    Kernel kernel = attention(4, 32, 8192, 128, true);
    const KernelTime full = compute.time(kernel);
    EXPECT_LT(full.flops / full.total_s, gpu.attention.at("fa3").e128 * gpu.peak_bf16);
    EXPECT_EQ(full.ideal_s, 0);
    kernel.kv_heads = 8;
    const double grouped = compute.time(kernel).total_s;
    EXPECT_LT(grouped, full.total_s);
    EXPECT_GT(grouped, 0.9 * full.total_s);
}

}  // namespace
}  // namespace fabricast
