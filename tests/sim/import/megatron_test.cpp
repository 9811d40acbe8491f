// Launch scripts of the shapes people have; the files are written for these tests.
#include "sim/import/megatron_plan.hpp"
#include "sim/import/shell.hpp"
#include "tests/sim/import/support.hpp"

namespace fabricast::import {
namespace {

Plan script(const std::string& name, Options options = {}) {
    return import_megatron(source("megatron/" + name), options);
}

TEST(Megatron, ArraysAndAWorldTooSmall) {
    const Plan plan = script("gpt_arrays.sh");
    EXPECT_EQ(plan.tp, 8);
    EXPECT_EQ(plan.pp, 16);
    EXPECT_FALSE(plan.world);
    EXPECT_TRUE(says(plan, "= 128 does not fit 8 GPUs"));
    EXPECT_TRUE(says(plan, "which the program refuses; the final 1536"));
    EXPECT_EQ(plan.global_batch, 1536);
    ASSERT_TRUE(plan.model);
    EXPECT_EQ(plan.model->ffn, 4 * 12288);
    EXPECT_TRUE(plan.model->tied_embeddings);
    EXPECT_EQ(plan.model->max_positions, 2048);
    EXPECT_TRUE(says(plan, "--some-new-flag"));
    Options big;
    big.environment["NUM_NODES"] = "16";
    big.gpus = 1024;
    EXPECT_EQ(script("gpt_arrays.sh", big).dp, 8);
}

TEST(Megatron, DefaultsConditionsAndGrowingArrays) {
    const Plan plan = script("llama_fp8.sh");
    EXPECT_EQ(plan.precision, "fp8");
    EXPECT_EQ(plan.pp, 1);  // the flag is commented out, whatever PP_SIZE says
    EXPECT_EQ(plan.cp, 2);
    EXPECT_EQ(plan.world, 16);
    EXPECT_EQ(plan.dp, 8);
    EXPECT_EQ(plan.zero, 1);
    EXPECT_TRUE(says(plan, "no effect with tp 1"));
    ASSERT_TRUE(plan.model);
    EXPECT_EQ(count_parameters(*plan.model, 128256).total(), 8030261248);
    EXPECT_TRUE(says(plan, "--mock-data"));
    Options options;
    options.environment["NNODES"] = "4";
    options.arguments = "ckpt REAL";
    const Plan other = script("llama_fp8.sh", options);
    EXPECT_EQ(other.world, 32);
    EXPECT_FALSE(says(other, "--mock-data"));
}

TEST(Megatron, ExpertsNeedMoreNodes) {
    const Plan plan = script("mixtral.sh");
    EXPECT_EQ(plan.dp, 2);
    EXPECT_TRUE(says(plan, "ep 8 does not fit the 2 ranks")) << told(plan);
    EXPECT_TRUE(says(plan, "at least 32 GPUs"));
    ASSERT_TRUE(plan.model);
    EXPECT_EQ(count_parameters(*plan.model, 32000).total(), 46702792704);
    Options options;
    options.environment["SLURM_NNODES"] = "4";
    EXPECT_FALSE(says(script("mixtral.sh", options), "CONTRADICTION"));
}

TEST(Megatron, TwoFiles) {
    const Plan alone = script("table.sh");
    EXPECT_TRUE(says(alone, "config.sh` is sourced and was not given"));
    EXPECT_FALSE(alone.tp);
    EXPECT_TRUE(says(alone, "still to be said: training.layout.tp"));
    EXPECT_FALSE(alone.precision);
    Options options;
    options.more.push_back(source("megatron/config.sh"));
    const Plan plan = script("table.sh", options);
    EXPECT_EQ(plan.tp, 8);
    EXPECT_EQ(plan.pp, 2);
    EXPECT_EQ(plan.world, 512);
    EXPECT_EQ(plan.dp, 32);
    EXPECT_EQ(plan.precision, "fp16");
    EXPECT_EQ(plan.recompute, "full");
    EXPECT_TRUE(says(plan, "old name of activation checkpointing"));
    ASSERT_TRUE(plan.model);
    EXPECT_EQ(plan.model->layers, 48);
    options.environment["MODEL_SIZE"] = "1.7B";
    EXPECT_EQ(script("table.sh", options).model->layers, 24);
}

TEST(Megatron, BatchHeaderAndWrittenDeepspeedFile) {
    const Plan plan = script("slurm_deepspeed.slurm");
    EXPECT_EQ(plan.world, 192);
    EXPECT_EQ(plan.tp, 4);
    EXPECT_EQ(plan.pp, 12);
    EXPECT_EQ(plan.dp, 4);
    EXPECT_EQ(plan.zero, 1);
    EXPECT_TRUE(says(plan, "shards the optimizer like stage 1"));
    EXPECT_TRUE(says(plan, "rampup-batch-size 192 16 9_765_625"));
    EXPECT_TRUE(says(plan, "a loop (`for`) is skipped"));
    EXPECT_EQ(plan.micro_batch, 2);
    EXPECT_NEAR(*plan.tokens, 220e6 * 2048, 1);
}

TEST(Megatron, ArithmeticAndWhatCannotBeKnown) {
    const Plan plan = script("arithmetic.sh");
    EXPECT_EQ(plan.tp, 4);
    EXPECT_EQ(plan.pp, 2);
    EXPECT_EQ(plan.global_batch, 64);
    EXPECT_FALSE(plan.world);
    EXPECT_NEAR(*plan.tokens, 300e9, 1);
    EXPECT_TRUE(says(plan, "could not be decided"));
    EXPECT_TRUE(says(plan, "--global_batch_size is written with _"));
    EXPECT_TRUE(says(plan, "train-tokens and train-samples are both given"));
}

TEST(Megatron, SeveralLaunches) {
    const std::string which = refusal([] { script("many_runs.sh"); });
    EXPECT_NE(which.find("there are 2 launches"), std::string::npos);
    EXPECT_NE(which.find("--run 2  line 3"), std::string::npos);
    Options options;
    options.run = 2;
    const Plan plan = script("many_runs.sh", options);
    EXPECT_EQ(plan.pp, 4);
    EXPECT_EQ(plan.micro_batch, 2);
    EXPECT_TRUE(says(plan, "goes through go.sh, which was not given"));
    EXPECT_TRUE(says(plan, "made with PP=4"));
    options.more.push_back({"go.sh",
                            "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py \\\n --hidden-size 64 "
                            "--num-attention-heads 4 --expert-model-parallel-size ${EP:-2} \"$@\" --bf16\n"});
    const Plan whole = script("many_runs.sh", options);
    EXPECT_EQ(whole.world, 16);
    EXPECT_EQ(whole.precision, "bf16");
    EXPECT_EQ(whole.ep, 2);
    EXPECT_EQ(whole.micro_batch, 2);
}

TEST(Megatron, FlagsInYaml) {
    Options options;
    options.environment["PP"] = "16";
    options.gpus = 2048;
    const Plan plan = script("model_args.yaml", options);
    ASSERT_TRUE(plan.model);
    EXPECT_EQ(count_parameters(*plan.model, 129280).total(), 671026419200);
    EXPECT_EQ(plan.tp, 2);
    EXPECT_EQ(plan.pp, 16);
    EXPECT_EQ(plan.vpp, 2);
    EXPECT_EQ(plan.stage_layers.size(), 32u);
    EXPECT_EQ(plan.stage_layers.front(), 1);
    EXPECT_EQ(plan.stage_layers.back(), 0);
    EXPECT_EQ(plan.dp, 64);
    EXPECT_FALSE(says(plan, "CONTRADICTION"));
    const Plan without = script("model_args.yaml");
    EXPECT_FALSE(without.pp);
    EXPECT_TRUE(says(without, "still to be said: training.layout.pp"));
}

TEST(Megatron, ArgumentDump) {
    const Plan plan = script("dump.log");
    EXPECT_EQ(plan.world, 512);
    EXPECT_EQ(plan.tp, 8);
    EXPECT_EQ(plan.pp, 4);
    EXPECT_EQ(plan.dp, 16);
    EXPECT_EQ(plan.recompute, "selective");
    EXPECT_EQ(plan.precision, "bf16");
    ASSERT_TRUE(plan.model);
    EXPECT_EQ(count_parameters(*plan.model, 32000).total(), 68976648192);
    EXPECT_EQ(plan.model->moe.experts, 0);
}

TEST(Megatron, OldNamesAbbreviationsAndHybridModels) {
    const auto launch = [](const std::string& flags) {
        return import_megatron({"x.sh", "torchrun pretrain_gpt.py " + flags + "\n"}, {});
    };
    const Plan old =
        launch("--model-parallel-size 2 --batch-size 4 --num-layers=8 --num-layers=8 --tensor-model-par 4");
    EXPECT_EQ(old.tp, 4);
    EXPECT_EQ(old.micro_batch, 4);
    EXPECT_TRUE(says(old, "--model-parallel-size is an old name"));
    EXPECT_TRUE(says(old, "abbreviation of --tensor-model-parallel-size"));
    EXPECT_TRUE(says(old, "given twice with different values"));
    EXPECT_NE(refusal([&] { launch("--hybrid-layer-pattern M-M*M-"); }).find("3 state-space, 1 attention, 2 MLP"),
              std::string::npos);
    EXPECT_NE(refusal([] { import_megatron({"x.sh", "echo hello\n"}, {}); }).find("no launch"), std::string::npos);
    const Plan swiglu =
        launch("--num-layers 2 --hidden-size 4096 --num-attention-heads 32 --swiglu --vocab-size 32000");
    EXPECT_EQ(swiglu.model->ffn, 10880);  // 8/3 of 4096, down to a multiple of 64
}

TEST(Megatron, ExchangesAndRecomputedLayers) {
    const auto launch = [](const std::string& flags) {
        return import_megatron({"x.sh", "torchrun pretrain_gpt.py --num-layers 8 " + flags + "\n"}, {});
    };
    const Plan plan = launch(
        "--cp-comm-type a2a --moe-token-dispatcher-type flex --moe-expert-capacity-factor 1.25 "
        "--recompute-granularity full --recompute-method block --recompute-num-layers 3");
    EXPECT_EQ(plan.context_exchange, "ulysses");
    EXPECT_EQ(plan.expert_dispatch, "node_aware");
    EXPECT_EQ(plan.capacity_factor, 1.25);
    EXPECT_EQ(plan.recompute_layers, 3);
    const std::string yaml = scenario_yaml(plan);
    EXPECT_NE(yaml.find("moe: {dispatch: node_aware, capacity_factor: 1.25}"), std::string::npos) << yaml;
    EXPECT_NE(yaml.find("cp_exchange: ulysses"), std::string::npos);
    EXPECT_NE(yaml.find("recompute_layers: 3"), std::string::npos);
    EXPECT_TRUE(says(launch("--cp-comm-type a2a+p2p"), "two-level"));
}

TEST(Megatron, PipelineLayouts) {
    const std::vector<std::int64_t> expected = {1, 2, 2, 0};
    EXPECT_EQ(pipeline_layout("Et|(tt|)*2mL"), expected);
    EXPECT_EQ(pipeline_layout("Ettt|tttL"), (std::vector<std::int64_t>{3, 3}));
    EXPECT_EQ(pipeline_layout("Et*3|t*2L"), (std::vector<std::int64_t>{3, 2}));
    EXPECT_TRUE(pipeline_layout("x|y").empty());
}

TEST(Shell, Words) {
    const auto variables = [](const std::string& text) { return read_shell(text, "x.sh", {}, {}, {"one"}).variables; };
    EXPECT_EQ(variables("A=1; B=$((A + 2*3)); C=\"${B}x\"").at("C"), "7x");
    EXPECT_EQ(variables("A=${X:-${Y-2}}").at("A"), "2");
    EXPECT_EQ(variables("A='$B' # comment\nC=\"#no comment\"").at("C"), "#no comment");
    EXPECT_EQ(variables("A=$1 B=${2:-two}").at("B"), "two");
    EXPECT_EQ(variables("A=$(hostname)").at("A"), "$(hostname)");
    EXPECT_EQ(variables("if [ -z \"$X\" ]; then X=5; fi").at("X"), "5");
    EXPECT_EQ(variables("X=1\nif [ $X -gt 2 ]; then Y=a; elif [ $X -eq 1 ]; then Y=b; else Y=c; fi").at("Y"), "b");
    EXPECT_EQ(variables("X=a\ncase $X in a|b) Y=1 ;; *) Y=2 ;; esac").at("Y"), "1");
    EXPECT_EQ(variables("\xEF\xBB\xBFX=1\r\nY=2\r\n").at("Y"), "2");
    EXPECT_EQ(variables("A=(1 \"2 3\"); B=${A[1]}").at("B"), "2 3");
    EXPECT_EQ(variables("A=1\nA+=\" more\"").at("A"), "1 more");
    EXPECT_EQ(variables("let \"A = 2 * 3\"\nB=$[A/4]").count("B"), 1u);
    EXPECT_EQ(variables("A=$((7 / 0))").at("A").front(), '$');
    // Nothing hangs or falls over on broken text.
    for (const char* broken :
         {"A=(1 2", "\"unclosed", "if [ 1", "case x in", "${", "$((", "cat <<EOF\nx", "fi done esac ;;"})
        EXPECT_NO_THROW(read_shell(broken, "x.sh", {}, {}, {})) << broken;
}

}  // namespace
}  // namespace fabricast::import
