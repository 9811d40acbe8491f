// Hugging Face configurations: parameter counts to the last one, and back again through a scenario.
#include "models/transformer/hf_config.hpp"

#include <fmt/format.h>

#include "sim/scenario/scenario.hpp"
#include "tests/sim/import/support.hpp"

namespace fabricast::import {
namespace {

struct Row {
    std::string file, type;
    std::int64_t parameters = 0, active = 0;
};

std::vector<Row> index() {
    std::istringstream lines(data_file("hf/index.csv"));
    std::vector<Row> rows;
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
        std::istringstream cells(line);
        Row row;
        std::string number;
        std::getline(cells, row.file, ',');
        std::getline(cells, row.type, ',');
        std::getline(cells, number, ',');
        row.parameters = std::stoll(number);
        std::getline(cells, number, ',');
        row.active = std::stoll(number);
        rows.push_back(row);
    }
    return rows;
}

std::string scenario_with(const std::string& model) {
    return "cluster: {nodes: 1, node: hgx-h100}\n" + model +
           "training: {sequence: 1024 tokens, global_batch: 8 sequences, layout: {tp: 1, dp: 8}}\n";
}

/// The model section of an imported scenario, alone.
std::string model_section(const Plan& plan) {
    std::string out = "model:\n";
    for (const std::string& line : model_lines(*plan.model))
        out += "  " + line + "\n";
    return out;
}

TEST(Hf, ParametersOfAllConfigurationsAreExact) {
    const std::vector<Row> rows = index();
    ASSERT_EQ(rows.size(), 21u);
    for (const Row& row : rows) {
        const HfConfig config = read_hf_config(data_file("hf/" + row.file), row.file);
        EXPECT_EQ(config.model_type, row.type);
        const ParameterCount count = count_parameters(config.model, config.model.vocab);
        EXPECT_EQ(count.total(), row.parameters) << row.file;
        EXPECT_EQ(count.active(), row.active) << row.file;
        EXPECT_FALSE(config.ignored.empty()) << row.file;
    }
}

TEST(Hf, ShapesComeBackThroughAScenario) {
    for (const Row& row : index()) {
        const Plan plan = import_hf(source("hf/" + row.file), {});
        ASSERT_TRUE(plan.model) << row.file;
        EXPECT_NE(scenario_yaml(plan).find(fmt::format("# {} parameters", row.parameters)), std::string::npos);
        Architecture back;
        try {
            back = parse_scenario(scenario_with(model_section(plan)), "x.yaml").model;
        } catch (const ScenarioError& error) {
            // A layout rule of the forecast may refuse the model; its shapes must still have been read.
            EXPECT_EQ(std::string(error.what()).find("model."), std::string::npos) << row.file << ": " << error.what();
            continue;
        }
        const Architecture& a = *plan.model;
        EXPECT_EQ(model_lines(back), model_lines(a)) << row.file;
        EXPECT_EQ(count_parameters(back, back.vocab).total(), row.parameters) << row.file;
        EXPECT_EQ(model_flops(back, 1, 4096, back.vocab), model_flops(a, 1, 4096, a.vocab)) << row.file;
    }
}

// Shapes of published configurations that are not among the files, with the element counts of their checkpoints.
TEST(Hf, MoreFamilies) {
    const auto count = [](const std::string& json) {
        const HfConfig config = read_hf_config(json, "config.json");
        return count_parameters(config.model, config.model.vocab).total();
    };
    EXPECT_EQ(count(R"({"model_type": "opt", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
        "ffn_dim": 16384, "vocab_size": 50272, "max_position_embeddings": 2048, "word_embed_proj_dim": 4096})"),
              6658473984);
    EXPECT_EQ(count(R"({"model_type": "mpt", "n_layers": 32, "d_model": 4096, "n_heads": 32, "expansion_ratio": 4,
        "vocab_size": 50432, "no_bias": true, "max_seq_len": 2048, "learned_pos_emb": true,
        "attn_config": {"alibi": true, "attn_type": "multihead_attention"}})"),
              6649286656);
    EXPECT_EQ(count(R"({"model_type": "qwen", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
        "intermediate_size": 22016, "kv_channels": 128, "vocab_size": 151936, "no_bias": true})"),
              7721324544);
    EXPECT_EQ(count(R"({"model_type": "phi3", "num_hidden_layers": 32, "hidden_size": 3072, "num_attention_heads": 32,
        "num_key_value_heads": 32, "intermediate_size": 8192, "vocab_size": 32064, "sliding_window": 2047})"),
              3821079552);
    EXPECT_EQ(count(R"({"model_type": "RefinedWeb", "n_layer": 60, "hidden_size": 8192, "n_head": 128, "n_head_kv": 8,
        "vocab_size": 65024, "bias": false, "alibi": false, "parallel_attn": true})"),
              count_parameters(*find_architecture("falcon-40b"), 65024).total());
    EXPECT_EQ(count(R"({"model_type": "llama4", "text_config": {"num_hidden_layers": 48, "hidden_size": 5120,
        "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 8192,
        "intermediate_size_mlp": 16384, "interleave_moe_layer_step": 2, "num_local_experts": 128,
        "num_experts_per_tok": 1, "vocab_size": 202048, "attention_chunk_size": 8192}})"),
              count_parameters(*find_architecture("llama4-maverick"), 202048).total());
    EXPECT_EQ(count(R"({"model_type": "nemotron", "num_hidden_layers": 32, "hidden_size": 6144,
        "num_attention_heads": 48, "num_key_value_heads": 8, "intermediate_size": 24576, "vocab_size": 256000})"),
              count_parameters(*find_architecture("nemotron4-15b"), 256000).total());
}

