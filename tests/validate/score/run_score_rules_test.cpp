// The rules that fill published runs: what the scenario of a row says, and that it is one the program accepts.
#include "validate/score/run_score_rules.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "sim/scenario/scenario.hpp"
#include "validate/ingest/published_runs.hpp"

namespace fabricast {
namespace {

const std::vector<PublishedRun>& all_runs() {
    static const auto runs = read_published_runs(FABRICAST_SOURCE_DIR "/tests/validate/ingest/data/published_runs.csv");
    return runs;
}

const PublishedRun& run(const std::string& id) {
    const auto at = std::find_if(all_runs().begin(), all_runs().end(), [&](const auto& r) { return r.id == id; });
    if (at == all_runs().end())
        throw std::runtime_error("no row " + id);
    return *at;
}

Scenario scenario(const std::string& id) { return parse_scenario(run_scenario(run(id)).yaml, id + ".yaml"); }

std::string filled(const std::string& id, const std::string& field) {
    for (const Filled& f : run_scenario(run(id)).filled)
        if (f.field == field)
            return f.value;
    return "not filled";
}

TEST(RunScoreRules, EveryRuleNamesWhyAndNoRuleNamesARow) {
    std::set<std::string> sources = {"*"};
    for (const PublishedRun& r : all_runs())
        sources.insert(r.source_key);
    sources.insert("nanotron_sweep");  // rows of nanotron_sweep.csv
    for (const FillRule& rule : fill_rules()) {
        EXPECT_FALSE(rule.why.empty()) << rule.field;
        EXPECT_TRUE(sources.contains(std::string(rule.source))) << rule.source;
        EXPECT_EQ(rule.when.find("id"), std::string_view::npos) << rule.when;
    }
}

TEST(RunScoreRules, MachineAndFabric) {
    const Scenario a = scenario("llmfoundry-150");  // 40 GB part
    EXPECT_EQ(a.gpu.name, "A100-SXM-40G");
    const Scenario titan = scenario("torchtitan-004");
    EXPECT_EQ(titan.gpu.name, "H100-HBM2e-96G");
    EXPECT_EQ(titan.nodes, 16u);
    EXPECT_DOUBLE_EQ(titan.node.nic_bits_per_s, 400e9);
    const Scenario vtrain = scenario("vtrain-043");
    EXPECT_DOUBLE_EQ(vtrain.node.nic_bits_per_s, 200e9);
    EXPECT_EQ(vtrain.node.nics, 4u);
    EXPECT_EQ(scenario("vtrain1n-001").node.gpus, 2u);  // two GPUs of a node
    const Scenario rack = scenario("dgxc-141");         // 128 GPUs, domains of 64
    EXPECT_EQ(rack.node.gpus, 64u);
    EXPECT_EQ(rack.nodes, 2u);
}

TEST(RunScoreRules, WhatTheRowStatesWinsAndBlanksAreListed) {
    EXPECT_EQ(filled("llmfoundry-001", "recompute"), "not filled");
    EXPECT_EQ(filled("dgxc-087", "recompute"), "none");
    EXPECT_EQ(filled("dgxc-129", "vpp"), "12");
    EXPECT_EQ(filled("vtrain-001", "vocab"), "50257");
    const Scenario nemotron = scenario("dgxc-129");
    EXPECT_EQ(nemotron.training.layout.vpp, 12);
    EXPECT_EQ(nemotron.model.head_dim, 192);
    EXPECT_FALSE(nemotron.model.gated);
    EXPECT_TRUE(nemotron.model.rotary);
    EXPECT_FALSE(nemotron.software.fp32_reduce);
    const Scenario pure = scenario("llmfoundry-078");
    EXPECT_FALSE(pure.software.fp32_reduce);
    EXPECT_TRUE(scenario("llmfoundry-001").software.fp32_reduce);
}

// What a recipe of the row's tag sets: optimizer, buckets, types of gradients, and the stack that runs it.
TEST(RunScoreRules, RecipesOfATagSayTheirStack) {
    const Scenario apex = scenario("dgxc-119");
    EXPECT_EQ(apex.software.name, "nemo1-2024");
    EXPECT_EQ(optimizer_text(apex.training.optimizer), "adam, moments bf16, master weights bf16");
    EXPECT_EQ(apex.training.bucket_bytes, 50 << 20);
    EXPECT_EQ(optimizer_text(scenario("dgxc-129").training.optimizer), "adam");
    EXPECT_EQ(scenario("dgxc-129").software.name, "nemo-2025");
    EXPECT_EQ(scenario("dgxc-077").training.bucket_bytes, 220 << 20);
    EXPECT_EQ(scenario("dgxc-087").software.name, "nemo1-2024");
    EXPECT_EQ(scenario("dgxc-060").software.head_weight_deferred, 50);
    EXPECT_EQ(scenario("dgxc-021").software.name, "nemo-2024");
}

TEST(RunScoreRules, InnerWidthFollowsFromTheParameterCount) {
    EXPECT_EQ(filled("kempner_h200-008", "ffn"), "17920");
    const Scenario s = scenario("kempner_h200-008");
    const double parameters = static_cast<double>(count_parameters(s.model, s.model.vocab).total());
    EXPECT_NEAR(parameters / 1e9, 14.84, 0.02);
}

TEST(RunScoreRules, CommentsSayWhatWasFilled) {
    const std::string yaml = run_scenario(run("torchtitan-001")).yaml;
    EXPECT_NE(yaml.find("# measured step time: 2.8"), std::string::npos);
    EXPECT_NE(yaml.find("# software: torchtitan-2024-eager"), std::string::npos);
}

}  // namespace
}  // namespace fabricast
