// Real configuration files of other programs: what they say, and what the reader must say about them.
#include <fmt/format.h>

#include "sim/scenario/scenario.hpp"
#include "tests/sim/import/support.hpp"

namespace fabricast::import {
namespace {

Options gpus(std::int64_t count) {
    Options options;
    options.gpus = count;
    return options;
}

TEST(Torchtitan, BothLayoutsAreTheSameRun) {
    for (const char* file : {"torchtitan_llama3-405b_2026.toml", "torchtitan_llama3-405b_2025-02-layout.toml"}) {
        const Plan plan = import_torchtitan(source(std::string("frameworks/") + file), {});
        EXPECT_EQ(plan.tp, 8) << file;
        EXPECT_EQ(plan.pp, 1);
        EXPECT_EQ(plan.cp, 1);
        EXPECT_FALSE(plan.dp);
        EXPECT_EQ(plan.zero, 3);
        EXPECT_EQ(plan.micro_batch, 2);
        EXPECT_FALSE(plan.global_batch);
        EXPECT_EQ(plan.sequence, 8192);
        EXPECT_EQ(plan.precision, "fp8");
        EXPECT_EQ(plan.recompute, "full");
        EXPECT_EQ(plan.model_preset, "llama3.1-405b");
        EXPECT_EQ(plan.software, "torchtitan-2024");
        EXPECT_TRUE(says(plan, "asynchronous tensor parallelism is on"));
        EXPECT_TRUE(says(plan, "a comment speaks of 128 GPUs; that is not taken")) << told(plan);
        const Plan sized = import_torchtitan(source(std::string("frameworks/") + file), gpus(128));
        EXPECT_EQ(sized.dp, 16);
        EXPECT_EQ(sized.global_batch, 32);
    }
}

TEST(Torchtitan, CommentedConvertersMeanNoFp8) {
    const Plan plan = import_torchtitan(source("frameworks/torchtitan_deepseek-v3-671b_2026.toml"), {});
    EXPECT_EQ(plan.precision, "bf16");
    EXPECT_EQ(plan.recompute, "selective");
    EXPECT_EQ(plan.micro_batch, 4);
    EXPECT_EQ(plan.sequence, 4096);
    EXPECT_EQ(plan.ep, 1);
    EXPECT_EQ(plan.etp, 1);
    EXPECT_EQ(plan.steps, 10000);  // 10_000
    EXPECT_FALSE(plan.schedule);
    EXPECT_TRUE(says(plan, "fp8 is OFF"));
    EXPECT_TRUE(says(plan, "named with one stage: no effect"));
    EXPECT_TRUE(says(plan, "check the memory"));
}

TEST(Torchtitan, StagesAndMicroBatchesOfAPipeline) {
    const auto plan = [](const std::string& more) {
        return import_torchtitan({"job.toml",
                                  "[model]\nname = \"llama3\"\nflavor = \"405B\"\n[training]\nseq_len = 8192\n"
                                  "local_batch_size = 32\n[parallelism]\ntensor_parallel_degree = 8\n"
                                  "pipeline_parallel_degree = 16\n" +
                                      more},
                                 gpus(1024));
    };
    const Plan usual = plan("pipeline_parallel_schedule = \"1F1B\"\n");
    EXPECT_EQ(usual.micro_batch, 1) << "pipeline_parallel_microbatch_size, 1 when absent";
    EXPECT_EQ(usual.dp, 8);
    EXPECT_EQ(usual.global_batch, 256) << "the local batch is cut, not accumulated";
    EXPECT_FALSE(usual.vpp);
    // (126 + 1 + 1) / 8 = 16 stages, one layer less at both ends
    const Plan light = plan("pipeline_parallel_layers_per_stage = 8\npipeline_parallel_microbatch_size = 4\n");
    EXPECT_EQ(light.micro_batch, 4);
    EXPECT_EQ(light.global_batch, 256);
    ASSERT_EQ(light.stage_layers.size(), 16u);
    EXPECT_EQ(light.stage_layers.front(), 7);
    EXPECT_EQ(light.stage_layers[1], 8);
    EXPECT_EQ(light.stage_layers.back(), 7);
    const Plan chunks =
        plan("pipeline_parallel_layers_per_stage = 4\npipeline_parallel_schedule = \"Interleaved1F1B\"\n");
    EXPECT_EQ(chunks.vpp, 2);
    EXPECT_EQ(chunks.schedule, "interleaved");
    EXPECT_TRUE(says(plan("pipeline_parallel_layers_per_stage = 5\n"),
                     "CONTRADICTION: 128 layers of 5 a stage make 26 stages"));
    EXPECT_TRUE(says(plan("pipeline_parallel_microbatch_size = 5\n"), "CONTRADICTION: local_batch_size 32"));
}

TEST(Nemo, FullLayout) {
    const Plan plan = import_nemo(source("frameworks/nemo_llama3.1-405b.yaml"), {});
    EXPECT_EQ(plan.world, 4608);
    EXPECT_EQ(plan.tp, 8);
    EXPECT_EQ(plan.pp, 9);
    EXPECT_EQ(plan.vpp, 7);
    EXPECT_EQ(plan.cp, 2);
    EXPECT_EQ(plan.dp, 32);
    EXPECT_EQ(plan.zero, 1);
    EXPECT_EQ(plan.global_batch, 2016);
    EXPECT_EQ(plan.precision, "bf16");
    EXPECT_EQ(plan.recompute, "none");
    EXPECT_EQ(plan.schedule, "interleaved");
    EXPECT_TRUE(plan.sp.value_or(false));
    EXPECT_TRUE(says(plan, "num_query_groups is 16, but llama3.1-405b of the same shape has 8"));
    EXPECT_TRUE(says(plan, "still to be said: model.vocab"));
    EXPECT_FALSE(says(plan, "CONTRADICTION"));
    const std::string yaml = scenario_yaml(plan);
    EXPECT_NE(yaml.find("layout: {tp: 8, sp: true, pp: 9, vpp: 7, cp: 2, dp: 32, zero: 1}"), std::string::npos) << yaml;
    EXPECT_NE(yaml.find("nodes: 576"), std::string::npos);
}

TEST(Nemo, ABatchThatCannotBeFormedIsLeftOut) {
    const Plan plan = import_nemo(source("frameworks/nemo_mixtral-8x22b.yaml"), {});
    EXPECT_EQ(plan.dp, 24);
    EXPECT_EQ(plan.tp, 8);
    EXPECT_EQ(plan.pp, 2);
    EXPECT_EQ(plan.sequence, 65536);
    EXPECT_TRUE(says(plan, "CONTRADICTION: global batch 1 is less than dp 24 x micro batch 1"));
    EXPECT_EQ(scenario_yaml(plan).find("global_batch: 1"), std::string::npos);
    EXPECT_TRUE(says(plan, "still to be said: training.global_batch"));
}

TEST(Nemo, EnvironmentOfAnMlperfRun) {
    const Source file = source("frameworks/nemo_mlperf-405b_env-interpolation.yaml");
    const std::string without = refusal([&] { import_nemo(file, {}); });
    EXPECT_NE(without.find("4 environment variables without a default are not set: MICRO_BATCH_SIZE, MINIBS, "
                           "PIPELINE_MODEL_PARALLEL, TENSOR_MODEL_PARALLEL"),
              std::string::npos)
        << without;
    Options options;
    options.environment = {{"TENSOR_MODEL_PARALLEL", "4"},
                           {"PIPELINE_MODEL_PARALLEL", "8"},
                           {"INTERLEAVED_PIPELINE", "8"},
                           {"CONTEXT_PARALLEL", "2"},
                           {"MICRO_BATCH_SIZE", "1"},
                           {"MINIBS", "144"},
                           {"DGXNNODES", "64"},
                           {"FP8", "True"}};
    const Plan plan = import_nemo(file, options);
    EXPECT_EQ(plan.world, 512);
    EXPECT_EQ(plan.dp, 8);
    EXPECT_EQ(plan.global_batch, 1152);
    EXPECT_EQ(*plan.global_batch / (*plan.micro_batch * *plan.dp), 144);
    EXPECT_EQ(plan.vpp, 8);
    EXPECT_EQ(plan.cp, 2);
    EXPECT_EQ(plan.precision, "fp8");
    EXPECT_EQ(plan.model_preset, "llama3.1-405b");
}

TEST(Nemo, AnOverrideFileLeavesTheRestUnknown) {
    const Plan plan = import_megatron_bridge(source("frameworks/mbridge_llama3.2-1b_override.yaml"), {});
    EXPECT_EQ(plan.tp, 1);
    EXPECT_EQ(plan.global_batch, 8);
    EXPECT_EQ(plan.sequence, 4096);
    EXPECT_FALSE(plan.precision);
    EXPECT_FALSE(plan.zero);
    EXPECT_FALSE(plan.recompute);
    EXPECT_TRUE(says(plan, "unknown, not default"));
    EXPECT_TRUE(says(plan, "at most 8 GPUs"));
    for (const char* what : {"model", "training.precision", "training.recompute", "training.layout.zero", "cluster"})
        EXPECT_TRUE(says(plan, std::string("still to be said: ") + what)) << what;
    Source differing = source("frameworks/mbridge_llama3.2-1b_override.yaml");
    differing.text += "\n";
    differing.text.replace(differing.text.find("seq_length: 4096"), 16, "seq_length: 8192");
    EXPECT_TRUE(says(import_megatron_bridge(differing, {}), "they must agree"));
}

TEST(Deepspeed, AutoAndOffloadAreTold) {
    const Plan plan = import_deepspeed(source("frameworks/deepspeed_zero3_cpu-offload_auto.json"), {});
    EXPECT_EQ(plan.zero, 3);
    EXPECT_EQ(plan.precision, "bf16");
    EXPECT_FALSE(plan.global_batch);
    EXPECT_FALSE(plan.micro_batch);
    EXPECT_TRUE(says(plan, "train_batch_size: `auto` is unknown here"));
    EXPECT_TRUE(says(plan, "offload_optimizer goes to cpu"));
    EXPECT_TRUE(says(plan, "offload_param goes to cpu"));
    EXPECT_TRUE(says(plan, "depends on the hidden size"));
}

TEST(Deepspeed, TheMicroBatchNeedsTheWorld) {
    const Source file = source("frameworks/deepspeed_zero1_numbers.json");
    const Plan plan = import_deepspeed(file, {});
    EXPECT_EQ(plan.zero, 1);
    EXPECT_EQ(plan.global_batch, 512);
    EXPECT_EQ(plan.precision, "fp16");
    EXPECT_FALSE(plan.micro_batch);
    EXPECT_TRUE(says(plan, "the world must divide 512"));
    EXPECT_EQ(import_deepspeed(file, gpus(64)).micro_batch, 8);
    EXPECT_TRUE(says(import_deepspeed(file, gpus(60)), "CONTRADICTION"));
}

TEST(Deepspeed, AnUnfilledTemplateIsRefused) {
    const std::string text =
        refusal([] { import_deepspeed(source("frameworks/deepspeed_template_placeholders.json"), {}); });
    EXPECT_NE(text.find("deepspeed_template_placeholders.json:2:"), std::string::npos) << text;
    EXPECT_NE(text.find("`GBSIZE`"), std::string::npos);
    EXPECT_NE(text.find("template"), std::string::npos);
}

TEST(Nanotron, DuplicateKey) {
    const Plan plan = import_nanotron(source("frameworks/nanotron_qwen-moe_duplicate-key.yaml"), {});
    EXPECT_TRUE(says(plan, ":83: key `moe_config` is there already at line 66; the later one counts")) << told(plan);
    EXPECT_TRUE(says(plan, "REDUCE_SCATTER"));
    EXPECT_TRUE(says(plan, "768 is taken"));
    EXPECT_EQ(plan.dp, 2);
    EXPECT_EQ(plan.world, 2);
    EXPECT_EQ(plan.zero, 0);
    EXPECT_EQ(plan.global_batch, 6);
    EXPECT_EQ(plan.recompute, "none");
    ASSERT_TRUE(plan.model);
    EXPECT_EQ(plan.model->layers, 12);
    EXPECT_EQ(plan.model->hidden, 256);
    EXPECT_EQ(plan.model->ffn, 768);
    EXPECT_EQ(plan.model->vocab, 128256);
    EXPECT_EQ(plan.model->window, 20);
    EXPECT_EQ(plan.model->moe.experts, 8);
    EXPECT_EQ(plan.model->moe.top_k, 1);
    EXPECT_TRUE(plan.model->tied_embeddings);
}

TEST(LlmFoundry, InterpolatedSequence) {
    const Plan plan = import_llm_foundry(source("frameworks/llmfoundry_mpt-70b.yaml"), {});
    EXPECT_EQ(plan.sequence, 2048);
    EXPECT_EQ(plan.global_batch, 2048);
    EXPECT_EQ(plan.micro_batch, 4);
    EXPECT_EQ(plan.zero, 3);
    EXPECT_EQ(plan.recompute, "full");
    EXPECT_EQ(plan.precision, "bf16");
    ASSERT_TRUE(plan.model);
    EXPECT_EQ(plan.model->layers, 80);
    EXPECT_EQ(plan.model->ffn, 4 * 8192);
    EXPECT_FALSE(plan.model->gated);
    EXPECT_EQ(plan.model->vocab, 50368);
    EXPECT_NEAR(*plan.tokens, 1.4e12, 1e9);
    EXPECT_TRUE(says(plan, "global batch 2048 / micro batch 4"));
}

TEST(Axolotl, HybridSharding) {
    const Plan plan = import_axolotl(source("frameworks/axolotl_llama3.1-8b_hsdp-tp.yaml"), {});
    EXPECT_EQ(plan.tp, 2);
    EXPECT_EQ(plan.cp, 1);  // commented out
    EXPECT_EQ(plan.dp, 8);
    EXPECT_EQ(plan.shard_group, 4);
    EXPECT_EQ(plan.world, 16);
    EXPECT_EQ(plan.zero, 3);
    EXPECT_EQ(plan.global_batch, 8);
    EXPECT_EQ(plan.model_preset, "llama3.1-8b");
    EXPECT_TRUE(says(plan, "epochs"));
}

TEST(LlamaFactory, ExpertsLieInsideDataParallelism) {
    const Source file = source("frameworks/llamafactory_qwen3-30b-a3b_megatron.yaml");
    const Plan plan = import_llama_factory(file, {});
    EXPECT_EQ(plan.pp, 4);
    EXPECT_EQ(plan.ep, 2);
    EXPECT_EQ(plan.zero, 1);
    EXPECT_EQ(plan.recompute, "full");
    EXPECT_EQ(plan.model_preset, "qwen3-30b-a3b");
    EXPECT_TRUE(says(plan, "= 16, where a rule that divides by ep as well has 8")) << told(plan);
    EXPECT_TRUE(says(plan, "a comment speaks of 8 GPUs"));
    EXPECT_TRUE(says(plan, "maximum"));
    EXPECT_EQ(import_llama_factory(file, gpus(8)).global_batch, 16);
    EXPECT_EQ(import_llama_factory(file, gpus(8)).dp, 2);
}

TEST(GptNeox, FlowMapWithCommentsAndTrailingCommas) {
    const Source file = source("frameworks/gptneox_20b.yml");
    const Plan plan = import_gpt_neox(file, gpus(96));
    EXPECT_EQ(plan.tp, 2);
    EXPECT_EQ(plan.pp, 4);
    EXPECT_EQ(plan.dp, 12);
    EXPECT_EQ(plan.zero, 1);
    EXPECT_EQ(plan.global_batch, 1536);
    EXPECT_EQ(plan.precision, "fp16");
    EXPECT_EQ(plan.recompute, "full");
    EXPECT_TRUE(says(plan, "counts elements, not bytes"));
    EXPECT_TRUE(says(plan, "still to be said: model.vocab"));
    EXPECT_NE(scenario_yaml(plan).find("parallel_block: true"), std::string::npos);
    EXPECT_TRUE(says(import_gpt_neox(file, {}), "a comment speaks of 96 GPUs"));
}

TEST(Maxtext, ModelFile) {
    const Plan plan = import_maxtext(source("frameworks/maxtext_deepseek3-671b_shape.yml"), {});
    ASSERT_TRUE(plan.model);
    EXPECT_EQ(count_parameters(*plan.model, plan.model->vocab).total(), 671026419200);
    EXPECT_EQ(plan.model->mtp_layers, 0);
    EXPECT_FALSE(plan.sequence);
    EXPECT_TRUE(says(plan, "163840 is the longest context, not the training sequence"));
    EXPECT_TRUE(says(plan, "no prediction module"));
}

// Every complete scenario is accepted by the reader once the cluster is named.
TEST(Frameworks, WholeScenariosLoad) {
    const auto load = [](const Plan& plan, int nodes) {
        std::string yaml = scenario_yaml(plan);
        const std::size_t cluster = yaml.find("\ncluster:");
        if (cluster != std::string::npos)
            yaml.erase(cluster + 1, yaml.find("\n", yaml.find("node:", cluster)) - cluster);
        return parse_scenario(yaml + fmt::format("cluster: {{nodes: {}, node: hgx-h100}}\n", nodes), "x.yaml");
    };
    const Scenario titan =
        load(import_torchtitan(source("frameworks/torchtitan_llama3-405b_2026.toml"), gpus(128)), 16);
    EXPECT_EQ(titan.training.layout.dp, 16);
    EXPECT_EQ(titan.training.global_batch, 32);
    EXPECT_EQ(titan.model.name, "llama3.1-405b");
    const Scenario factory =
        load(import_llama_factory(source("frameworks/llamafactory_qwen3-30b-a3b_megatron.yaml"), gpus(8)), 1);
    EXPECT_EQ(factory.training.layout.ep, 2);
    EXPECT_EQ(factory.training.layout.pp, 4);
    EXPECT_EQ(factory.model.moe.experts, 128);
    const Scenario axolotl = load(import_axolotl(source("frameworks/axolotl_llama3.1-8b_hsdp-tp.yaml"), {}), 2);
    EXPECT_EQ(axolotl.training.layout.shard_group, 4);
    const Scenario foundry = load(import_llm_foundry(source("frameworks/llmfoundry_mpt-70b.yaml"), gpus(64)), 8);
    EXPECT_EQ(foundry.training.layout.dp, 64);
    Plan nemo = import_nemo(source("frameworks/nemo_llama3.1-405b.yaml"), {});
    nemo.model_keys.push_back("vocab: 128256");
    const Scenario meta = load(nemo, 576);
    EXPECT_EQ(meta.training.layout.vpp, 7);
    EXPECT_EQ(meta.model.kv_heads, 16);
}

TEST(Trees, BrokenFilesAreRefusedWithTheirPlace) {
    EXPECT_NE(refusal([] { import_torchtitan({"j.toml", "[a]\nb = \n"}, {}); }).find("j.toml:2:"), std::string::npos);
    EXPECT_NE(refusal([] { import_nemo({"c.yaml", "a: [1, 2\nb: 3\n"}, {}); }).find("c.yaml:"), std::string::npos);
    EXPECT_NE(refusal([] { import_nemo({"c.yaml", "just text"}, {}); }).find("a map of keys"), std::string::npos);
    const Plan cycle = import_llm_foundry({"c.yaml", "max_seq_len: ${a}\na: ${b}\nb: ${a}\n"}, {});
    EXPECT_TRUE(says(cycle, "refers to itself"));
    const Plan placeholder = import_llama_factory({"c.yaml", "cutoff_len: <LEN>\n"}, {});
    EXPECT_TRUE(says(placeholder, "it is a placeholder"));
}

}  // namespace
}  // namespace fabricast::import
