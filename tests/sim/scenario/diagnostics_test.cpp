// Bad input: every row says what is typed, where the error must point, and what the sentence must hold.
#include "tests/sim/scenario/helpers.hpp"

#include <algorithm>

namespace fabricast::test {
namespace {

struct Row {
    const char *from, *to;
    const char* at;  // "line:column"
    std::vector<const char*> fragments;
};

const Row kRows[] = {
    // keys
    {"micro_batch: 1", "micro_bach: 1", "9:3", {"unknown key `micro_bach` in training", "did you mean `micro_batch`?"}},
    {"  schedule: 1f1b", "  tp: 8", "12:3", {"unknown key `tp` in training", "did you mean `training.layout.tp`?"}},
    {"run: {", "rum: {", "13:1", {"unknown key `rum` at the top level", "did you mean `run`?"}},
    {"nodes: 4",
     "zzzzzz: 4",
     "2:3",
     {"unknown key `zzzzzz` in cluster", "allowed: nodes, node, gpu_spread, kernel_jitter, gpu_draw, fabric"}},
    {"tp: 8, sp", "tp: 8, tp: 4, sp", "11:19", {"key `tp` appears twice", "t.yaml:11:12"}},
    {"  nodes: 4\n", "  nodes: 4\n  nodes: 5\n", "3:3", {"key `nodes` appears twice", "t.yaml:2:3"}},
    {"layout: {tp: 8", "layout: {tp:8", "11:12", {"unknown key `tp:8`", "a space is missing after the `:`"}},
    {"  schedule: 1f1b", "  layout.vpp: 2", "12:3", {"unknown key `layout.vpp`", "nested"}},
    {"preset: hgx-h100", "? [a] : b", "3:12", {"a list or a map cannot be a key"}},
    {"preset: llama-70b", "<<: x", "5:9", {"merge keys `<<` are not supported", "extends"}},
    // words
    {"precision: bf16",
     "precision: bf61",
     "10:14",
     {"training.precision", "`bf61`", "bf16, fp16, fp8, fp32", "did you mean `bf16`?"}},
    {"preset: hgx-h100", "preset: hgx-h10", "3:18", {"cluster.node.preset", "hgx-h800", "did you mean `hgx-h100`?"}},
    {"preset: llama-70b", "preset: lama-70b", "5:17", {"model.preset", "did you mean `llama-70b`?"}},
    {"model: {preset: llama-70b}", "model: llama", "5:8", {"model.preset", "`llama` is not one of", "did you mean"}},
    {"kind: rail-fat-tree", "kind: rail_fat_tree", "4:18", {"did you mean `rail-fat-tree`?"}},
    {"schedule: 1f1b",
     "schedule: 1F1B",
     "12:13",
     {"training.schedule", "gpipe, 1f1b, interleaved", "did you mean `1f1b`?"}},
    {"schedule: 1f1b", "software: megatron", "12:13", {"training.software.preset", "did you mean `megatron-"}},
    {"schedule: 1f1b", "reduce_every: microbatch", "12:17", {"did you mean `micro_batch`?"}},
    // units
    {"nic: 400 Gb/s", "nic: 400", "4:38", {"cluster.fabric.nic", "`400` has no unit", "write \"400 Gb/s\""}},
    {"nic: 400 Gb/s", "nic: 400 gb/s", "4:38", {"\"400 Gb/s\" or \"400 GB/s\"", "b is bits and B is bytes"}},
    {"nic: 400 Gb/s", "nic: 400 GB", "4:38", {"is a size, but a rate is needed"}},
    {"nic: 400 Gb/s", "nic: -400 Gb/s", "4:38", {"must be above 0"}},
    {"nic: 400 Gb/s", "nic: 0 Gb/s", "4:38", {"must be above 0"}},
    {"nic: 400 Gb/s", "nic: fast", "4:38", {"`fast` is not a rate"}},
    {"nic: 400 Gb/s", "nic: 400 furlongs", "4:38", {"unknown unit `furlongs`", "accepted: bits: kb/s"}},
    {"global_batch: 64 sequences", "global_batch: 64", "8:17", {"has no unit", "sequences", "tokens"}},
    {"global_batch: 64 sequences", "global_batch: 64 GB", "8:17", {"is a size, but a number of sequences or tokens"}},
    {"global_batch: 64 sequences",
     "global_batch: 4 Mtokens",
     "8:17",
     {"not a whole number of sequences of 4096", "976 or 977 sequences", "3997696 or 4001792 tokens"}},
    {"sequence: 4096 tokens", "sequence: 4096.5 tokens", "7:13", {"is not a whole number"}},
    {"sequence: 4096 tokens", "sequence: 0", "7:13", {"must be above 0"}},
    {"price: 1.90 USD/GPU-h", "price: 1.90", "13:35", {"run.price", "write \"1.90 USD/GPU-h\""}},
    {"price: 1.90 USD/GPU-h", "price: 1.90 USD", "13:35", {"unknown unit `USD`"}},
    {"preset: hgx-h100", "preset: hgx-h100, gpu_memory: 80", "3:40", {"cluster.node.gpu_memory", "write \"80 GiB\""}},
    {"preset: hgx-h100", "preset: hgx-h100, nic_efficiency: 93%", "3:44", {"percentage", "fraction"}},
    {"preset: hgx-h100", "preset: hgx-h100, nic_efficiency: 1.2", "3:44", {"must be at most 1"}},
    // numbers and booleans
    {"nodes: 4", "nodes: 012", "2:10", {"leading zero", "octal", "write 12"}},
    {"nodes: 4", "nodes: 1_000", "2:10", {"underscore; write 1000"}},
    {"nodes: 4", "nodes: 1,000", "2:10", {"comma"}},
    {"nodes: 4", "nodes: 0x10", "2:10", {"hexadecimal"}},
    {"nodes: 4", "nodes: 4.5", "2:10", {"is not a whole number"}},
    {"nodes: 4", "nodes: 0", "2:10", {"must be at least 1"}},
    {"nodes: 4", "nodes: 1000000", "2:10", {"must be at most 131072"}},
    {"nodes: 4", "nodes: four", "2:10", {"`four` is not a number", "whole number"}},
    {"nodes: 4", "nodes: \"4\"", "2:10", {"in quotes"}},
    {"nodes: 4", "nodes: 4 nodes", "2:10", {"`nodes` after the number"}},
    {"nodes: 4", "nodes: .inf", "2:10", {"is not a number"}},
    {"sp: true", "sp: yes", "11:23", {"`yes` is not true or false; write true"}},
    {"sp: true", "sp: no", "11:23", {"write false"}},
    {"sp: true", "sp: True", "11:23", {"write true"}},
    {"sp: true", "sp: treu", "11:23", {"did you mean `true`?"}},
    {"sp: true", "sp: true, zero: 4", "11:35", {"must be at most 3"}},
    // kinds and empty values
    {"nodes: 4", "nodes:", "2:3", {"cluster.nodes", "the value is missing", "whole number"}},
    {"nodes: 4", "nodes: [4]", "2:10", {"is a list, but it needs a whole number"}},
    {"nodes: 4", "nodes: {n: 4}", "2:10", {"is a map, but it needs a whole number"}},
    {"  schedule: 1f1b",
     "  overlap: true",
     "12:12",
     {"training.overlap", "is `true`, but it needs a map of keys: grad_reduce, param_gather"}},
    {"  schedule: 1f1b", "  overlap:", "12:3", {"training.overlap", "the value is missing"}},
    {"  schedule: 1f1b", "  precision: ''", "12:3", {"key `precision` appears twice"}},
    {"  schedule: 1f1b", "  schedule: ''", "12:13", {"the value is empty"}},
    {"run: {", "expect: {mfu: 0.4}\nrun: {", "13:15", {"expect.mfu", "it needs [low, high]"}},
    {"run: {", "expect: {mfu: [0.5, 0.4]}\nrun: {", "13:15", {"low end 0.5 is above the high end 0.4"}},
    {"run: {", "expect: {mfu: [40, 52]}\nrun: {", "13:16", {"must be at most 1"}},
    {"run: {", "expect: {mfo: [0.4, 0.5]}\nrun: {", "13:10", {"did you mean `mfu`?"}},
    {"run: {", "expect: {outcome: bang}\nrun: {", "13:19", {"ok, out_of_memory, deadlock"}},
    {"run: {",
     "faults: {events: [{kind: gpu_fial}]}\nrun: {",
     "13:26",
     {"faults.events[0].kind", "did you mean `gpu_fail`?"}},
    {"run: {", "faults: {events: [{what: hnag}]}\nrun: {", "13:26", {"faults.events[0].what", "did you mean `hang`?"}},
    {"run: {", "faults: {events: [1]}\nrun: {", "13:19", {"faults.events[0]", "needs a map of keys"}},
    {"run: {", "data: {loader_wrkers: 4}\nrun: {", "13:8", {"did you mean `loader_workers`?"}},
    {"run: {", "run: {checkpoint: {every: 60}, ", "13:27", {"has no unit", "write \"60 h\""}},
    // YAML itself
    {"  nodes: 4", "\tnodes: 4", "2:1", {"tab in the indentation"}},
    {"  nodes: 4", "  \tnodes: 4", "2:3", {"tab in the indentation"}},
    {"dp: 2}", "dp: 2", "12:11", {"not valid YAML", "`{` has no matching `}`"}},
    {"nodes: 4", "nodes: 4: 5", "2:11", {"not valid YAML", "a second `:`"}},
    {"nodes: 4", "nodes: \"4", "2:10", {"closing quotation mark"}},
    {"nodes: 4", "nodes: *n", "2:10", {"no anchor"}},
    {"run: {", "---\nrun: {", "14:1", {"a second document"}},
    {"nodes: 4", "nodes: \x01", "2:10", {"byte 0x01 is not text"}},
    {"nodes: 4", "nodes: \xff", "2:10", {"byte 0xff is not UTF-8"}},
    {"nodes: 4", "n\xc3\xb6t: 4, \xc3", "2:11", {"not UTF-8"}},
    // meaning
    {"dp: 2}",
     "dp: 4}",
     "11:3",
     {"training.layout", "tp 8 x cp 1 x pp 2 x dp 4 = 64 ranks", "32 GPUs (4 nodes x 8)", "dp 2 fits"}},
    {"pp: 2, dp: 2}", "pp: 3}", "11:3", {"tp 8 x cp 1 x pp 3 = 24 does not divide the 32 GPUs"}},
    {"pp: 2, dp: 2}", "pp: 3, dp: 2}", "11:3", {"no dp fits, because 24 does not divide 32"}},
    {"dp: 2}", "dp: 2, stage_layers: [40, 41]}", "11:57", {"training.layout.stage_layers", "sum to 81", "80 layers"}},
    {"dp: 2}", "dp: 2, stage_layers: [40.5, 39.5]}", "11:57", {"40.5 is no whole number"}},
    {"pp: 2, dp: 2}", "pp: 5000}", "11:3", {"is more than the 32 GPUs"}},
    {"dp: 2}", "dp: two}", "11:40", {"training.layout.dp", "auto"}},
    {"dp: 2}", "dp: 0}", "11:40", {"training.layout.dp", "out of range"}},
    {"global_batch: 64 sequences", "global_batch: 63 sequences", "8:17", {"training.global_batch", "63 sequences"}},
    {"preset: llama-70b", "preset: llama-70b, layers: 81", "11:33", {"training.layout.pp", "81 layers"}},
    {"preset: llama-70b", "preset: llama-70b, kv_heads: 7", "5:38", {"model.kv_heads", "64 query heads"}},
    {"preset: llama-70b", "hf: config.json", "5:13", {"there is no file", "config.json"}},
    {"preset: llama-70b", "family: llama, layers: 4, hidden: 64, vocab: 100", "5:1", {"model.heads is missing"}},
    {"preset: hgx-h100", "gpus: 8", "3:3", {"cluster.node.preset is missing", "hgx-h100"}},
    {"preset: hgx-h100", "preset: hgx-h100, nics: 0", "3:34", {"cannot connect 4 nodes"}},
    {"preset: hgx-h100", "preset: hgx-h100, nics: 3", "3:34", {"8 GPUs cannot be shared evenly among 3 adapters"}},
    {"preset: hgx-h100", "preset: hgx-h100, power_limit: 900 W", "3:41", {"above the nominal 700 W"}},
    {"preset: hgx-h100", "preset: hgx-h100, nvlink_achieved: 600 GB/s", "3:45", {"above the nominal 450 GB/s"}},
    {"  sequence: 4096 tokens\n", "", "6:1", {"training.sequence is missing"}},
    {"schedule: 1f1b", "buckets: {cap: 25 MB, split: [2, 4, 6]}", "12:32", {"either cap or split"}},
    {"schedule: 1f1b", "buckets: {split: [2, -4]}", "12:24", {"must be above 0"}},
    {"run: {", "comm: {library: mpich 4}\nrun: {", "13:17", {"comm.library", "nccl 2.28"}},
    {"run: {", "comm: {env: {NCCL_ALGO: Rign}}\nrun: {", "13:25", {"names `Rign`", "did you mean `Ring`?"}},
    {"run: {", "comm: {env: {NCCL_PROTO: LL256}}\nrun: {", "13:26", {"names `LL256`", "LL, LL128, Simple"}},
    {"run: {", "comm: {env: {NCCL_MIN_CTAS: lots}}\nrun: {", "13:29", {"whole number"}},
    {"run: {", "comm: {env: {NCCL_NET_GDR_LEVEL: PIXX}}\nrun: {", "13:34", {"did you mean `PIX`?"}},
};

TEST(Diagnostics, PointAndSay) {
    for (const Row& row : kRows) {
        const std::string text = replaced(kGood, row.from, row.to);
        const std::string error = error_of(text);
        const std::string prefix = std::string("t.yaml:") + row.at + ": ";
        EXPECT_TRUE(error.starts_with(prefix)) << row.to << "\n  wanted " << prefix << "\n  got    " << error;
        for (const char* fragment : row.fragments)
            EXPECT_NE(error.find(fragment), std::string::npos)
                << row.to << "\n  wanted \"" << fragment << "\"\n  got    " << error;
        EXPECT_EQ(error.find('\n'), std::string::npos) << "one mistake, one line: " << error;
    }
}

TEST(Diagnostics, TheBaseIsGood) { EXPECT_EQ(error_of(kGood), ""); }

TEST(Diagnostics, PrecisionTheGpuLacks) {
    const std::string text = replaced(replaced(kGood, "hgx-h100", "hgx-a100-80g"), "bf16", "fp8");
    EXPECT_EQ(error_of(text), "t.yaml:10:14: training.precision: A100-SXM-80G does not compute in fp8");
}

TEST(Diagnostics, SeveralErrorsOneALine) {
    const std::string text = replaced(replaced(kGood, "nodes: 4", "nodes: 012"), "bf16", "bf61");
    const std::string error = error_of(text);
    EXPECT_NE(error.find("t.yaml:2:10: "), std::string::npos);
    EXPECT_NE(error.find("\nt.yaml:10:14: "), std::string::npos);
}

TEST(Diagnostics, AtMostTenAreShown) {
    std::string text = kGood;
    for (int i = 0; i < 14; ++i)
        text += "zz" + std::to_string(i) + ": 1\n";
    const std::string error = error_of(text);
    EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 10);
    EXPECT_NE(error.find("and 4 more errors"), std::string::npos);
}

TEST(Diagnostics, ColumnsCountCharacters) {
    const std::string text = replaced(kGood, "run: {tokens", "run: {\"größe\": 1, tokenz: 1, tokens");
    EXPECT_NE(error_of(text).find("t.yaml:13:19: unknown key `tokenz`"), std::string::npos) << error_of(text);
}

TEST(Diagnostics, WholeFiles) {
    EXPECT_NE(error_of("").find("t.yaml:1:1: the scenario is empty"), std::string::npos);
    EXPECT_NE(error_of("# only a comment\n").find("the scenario is empty"), std::string::npos);
    EXPECT_NE(error_of("- a\n- b\n").find("t.yaml:1:1: a scenario is a map of keys"), std::string::npos);
    EXPECT_NE(error_of("nodes:4\n").find("a space is missing after the `:`"), std::string::npos);
    EXPECT_NE(error_of("name: x\n").find("cluster.node.preset is missing"), std::string::npos);
    EXPECT_NE(error_of(std::string("\x7f"
                                   "ELF\0\0",
                                   6))
                  .find("not text"),
              std::string::npos);
    EXPECT_NE(error_of(std::string(2 << 20, '#')).find("1 MiB"), std::string::npos);
    EXPECT_EQ(error_of("\xEF\xBB\xBF" + kGood), "");
    std::string crlf;
    for (const char c : kGood)
        crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
    EXPECT_EQ(error_of(crlf), "");
}

TEST(Diagnostics, AliasesCannotExplode) {
    std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 9; ++i) {
        const std::string old = "*a" + std::to_string(i - 1);
        text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + old;
        for (int k = 0; k < 9; ++k)
            text += ", " + old;
        text += "]\n";
    }
    EXPECT_NE(error_of(text).find("more than 100000 values"), std::string::npos);
}

TEST(Diagnostics, DeepNestingIsAnError) {
    EXPECT_NE(error_of("a: " + std::string(5000, '[')), "");
    EXPECT_NE(error_of("a: " + std::string(5000, '{')), "");
}

TEST(Diagnostics, MissingFiles) {
    try {
        load_scenario("no/such/file.yaml", {});
        FAIL();
    } catch (const ScenarioError& e) {
        EXPECT_STREQ(e.what(), "no/such/file.yaml: there is no file `no/such/file.yaml`");
    }
    try {
        load_scenario(FABRICAST_SOURCE_DIR, {});
        FAIL();
    } catch (const ScenarioError& e) {
        EXPECT_NE(std::string(e.what()).find("is a directory"), std::string::npos);
    }
}

}  // namespace
}  // namespace fabricast::test
