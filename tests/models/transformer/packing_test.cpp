#include "models/transformer/packing.hpp"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "models/compute/attention.hpp"
#include "models/transformer/architecture.hpp"

namespace fabricast {
namespace {

TEST(Packing, EqualDocuments) {
    EXPECT_EQ(equal_documents(1024, 8192), 1024);
    EXPECT_EQ(equal_documents(9000, 8192), 8192);
}

// Strung together and cut: the mean of sum of squares over tokens of many drawn sequences.
TEST(Packing, ExponentialDocumentsAgreeWithDraws) {
    const double sequence = 8192;
    for (const double mean : {100.0, 1024.0, 8192.0, 50000.0}) {
        std::mt19937_64 bits(7);
        const auto draw = [&] { return -mean * std::log(1 - static_cast<double>(bits() >> 11) * 0x1p-53); };
        double squares = 0, tokens = 0, left = draw();
        for (int i = 0; i < 40000; ++i) {
            for (double room = sequence; room > 0;) {
                const double piece = std::min(left, room);
                squares += piece * piece;
                tokens += piece;
                room -= piece;
                left -= piece;
                if (left <= 0)
                    left = draw();
            }
        }
        EXPECT_NEAR(exponential_documents(mean, sequence) / (squares / tokens), 1, 0.02) << mean;
    }
    EXPECT_NEAR(exponential_documents(1e9, sequence), sequence, 1);
    EXPECT_NEAR(exponential_documents(8191e3, sequence) / exponential_documents(8193e3, sequence), 1, 1e-6);
}

TEST(Packing, Samples) {
    EXPECT_DOUBLE_EQ(sampled_documents({1000, 1000}, 8192), 1000);
    EXPECT_DOUBLE_EQ(sampled_documents({1, 3}, 8192), 10.0 / 4);
    EXPECT_DOUBLE_EQ(sampled_documents({20000}, 8192), (2 * 8192.0 * 8192 + 3616.0 * 3616) / 20000);
}

Kernel core(std::int64_t sequence, std::int64_t document) {
    Kernel k;
    k.kind = KernelKind::attention_forward;
    k.batch = 1;
    k.heads = 32;
    k.kv_heads = 8;
    k.sq = k.sk = sequence;
    k.head_dim = 128;
    k.document = document;
    return k;
}

// n documents of s / n tokens are n squares: 1 / n of the scores.
TEST(Packing, KernelsComputeDocuments) {
    const double whole = attention_flops(core(8192, 0));
    EXPECT_DOUBLE_EQ(attention_flops(core(8192, 1024)), whole / 8);
    EXPECT_DOUBLE_EQ(attention_flops(core(8192, 8192)), whole);
    Kernel many = core(1024, 0);
    many.batch = 8;
    EXPECT_DOUBLE_EQ(attention_flops(core(8192, 1024)), attention_flops(many));
    // A window narrower than a document: each document is a short windowed sequence.
    Kernel window = core(8192, 1024), alone = many;
    window.window = alone.window = 256;
    EXPECT_DOUBLE_EQ(attention_flops(window), attention_flops(alone));
    window.window = 2048;
    EXPECT_DOUBLE_EQ(attention_flops(window), whole / 8);
}

TEST(Packing, ModelFlopsCountDocuments) {
    const Architecture& a = *find_architecture("llama3.1-8b");
    const double whole = attention_flops(a, 4, 8192), packed = attention_flops(a, 4, 8192, 1024);
    EXPECT_DOUBLE_EQ(packed, whole / 8);
    EXPECT_DOUBLE_EQ(model_flops(a, 4, 8192, a.vocab) - model_flops(a, 4, 8192, a.vocab, 1024), whole - packed);
    EXPECT_NE(flops_convention(a, 1024).find("1024 keys a token"), std::string::npos);
}

}  // namespace
}  // namespace fabricast