TEST(Hf, PresetsAreTheSameShapes) {
    for (const auto& [preset, file] : {std::pair{"mixtral-8x7b", "mixtral-8x7b-v0.1"},
                                       {"qwen1.5-moe-a2.7b", "qwen1.5-moe-a2.7b"},
                                       {"qwen3-30b-a3b", "qwen3-30b-a3b"},
                                       {"deepseek-v2-lite", "deepseek-v2-lite"},
                                       {"deepseek-v3", "deepseek-v3"},
                                       {"gpt-oss-20b", "gpt-oss-20b"},
                                       {"gemma2-9b", "gemma-2-9b"},
                                       {"gemma-7b", "gemma-7b"},
                                       {"falcon-7b", "falcon-7b"},
                                       {"gpt-neox-20b", "gpt-neox-20b"},
                                       {"mistral-7b", "mistral-7b-v0.1"},
                                       {"qwen3-0.6b", "qwen3-0.6b"},
                                       {"llama3.1-8b", "llama-3.1-8b"}}) {
        Architecture known = *find_architecture(preset);
        known.name = file;
        known.mtp_layers = std::string_view(preset) == "deepseek-v3" ? 1 : 0;  // the preset leaves the module out
        const HfConfig config =
            read_hf_config(data_file(std::string("hf/") + file + ".json"), std::string(file) + ".json");
        EXPECT_EQ(model_lines(config.model), model_lines(known)) << preset;
    }
}

TEST(Hf, NamesWhatDoesNotCount) {
    const HfConfig v3 = read_hf_config(data_file("hf/deepseek-v3.json"), "deepseek-v3.json");
    EXPECT_NE(std::find(v3.ignored.begin(), v3.ignored.end(), "rope_scaling"), v3.ignored.end());
    EXPECT_EQ(v3.model.mtp_layers, 1);
    const Plan plan = import_hf(source("hf/deepseek-v3.json"), {});
    EXPECT_TRUE(says(plan, "4 of 8 groups"));
    EXPECT_TRUE(says(plan, "stored quantised"));
    EXPECT_TRUE(says(plan, "still to be said: training.precision"));
    EXPECT_TRUE(says(import_hf(source("hf/gemma-2-9b.json"), {}), "soft caps"));
}

