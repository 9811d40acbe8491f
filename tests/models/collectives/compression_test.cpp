#include "models/collectives/compression.hpp"

#include <gtest/gtest.h>

namespace fabricast {
namespace {

constexpr std::int64_t kElements = 1 << 20;

// FP16 2x, FP8 4x, INT4 8x, signs 32x against FP32, less the scales.
TEST(Compression, RatiosToFp32) {
    const auto ratio = [](Compression method) {
        return 4.0 * kElements / static_cast<double>(compress(method, TensorClass::matrix, kElements).wire);
    };
    EXPECT_EQ(ratio(Compression::none), 1);
    EXPECT_EQ(ratio(Compression::fp16), 2);
    EXPECT_EQ(ratio(Compression::bf16), 2);
    EXPECT_NEAR(ratio(Compression::fp8), 4 / (1 + 4.0 / 1024), 1e-9);
    EXPECT_NEAR(ratio(Compression::int8), 4 / (1 + 4.0 / 4096), 1e-9);
    EXPECT_NEAR(ratio(Compression::int4), 8 / (1 + 8.0 / 4096), 1e-9);
    EXPECT_NEAR(ratio(Compression::one_bit_adam), 32 / (1 + 32.0 / 4096), 1e-9);
}

TEST(Compression, OnlyMatricesAreCompressed) {
    for (const Compression method : compressions())
        for (const TensorClass tensor : {TensorClass::embedding, TensorClass::head, TensorClass::vector}) {
            EXPECT_EQ(compress(method, tensor, kElements).wire, 4 * kElements);
            EXPECT_EQ(compress(method, tensor, kElements).memory, 0);
        }
    EXPECT_EQ(compress(Compression::one_bit_adam, TensorClass::matrix, kElements, true).wire, 4 * kElements);
}

TEST(Compression, WidthOfWhatIsCompressed) {
    EXPECT_EQ(compress(Compression::none, TensorClass::matrix, kElements, false, 2).wire, 2 * kElements);
    EXPECT_EQ(compress(Compression::int8, TensorClass::matrix, kElements, false, 2).wire,
              compress(Compression::int8, TensorClass::matrix, kElements).wire);
    EXPECT_EQ(compress(Compression::int8, TensorClass::matrix, 4096, false, 2).memory, 2 * (2 * 4096 + 4096 + 4));
}

}  // namespace
}  // namespace fabricast
