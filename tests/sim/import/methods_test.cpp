// Optimizers, offload, packing and compressed traffic as training programs write them.
#include "sim/import/methods.hpp"

#include <gtest/gtest.h>

#include "support.hpp"

namespace fabricast::import {
namespace {

std::string ours(const std::string& name, bool momentum = true) {
    Plan plan;
    plan.file = "c.yaml";
    take_optimizer(plan, name, momentum);
    return plan.optimizer.value_or("") + (plan.moments ? "/" + *plan.moments : "") +
           (plan.compression_gradients ? "+" + *plan.compression_gradients : "");
}

TEST(ImportedOptimizer, Names) {
    for (const char* name : {"adam", "AdamW", "adamw_torch_fused", "distributed_fused_adam", "mcore_distributed_optim",
                             "decoupled_adamw", "DeepSpeedCPUAdam", "paged_adamw_32bit"})
        EXPECT_EQ(ours(name), "adam") << name;
    for (const char* name : {"adamw_bnb_8bit", "adamw_8bit", "paged_adamw_8bit"})
        EXPECT_EQ(ours(name), "adam-8bit") << name;
    EXPECT_EQ(ours("dist_muon"), "muon");
    EXPECT_EQ(ours("sgd"), "sgd-momentum");
    EXPECT_EQ(ours("SGD", false), "sgd");
    EXPECT_EQ(ours("lion_8bit"), "lion/int8");
    EXPECT_EQ(ours("OneBitAdam"), "adam+1-bit-adam");
}

TEST(ImportedOptimizer, UnknownOnesAreRefusedWithTheList) {
    const std::string error = refusal([] { ours("shampoo"); });
    EXPECT_NE(error.find("c.yaml: optimizer `shampoo` is not modelled"), std::string::npos) << error;
    EXPECT_NE(error.find("adafactor, muon"), std::string::npos) << error;
}

TEST(ImportedOptimizer, MegatronFlags) {
    const Source script{"t.sh",
                        "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 8 --hidden-size 1024 "
                        "--num-attention-heads 8 --seq-length 2048 --micro-batch-size 1 --global-batch-size 64 --bf16 "
                        "--vocab-size 32000 --use-distributed-optimizer --use-precision-aware-optimizer "
                        "--exp-avg-dtype bf16 --exp-avg-sq-dtype bf16 --main-params-dtype fp16 "
                        "--optimizer-cpu-offload --optimizer-offload-fraction 0.5 --overlap-cpu-optimizer-d2h-h2d"};
    const Plan plan = import_megatron(script, {});
    const std::string yaml = scenario_yaml(plan);
    EXPECT_NE(yaml.find("optimizer: {kind: adam, master: fp16, moments: bf16}"), std::string::npos) << yaml;
    EXPECT_NE(yaml.find("offload: {optimizer: cpu, fraction: 0.5, overlap: true}"), std::string::npos) << yaml;
    Source muon = script;
    muon.text += " --optimizer muon";
    EXPECT_EQ(import_megatron(muon, {}).optimizer, "muon");
    Source odd = script;
    odd.text += " --optimizer soap";
    EXPECT_NE(refusal([&] { import_megatron(odd, {}); }).find("`soap` is not modelled"), std::string::npos);
}

TEST(ImportedOptimizer, Deepspeed) {
    const Source file{"ds.json",
                      R"({"train_batch_size": 64, "bf16": {"enabled": true}, "optimizer": {"type": "AdamW"},
                          "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.3},
                          "offload_param": {"device": "cpu"}, "zero_quantized_weights": true,
                          "zero_quantized_gradients": true}})"};
    const std::string yaml = scenario_yaml(import_deepspeed(file, {}));
    EXPECT_NE(yaml.find("optimizer: adam\n"), std::string::npos) << yaml;
    EXPECT_NE(yaml.find("offload: {optimizer: cpu, parameters: cpu, fraction: 0.3}"), std::string::npos) << yaml;
    EXPECT_NE(yaml.find("compression: {gradients: int4, parameters: int8}"), std::string::npos) << yaml;
    Source drive = file;
    drive.text.replace(drive.text.find("\"cpu\", \"ratio\""), 5, "\"nvme\"");
    EXPECT_NE(refusal([&] { import_deepspeed(drive, {}); }).find("NVMe drives is not modelled"), std::string::npos);
}

TEST(ImportedOptimizer, FilesAsShipped) {
    EXPECT_EQ(import_axolotl(source("frameworks/axolotl_llama3.1-8b_hsdp-tp.yaml"), {}).optimizer, "adam");
    EXPECT_EQ(import_llm_foundry(source("frameworks/llmfoundry_mpt-70b.yaml"), {}).optimizer, "adam");
    EXPECT_EQ(import_nemo(source("frameworks/nemo_mixtral-8x22b.yaml"), {}).optimizer, "adam");
    EXPECT_EQ(import_torchtitan(source("frameworks/torchtitan_llama3-405b_2026.toml"), {}).optimizer, "adam");
    EXPECT_EQ(import_nanotron(source("frameworks/nanotron_qwen-moe_duplicate-key.yaml"), {}).optimizer, "adam");
    EXPECT_EQ(import_gpt_neox(source("frameworks/gptneox_20b.yml"), {}).optimizer, "adam");
    EXPECT_TRUE(says(import_axolotl(source("frameworks/axolotl_llama3.1-8b_hsdp-tp.yaml"), {}), "training.packed"));
}

TEST(ImportedOptimizer, FsdpOnTheCpu) {
    const Source titan{"job.toml",
                       "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\nseq_len = 8192\n"
                       "enable_cpu_offload = true\n[optimizer]\nname = \"AdamW\"\n"};
    const std::string yaml = scenario_yaml(import_torchtitan(titan, {}));
    EXPECT_NE(yaml.find("offload: {optimizer: cpu, parameters: cpu}"), std::string::npos) << yaml;
}

}  // namespace
}  // namespace fabricast::import
