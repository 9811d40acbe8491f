#include "models/transformer/software.hpp"

#include <gtest/gtest.h>

#include <set>

#include "models/hardware/catalogue.hpp"

namespace fabricast {
namespace {

AttentionConstants constants(double e128, double backward_rate) {
    AttentionConstants c{};
    c.e128 = e128;
    c.e64 = e128;
    c.backward_rate = backward_rate;
    return c;
}

TEST(Software, StacksAreNamedAndSourced) {
    std::set<std::string> names;
    for (const SoftwareFeatures& f : software_stacks()) {
        EXPECT_TRUE(names.insert(f.name).second) << f.name;
        EXPECT_FALSE(f.sources.empty()) << f.name;
        EXPECT_EQ(find_software(f.name), &f);
        EXPECT_GE(f.tp_hidden_fraction, 0);
        EXPECT_LT(f.tp_hidden_fraction, 1);
    }
    EXPECT_EQ(find_software("megatron-2021"), nullptr);
}

TEST(Software, ProfilesOfThePublicRuns) {
    const SoftwareFeatures& old = *find_software("megatron-2022");
    EXPECT_EQ(old.attention, "unfused");
    EXPECT_TRUE(old.dropout);
    EXPECT_FALSE(old.p2p_overlap);
    EXPECT_EQ(old.loss_bytes_per_logit, 24);
    EXPECT_EQ(find_software("nemo-2024")->loss_bytes_per_logit, 12);
    EXPECT_TRUE(find_software("nemo-2024")->cuda_graphs);
    EXPECT_EQ(find_software("llm-foundry-2023")->attention, "fa1");
    EXPECT_EQ(find_software("llm-foundry-2023")->host_per_layer_s, 0.1e-3);
    EXPECT_EQ(find_software("megatron-deepspeed-2023")->host_per_layer_s, 1.2e-3);
    EXPECT_TRUE(find_software("megatron-deepspeed-2023")->tp_backward_overlap);
    EXPECT_EQ(find_software("nanotron-2024")->host_per_step_s, 0.05);
    EXPECT_EQ(find_software("nanotron-2024")->loss_bytes_per_logit, 52);
    EXPECT_EQ(find_software("internevo-2023")->loss_bytes_per_logit, 32);
    EXPECT_EQ(find_software("torch-fsdp-compile")->fusion, Fusion::compiled);
}

TEST(Software, AutomaticAttentionIsTheFasterOfCudnnAndFlash2) {
    const SoftwareFeatures& automatic = *find_software("megatron-core-2024");
    GpuSpec gpu{};
    EXPECT_EQ(resolve_attention(automatic, gpu), "unfused");
    gpu.attention.emplace("fa1", constants(0.9, 1));
    gpu.attention.emplace("fa2", constants(0.55, 0.8));
    EXPECT_EQ(resolve_attention(automatic, gpu), "fa2");
    gpu.attention.emplace("fa3", constants(0.8, 0.86));
    EXPECT_EQ(resolve_attention(automatic, gpu), "fa2");
    gpu.attention.emplace("cudnn", constants(0.65, 0.86));
    EXPECT_EQ(resolve_attention(automatic, gpu), "cudnn");
    EXPECT_EQ(resolve_attention(*find_software("torch-fsdp"), gpu), "fa2");
    EXPECT_EQ(resolve_attention(*find_software("megatron-2022"), gpu), "unfused");
}

TEST(Software, AutomaticAttentionOnTheCatalogue) {
    const SoftwareFeatures& automatic = *find_software("nemo-2024");
    for (const GpuSpec& gpu : Catalogue::builtin().gpus()) {
        const std::string chosen = resolve_attention(automatic, gpu);
        if (gpu.generation == GpuGeneration::ampere) {
            EXPECT_EQ(chosen, "fa2") << gpu.name;
        }
        if (gpu.generation == GpuGeneration::hopper || gpu.generation == GpuGeneration::blackwell) {
            EXPECT_EQ(chosen, "cudnn") << gpu.name;
        }
    }
}

}  // namespace
}  // namespace fabricast
