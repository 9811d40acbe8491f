// Kernels of every model family: their FLOPs are those of model_flops, cut as a layout cuts them.
#include <gtest/gtest.h>

#include "models/transformer/layer.hpp"

namespace fabricast {
namespace {

using Kernels = std::vector<Kernel>;

const Architecture& arch(std::string_view name) { return *find_architecture(name); }
const SoftwareFeatures& stack(std::string_view name) { return *find_software(name); }

Shard shard(std::int64_t tp, std::int64_t micro_batch, std::int64_t sequence) {
    Shard s;
    s.tp = tp;
    s.etp = tp;
    s.sequence_parallel = tp > 1;
    s.micro_batch = micro_batch;
    s.sequence = sequence;
    return s;
}

double product_flops(const Kernels& kernels) {
    double sum = 0;
    for (const Kernel& k : kernels)
        if (k.kind == KernelKind::gemm || k.kind == KernelKind::grouped_gemm)
            sum += 2.0 * static_cast<double>(k.count * k.batch * k.m) * static_cast<double>(k.n * k.k);
    return sum;
}

/// Scores in full, a window cut to its keys.
double score_flops(const Kernels& kernels) {
    double sum = 0;
    for (const Kernel& k : kernels) {
        if (k.kind != KernelKind::attention_forward)
            continue;
        const std::int64_t keys = k.window > 0 ? k.window : k.sk;
        const std::int64_t width = k.head_dim + (k.value_dim > 0 ? k.value_dim : k.head_dim);
        sum += 2.0 * static_cast<double>(k.batch * k.heads * k.sq) * static_cast<double>(keys * width);
    }
    return sum;
}

std::int64_t bytes(const Kernels& kernels) {
    std::int64_t sum = 0;
    for (const Kernel& k : kernels)
        sum += k.count * k.bytes;
    return sum;
}

std::int64_t launches(const Kernels& kernels) {
    std::int64_t sum = 0;
    for (const Kernel& k : kernels)
        sum += k.count;
    return sum;
}

void append(Kernels& all, const Kernels& more) { all.insert(all.end(), more.begin(), more.end()); }

Kernels layer_forward(const Architecture& a, const Shard& s, const SoftwareFeatures& f, const LayerShape& layer) {
    Kernels all;
    for (int i = 0; i < static_cast<int>(Piece::count); ++i)
        append(all, forward_kernels(a, s, f, static_cast<Piece>(i), layer));
    return all;
}

Kernels layer_backward(const Architecture& a, const Shard& s, const SoftwareFeatures& f, const LayerShape& layer) {
    Kernels all;
    for (int i = 0; i < static_cast<int>(Piece::count); ++i) {
        append(all, backward_data_kernels(a, s, f, static_cast<Piece>(i), layer));
        append(all, backward_weight_kernels(a, s, f, static_cast<Piece>(i), layer));
    }
    return all;
}

/// Forward FLOPs of router and shared gate, which model_flops leaves out.
double router_flops(const Architecture& a, double tokens) {
    double layers = 0;
    for (std::int64_t i = 0; i < a.layers + a.mtp_layers; ++i)
        layers += layer_shape(a, i).moe ? 1 : 0;
    return 2 * tokens * static_cast<double>(a.hidden * (a.moe.experts + (a.moe.shared_gate ? 1 : 0))) * layers;
}

TEST(Families, ForwardKernelsAreAThirdOfModelFlops) {
    for (const char* software : {"megatron-core-2024", "torch-fsdp"}) {
        const SoftwareFeatures& f = stack(software);
        std::vector<Architecture> all = architectures();
        all.push_back(arch("deepseek-v3"));
        all.back().mtp_layers = 2;
        for (const Architecture& a : all) {
            // Tokens that divide evenly over the experts.
            const Shard s = shard(1, 1, 256 * std::max<std::int64_t>(1, a.moe.experts));
            const double length = static_cast<double>(s.sequence);
            double products = product_flops(head_forward(a, s, f)), scores = 0;
            for (std::int64_t i = 0; i < a.layers + a.mtp_layers; ++i) {
                const Kernels layer = layer_forward(a, s, f, layer_shape(a, i));
                products += product_flops(layer);
                scores += score_flops(layer);
            }
            for (std::int64_t i = 0; i < a.mtp_layers; ++i)
                products += product_flops(mtp_forward(a, s, f)) + product_flops(head_forward(a, s, f));
            products -= router_flops(a, length);
            const double expected = model_flops(a, 1, length, padded_vocab(a, 1));
            EXPECT_NEAR(3 * (products + scores) / expected, 1, 1e-12) << a.name << ' ' << software;
            EXPECT_NEAR(3 * scores / attention_flops(a, 1, length), 1, 1e-12) << a.name << ' ' << software;
        }
    }
}

TEST(Families, BackwardProductsAreTwiceForward) {
    for (const SoftwareFeatures& f : software_stacks()) {
        for (const char* name : {"mixtral-8x7b", "qwen1.5-moe-a2.7b", "deepseek-v2-lite", "deepseek-v3", "gpt-oss-20b",
                                 "gemma2-9b", "falcon-40b", "gpt-neox-20b", "qwen3-32b", "llama4-maverick"}) {
            const Architecture& a = arch(name);
            const Shard s = shard(1, 1, 7680);
            for (const std::int64_t layer : {std::int64_t{0}, a.layers - 1}) {
                const LayerShape shape = layer_shape(a, layer);
                EXPECT_NEAR(
                    product_flops(layer_backward(a, s, f, shape)) / (2 * product_flops(layer_forward(a, s, f, shape))),
                    1, 1e-12)
                    << name << ' ' << f.name;
            }
            EXPECT_DOUBLE_EQ(product_flops(mtp_backward(a, s, f)), 2 * product_flops(mtp_forward(a, s, f)));
        }
    }
}

// Everything is cut by tensor parallelism but the down projections of latent attention and the router, which see their
// own tokens: with sequence parallelism eight ranks do the work once.
TEST(Families, TensorParallelRanksShareTheWork) {
    for (const char* name : {"mixtral-8x7b", "deepseek-v3", "gpt-oss-20b", "gemma2-9b", "qwen3-32b"}) {
        const Architecture& a = arch(name);
        const SoftwareFeatures& f = stack("megatron-core-2024");
        const LayerShape shape = layer_shape(a, a.layers - 1);
        const Shard one = shard(1, 1, 8192), eight = shard(8, 1, 8192);
        EXPECT_DOUBLE_EQ(product_flops(layer_forward(a, one, f, shape)),
                         8 * product_flops(layer_forward(a, eight, f, shape)))
            << name;
        EXPECT_DOUBLE_EQ(score_flops(layer_forward(a, one, f, shape)),
                         8 * score_flops(layer_forward(a, eight, f, shape)));
    }
}

TEST(Latent, ProjectionsAreThoseOfThePaper) {
    const Architecture& a = arch("deepseek-v3");
    const Shard s = shard(4, 1, 4096);
    const Kernels k = forward_kernels(a, s, stack("megatron-core-2024"), Piece::attention);
    struct Row {
        std::int64_t m, n, k;
    };
    const Row expected[] = {
        {1024, 1536, 7168}, {4096, 32 * 192, 1536}, {1024, 576, 7168}, {4096, 32 * 256, 512}, {4096, 7168, 32 * 128}};
    std::size_t next = 0;
    for (const Kernel& kernel : k) {
        if (kernel.kind == KernelKind::attention_forward) {
            EXPECT_EQ(kernel.head_dim, 192);
            EXPECT_EQ(kernel.value_dim, 128);
            EXPECT_EQ(kernel.heads, 32);
            EXPECT_EQ(kernel.kv_heads, 32);
        }
        if (kernel.kind != KernelKind::gemm)
            continue;
        ASSERT_LT(next, std::size(expected));
        EXPECT_EQ(kernel.m, expected[next].m);
        EXPECT_EQ(kernel.n, expected[next].n);
        EXPECT_EQ(kernel.k, expected[next].k);
        ++next;
    }
    EXPECT_EQ(next, std::size(expected));
    EXPECT_EQ(attention_input_width(a), 1536 + 512 + 64);
    EXPECT_EQ(attention_input_width(arch("deepseek-v2-lite")), 2048 + 512 + 64);
    EXPECT_EQ(attention_input_width(arch("llama3.1-8b")), 4096);
}

const Kernel& first_grouped(const Kernels& kernels) {
    for (const Kernel& k : kernels)
        if (k.kind == KernelKind::grouped_gemm)
            return k;
    throw std::runtime_error("no grouped product");
}

TEST(Experts, TokensFollowTheLayout) {
    const Architecture& a = arch("qwen3-30b-a3b");  // 128 experts, 8 a token, 768 wide
    const SoftwareFeatures& f = stack("megatron-core-2024");
    const LayerShape moe{true, 0};
    const auto grouped = [&](const Shard& s) {
        return first_grouped(forward_kernels(a, s, f, Piece::moe_experts, moe));
    };
    Shard s = shard(1, 2, 4096);
    EXPECT_EQ(grouped(s).batch, 128);
    EXPECT_EQ(grouped(s).m, 8192 * 8 / 128);
    EXPECT_EQ(grouped(s).n, 2 * 768);
    EXPECT_EQ(grouped(s).k, 2048);
    s.ep = 8;
    EXPECT_EQ(grouped(s).batch, 16);
    EXPECT_EQ(grouped(s).m, 8192 * 8 / 16);
    s.expert_load = 1.5;
    EXPECT_EQ(grouped(s).m, 8192 * 8 / 16 * 3 / 2);
    s.expert_load = 1;

    s = shard(4, 2, 4096);
    s.ep = 8;
    s.etp = 4;  // each rank sees all tokens of its group on a quarter of the width
    EXPECT_EQ(grouped(s).m, 8192 * 8 / 16);
    EXPECT_EQ(grouped(s).n, 2 * 768 / 4);
    s.etp = 1;  // each rank routes its quarter to whole experts
    EXPECT_EQ(grouped(s).m, 8192 * 8 / 4 / 16);
    EXPECT_EQ(grouped(s).n, 2 * 768);
    s.sequence_parallel = false;  // all ranks route the same tokens
    s.etp = 4;
    EXPECT_EQ(grouped(s).m, 8192 * 8 / 16);

    // Fewer tokens than experts: only some are busy.
    s = shard(1, 1, 8);
    EXPECT_EQ(grouped(s).batch, 64);
    EXPECT_EQ(grouped(s).m, 1);
}

TEST(Experts, WeightGradientsHaveTheTokensInside) {
    const Architecture& a = arch("mixtral-8x7b");
    const SoftwareFeatures& f = stack("megatron-core-2024");
    const Shard s = shard(1, 1, 4096);
    const Kernel k = first_grouped(backward_weight_kernels(a, s, f, Piece::moe_experts, {true, 0}));
    EXPECT_EQ(k.batch, 8);
    EXPECT_EQ(k.k, 4096 * 2 / 8);
    EXPECT_TRUE(k.accumulate_fp32);
}

TEST(Experts, PermutationsMoveEveryCopy) {
    const Architecture& a = arch("mixtral-8x7b");
    const SoftwareFeatures& f = stack("megatron-core-2024");
    Shard s = shard(1, 1, 4096);
    const LayerShape moe{true, 0};
    const auto forward = [&](Piece p) { return bytes(forward_kernels(a, s, f, p, moe)); };
    const std::int64_t token = 4096LL * 4096, scores = 28 * 4096 * 8;
    EXPECT_EQ(forward(Piece::moe_route), scores + 2 * (2 * token + 2 * token) * 17 / 10);
    EXPECT_EQ(forward(Piece::moe_combine), 2 * (2 * token + token) * 17 / 10);
    const std::int64_t inside = forward(Piece::moe_experts);
    EXPECT_EQ(inside, 6 * 2 * 4096LL * 14336);
    s.ep = 2;  // sorted by expert on arrival, and back
    EXPECT_EQ(forward(Piece::moe_experts) - inside, 2 * (2 * 2 * (2 * token) * 17 / 10));
    s.ep = 8;  // one expert a rank needs no order
    EXPECT_EQ(forward(Piece::moe_experts), inside);
    EXPECT_EQ(forward(Piece::moe_shared), 0);
    EXPECT_TRUE(forward_kernels(a, s, f, Piece::mlp, moe).empty());
    EXPECT_TRUE(forward_kernels(a, s, f, Piece::moe_experts, {}).empty());
}

TEST(Context, RanksShareTheCore) {
    const Architecture& a = arch("llama3.1-8b");
    const SoftwareFeatures& f = stack("megatron-core-2024");
    Shard s = shard(1, 1, 131072);
    const Kernel whole = attention_core_forward(a, s, f).front();
    EXPECT_FALSE(whole.balanced);
    s.cp = 8;
    EXPECT_EQ(s.tokens(), 16384);
    const Kernel ring = attention_core_forward(a, s, f).front();
    EXPECT_EQ(ring.sq, 16384);
    EXPECT_EQ(ring.sk, 131072);
    EXPECT_EQ(ring.heads, 32);
    EXPECT_TRUE(ring.balanced);
    EXPECT_TRUE(ring.causal);
    s.ulysses = true;
    const Kernel heads = attention_core_forward(a, s, f).front();
    EXPECT_EQ(heads.sq, 131072);
    EXPECT_EQ(heads.sk, 131072);
    EXPECT_EQ(heads.heads, 4);
    EXPECT_EQ(heads.kv_heads, 1);
    EXPECT_FALSE(heads.balanced);
    for (const std::string_view name : {"megatron-core-2024", "megatron-2022"}) {
        Shard one = shard(1, 1, 8192), part = one;
        part.cp = 4;
        for (const bool ulysses : {false, true}) {
            part.ulysses = ulysses;
            const Kernels all = layer_forward(a, one, stack(name), {}),
                          quarter = layer_forward(a, part, stack(name), {});
            EXPECT_DOUBLE_EQ(product_flops(all), 4 * product_flops(quarter)) << name;
            EXPECT_DOUBLE_EQ(score_flops(all), 4 * score_flops(quarter)) << name;
            const ActivationBytes kept = layer_activation(a, one, stack(name), Recompute::none);
            EXPECT_EQ(layer_activation(a, part, stack(name), Recompute::none).kept, kept.kept / 4);
        }
    }
}

TEST(Windows, ReachTheKernel) {
    const Architecture& a = arch("gpt-oss-20b");
    const SoftwareFeatures& f = stack("megatron-core-2024");
    const Shard s = shard(1, 1, 4096);
    EXPECT_EQ(attention_core_forward(a, s, f, layer_shape(a, 0)).front().window, 128);
    EXPECT_EQ(attention_core_forward(a, s, f, layer_shape(a, 1)).front().window, 0);
    EXPECT_EQ(attention_core_forward(a, shard(1, 1, 64), f, layer_shape(a, 0)).front().window, 0);
}

TEST(Blocks, NormsWhereTheFamilyHasThem) {
    const SoftwareFeatures& f = stack("megatron-core-2024");
    const Shard s = shard(1, 1, 1024);
    const auto forward = [&](const char* name, Piece p) { return forward_kernels(arch(name), s, f, p); };
    // Falcon-7B: one norm, one sum of three; Falcon-40B and GPT-NeoX: two norms.
    EXPECT_TRUE(forward("falcon-7b", Piece::norm_mlp).empty());
    EXPECT_FALSE(forward("falcon-40b", Piece::norm_mlp).empty());
    EXPECT_TRUE(forward("gpt-neox-20b", Piece::residual_attention).empty());
    EXPECT_EQ(bytes(forward("falcon-7b", Piece::residual_mlp)), 8LL * 1024 * 4544);
    EXPECT_EQ(bytes(backward_data_kernels(arch("falcon-7b"), s, f, Piece::residual_mlp)), 12LL * 1024 * 4544);
    // Gemma 2 normalises the branch as well.
    EXPECT_EQ(bytes(forward("gemma2-9b", Piece::residual_mlp)), (6 + 4) * 1024LL * 3584);
    // Qwen 3 normalises 64 + 8 heads of 128.
    Architecture plain = arch("qwen3-32b");
    plain.qk_norm = false;
    EXPECT_EQ(bytes(forward("qwen3-32b", Piece::attention)) - bytes(forward_kernels(plain, s, f, Piece::attention)),
              4LL * 1024 * 72 * 128);
}

// Dense and routed layers of one model side by side, 16 bit, flash, no sharding.
TEST(FamilyActivation, OfExpertsAndLatentAttention) {
    const Architecture& a = arch("deepseek-v3");
    const SoftwareFeatures& f = stack("megatron-core-2024");
    const Shard s = shard(1, 1, 4096);
    const std::int64_t h = 7168, heads = 128;
    const std::int64_t outside = 8 * h, rows = 4 * heads;
    const std::int64_t attention = 2 * heads * (2 * 192 + 2 * 128) + 2 * (2 * 1536 + 2 * 512 + 64);
    EXPECT_EQ(layer_activation(a, s, f, Recompute::none).kept, 4096 * (outside + attention + rows + 6 * 18432));
    const std::int64_t experts = 8 * (2 * h + 6 * 2048 + 2 * h + 16) + 9 * 256;
    EXPECT_EQ(layer_activation(a, s, f, Recompute::none, {true, 0}).kept,
              4096 * (outside + attention + rows + experts + 6 * 2048));
    // Eight ranks keep an eighth; experts spread over ranks keep the same tokens.
    Shard eight = shard(8, 1, 4096);
    EXPECT_EQ(layer_activation(a, eight, f, Recompute::none, {true, 0}).kept,
              (4096 * (outside + attention + rows + experts + 6 * 2048) + 7 * 4096 * 8 * 2 * h) / 8);
    Shard spread = s;
    spread.ep = 64;
    EXPECT_EQ(layer_activation(a, spread, f, Recompute::none, {true, 0}).kept,
              layer_activation(a, s, f, Recompute::none, {true, 0}).kept);
    for (const Architecture& any : architectures()) {
        const LayerShape shape = layer_shape(any, any.layers - 1);
        const ActivationBytes none = layer_activation(any, s, f, Recompute::none, shape);
        const ActivationBytes full = layer_activation(any, s, f, Recompute::full, shape);
        EXPECT_EQ(full.working, none.kept) << any.name;
        Shard fp8 = s;
        fp8.precision = Precision::fp8;
        EXPECT_LT(layer_activation(any, fp8, f, Recompute::none, shape).kept, none.kept) << any.name;
    }
}

// One public estimate: 150 to 300 launches for a Megatron-LM MoE layer, communication and framework helpers included;
// ours are compute kernels only.
TEST(Experts, LaunchesAreOfThePublishedOrder) {
    const Architecture& a = arch("deepseek-v3");
    const Shard s = shard(1, 1, 4096);
    const SoftwareFeatures& f = stack("megatron-core-2024");
    const LayerShape moe{true, 0};
    const std::int64_t count = launches(layer_forward(a, s, f, moe)) + launches(layer_backward(a, s, f, moe));
    EXPECT_GE(count, 70);
    EXPECT_LE(count, 300);
}

}  // namespace
}  // namespace fabricast
