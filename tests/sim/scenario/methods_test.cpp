// training.optimizer, offload, packed and comm.compression: what is taken and what is refused, with which words.
#include <gtest/gtest.h>

#include "helpers.hpp"

namespace fabricast::test {
namespace {

Scenario with(const std::vector<std::string>& overrides) { return parse_scenario(kGood, "t.yaml", overrides); }

bool refuses(const std::vector<std::string>& overrides, const std::string& words) {
    const std::string error = error_of(kGood, overrides);
    EXPECT_NE(error.find(words), std::string::npos) << error;
    return error.find(words) != std::string::npos;
}

TEST(OptimizerKeys, KindsAndTypes) {
    EXPECT_EQ(with({}).training.optimizer, Optimizer{});
    EXPECT_EQ(with({"training.optimizer=adamw"}).training.optimizer, Optimizer{});
    EXPECT_EQ(with({"training.optimizer=muon"}).training.optimizer.kind, OptimizerKind::muon);
    const Optimizer narrow =
        with({"training.optimizer={kind: adam, master: fp16, moments: fp8, second_moment: fp16}"}).training.optimizer;
    EXPECT_EQ(narrow.master, StateType::fp16);
    EXPECT_EQ(narrow.first, StateType::fp8);
    EXPECT_EQ(narrow.second, StateType::fp16);
    EXPECT_EQ(with({"training.optimizer={kind: adam-8bit, block: 2048}"}).training.optimizer.block, 2048);
    EXPECT_TRUE(any_contains(with({"training.optimizer=muon"}).notes, "each of the tp 8 parts"));
}

TEST(OptimizerKeys, Refusals) {
    EXPECT_TRUE(refuses({"training.optimizer=adam_8bit"}, "did you mean `adam-8bit`?"));
    EXPECT_TRUE(refuses({"training.optimizer={kind: sgd, moments: bf16}"}, "sgd keeps no moment"));
    EXPECT_TRUE(refuses({"training.optimizer={kind: lion, second_moment: bf16}"}, "lion has none"));
    EXPECT_TRUE(refuses({"training.optimizer={kind: adam-8bit, moments: bf16}"}, "those of adam-8bit are int8"));
    EXPECT_TRUE(refuses({"training.optimizer={kind: adam, block: 64}"}, "only int8 moments have blocks"));
    EXPECT_TRUE(refuses({"training.optimizer={kind: adam, newton_schulz: 6}"}, "adam has no such iterations"));
    EXPECT_TRUE(refuses({"training.optimizer={kind: adam, gradients: bf16}"}, "training.software: fp32_gradients"));
    EXPECT_TRUE(
        refuses({"training.precision=fp32", "training.optimizer={kind: adam, master: fp32}"}, "weights are fp32"));
}

TEST(OffloadKeys, CpuAndRefusals) {
    const Scenario s = with({"training.offload={optimizer: cpu, fraction: 0.5}"});
    EXPECT_EQ(s.training.offload.optimizer, 0.5);
    // 614.4 GB/s of the server x 0.26 / 8 GPUs
    EXPECT_NEAR(s.training.offload.host_bytes_per_s, 614.4e9 * 0.26 / 8, 1);
    EXPECT_TRUE(any_contains(
        with({"training.offload=cpu", "cluster.node=alps-gh200", "training.layout={tp: 4, pp: 2, dp: 2}"}).notes,
        "chip-to-chip link to Grace"));
    EXPECT_TRUE(refuses({"training.offload=nvme"}, "offload to NVMe drives is not modelled; cpu is"));
    EXPECT_TRUE(refuses({"training.offload={parameters: cpu}"}, "which is zero: 3; it is 0"));
    EXPECT_TRUE(refuses({"training.offload={fraction: 0.5}"}, "no optimizer is offloaded"));
    EXPECT_TRUE(refuses({"training.offload=cpu", "training.optimizer=muon"}, "muon has no update on the CPU"));
    EXPECT_TRUE(refuses({"training.offload={activations: cpu}"}, "activations in host memory are not modelled"));
}

TEST(PackedKeys, LengthsAndRefusals) {
    EXPECT_EQ(with({"training.packed={document: 1024, distribution: equal}"}).training.document, 1024);
    EXPECT_EQ(with({"training.packed={lengths: [1000, 3000]}"}).training.document, 2500);
    // exponential: 2 L - 2 L^2 / s (1 - exp(-s / L)) with L = 1024, s = 4096
    EXPECT_EQ(with({"training.packed=1024 tokens"}).training.document, 1545);
    EXPECT_TRUE(refuses({"training.packed={distribution: equal}"}, "give either document"));
    EXPECT_TRUE(refuses({"training.packed={document: 8192, distribution: equal}"}, "longer than the sequence"));
    EXPECT_TRUE(refuses({"training.packed=1024", "training.software.attention=unfused"}, "saves nothing there"));
}

TEST(CompressionKeys, MethodsAndRefusals) {
    const std::vector<std::string> flat = {"training.layout={tp: 1, pp: 1, dp: 32, zero: 3}", "model=llama-7b"};
    const auto more = [&](const std::string& one) {
        std::vector<std::string> out = flat;
        out.push_back(one);
        return out;
    };
    const CompressedTraffic c = with(more("comm.compression={gradients: int4, parameters: int8}")).training.compression;
    EXPECT_EQ(c.gradients, Compression::int4);
    EXPECT_EQ(c.parameters, Compression::int8);
    EXPECT_EQ(c.inside, 8);
    EXPECT_TRUE(refuses(more("comm.compression={parameters: powersgd}"), "parameters are gathered, not summed"));
    EXPECT_TRUE(refuses(more("comm.compression=1-bit-adam"), "runs with zero: 0; it is 3"));
    EXPECT_TRUE(refuses(more("comm.compression=onebit"), "1-bit-adam"));
    EXPECT_TRUE(refuses(more("comm.compression={tensor_parallel: fp8}"), "with tp 1 there is no such traffic"));
    EXPECT_TRUE(refuses(more("comm.compression={gradients: fp8, rank: 4}"), "only powersgd sends factors"));
    EXPECT_TRUE(refuses(more("comm.compression={gradients: fp8, warmup: 0.1}"), "begin after steps without"));
    EXPECT_TRUE(refuses({"comm.compression={tensor_parallel: int4}"}, "hidden states travel in fp8 or int8"));
    EXPECT_TRUE(refuses({"comm.compression={parameters: int8}"}, "with zero 0 parameters are not gathered"));
    EXPECT_TRUE(refuses({"comm.compression=bf16", "training.software.fp32_reduce=false"}, "in 16 bit already"));
    const Scenario one = with({"comm.compression=1-bit-adam"});
    EXPECT_EQ(one.compression_warmup, 0.2);
    EXPECT_TRUE(any_contains(one.notes, "warm-up"));
}

}  // namespace
}  // namespace fabricast::test
