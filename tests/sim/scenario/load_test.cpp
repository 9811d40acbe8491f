#include <filesystem>
#include <fstream>

#include "tests/sim/scenario/helpers.hpp"

namespace fabricast::test {
namespace {

namespace fs = std::filesystem;

Scenario good(const std::vector<std::string>& overrides = {}) { return parse_scenario(kGood, "t.yaml", overrides); }

const Assumption* find(const Scenario& s, const std::string& what) {
    for (const Assumption& a : s.assumptions)
        if (a.what == what)
            return &a;
    return nullptr;
}

TEST(Load, FillsEverything) {
    const Scenario s = good();
    EXPECT_EQ(s.name, "t");
    EXPECT_EQ(s.nodes, 4u);
    EXPECT_EQ(s.node.gpus, 8u);
    EXPECT_EQ(s.node.nic_bits_per_s, 400e9);
    EXPECT_EQ(s.gpu.name, "H100-SXM-80G");
    EXPECT_EQ(s.model.layers, 80);
    EXPECT_EQ(s.training.sequence, 4096);
    EXPECT_EQ(s.training.global_batch, 64);
    EXPECT_EQ(s.training.layout.tp, 8);
    EXPECT_TRUE(s.training.layout.sequence_parallel);
    EXPECT_EQ(s.training.micro_batches(), 32);
    EXPECT_EQ(s.tokens, 3.5e12);
    EXPECT_EQ(s.price_per_gpu_hour, 1.9);
    EXPECT_EQ(s.currency, "USD");
    EXPECT_TRUE(s.training.clip_gradients);
    EXPECT_EQ(s.software.name, "megatron-core-2024");
    EXPECT_NE(s.software.attention, "auto");
}

TEST(Load, QuantumIsExactUnlessSaid) {
    EXPECT_EQ(good().quantum, 0);
    EXPECT_EQ(good({"simulation.quantum=1 us"}).quantum, 1'000'000);
    EXPECT_EQ(good({"simulation.quantum=250ns"}).quantum, 250'000);
}

TEST(Load, BatchInTokens) {
    EXPECT_EQ(good({"training.global_batch=262144 tokens"}).training.global_batch, 64);
    EXPECT_EQ(good({"training.global_batch=256 Kitokens"}).training.global_batch, 64);
}

TEST(Load, DataParallelIsDerived) {
    const Scenario s = good({"training.layout.dp=auto"});
    EXPECT_EQ(s.training.layout.dp, 2);
    ASSERT_NE(find(s, "training.layout.dp"), nullptr);
    EXPECT_EQ(find(s, "training.layout.dp")->value, "2");
}

TEST(Load, NodeOverrides) {
    const Scenario s =
        good({"cluster.node={preset: hgx-h100, nvlink: 200 GB/s, gpu_memory: 80 GiB, nic_efficiency: 0.8, cpu: amd, "
              "nics: 4}",
              "cluster.node.gpu={peak_bf16: 500 TFLOP/s, hbm: 2 TB/s, sustained: 0.7, sms: 100}",
              "cluster.node.power_limit=500 W"});
    EXPECT_EQ(s.gpu.nvlink_nominal_bytes_per_s, 200e9);
    EXPECT_NEAR(s.gpu.nvlink_achieved_bytes_per_s, 367e9 * 200 / 450, 1e3);
    EXPECT_EQ(s.gpu.memory_mib, 81920);
    EXPECT_EQ(s.node.nic_efficiency, 0.8);
    EXPECT_EQ(s.node.cpu, "amd");
    EXPECT_EQ(s.node.nics, 4u);
    EXPECT_EQ(s.gpu.peak_bf16, 500e12);
    EXPECT_EQ(s.gpu.hbm_bytes_per_s, 2e12);
    EXPECT_EQ(s.gpu.gemm.sustained, 0.7);
    EXPECT_EQ(s.gpu.sms, 100u);
    EXPECT_EQ(s.power_limit_w, 500);
    EXPECT_EQ(find(s, "cluster.node.nic_efficiency")->origin, Origin::stated);
    EXPECT_EQ(good({"cluster.node.gpu=H200-SXM-141G"}).gpu.name, "H200-SXM-141G");
}

TEST(Load, FabricWinsOverNode) {
    const Scenario s = good({"cluster.node.nic=200 Gb/s"});
    EXPECT_EQ(s.node.nic_bits_per_s, 400e9);
    EXPECT_TRUE(any_contains(s.notes, "wins over cluster.node.nic"));
}

TEST(Load, NotesOnSuspiciousFigures) {
    EXPECT_TRUE(any_contains(good({"cluster.node.gpu_memory=80 GB"}).notes, "decimal and makes 76293 MiB"));
    EXPECT_FALSE(any_contains(good({"cluster.node.gpu_memory=79 GiB"}).notes, "decimal"));
    EXPECT_TRUE(any_contains(good({"cluster.node.nvlink=900 GB/s"}).notes, "both directions"));
    EXPECT_TRUE(any_contains(good({"cluster.fabric.nic=400 GB/s"}).notes, "adapters are rated in bits"));
    EXPECT_TRUE(
        any_contains(good({"training.layout.tp=1", "training.layout.dp=16"}).notes, "training.layout.sp: no effect"));
}

TEST(Load, InterleavingIsImplied) {
    const Scenario s = good({"training.layout.vpp=2"});
    EXPECT_EQ(s.training.layout.schedule, Schedule::interleaved);
    EXPECT_TRUE(any_contains(s.notes, "1f1b with vpp 2 is the interleaved schedule"));
}

TEST(Load, SchedulesThatCutTheBackward) {
    EXPECT_EQ(good({"training.schedule=zb-h1"}).training.layout.schedule, Schedule::zb_h1);
    EXPECT_EQ(good({"training.schedule=zb-h2"}).training.layout.schedule, Schedule::zb_h2);
    EXPECT_EQ(good({"training.schedule=dual-pipe"}).training.layout.schedule, Schedule::dual_pipe);
    const Scenario v = good({"training.schedule=zb-v"});
    EXPECT_EQ(v.training.layout.schedule, Schedule::zb_v);
    EXPECT_EQ(v.training.layout.vpp, 2);
    EXPECT_TRUE(any_contains(v.notes, "zb-v gives every stage two chunks"));
}

TEST(Load, UnevenStages) {
    const Scenario s = good({"training.layout.stage_layers=[41, 39]"});
    EXPECT_EQ(s.training.layout.stage_layers, (std::vector<std::int64_t>{41, 39}));
    EXPECT_TRUE(good({}).training.layout.stage_layers.empty());
}

TEST(Load, Shapes) {
    const std::string text =
        replaced(kGood, "{preset: llama-70b}",
                 "{family: llama, layers: 32, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336, vocab: 128256}");
    const Scenario s = parse_scenario(text, "t.yaml");
    EXPECT_EQ(s.model.head_dim, 128);
    EXPECT_TRUE(s.model.gated);
    const Scenario changed = good({"model.layers=40"});
    EXPECT_EQ(changed.model.layers, 40);
    EXPECT_EQ(changed.model.name, "llama-70b (changed)");
    const Scenario gpt = parse_scenario(
        replaced(kGood, "{preset: llama-70b}", "{family: gpt, layers: 24, hidden: 1024, heads: 16, vocab: 50257}"),
        "t.yaml");
    EXPECT_EQ(gpt.model.ffn, 4096);
    EXPECT_EQ(gpt.model.kv_heads, 16);
    EXPECT_EQ(gpt.model.max_positions, 4096);
    EXPECT_FALSE(gpt.model.gated);
    EXPECT_TRUE(gpt.model.biases);
}

TEST(Load, Buckets) {
    EXPECT_EQ(good({"training.buckets=25 MB"}).training.bucket_bytes, 25'000'000);
    EXPECT_EQ(good({"training.buckets={cap: 25 MiB}"}).training.bucket_bytes, 26'214'400);
    EXPECT_EQ(good({"training.buckets={split: [2, 4, 6]}"}).training.bucket_split, (std::vector<double>{2, 4, 6}));
    EXPECT_TRUE(good({"training.buckets=25 MB", "training.buckets={split: [2, 4, 6]}"}).training.bucket_split.size() ==
                3);
}

TEST(Load, Expectations) {
    const Scenario s = good({"expect={mfu: [0.4, 0.52], outcome: out_of_memory}"});
    ASSERT_EQ(s.expect.size(), 1u);
    EXPECT_EQ(s.expect[0].what, "mfu");
    EXPECT_EQ(s.expect[0].low, 0.4);
    EXPECT_EQ(s.expect[0].high, 0.52);
    EXPECT_EQ(s.expect_outcome, "out_of_memory");
}

TEST(Load, LaterPartsAreAcceptedWithANote) {
    const Scenario s = good({"data={loader_workers: 4, sampler: {shuffle: true, drop_last: true}}"});
    EXPECT_TRUE(any_contains(s.notes, "data: accepted, not used by a step forecast"));
}

TEST(Load, AssumptionsCarryOriginAndSource) {
    const Scenario s = good();
    for (const char* what :
         {"cluster.node.gpu.peak_bf16", "cluster.node.gpu_memory", "cluster.node.gpu.hbm", "cluster.node.gpu.sustained",
          "cluster.node.nvlink_achieved", "cluster.node.nic_efficiency", "cluster.fabric.switch_latency",
          "cluster.node.nvlink_latency"}) {
        const Assumption* a = find(s, what);
        ASSERT_NE(a, nullptr) << what;
        EXPECT_FALSE(a->value.empty()) << what;
        EXPECT_FALSE(a->source.empty()) << what;
    }
    EXPECT_EQ(find(s, "cluster.node.gpu.peak_bf16")->origin, Origin::datasheet);
    EXPECT_EQ(find(s, "cluster.node.gpu.sustained")->origin, Origin::fitted);
    EXPECT_EQ(find(s, "cluster.fabric.switch_latency")->origin, Origin::guess);
    const Assumption* recompute = find(s, "training.recompute");
    ASSERT_NE(recompute, nullptr);
    EXPECT_EQ(recompute->value, "none");
    EXPECT_EQ(find(s, "training.precision"), nullptr) << "was stated";
}

TEST(Load, AssumptionsOfDerivedFigures) {
    const Scenario s = good({"cluster.node.nvlink=225 GB/s"});
    EXPECT_EQ(find(s, "cluster.node.nvlink")->origin, Origin::stated);
    EXPECT_EQ(find(s, "cluster.node.nvlink_achieved")->origin, Origin::guess);
    EXPECT_NE(find(s, "cluster.node.nvlink_achieved")->source.find("scaled"), std::string::npos);
    EXPECT_EQ(find(s, "training.software.host_per_kernel")->origin, Origin::guess);
    EXPECT_EQ(find(s, "training.layout.order")->value, "tp-cp-ep-dp-pp");
}

TEST(Overrides, LastOneWinsAndReplacesShortForms) {
    EXPECT_EQ(good({"cluster.nodes=8", "cluster.nodes=4"}).nodes, 4u);
    EXPECT_EQ(good({"cluster.node=hgx-h800"}).gpu.name, "H800-SXM-80G");
    EXPECT_EQ(good({"model=llama2-13b", "training.layout.tp=8"}).model.layers, 40);
    EXPECT_EQ(good({"comm.env.NCCL_ALGO=Ring"}).comm.algorithms, std::vector<Algorithm>{Algorithm::ring});
}

TEST(Overrides, AnEmptyListOfLayersClearsWhatTheFileSays) {
    const std::string uneven = replaced(kGood, "layout: {tp: 8, sp: true, pp: 2, dp: 2}",
                                        "layout: {tp: 8, sp: true, pp: 2, dp: 2, stage_layers: [39, 41]}");
    EXPECT_EQ(parse_scenario(uneven, "t.yaml").training.layout.stage_layers, (std::vector<std::int64_t>{39, 41}));
    EXPECT_TRUE(
        parse_scenario(uneven, "t.yaml", {"training.layout.stage_layers=[]"}).training.layout.stage_layers.empty());
    for (const char* other : {"training.buckets.split=[]", "plan.oversubscription=[]", "training.packed.lengths=[]"})
        EXPECT_NE(error_of(kGood, {other}), "") << other << ": an empty list says nothing there";
}

TEST(Overrides, PricesOfAPlanAreNumbersOrPricesInOneCurrency) {
    const auto load = [](const std::vector<std::string>& keys) {
        return parse_scenario(kGood, "t.yaml", keys, Scope::plan);
    };
    using Prices = std::vector<std::pair<std::string, double>>;
    EXPECT_EQ(load({"plan.price.h100=2.50"}).plan.prices, (Prices{{"h100", 2.5}}));
    EXPECT_EQ(load({"plan.price.h100=2.50 USD/GPU-h"}).plan.prices, (Prices{{"h100", 2.5}}));
    EXPECT_EQ(load({"run.price=2 EUR/GPU-h", "plan.price.h100=2.50 EUR/GPU-h"}).currency, "EUR");
    const std::pair<const char*, const char*> wrong[] = {{"2.50 an hour", "plan.price.h100: `2.50 an hour` "},
                                                         {"2.50x", "plan.price.h100: `2.50x` "},
                                                         {"-1", "is below 0"},
                                                         {"2.50 EUR/GPU-h", "is a second currency beside USD"}};
    for (const auto& [price, sentence] : wrong) {
        try {
            load({std::string("plan.price.h100=") + price});
            ADD_FAILURE() << price;
        } catch (const ScenarioError& error) {
            EXPECT_NE(std::string(error.what()).find(sentence), std::string::npos) << error.what();
        }
    }
}

TEST(Overrides, Diagnostics) {
    EXPECT_EQ(error_of(kGood, {"training.layout.tp=many"})
                  .find("--set training.layout.tp=many: training.layout.tp: `many` is not a number"),
              0u);
    EXPECT_EQ(error_of(kGood, {"training.layout.tq=4"})
                  .find("--set training.layout.tq=4: unknown key `tq` in training.layout; did you mean `tp`?"),
              0u);
    EXPECT_EQ(error_of(kGood, {"cluster.nodes"}).find("--set cluster.nodes: an override is KEY=VALUE"), 0u);
    EXPECT_EQ(error_of(kGood, {"cluster..nodes=1"}).find("--set cluster..nodes=1: `cluster..nodes` has an empty part"),
              0u);
    EXPECT_EQ(error_of(kGood, {"cluster.nodes="}).find("--set cluster.nodes=: cluster.nodes: the value is missing"),
              0u);
    EXPECT_EQ(error_of(kGood, {"cluster.nodes=[1"})
                  .find("--set cluster.nodes=[1: a list or a map cannot be a key; is a `]` or `}` missing?"),
              0u);
    EXPECT_NE(error_of(kGood, {"training.layout.tp=4"}).find("tp 4 x cp 1 x pp 2 x dp 2 = 16 ranks"),
              std::string::npos);
}

class Extends : public ::testing::Test {
protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() /
                  ("fabricast-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
        fs::remove_all(folder_);
        fs::create_directories(folder_ / "sub");
    }
    void TearDown() override { fs::remove_all(folder_); }
    std::string write(const std::string& name, const std::string& text) {
        const fs::path path = folder_ / name;
        std::ofstream(path) << text;
        return path.string();
    }
    std::string error(const std::string& path) {
        try {
            load_scenario(path, {});
        } catch (const ScenarioError& e) {
            return e.what();
        }
        return {};
    }
    fs::path folder_;
};

TEST_F(Extends, MergesKeyByKeyAlongAChain) {
    write("base.yaml", kGood);
    write("sub/middle.yaml", "extends: ../base.yaml\ntraining:\n  layout: {pp: 1, dp: 4}\n");
    const std::string top =
        write("top.yaml", "extends: sub/middle.yaml\nname: top\ncluster:\n  node: {nic_efficiency: 0.5}\n");
    const Scenario s = load_scenario(top, {});
    EXPECT_EQ(s.name, "top");
    EXPECT_EQ(s.training.layout.tp, 8);
    EXPECT_EQ(s.training.layout.pp, 1);
    EXPECT_EQ(s.training.layout.dp, 4);
    EXPECT_EQ(s.node.nic_efficiency, 0.5);
    EXPECT_EQ(s.gpu.name, "H100-SXM-80G");
    EXPECT_EQ(load_scenario(top, {"training.layout.pp=2", "training.layout.dp=2"}).training.layout.pp, 2);
}

TEST_F(Extends, ShortFormMergesWithMapAndReplacesIt) {
    write("base.yaml", replaced(kGood, "{preset: hgx-h100}", "hgx-h100"));
    EXPECT_EQ(load_scenario(write("a.yaml", "extends: base.yaml\ncluster: {node: {nics: 4}}\n"), {}).node.nics, 4u);
    write("changed.yaml", "extends: base.yaml\ncluster: {node: {nics: 4}}\n");
    const Scenario s = load_scenario(write("b.yaml", "extends: changed.yaml\ncluster: {node: hgx-h800}\n"), {});
    EXPECT_EQ(s.node.nics, 8u);
    EXPECT_EQ(s.gpu.name, "H800-SXM-80G");
}

TEST_F(Extends, ErrorsPointIntoTheRightFile) {
    const std::string base = write("base.yaml", replaced(kGood, "bf16", "bf61"));
    EXPECT_EQ(error(write("top.yaml", "extends: base.yaml\n")).find(base + ":10:14: "), 0u);
    write("base.yaml", kGood);
    const std::string top = write("top.yaml", "extends: base.yaml\ntraining: {layout: {dp: 7}}\n");
    EXPECT_EQ(error(top).find(top + ":2:12: training.layout: "), 0u) << error(top);
}

TEST_F(Extends, CirclesAndMissingFiles) {
    const std::string a = write("a.yaml", "extends: b.yaml\n");
    write("b.yaml", "extends: sub/../a.yaml\n");
    EXPECT_NE(error(a).find("b.yaml:1:10: extends: `sub/../a.yaml` leads back"), std::string::npos) << error(a);
    const std::string self = write("self.yaml", "extends: self.yaml\n");
    EXPECT_NE(error(self).find("circle"), std::string::npos);
    const std::string lost = write("lost.yaml", "extends: nowhere.yaml\n");
    EXPECT_EQ(error(lost).find(lost + ":1:10: there is no file `"), 0u) << error(lost);
    EXPECT_NE(
        error(write("list.yaml", "extends: [a.yaml]\n")).find("is a list; it needs the path of one scenario file"),
        std::string::npos);
    EXPECT_NE(error(write("empty.yaml", "extends:\n")).find("empty"), std::string::npos);
    EXPECT_NE(error(write("void.yaml", "")).find("void.yaml:1:1: the scenario is empty"), std::string::npos);
}

}  // namespace
}  // namespace fabricast::test