TEST(Hf, RefusesWhatItCannotSay) {
    const auto refused = [](const std::string& json) {
        try {
            read_hf_config(json, "config.json");
        } catch (const ConfigError& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    const std::string unknown = refused(R"({"model_type": "mamba2", "num_hidden_layers": 4})");
    EXPECT_NE(unknown.find("model_type `mamba2` is not known; known are RefinedWeb"), std::string::npos);
    EXPECT_NE(unknown.find("qwen3_moe"), std::string::npos);
    EXPECT_NE(unknown.find("model: {layers: 32"), std::string::npos);
    EXPECT_NE(refused("{}").find("model_type is missing"), std::string::npos);
    EXPECT_NE(refused(R"({"model_type": "llama"})").find("`num_hidden_layers` is missing"), std::string::npos);
    EXPECT_NE(refused("{\"model_type\": \"llama\",\n \"hidden_size\": HS}").find("config.json:2:17"),
              std::string::npos);
    EXPECT_NE(refused(R"({"model_type": "llama", "model_type": "gpt2"})").find("appears twice"), std::string::npos);
    EXPECT_NE(refused(R"({"model_type": "llama", "num_hidden_layers": "32"})").find("whole number"), std::string::npos);
    EXPECT_NE(refused("[1]").find("a map of keys"), std::string::npos);
}

TEST(Hf, LayerTypesBecomeAPeriod) {
    const std::string base =
        R"("model_type": "gemma3_text", "num_hidden_layers": 6, "hidden_size": 64, "num_attention_heads": 4,
           "intermediate_size": 128, "vocab_size": 1000, "sliding_window": 512)";
    EXPECT_EQ(read_hf_config("{" + base + "}", "c.json").model.full_every, 6);
    const std::string w = R"("sliding_attention")", f = R"("full_attention")";
    const auto with = [&](const std::string& list) {
        return read_hf_config("{" + base + ", \"layer_types\": [" + list + "]}", "c.json").model.full_every;
    };
    EXPECT_EQ(with(w + "," + w + "," + f + "," + w + "," + w + "," + f), 3);
    EXPECT_THROW(with(w + "," + f + "," + f + "," + w + "," + w + "," + f), ConfigError);
}

TEST(Hf, AScenarioNamesTheFile) {
    const std::string path = std::string(FABRICAST_SOURCE_DIR) + "/tests/sim/import/data/hf/";
    const Scenario s = parse_scenario(scenario_with("model: {hf: llama-3.1-8b.json}\n"), path + "x.yaml");
    EXPECT_EQ(count_parameters(s.model, s.model.vocab).total(), 8030261248);
    EXPECT_EQ(s.model.name, "llama-3.1-8b");
    const Scenario fewer =
        parse_scenario(scenario_with("model: {hf: llama-3.1-8b.json, layers: 16}\n"), path + "x.yaml");
    EXPECT_EQ(fewer.model.layers, 16);
    EXPECT_EQ(fewer.model.name, "llama-3.1-8b (changed)");
    const auto refused = [&](const std::string& model) {
        try {
            parse_scenario(scenario_with(model), path + "x.yaml");
        } catch (const ScenarioError& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_NE(refused("model: {hf: nothing.json}\n").find("x.yaml:2:13: there is no file"), std::string::npos);
    EXPECT_NE(refused("model: {hf: index.csv}\n").find("this is not JSON"), std::string::npos);
    EXPECT_NE(refused("model: {hf: a.json, preset: gpt2}\n").find("give one of them"), std::string::npos);
}

TEST(Shapes, ExpertsAndLatentAttentionInAScenario) {
    const auto refused = [&](const std::string& model) {
        try {
            parse_scenario(scenario_with(model), "x.yaml");
        } catch (const ScenarioError& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    const std::string base = "model: {layers: 4, hidden: 512, heads: 8, vocab: 1000, ffn: 1024, ";
    EXPECT_NE(refused(base + "moe: {top_k: 2, ffn: 256}}\n").find("model.moe.experts"), std::string::npos);
    EXPECT_NE(refused(base + "moe: {experts: 4, ffn: 256}}\n").find("model.moe.top_k"), std::string::npos);
    EXPECT_NE(refused(base + "moe: {experts: 4, top_k: 8, ffn: 256}}\n").find("cannot visit 8 of 4"),
              std::string::npos);
    EXPECT_NE(refused(base + "mla: {key_value_rank: 64, rope_dim: 16}}\n").find("model.mla.nope_dim"),
              std::string::npos);
    EXPECT_NE(refused(base + "full_every: 2}\n").find("give model.window"), std::string::npos);
    EXPECT_NE(refused(base + "experts: 8}\n").find("write moe:"), std::string::npos);
}

}  // namespace
}  // namespace fabricast::import
