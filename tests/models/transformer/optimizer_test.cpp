// State and traffic of optimizers against published byte counts and closed forms.
#include "models/transformer/optimizer.hpp"

#include <gtest/gtest.h>

#include "models/transformer/weight_matrices.hpp"

namespace fabricast {
namespace {

constexpr std::int64_t kMillion = 1'000'000;

Updated elements(std::int64_t count) {
    Updated u;
    u.elements = count;
    return u;
}

std::int64_t traffic(const std::vector<Kernel>& kernels) {
    std::int64_t sum = 0;
    for (const Kernel& k : kernels) {
        EXPECT_EQ(k.account, Account::optimizer);
        sum += k.kind == KernelKind::memory_bound ? k.count * k.bytes : 0;
    }
    return sum;
}

double product_flops(const std::vector<Kernel>& kernels) {
    double sum = 0;
    for (const Kernel& k : kernels)
        if (k.kind == KernelKind::gemm)
            sum += 2.0 * static_cast<double>(k.m) * static_cast<double>(k.n) * static_cast<double>(k.k) *
                   static_cast<double>(k.count);
    return sum;
}

double bytes_a_parameter(const Optimizer& o, Precision precision = Precision::bf16) {
    return static_cast<double>(optimizer_bytes(o, precision, elements(kMillion))) / kMillion;
}

TEST(Optimizer, StateBytesAreThePublishedOnes) {
    // Megatron's 12: master 4 + moments 8; 8 in fp32 training.
    EXPECT_EQ(bytes_a_parameter({}), 12);
    EXPECT_EQ(bytes_a_parameter({}, Precision::fp32), 8);
    // bitsandbytes: 8 bytes of moments become 2 (arXiv:2110.02861), plus a scale a block and moment.
    Optimizer narrow{.kind = OptimizerKind::adam_8bit, .master = StateType::none};
    EXPECT_NEAR(bytes_a_parameter(narrow), 2 + 2 * 4.0 / 256, 1e-4);
    narrow.block = 2048;
    EXPECT_NEAR(bytes_a_parameter(narrow), 2 + 2 * 4.0 / 2048, 1e-4);
    EXPECT_EQ(optimizer_bytes(narrow, Precision::bf16, elements(2049)), 2 * (2049 + 2 * 4));
    // FP8-LM: 16 bytes of master, gradient and moments become 6: 2 + 1 + 1 + 2, of which 5 are the optimizer's.
    EXPECT_EQ(bytes_a_parameter({.master = StateType::fp16, .first = StateType::fp8, .second = StateType::fp16}), 5);
    // DeepSeek-V3: moments in bf16.
    EXPECT_EQ(bytes_a_parameter({.first = StateType::bf16, .second = StateType::bf16}), 8);
    EXPECT_EQ(bytes_a_parameter({.kind = OptimizerKind::lion}), 8);
    EXPECT_EQ(bytes_a_parameter({.kind = OptimizerKind::sgd}), 4);
    EXPECT_EQ(bytes_a_parameter({.kind = OptimizerKind::sgd_momentum, .master = StateType::none}), 4);
}

TEST(Optimizer, MuonKeepsOneMomentOfMatrices) {
    Updated u = elements(1000);
    u.matrices = {{4096, 1024, 3}};
    const Optimizer muon{.kind = OptimizerKind::muon};
    EXPECT_EQ(optimizer_bytes(muon, Precision::bf16, u), 12 * 1000 + 8 * 3 * 4096 * 1024);
}

TEST(Optimizer, AdafactorKeepsRowsAndColumns) {
    Updated u = elements(1000);
    u.factored = 4096 * 1024;
    u.factors = 4096 + 1024;
    const Optimizer o{.kind = OptimizerKind::adafactor, .master = StateType::none};
    EXPECT_EQ(optimizer_bytes(o, Precision::bf16, u), 4 * (1000 + 4096 + 1024));
}

TEST(Optimizer, TrafficOfAnUpdate) {
    // Norm, update, zeroing: 4 + 30 + 4 bytes with fp32 gradients, 2 + 28 + 2 with 16-bit ones.
    EXPECT_EQ(traffic(optimizer_kernels({}, Precision::bf16, elements(1000), 4, true)), 38'000);
    EXPECT_EQ(traffic(optimizer_kernels({}, Precision::bf16, elements(1000), 2, true)), 32'000);
    EXPECT_EQ(traffic(optimizer_kernels({}, Precision::bf16, elements(1000), 4, false)), 34'000);
    // fp32 weights: read and written, moments read and written, gradient read.
    EXPECT_EQ(traffic(optimizer_kernels({}, Precision::fp32, elements(1000), 4, false)), 32'000);
    // 8-bit moments in place of fp32 ones: 16 bytes become 4 and the scales.
    EXPECT_NEAR(update_traffic({.kind = OptimizerKind::adam_8bit}, Precision::bf16, 4), 30 - 16 + 4 + 4 * 4.0 / 256,
                1e-12);
    EXPECT_EQ(update_traffic({.kind = OptimizerKind::sgd, .master = StateType::none}, Precision::bf16, 2), 6);
    EXPECT_TRUE(optimizer_kernels({}, Precision::bf16, elements(0), 4, true).empty());
}

// K. Jordan: 2 (2 n m^2 + m^3) FLOP an iteration of an m x n matrix, and at most 5 m / tokens of the step's own FLOP.
TEST(Optimizer, FlopsOfNewtonAndSchulz) {
    const double m = 1024, n = 4096;
    Updated u;
    u.matrices = {{4096, 1024, 7}};
    const double flops = product_flops(optimizer_kernels({.kind = OptimizerKind::muon}, Precision::bf16, u, 4, true));
    EXPECT_DOUBLE_EQ(flops, 7 * 5 * 2 * (2 * n * m * m + m * m * m));
    const double tokens = 1 << 20;
    EXPECT_LE(flops / (7 * 6 * m * n * tokens), 5 * m / tokens);
}

TEST(Optimizer, NamesWhatDiffers) {
    EXPECT_EQ(optimizer_text({}), "adam");
    EXPECT_EQ(optimizer_text({.kind = OptimizerKind::muon, .first = StateType::bf16, .second = StateType::bf16}),
              "muon, moments bf16");
    EXPECT_EQ(optimizer_text({.master = StateType::none, .first = StateType::fp8, .second = StateType::fp16}),
              "adam, moments fp8 and fp16, no master weights");
    EXPECT_EQ(optimizer_text({.kind = OptimizerKind::adam_8bit}), "adam-8bit");
}

// Every preset: matrices and what is none (norms, biases, sinks, gates) make the layer.
TEST(WeightMatrices, MakeTheParametersOfALayer) {
    for (const Architecture& a : architectures()) {
        for (const bool moe : {false, true}) {
            if (moe && a.moe.experts == 0)
                continue;
            const LayerShape shape{.moe = moe};
            const LayerMatrices whole = layer_matrices(a, shape, 1, 1, 1);
            const LayerParameters p = layer_parameters(a, shape);
            const std::int64_t dense = p.attention + p.mlp + p.norms + p.replicated;
            EXPECT_LE(element_count(whole.dense), dense) << a.name;
            EXPECT_GT(static_cast<double>(element_count(whole.dense)), 0.997 * static_cast<double>(dense)) << a.name;
            EXPECT_LE(element_count(whole.experts), p.experts) << a.name;
            EXPECT_GE(static_cast<double>(element_count(whole.experts)), 0.999 * static_cast<double>(p.experts))
                << a.name;
        }
    }
}

TEST(WeightMatrices, ShapesOfALlamaLayer) {
    const Architecture& a = *find_architecture("llama3.1-8b");
    const LayerMatrices cut = layer_matrices(a, {}, 2, 1, 2);
    const std::vector<MatrixCount> expected = {
        {2048, 4096, 1}, {512, 4096, 2}, {4096, 2048, 1}, {7168, 4096, 2}, {4096, 7168, 1}};
    EXPECT_EQ(cut.dense, expected);
    EXPECT_TRUE(cut.experts.empty());
}

}  // namespace
}  // namespace fabricast
