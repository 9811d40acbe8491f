#include "models/transformer/layer.hpp"

#include <gtest/gtest.h>

namespace fabricast {
namespace {

constexpr Piece kPieces[] = {Piece::norm_attention, Piece::attention, Piece::residual_attention,
                             Piece::norm_mlp,       Piece::mlp,       Piece::residual_mlp};

using Kernels = std::vector<Kernel>;

void append(Kernels& all, const Kernels& more) { all.insert(all.end(), more.begin(), more.end()); }

Kernels layer_forward(const Architecture& a, const Shard& s, const SoftwareFeatures& f) {
    Kernels all;
    for (const Piece p : kPieces)
        append(all, forward_kernels(a, s, f, p));
    return all;
}

Kernels layer_backward(const Architecture& a, const Shard& s, const SoftwareFeatures& f) {
    Kernels all;
    for (const Piece p : kPieces) {
        append(all, backward_data_kernels(a, s, f, p));
        append(all, backward_weight_kernels(a, s, f, p));
    }
    return all;
}

double gemm_flops(const Kernels& kernels) {
    double sum = 0;
    for (const Kernel& k : kernels)
        if (k.kind == KernelKind::gemm)
            sum += 2.0 * static_cast<double>(k.count * k.batch * k.m) * static_cast<double>(k.n * k.k);
    return sum;
}

std::int64_t pointwise_bytes(const Kernels& kernels, Account account) {
    std::int64_t sum = 0;
    for (const Kernel& k : kernels)
        if (k.kind == KernelKind::memory_bound && k.account == account)
            sum += k.count * k.bytes;
    return sum;
}

std::int64_t launches(const Kernels& kernels) {
    std::int64_t sum = 0;
    for (const Kernel& k : kernels)
        sum += k.count;
    return sum;
}

const Architecture& arch(std::string_view name) { return *find_architecture(name); }
const SoftwareFeatures& stack(std::string_view name) { return *find_software(name); }

Shard shard(std::int64_t tp, bool sp, std::int64_t micro_batch, std::int64_t sequence, Precision p = Precision::bf16) {
    Shard s;
    s.tp = tp;
    s.sequence_parallel = sp;
    s.micro_batch = micro_batch;
    s.sequence = sequence;
    s.precision = p;
    return s;
}

// Unfused attention is all GEMMs, so forward GEMMs are a third of the model FLOPs, to the last one.
TEST(Flops, ForwardGemmsAreAThirdOfModelFlops) {
    for (const char* software : {"megatron-2022", "deepspeed-2023"}) {
        for (const char* name : {"gpt3-175b", "llama2-70b", "qwen2-7b", "gpt2"}) {
            const Architecture& a = arch(name);
            const Shard s = shard(1, false, 2, 1024);
            const double layers = gemm_flops(layer_forward(a, s, stack(software))) * static_cast<double>(a.layers);
            const double head = gemm_flops(head_forward(a, s, stack(software)));
            EXPECT_DOUBLE_EQ(3 * (layers + head), model_flops(a, 2, 1024, padded_vocab(a, 1))) << name;
        }
    }
}

TEST(Flops, FlashLeavesTheCoreToTheAttentionKernel) {
    for (const char* software : {"megatron-core-2024", "torch-fsdp", "torch-fsdp-compile"}) {
        const Architecture& a = arch("llama3.1-70b");
        const Shard s = shard(1, false, 1, 8192);
        const double layers = gemm_flops(layer_forward(a, s, stack(software))) * static_cast<double>(a.layers);
        const double head = gemm_flops(head_forward(a, s, stack(software)));
        EXPECT_DOUBLE_EQ(3 * (layers + head) + attention_flops(a, 1, 8192),
                         model_flops(a, 1, 8192, padded_vocab(a, 1)));
        int cores = 0;
        for (const Kernel& k : forward_kernels(a, s, stack(software), Piece::attention)) {
            if (k.kind != KernelKind::attention_forward)
                continue;
            ++cores;
            EXPECT_EQ(4.0 * static_cast<double>(k.batch * k.heads * k.sq * k.sk * k.head_dim) *
                          static_cast<double>(3 * a.layers),
                      attention_flops(a, 1, 8192));
            EXPECT_EQ(k.kv_heads, 8);
            EXPECT_TRUE(k.causal);
            EXPECT_EQ(k.account, Account::attention);
        }
        EXPECT_EQ(cores, 1);
    }
}

TEST(Flops, BackwardIsTwiceForward) {
    for (const SoftwareFeatures& f : software_stacks()) {
        const Architecture& a = arch("llama2-70b");
        for (const std::int64_t tp : {1, 8}) {
            const Shard s = shard(tp, tp > 1, 1, 2048);
            EXPECT_DOUBLE_EQ(gemm_flops(layer_backward(a, s, f)), 2 * gemm_flops(layer_forward(a, s, f))) << f.name;
            EXPECT_DOUBLE_EQ(gemm_flops(head_backward(a, s, f)), 2 * gemm_flops(head_forward(a, s, f))) << f.name;
        }
    }
}

TEST(Sharding, EightRanksDoAnEighthEach) {
    for (const SoftwareFeatures& f : software_stacks()) {
        const Architecture& a = arch("llama2-70b");
        const Shard one = shard(1, false, 1, 4096), eight = shard(8, true, 1, 4096);
        EXPECT_DOUBLE_EQ(gemm_flops(layer_forward(a, one, f)), 8 * gemm_flops(layer_forward(a, eight, f))) << f.name;
        EXPECT_DOUBLE_EQ(gemm_flops(layer_backward(a, one, f)), 8 * gemm_flops(layer_backward(a, eight, f))) << f.name;
        EXPECT_DOUBLE_EQ(gemm_flops(head_forward(a, one, f)) * static_cast<double>(padded_vocab(a, 8)),
                         8 * gemm_flops(head_forward(a, eight, f)) * static_cast<double>(padded_vocab(a, 1)));
    }
}

TEST(Sharding, SequenceParallelCutsNormsAndResidualsOnly) {
    const Architecture& a = arch("llama2-70b");
    const SoftwareFeatures& f = stack("megatron-core-2024");
    const Shard with = shard(8, true, 1, 4096), without = shard(8, false, 1, 4096);
    for (const Piece p : kPieces) {
        const std::int64_t cut = pointwise_bytes(forward_kernels(a, with, f, p), Account::memory_bound);
        const std::int64_t full = pointwise_bytes(forward_kernels(a, without, f, p), Account::memory_bound);
        const bool sharded = p == Piece::attention || p == Piece::mlp;
        EXPECT_EQ(full, sharded ? cut : 8 * cut);
    }
}

TEST(Sharding, KeyValueHeadsAreCopiedBeyondTheirNumber) {
    const Architecture& a = arch("llama3.1-405b");
    const Kernels k = forward_kernels(a, shard(16, true, 1, 8192), stack("megatron-core-2024"), Piece::attention);
    EXPECT_EQ(k.front().n, 128 / 16 * 128 + 2 * 128);
    for (const Kernel& kernel : k) {
        if (kernel.kind == KernelKind::attention_forward) {
            EXPECT_EQ(kernel.kv_heads, 1);
        }
    }
}

// 8 bytes a score forward and 9 backward with dropout: the reads and writes of softmax and dropout. The causal softmax reads
// half; with a part of the rows (context parallelism) all.
TEST(Attention, UnfusedMovesEightAndNineBytesAScore) {
    const Architecture& a = arch("gpt3-175b");
    const Shard s = shard(8, true, 2, 2048);
    SoftwareFeatures f = stack("megatron-2022");
    const std::int64_t scores = 2 * (96 / 8) * 2048LL * 2048;
    const std::int64_t context = 4 * s.tokens() * a.hidden / 8;
    EXPECT_EQ(pointwise_bytes(forward_kernels(a, s, f, Piece::attention), Account::attention), 8 * scores + context);
    EXPECT_EQ(pointwise_bytes(backward_data_kernels(a, s, f, Piece::attention), Account::attention),
              9 * scores + context);
    f.dropout = false;
    EXPECT_EQ(pointwise_bytes(forward_kernels(a, s, f, Piece::attention), Account::attention), 3 * scores + context);
    EXPECT_EQ(pointwise_bytes(backward_data_kernels(a, s, f, Piece::attention), Account::attention),
              4 * scores + context);
    Shard half = s;
    half.cp = 2;
    EXPECT_EQ(pointwise_bytes(forward_kernels(a, half, f, Piece::attention), Account::attention),
              4 * scores / 2 + context / 2);
}

// nanotron: RMSNorm and rotary are single kernels in an otherwise eager stack; a joint copy of q, k, v and two of k, v.
TEST(Bytes, SingleNormAndRotaryKernelsOfAnEagerStack) {
    const Architecture& a = arch("llama-7b");
    const Shard s = shard(1, false, 1, 4096);
    const SoftwareFeatures& f = stack("nanotron-2024");
    const std::int64_t e = 4096LL * 4096;
    const Kernels norm = forward_kernels(a, s, f, Piece::norm_mlp);
    ASSERT_EQ(launches(norm), 1);
    EXPECT_EQ(pointwise_bytes(norm, Account::memory_bound), 4 * e);
    EXPECT_EQ(launches(forward_kernels(a, s, stack("torch-fsdp"), Piece::norm_mlp)), 8);
    // copies 12 + 16, rotary 8, context 4
    EXPECT_EQ(pointwise_bytes(forward_kernels(a, s, f, Piece::attention), Account::memory_bound), (12 + 16 + 8 + 4) * e);
}

// A gradient is 2 bytes written by the product and added to the sum by a pass: 10 bytes a parameter in fp32, 6 in 16 bit.
TEST(Bytes, GradientsAddedByAPassOfTheirOwn) {
    const Architecture& a = arch("llama-7b");
    const Shard s = shard(1, false, 1, 4096);
    const std::int64_t parameters = 3 * 4096LL * 11008;
    for (const auto& [name, bytes] : {std::pair{"nanotron-2024", 10}, {"megatron-deepspeed-2023", 6}}) {
        const Kernels weight = backward_weight_kernels(a, s, stack(name), Piece::mlp);
        EXPECT_EQ(pointwise_bytes(weight, Account::memory_bound), bytes * parameters) << name;
        for (const Kernel& k : weight)
            EXPECT_FALSE(k.accumulate_fp32) << name;
    }
    const Kernels fused = backward_weight_kernels(a, s, stack("megatron-core-2024"), Piece::mlp);
    EXPECT_EQ(pointwise_bytes(fused, Account::memory_bound), 0);
    EXPECT_TRUE(fused.front().accumulate_fp32);
}

TEST(Attention, CoreIsAPartOfTheForwardPiece) {
    for (const SoftwareFeatures& f : software_stacks()) {
        const Shard s = shard(8, true, 1, 4096);
        const Kernels core = attention_core_forward(arch("llama2-70b"), s, f);
        const Kernels piece = forward_kernels(arch("llama2-70b"), s, f, Piece::attention);
        Kernels tagged;
        for (const Kernel& k : piece)
            if (k.account == Account::attention)
                tagged.push_back(k);
        ASSERT_EQ(core.size(), tagged.size()) << f.name;
        EXPECT_DOUBLE_EQ(gemm_flops(core), gemm_flops(tagged)) << f.name;
        EXPECT_EQ(pointwise_bytes(core, Account::attention), pointwise_bytes(tagged, Account::attention)) << f.name;
    }
}

TEST(Bytes, ReferenceLayerFused) {
    // Llama-2-7B, 4096 tokens, elements E = T h, F = T f.
    const Architecture& a = arch("llama-7b");
    const Shard s = shard(1, false, 1, 4096);
    const SoftwareFeatures& f = stack("megatron-core-2024");
    const std::int64_t e = 4096LL * 4096, ffn = 4096LL * 11008;
    EXPECT_EQ(pointwise_bytes(layer_forward(a, s, f), Account::memory_bound),
              2 * 4 * e + 2 * 4 * e + 2 * 6 * e + 6 * ffn);
    EXPECT_EQ(pointwise_bytes(layer_backward(a, s, f), Account::memory_bound),
              2 * 8 * e + 2 * 8 * 128 * 4096 + 2 * 4 * e + 4 * 3 * e + 2 * 6 * e + 10 * ffn);
}

TEST(Bytes, EagerMovesMostAndFusedLeast) {
    SoftwareFeatures f = stack("megatron-core-2024");
    for (const char* name : {"llama-7b", "gpt3-175b"}) {
        const Architecture& a = arch(name);
        for (const bool dropout : {false, true}) {
            f.dropout = dropout;
            std::int64_t last = 0, last_launches = 0;
            for (const Fusion fusion : {Fusion::fused, Fusion::compiled, Fusion::eager}) {
                f.fusion = fusion;
                const Shard s = shard(1, false, 1, 2048);
                Kernels all = layer_forward(a, s, f);
                append(all, layer_backward(a, s, f));
                const std::int64_t bytes = pointwise_bytes(all, Account::memory_bound);
                EXPECT_GT(bytes, last) << name;
                if (fusion == Fusion::eager) {
                    EXPECT_GT(launches(all), last_launches) << name;
                }
                last = bytes;
                last_launches = launches(all);
            }
        }
    }
}

TEST(Bytes, GrowWithTokensAndNeverBelowZero) {
    for (const SoftwareFeatures& f : software_stacks()) {
        for (const Architecture& a : architectures()) {
            std::int64_t last = 0;
            for (const std::int64_t micro_batch : {1, 2, 4}) {
                const Shard s = shard(1, false, micro_batch, 1024);
                Kernels all = layer_forward(a, s, f);
                append(all, layer_backward(a, s, f));
                append(all, embedding_forward(a, s, f));
                append(all, embedding_backward(a, s, f));
                append(all, head_forward(a, s, f));
                append(all, head_backward(a, s, f));
                std::int64_t bytes = 0;
                for (const Kernel& k : all) {
                    ASSERT_GT(k.count, 0);
                    if (k.kind == KernelKind::memory_bound) {
                        ASSERT_GT(k.bytes, 0) << a.name << ' ' << f.name;
                    } else if (k.kind == KernelKind::gemm || k.kind == KernelKind::grouped_gemm) {
                        ASSERT_GT(k.m * k.n * k.k * k.batch, 0) << a.name << ' ' << f.name;
                    }
                    bytes += k.count * k.bytes;
                }
                EXPECT_GT(bytes, last) << a.name << ' ' << f.name;
                last = bytes;
            }
        }
    }
}

TEST(Bytes, DoubleInFp32) {
    const Architecture& a = arch("llama-7b");
    const SoftwareFeatures& f = stack("torch-fsdp-compile");
    const std::int64_t half = pointwise_bytes(layer_forward(a, shard(1, false, 1, 1024), f), Account::memory_bound);
    const std::int64_t full =
        pointwise_bytes(layer_forward(a, shard(1, false, 1, 1024, Precision::fp32), f), Account::memory_bound);
    EXPECT_EQ(full, 2 * half);
}

TEST(Bytes, LossFollowsTheStack) {
    const Architecture& a = arch("llama3.1-8b");
    const Shard s = shard(1, false, 1, 4096);
    SoftwareFeatures f = stack("megatron-core-2024");
    const auto total = [&](double per_logit) {
        f.loss_bytes_per_logit = per_logit;
        return pointwise_bytes(head_forward(a, s, f), Account::memory_bound) +
               pointwise_bytes(head_backward(a, s, f), Account::memory_bound);
    };
    const std::int64_t logits = 4096LL * padded_vocab(a, 1), none = total(0);
    for (const std::int64_t per_logit : {12, 24, 32})
        EXPECT_EQ(total(static_cast<double>(per_logit)) - none, per_logit * logits);
}

TEST(Precision, Fp8IsForTheLinearLayersOnly) {
    const Architecture& a = arch("llama3.1-70b");
    const SoftwareFeatures& f = stack("nemo-2024");
    const Shard fp8 = shard(8, true, 1, 8192, Precision::fp8), bf16 = shard(8, true, 1, 8192);
    Kernels layer = layer_forward(a, fp8, f);
    append(layer, layer_backward(a, fp8, f));
    int linear = 0;
    for (const Kernel& k : layer) {
        const bool gemm = k.kind == KernelKind::gemm;
        linear += gemm;
        EXPECT_EQ(k.precision, gemm ? Precision::fp8 : Precision::bf16);
    }
    EXPECT_EQ(linear, 12);
    Kernels rest = head_forward(a, fp8, f);
    append(rest, head_backward(a, fp8, f));
    append(rest, embedding_forward(a, fp8, f));
    append(rest, attention_core_forward(a, fp8, f));
    append(rest, attention_core_forward(a, fp8, stack("megatron-2022")));
    for (const Kernel& k : rest)
        EXPECT_EQ(k.precision, Precision::bf16);

    // Casts: 3 bytes on each operand before its product, on T/tp when gathered behind; for the weight gradient the saved
    // input is transposed in fp8 (2), the output gradient's second copy is written by its cast (1).
    const std::int64_t t = 8192, h = 8192, inner = (8192 + 28672) / 8;
    const std::int64_t local = (8192 + 2 * 1024 + 2 * 28672) / 8;
    const std::int64_t casts = pointwise_bytes(layer, Account::memory_bound) -
                               pointwise_bytes(layer_forward(a, bf16, f), Account::memory_bound) -
                               pointwise_bytes(layer_backward(a, bf16, f), Account::memory_bound);
    EXPECT_EQ(casts, 3 * (2 * t * h / 8 + t * inner) + 3 * (2 * t * h / 8 + t * local) + 2 * (2 * t * h + t * inner) +
                         1 * (2 * t * h + t * local));
    EXPECT_DOUBLE_EQ(gemm_flops(layer_forward(a, fp8, f)), gemm_flops(layer_forward(a, bf16, f)));
}

TEST(Gradients, AccumulateInFp32OnlyForWeights) {
    const Architecture& a = arch("gpt3-175b");
    const Shard s = shard(8, true, 1, 2048);
    for (const SoftwareFeatures& f : software_stacks()) {
        for (const Piece p : kPieces) {
            for (const Kernel& k : forward_kernels(a, s, f, p))
                EXPECT_FALSE(k.accumulate_fp32);
            for (const Kernel& k : backward_data_kernels(a, s, f, p))
                EXPECT_FALSE(k.accumulate_fp32);
            for (const Kernel& k : backward_weight_kernels(a, s, f, p)) {
                if (k.kind == KernelKind::gemm) {
                    EXPECT_EQ(k.accumulate_fp32, f.fp32_gradients && !f.accumulate_apart);
                }
            }
        }
    }
}

// One public estimate is 60-100 launches for a dense Megatron-LM layer forward and backward, communication and
// framework helpers included; a host fit on public data has 18 forward and 33 backward. Ours are compute kernels only.
TEST(Launches, AreOfThePublishedOrder) {
    const Shard s = shard(1, false, 1, 2048);
    const auto count = [&](const char* name, const char* software, bool forward) {
        const Architecture& a = arch(name);
        return launches(forward ? layer_forward(a, s, stack(software)) : layer_backward(a, s, stack(software)));
    };
    EXPECT_EQ(count("gpt3-175b", "megatron-2022", true), 14);
    EXPECT_EQ(count("gpt3-175b", "megatron-2022", false), 29);
    const std::int64_t eager = count("llama-7b", "torch-fsdp", true) + count("llama-7b", "torch-fsdp", false);
    EXPECT_GE(eager, 60);
    EXPECT_LE(eager, 130);
    const std::int64_t fused =
        count("llama-7b", "megatron-core-2024", true) + count("llama-7b", "megatron-core-2024", false);
    EXPECT_GE(fused, 25);
    EXPECT_LT(fused, 60);
    for (const SoftwareFeatures& f : software_stacks()) {
        for (const char* name : {"gpt3-175b", "llama-7b"}) {
            const Architecture& a = arch(name);
            RecordProperty(f.name + "/" + name + "/forward", static_cast<int>(launches(layer_forward(a, s, f))));
            RecordProperty(f.name + "/" + name + "/backward", static_cast<int>(launches(layer_backward(a, s, f))));
        }
    }
}

}  // namespace
}  // namespace fabricast
