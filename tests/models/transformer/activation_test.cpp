#include <gtest/gtest.h>

#include "models/transformer/layer.hpp"

namespace fabricast {
namespace {

const SoftwareFeatures& stack(std::string_view name) { return *find_software(name); }

Shard shard(std::int64_t tp, bool sp, std::int64_t micro_batch, std::int64_t sequence) {
    Shard s;
    s.tp = tp;
    s.sequence_parallel = sp;
    s.micro_batch = micro_batch;
    s.sequence = sequence;
    return s;
}

// arXiv:2205.05198 table 2, integers throughout.
TEST(Activation, ClassicTable) {
    const SoftwareFeatures& f = stack("megatron-2022");
    for (const char* name : {"megatron-22b", "gpt3-175b"}) {
        const Architecture& a = *find_architecture(name);
        const std::int64_t s = 2048, b = 4, h = a.hidden, t = 8;
        const std::int64_t sbh = s * b * h, core = 5 * a.heads * s * s * b;
        EXPECT_EQ(layer_activation(a, shard(1, false, b, s), f, Recompute::none).kept, 34 * sbh + core);
        EXPECT_EQ(layer_activation(a, shard(t, false, b, s), f, Recompute::none).kept,
                  10 * sbh + (24 * sbh + core) / t);
        EXPECT_EQ(layer_activation(a, shard(t, true, b, s), f, Recompute::none).kept, (34 * sbh + core) / t);
        const ActivationBytes selective = layer_activation(a, shard(t, true, b, s), f, Recompute::selective);
        EXPECT_EQ(selective.kept, 34 * sbh / t);
        EXPECT_EQ(selective.working, core / t);
        const ActivationBytes full = layer_activation(a, shard(t, false, b, s), f, Recompute::full);
        EXPECT_EQ(full.kept, 2 * sbh);
        EXPECT_EQ(full.working, 10 * sbh + (24 * sbh + core) / t);
        EXPECT_EQ(layer_activation(a, shard(t, true, b, s), f, Recompute::full).kept, 2 * sbh / t);
    }
}

TEST(Activation, GeneralMlpWidth) {
    Architecture a = *find_architecture("gpt3-175b");
    a.ffn = 3 * a.hidden;
    const std::int64_t sbh = 2048 * a.hidden;
    EXPECT_EQ(layer_activation(a, shard(1, false, 1, 2048), stack("megatron-2022"), Recompute::selective).kept,
              18 * sbh + 4 * 2048 * a.ffn);
}

TEST(Activation, GroupedGatedFlashWithoutDropout) {
    const Architecture& a = *find_architecture("llama2-70b");
    const std::int64_t t = 4096;
    // Norm and linear inputs 8h, Q 2h, K and V 2 * 2h/8, projection input 2h, MLP 6f, log-sum-exp 4 a.
    const std::int64_t expected = t * (8 * 8192 + 2 * 8192 + 4 * 1024 + 2 * 8192 + 6 * 28672 + 4 * 64);
    const SoftwareFeatures& f = stack("megatron-core-2024");
    EXPECT_EQ(layer_activation(a, shard(1, false, 1, t), f, Recompute::none).kept, expected);
    EXPECT_EQ(layer_activation(a, shard(8, true, 1, t), f, Recompute::none).kept, expected / 8);
    // Eager keeps SiLU's output and two tensors more at each RMSNorm.
    EXPECT_EQ(layer_activation(a, shard(1, false, 1, t), stack("torch-fsdp"), Recompute::none).kept,
              expected + t * (2 * 4 * 8192 + 2 * 28672));
}

// Selective recomputation saves under 5 % with flash, most of a layer without it at long sequences.
TEST(Activation, SelectiveRecomputationSavesOnlyWhatIsThere) {
    const Architecture& a = *find_architecture("megatron-22b");
    const Shard s = shard(8, true, 1, 8192);
    const auto saving = [&](const SoftwareFeatures& f) {
        const double all = static_cast<double>(layer_activation(a, s, f, Recompute::none).kept);
        return 1 - static_cast<double>(layer_activation(a, s, f, Recompute::selective).kept) / all;
    };
    EXPECT_LT(saving(stack("megatron-core-2024")), 0.05);
    EXPECT_GT(saving(stack("megatron-2022")), 0.5);
}

TEST(Activation, NeverMoreUnderRecomputation) {
    for (const SoftwareFeatures& f : software_stacks()) {
        for (const Architecture& a : architectures()) {
            const Shard s = shard(1, false, 2, 2048);
            const ActivationBytes none = layer_activation(a, s, f, Recompute::none);
            const ActivationBytes selective = layer_activation(a, s, f, Recompute::selective);
            const ActivationBytes full = layer_activation(a, s, f, Recompute::full);
            if (!f.selective_by_product) {
                EXPECT_EQ(selective.kept + selective.working, none.kept) << a.name << ' ' << f.name;
            }
            EXPECT_GE(selective.kept + selective.working, none.kept) << a.name << ' ' << f.name;
            EXPECT_EQ(full.working, none.kept) << a.name << ' ' << f.name;
            EXPECT_LT(full.kept, selective.kept) << a.name << ' ' << f.name;
            EXPECT_LE(selective.kept, none.kept) << a.name << ' ' << f.name;
        }
    }
}

// torchtitan keeps the output of every second product in order wq wk wv wo w1 w3 w2, of attention, of reduce-scatters, and
// the layer input: 2 T (h + a d + g d + a d + f + h), log-sum-exp 4 T a.
TEST(Activation, SelectiveByProductKeepsEverySecondProduct) {
    const Architecture& a = *find_architecture("llama3-8b");
    const std::int64_t t = 8192, h = 4096, kv = 1024, f = 14336;
    for (const char* name : {"torchtitan-2024-eager", "torchtitan-2024-compile"}) {
        const ActivationBytes one = layer_activation(a, shard(1, false, 1, t), stack(name), Recompute::selective);
        EXPECT_EQ(one.kept, t * (2 * (4 * h + kv + f) + 4 * 32));
        // without attention's output, log-sum-exp, values and gate, which are there
        const std::int64_t all = layer_activation(a, shard(1, false, 1, t), stack(name), Recompute::none).kept;
        EXPECT_EQ(one.working, all - t * (2 * (h + kv + f) + 4 * 32));
        // the second MLP product is whole on every rank, its sum and that of the projection are parts
        const ActivationBytes eight = layer_activation(a, shard(8, true, 1, t), stack(name), Recompute::selective);
        EXPECT_EQ(eight.kept, t * (2 * (5 * h + kv + f) / 8 + 2 * h + 4 * 32 / 8));
    }
    EXPECT_EQ(layer_activation(a, shard(1, false, 1, t), stack("torch-fsdp"), Recompute::selective).working,
              t * 4 * 32);
}

TEST(Activation, Fp8KeepsLinearInputsInOneByte) {
    const Architecture& a = *find_architecture("llama2-70b");
    Shard s = shard(8, true, 1, 4096);
    const SoftwareFeatures& f = stack("nemo-2024");
    const std::int64_t wide = layer_activation(a, s, f, Recompute::none).kept;
    s.precision = Precision::fp8;
    // Two gathered inputs and the MLP's inner one lose a byte, the projection's copy adds one.
    EXPECT_EQ(layer_activation(a, s, f, Recompute::none).kept, wide - 4096LL * (2 * 8192 + 28672 - 8192) / 8);
}

TEST(Activation, EmbeddingAndLogits) {
    const Architecture& a = *find_architecture("gpt3-175b");
    SoftwareFeatures f = stack("megatron-2022");
    const std::int64_t s = 2048, h = a.hidden;
    EXPECT_EQ(embedding_activation(a, shard(8, true, 1, s), f), 8 * s + s * h / 8);
    // 4 s b h (1 + V/h) / t when the fp32 logits alone are counted.
    f.logits_memory_per_logit = 4;
    EXPECT_EQ(logits_bytes(a, shard(8, true, 1, s), f), 4 * s * (h + 51200) / 8);
    f.dropout = false;
    EXPECT_EQ(embedding_activation(a, shard(8, true, 1, s), f), 8 * s);
}

}  // namespace
}  // namespace fabricast
