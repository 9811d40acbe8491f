// What is written for a program is read back by its importer to the same layout.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "sim/export/launch.hpp"
#include "sim/import/importers.hpp"

namespace fabricast::launch {
namespace {

struct Case {
    const char* what;
    const char* model;
    std::uint32_t nodes;
    std::vector<std::string> keys;  ///< of training
};

Scenario scenario_of(const Case& c) {
    const std::string text = std::string("name: launch\ncluster: {nodes: ") + std::to_string(c.nodes) +
                             ", node: hgx-h100}\nmodel: {preset: " + c.model +
                             "}\ntraining: {sequence: 8192 tokens, global_batch: 256 sequences, precision: bf16}\n"
                             "run: {tokens: 2 Ttokens}\n";
    std::vector<std::string> overrides;
    for (const std::string& key : c.keys)
        overrides.push_back("training." + key);
    return parse_scenario(text, "launch.yaml", overrides);
}

// The scenario that the importer writes, on the same cluster.
Scenario read_back(const import::Plan& plan, const Scenario& s) {
    const std::string yaml = import::scenario_yaml(plan);
    try {
        return parse_scenario(yaml, "back.yaml", {"cluster={nodes: " + std::to_string(s.nodes) + ", node: hgx-h100}"});
    } catch (const ScenarioError& error) {
        ADD_FAILURE() << error.what() << "\n" << yaml;
        return s;
    }
}

void expect_same(const TrainingPlan& a, const TrainingPlan& b, const std::string& what) {
    const Layout &x = a.layout, &y = b.layout;
    EXPECT_EQ(x.tp, y.tp) << what;
    EXPECT_EQ(x.sequence_parallel, y.sequence_parallel) << what;
    EXPECT_EQ(x.cp, y.cp) << what;
    EXPECT_EQ(x.ep, y.ep) << what;
    EXPECT_EQ(x.expert_tp(), y.expert_tp()) << what;
    EXPECT_EQ(x.pp, y.pp) << what;
    EXPECT_EQ(x.vpp, y.vpp) << what;
    EXPECT_EQ(x.dp, y.dp) << what;
    EXPECT_EQ(x.zero, y.zero) << what;
    EXPECT_EQ(x.shard_group, y.shard_group) << what;
    EXPECT_EQ(x.stage_layers, y.stage_layers) << what;
    EXPECT_EQ(x.schedule, y.schedule) << what;
    EXPECT_EQ(x.order, y.order) << what;
    EXPECT_EQ(a.sequence, b.sequence) << what;
    EXPECT_EQ(a.global_batch, b.global_batch) << what;
    EXPECT_EQ(a.micro_batch, b.micro_batch) << what;
    EXPECT_EQ(a.precision, b.precision) << what;
    EXPECT_EQ(a.recompute, b.recompute) << what;
    EXPECT_EQ(a.recompute_layers, b.recompute_layers) << what;
    if (x.cp > 1) {
        EXPECT_EQ(a.context, b.context) << what;
    }
    EXPECT_EQ(a.dispatch, b.dispatch) << what;
    EXPECT_EQ(a.overlap_grad_reduce, b.overlap_grad_reduce) << what;
    EXPECT_EQ(a.overlap_param_gather, b.overlap_param_gather) << what;
    EXPECT_EQ(a.optimizer, b.optimizer) << what;
    EXPECT_EQ(a.offload.optimizer, b.offload.optimizer) << what;
}

void expect_same_model(const Architecture& a, const Architecture& b, const std::string& what) {
    const auto lines = [](Architecture one) {
        one.name.clear();
        one.family.clear();
        std::string text;
        for (const std::string& line : import::model_lines(one))
            text += line + "\n";
        return text;
    };
    EXPECT_EQ(lines(a), lines(b)) << what;
    EXPECT_EQ(count_parameters(a, a.vocab).total(), count_parameters(b, b.vocab).total()) << what;
}

const char* kBoth = "overlap={grad_reduce: true, param_gather: true}";

TEST(Megatron, ReadsBack) {
    const std::vector<Case> cases = {
        {"one layout of a dense model",
         "llama3.1-70b",
         16,
         {"layout={tp: 8, sp: true, pp: 4, zero: 1}", "schedule=1f1b", kBoth, "recompute=selective"}},
        {"interleaved",
         "llama3.1-70b",
         16,
         {"layout={tp: 4, sp: true, pp: 4, vpp: 5, zero: 1}", "schedule=interleaved", kBoth, "micro_batch=2"}},
        {"uneven stages",
         "llama3.1-405b",
         128,
         {"layout={tp: 8, sp: true, pp: 16, zero: 1, stage_layers: [7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7]}",
          "schedule=1f1b", kBoth}},
        {"fully sharded, long context",
         "llama3.1-8b",
         4,
         {"layout={tp: 1, cp: 4, zero: 3, cp_exchange: all_gather}", "recompute=full", kBoth}},
        {"gradients sharded", "llama3.1-8b", 2, {"layout={tp: 2, sp: true, zero: 2}", kBoth}},
        {"nothing sharded, fp8", "llama3.1-8b", 1, {"layout={tp: 8, zero: 0}", "precision=fp8"}},
        {"ulysses", "llama3.1-8b", 2, {"layout={tp: 1, cp: 2, zero: 1, cp_exchange: ulysses}", kBoth}},
        {"experts",
         "qwen3-30b-a3b",
         4,
         {"layout={tp: 4, sp: true, ep: 8, etp: 1, pp: 2, zero: 1}", "schedule=1f1b", "moe={dispatch: node_aware}",
          kBoth}},
        {"latent attention", "deepseek-v3", 32, {"layout={tp: 1, ep: 64, zero: 1}", kBoth}},
        {"narrow optimizer on the host",
         "llama3.1-8b",
         1,
         {"layout={tp: 2, sp: true, zero: 1}", "optimizer={kind: adam, moments: bf16}", "offload={optimizer: cpu}",
          kBoth}},
        {"learned positions",
         "gpt3-175b",
         16,
         {"sequence=2048 tokens", "layout={tp: 8, sp: true, pp: 8, zero: 1}", "schedule=1f1b", kBoth}},
    };
    for (const Case& c : cases) {
        const Scenario s = scenario_of(c);
        const Launch launch = megatron_launch(s, s.training);
        const import::Plan plan = import::import_megatron({"launch.sh", launch.text}, {});
        EXPECT_EQ(import::remarks(plan).find("CONTRADICTION"), std::string::npos) << import::remarks(plan);
        const Scenario back = read_back(plan, s);
        expect_same(s.training, back.training, c.what);
        if (launch.notes.empty())
            expect_same_model(s.model, back.model, c.what);
        EXPECT_NEAR(s.tokens, back.tokens, 8192) << c.what;
        for (const std::string& note : launch.notes)
            EXPECT_NE(launch.text.find("# not said here: " + note), std::string::npos) << note;
    }
}

TEST(Torchtitan, ReadsBack) {
    const char* overlapped = kBoth;
    const std::vector<Case> cases = {
        {"fully sharded", "llama3.1-8b", 2, {"layout={tp: 1, zero: 3}", overlapped, "recompute=selective"}},
        {"in groups",
         "llama3.1-70b",
         16,
         {"layout={tp: 8, sp: true, zero: 3, shard_group: 4}", overlapped, "recompute=full"}},
        {"pipeline",
         "llama3.1-70b",
         8,
         {"layout={tp: 8, sp: true, pp: 4, zero: 3}", "schedule=1f1b", overlapped, "micro_batch=2"}},
        {"uneven stages",
         "llama3.1-405b",
         64,
         {"layout={tp: 8, sp: true, pp: 16, zero: 3, stage_layers: [7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7]}",
          "schedule=1f1b", overlapped}},
        {"interleaved",
         "llama3.1-70b",
         8,
         {"layout={tp: 8, sp: true, pp: 4, vpp: 5, zero: 3}", "schedule=interleaved", overlapped}},
        {"copies", "llama3.1-8b", 1, {"layout={tp: 8, sp: true, zero: 0}", overlapped, "precision=fp8"}},
        {"long context", "llama3.1-8b", 2, {"layout={tp: 1, cp: 4, zero: 3, cp_exchange: ring}", overlapped}},
    };
    for (const Case& c : cases) {
        const Scenario s = scenario_of(c);
        const Launch launch = torchtitan_launch(s, s.training);
        EXPECT_TRUE(launch.notes.empty()) << c.what << ": " << launch.notes.front();
        import::Options options;
        options.gpus = std::int64_t{s.nodes} * 8;
        const import::Plan plan = import::import_torchtitan({"job.toml", launch.text}, options);
        EXPECT_TRUE(plan.ignored.empty()) << import::remarks(plan);
        const Scenario back = read_back(plan, s);
        expect_same(s.training, back.training, c.what);
        EXPECT_EQ(back.model.name, s.model.name);
        EXPECT_NEAR(s.tokens, back.tokens, 8192.0 * 256) << c.what;
    }
    // what it cannot say
    const Scenario s =
        scenario_of({"",
                     "llama-70b",
                     8,
                     {"layout={tp: 8, sp: true, pp: 2, zero: 1}", "schedule=zb-h1", "overlap={grad_reduce: true}"}});
    const Launch launch = torchtitan_launch(s, s.training);
    EXPECT_EQ(launch.notes.size(), 4u) << launch.text;
    for (const char* part : {"the model llama-70b", "ZeRO stage 1", "the schedule zb-h1", "waits for compute"})
        EXPECT_NE(launch.text.find(part), std::string::npos) << launch.text;
}

TEST(Deepspeed, ReadsBack) {
    const std::vector<Case> cases = {
        {"stage 3", "llama3.1-8b", 2, {"layout={tp: 1, zero: 3}", kBoth}},
        {"stage 2", "llama3.1-8b", 2, {"layout={tp: 1, zero: 2}", "overlap={grad_reduce: true}", "micro_batch=2"}},
        {"stage 3 in groups", "llama3.1-8b", 4, {"layout={tp: 1, zero: 3, shard_group: 8}", kBoth}},
        {"offload",
         "llama3.1-8b",
         1,
         {"layout={tp: 1, zero: 2}", "offload={optimizer: cpu}", "overlap={grad_reduce: true}"}},
        {"fp16", "llama3.1-8b", 1, {"layout={tp: 1, zero: 1}", "precision=fp16"}},
    };
    for (const Case& c : cases) {
        const Scenario s = scenario_of(c);
        const Launch launch = deepspeed_launch(s, s.training);
        import::Options options;
        options.gpus = std::int64_t{s.nodes} * 8;
        import::Plan plan = import::import_deepspeed({"ds_config.json", launch.text}, options);
        EXPECT_EQ(import::remarks(plan).find("CONTRADICTION"), std::string::npos) << import::remarks(plan);
        plan.model_preset = c.model;
        plan.sequence = s.training.sequence;
        plan.recompute = "none";
        expect_same(s.training, read_back(plan, s).training, c.what);
    }
    const Scenario s =
        scenario_of({"", "llama3.1-70b", 8, {"layout={tp: 8, sp: true, pp: 2, zero: 1}", "schedule=1f1b"}});
    const Launch launch = deepspeed_launch(s, s.training);
    EXPECT_NE(fmt::format("{}", fmt::join(launch.notes, "\n")).find("tp 8, pp 2, cp 1, ep 1"), std::string::npos);
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }
std::string notes_of(const Launch& launch) { return fmt::format("{}\n", fmt::join(launch.notes, "\n")); }

// What a program has a word for is said with it, and the rest is told: nothing is dropped in silence.
TEST(Torchtitan, SaysOrTells) {
    const auto with = [](std::vector<std::string> keys) {
        keys.insert(keys.begin(), {"layout={tp: 2, sp: true, zero: 3}", kBoth});
        return scenario_of({"", "llama3.1-8b", 2, std::move(keys)});
    };
    const auto written = [](const Scenario& s) { return torchtitan_launch(s, s.training); };
    const auto back = [&](const Scenario& s) {
        import::Options options;
        options.gpus = 16;
        return import::import_torchtitan({"job.toml", written(s).text}, options).software.value_or("");
    };
    const Scenario eager = with({"software=torch-fsdp"}), compiled = with({"software=torch-fsdp-compile"}),
                   asynchronous = with({"software=torchtitan-2024"});
    EXPECT_TRUE(has(written(eager).text, "[compile]\nenable = false\n")) << written(eager).text;
    EXPECT_TRUE(has(written(compiled).text, "[compile]\nenable = true\n"));
    EXPECT_FALSE(has(written(compiled).text, "enable_async_tensor_parallel"));
    EXPECT_TRUE(has(written(asynchronous).text, "enable_async_tensor_parallel = true"));
    EXPECT_EQ(back(eager), "torch-fsdp");
    EXPECT_EQ(back(compiled), "torch-fsdp-compile");
    EXPECT_EQ(back(asynchronous), "torchtitan-2024");
    EXPECT_TRUE(has(written(with({"recompute=selective"})).text, "mode = \"selective\"\nselective_ac_option = \"op\""));
    EXPECT_FALSE(has(written(with({"recompute=full"})).text, "selective_ac_option"));
    const Scenario all_offloaded = with({"offload={optimizer: cpu, parameters: cpu}"}),
                   optimizer_offloaded = with({"offload={optimizer: cpu}"});
    EXPECT_TRUE(has(written(all_offloaded).text, "enable_cpu_offload = true"));
    EXPECT_FALSE(has(notes_of(written(all_offloaded)), "in host memory"));
    EXPECT_FALSE(has(written(optimizer_offloaded).text, "enable_cpu_offload = true"));
    EXPECT_TRUE(has(notes_of(written(optimizer_offloaded)), "the optimizer alone in host memory"));
    Scenario narrow = with({"clip_gradients=false"});
    narrow.training.compression.gradients = Compression::fp8;
    narrow.training.compression.parameters = Compression::int8;
    for (const char* note : {"gradients compressed as fp8\n", "gathered parameters compressed as int8\n",
                             "gradients that are not clipped"})
        EXPECT_TRUE(has(notes_of(written(narrow)), note)) << notes_of(written(narrow));
}

TEST(Megatron, SaysOrTells) {
    // --overlap-param-gather is refused there without --overlap-grad-reduce
    Scenario s =
        scenario_of({"", "llama3.1-8b", 2, {"layout={tp: 2, sp: true, zero: 1}", "overlap={param_gather: true}"}});
    ASSERT_FALSE(s.training.overlap_grad_reduce);
    const Launch alone = megatron_launch(s, s.training);
    EXPECT_FALSE(has(alone.text.substr(alone.text.find("LAYOUT_ARGS=")), "--overlap-param-gather")) << alone.text;
    EXPECT_TRUE(has(notes_of(alone), "taken with --overlap-grad-reduce only"));
    EXPECT_FALSE(has(alone.text, "--clip-grad")) << "1.0 is what it does";
    s.training.overlap_grad_reduce = true;
    s.training.clip_gradients = false;
    s.training.compression.tensor_parallel = Compression::fp8;
    const Launch both = megatron_launch(s, s.training);
    EXPECT_TRUE(has(both.text, "--overlap-param-gather")) << both.text;
    EXPECT_TRUE(has(both.text, "--clip-grad 0.0")) << both.text;
    EXPECT_EQ(notes_of(both), "tensor-parallel traffic compressed as fp8\n");
}

TEST(Deepspeed, SaysOrTells) {
    Scenario s = scenario_of({"", "llama3.1-8b", 2, {"layout={tp: 1, zero: 3}", kBoth}});
    EXPECT_TRUE(has(deepspeed_launch(s, s.training).text, "\"gradient_clipping\": 1.0"));
    s.training.clip_gradients = false;
    s.training.compression.parameters = Compression::int8;
    s.training.compression.gradients = Compression::int4;
    const Launch said = deepspeed_launch(s, s.training);
    EXPECT_FALSE(has(said.text, "gradient_clipping")) << said.text;
    EXPECT_TRUE(has(said.text, "\"zero_quantized_weights\": true"));
    EXPECT_TRUE(has(said.text, "\"zero_quantized_gradients\": true"));
    EXPECT_FALSE(has(notes_of(said), "compressed")) << notes_of(said);
    s.training.compression.gradients = Compression::powersgd;
    s.training.compression.tensor_parallel = Compression::fp8;
    s.training.optimizer.first = StateType::bf16;
    const Launch told = deepspeed_launch(s, s.training);
    EXPECT_FALSE(has(told.text, "zero_quantized_gradients")) << told.text;
    for (const char* note : {"gradients compressed as powersgd", "tensor-parallel traffic compressed as fp8",
                             "the state of the optimizer"})
        EXPECT_TRUE(has(notes_of(told), note)) << notes_of(told);
}

}  // namespace
}  // namespace fabricast::launch
