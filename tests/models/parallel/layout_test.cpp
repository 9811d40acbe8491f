// Every rule of check_layout breaks alone, names its scenario key and says the values.
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/parallel/layout.hpp"

namespace fabricast {
namespace {

constexpr std::int64_t kGpus = 32;

struct Job {
    Architecture model = *find_architecture("llama3.1-8b");  // 32 layers, 32 heads, 8 key-value heads, ffn 14336
    TrainingPlan plan;

    Job() {
        plan.layout.tp = 4;
        plan.layout.pp = 2;
        plan.layout.dp = 4;
        plan.sequence = 4096;
        plan.global_batch = 64;
    }
};

struct Rule {
    const char* name;
    const char* field;
    std::vector<std::string> says;
    std::function<void(Job&)> breaks;
};

void interleave(Job& j) {
    j.plan.layout.schedule = Schedule::interleaved;
    j.plan.layout.vpp = 2;
}

const std::vector<Rule>& rules() {
    static const std::vector<Rule> all = {
        {"tp below 1", "training.layout.tp", {"0"}, [](Job& j) { j.plan.layout.tp = 0; }},
        {"cp below 1", "training.layout.cp", {"0"}, [](Job& j) { j.plan.layout.cp = 0; }},
        {"ep below 1", "training.layout.ep", {"-1"}, [](Job& j) { j.plan.layout.ep = -1; }},
        {"pp below 1", "training.layout.pp", {"0"}, [](Job& j) { j.plan.layout.pp = 0; }},
        {"dp below 1", "training.layout.dp", {"0"}, [](Job& j) { j.plan.layout.dp = 0; }},
        {"vpp below 1", "training.layout.vpp", {"0"}, [](Job& j) { j.plan.layout.vpp = 0; }},
        {"no sequence", "training.sequence", {"0"}, [](Job& j) { j.plan.sequence = 0; }},
        {"no batch", "training.global_batch", {"0"}, [](Job& j) { j.plan.global_batch = 0; }},
        {"no micro-batch", "training.micro_batch", {"0"}, [](Job& j) { j.plan.micro_batch = 0; }},
        {"order", "training.layout.order", {"tp-dp"}, [](Job& j) { j.plan.layout.order = "tp-dp"; }},
        {"context parallel",
         "training.layout.cp",
         {"4102", "4 equal pieces"},
         [](Job& j) {
             j.plan.layout.cp = 2;
             j.plan.layout.dp = 2;
             j.plan.sequence = 4102;
         }},
        {"heads over cp",
         "training.layout.cp",
         {"cp 4", "2 heads"},
         [](Job& j) {
             j.plan.layout.cp = 4;
             j.plan.layout.dp = 1;
             j.plan.context = ContextExchange::ulysses;
             j.model.heads = j.model.kv_heads = 8;
         }},
        {"experts over ep",
         "training.layout.ep",
         {"ep 4", "6 experts"},
         [](Job& j) {
             j.model.moe = {.experts = 6, .top_k = 2, .ffn = 1024};
             j.plan.layout.ep = 4;
         }},
        {"experts without sequence parallelism",
         "training.layout.sp",
         {"tp 4", "routed"},
         [](Job& j) {
             j.model.moe = {.experts = 8, .top_k = 2, .ffn = 1024};
             j.plan.layout.ep = 4;
         }},
        {"etp between 1 and tp",
         "training.layout.etp",
         {"etp 2", "tp 4"},
         [](Job& j) {
             j.model.moe = {.experts = 8, .top_k = 2, .ffn = 1024};
             j.plan.layout.sequence_parallel = true;
             j.plan.layout.etp = 2;
         }},
        {"sharding group", "training.layout.shard_group", {"3", "dp 4"}, [](Job& j) { j.plan.layout.shard_group = 3; }},
        {"experts of a dense model", "training.layout.ep", {"ep 2", "dense"}, [](Job& j) { j.plan.layout.ep = 2; }},
        {"world", "training.layout.dp", {"= 40 ranks", "32 GPUs", "dp 4"}, [](Job& j) { j.plan.layout.dp = 5; }},
        {"world without a fit",
         "training.layout.dp",
         {"tp x cp x pp = 12 does not divide 32"},
         [](Job& j) { j.plan.layout.pp = 3; }},
        {"tp above heads",
         "training.layout.tp",
         {"tp 4", "2 attention heads"},
         [](Job& j) { j.model.heads = j.model.kv_heads = 2; }},
        {"tp does not divide heads", "training.layout.tp", {"tp 4", "30"}, [](Job& j) { j.model.heads = 30; }},
        {"tp and key-value heads", "training.layout.tp", {"tp 4", "6"}, [](Job& j) { j.model.kv_heads = 6; }},
        {"tp and ffn", "training.layout.tp", {"tp 4", "14338"}, [](Job& j) { j.model.ffn = 14338; }},
        {"sequence parallel",
         "training.sequence",
         {"4098", "tp 4"},
         [](Job& j) {
             j.plan.layout.sequence_parallel = true;
             j.plan.sequence = 4098;
         }},
        {"layers over pp", "training.layout.pp", {"31 layers", "pp 2"}, [](Job& j) { j.model.layers = 31; }},
        {"layers over chunks",
         "training.layout.vpp",
         {"34 layers", "vpp 2"},
         [](Job& j) {
             interleave(j);
             j.model.layers = 34;
         }},
        {"batch over dp", "training.global_batch", {"66", "dp 4"}, [](Job& j) { j.plan.global_batch = 66; }},
        {"batch over micro-batches", "training.global_batch", {"64", "32"}, [](Job& j) { j.plan.micro_batch = 32; }},
        {"interleaving one stage",
         "training.schedule",
         {"pp of 2"},
         [](Job& j) {
             interleave(j);
             j.plan.layout.pp = 1;
             j.plan.layout.dp = 8;
         }},
        {"interleaving one chunk",
         "training.layout.vpp",
         {"vpp of 2"},
         [](Job& j) { j.plan.layout.schedule = Schedule::interleaved; }},
        {"chunks without interleaving",
         "training.layout.vpp",
         {"vpp 2", "interleaved"},
         [](Job& j) { j.plan.layout.vpp = 2; }},
        {"interleaving micro-batches",
         "training.schedule",
         {"15 micro-batches", "pp 2"},
         [](Job& j) {
             interleave(j);
             j.plan.global_batch = 60;
         }},
        {"entries for chunks",
         "training.layout.stage_layers",
         {"3 entries", "2 chunks"},
         [](Job& j) {
             j.plan.layout.stage_layers = {10, 12, 10};
         }},
        {"entries sum",
         "training.layout.stage_layers",
         {"31", "32 layers"},
         [](Job& j) {
             j.plan.layout.stage_layers = {16, 15};
         }},
        {"empty chunk in the middle",
         "training.layout.stage_layers",
         {"chunk 1", "0 layers"},
         [](Job& j) {
             interleave(j);
             j.plan.layout.stage_layers = {16, 0, 8, 8};
         }},
        {"negative chunk",
         "training.layout.stage_layers",
         {"chunk 0", "-1"},
         [](Job& j) {
             j.plan.layout.stage_layers = {-1, 33};
         }},
        {"the V has two chunks",
         "training.layout.vpp",
         {"zb-v", "vpp: 2"},
         [](Job& j) { j.plan.layout.schedule = Schedule::zb_v; }},
        {"chunks of a straight schedule",
         "training.layout.vpp",
         {"vpp 2"},
         [](Job& j) {
             j.plan.layout.schedule = Schedule::zb_h1;
             j.plan.layout.vpp = 2;
         }},
        {"DualPipe of odd stages",
         "training.schedule",
         {"even pp", "1"},
         [](Job& j) {
             j.plan.layout.schedule = Schedule::dual_pipe;
             j.plan.layout.pp = 1;
             j.plan.layout.dp = 8;
         }},
        {"DualPipe of few micro-batches",
         "training.schedule",
         {"2 pp = 4", "there are 2"},
         [](Job& j) {
             j.plan.layout.schedule = Schedule::dual_pipe;
             j.plan.global_batch = 8;
         }},
        {"DualPipe shards gradients",
         "training.layout.zero",
         {"zero: 0 or 1"},
         [](Job& j) {
             j.plan.layout.schedule = Schedule::dual_pipe;
             j.plan.layout.zero = 2;
         }},
        {"ZeRO below", "training.layout.zero", {"-1"}, [](Job& j) { j.plan.layout.zero = -1; }},
        {"ZeRO above", "training.layout.zero", {"4"}, [](Job& j) { j.plan.layout.zero = 4; }},
        {"bucket cap", "training.buckets", {"-1"}, [](Job& j) { j.plan.bucket_bytes = -1; }},
        {"bucket split",
         "training.buckets",
         {"0"},
         [](Job& j) {
             j.plan.bucket_split = {2, 0, 6};
         }},
    };
    return all;
}

TEST(Layout, SoundOnesPass) {
    std::string field;
    Job plain;
    EXPECT_EQ(check_layout(plain.model, plain.plan, kGpus, field), "");
    Job many;
    interleave(many);
    many.plan.layout.sequence_parallel = true;
    many.plan.layout.zero = 3;
    many.plan.bucket_split = {2, 4, 6};
    EXPECT_EQ(check_layout(many.model, many.plan, kGpus, field), "");
    Job shared;  // fewer key-value heads than tp: each is held by several ranks
    shared.plan.layout.tp = 16;
    shared.plan.layout.dp = 1;
    EXPECT_EQ(check_layout(shared.model, shared.plan, kGpus, field), "");
    EXPECT_EQ(field, "");
    for (const Schedule schedule : {Schedule::zb_h1, Schedule::zb_h2, Schedule::zb_v, Schedule::dual_pipe}) {
        Job cut;
        cut.plan.layout.schedule = schedule;
        cut.plan.layout.vpp = schedule == Schedule::zb_v ? 2 : 1;
        EXPECT_EQ(check_layout(cut.model, cut.plan, kGpus, field), "");
    }
    Job uneven;
    interleave(uneven);
    uneven.plan.layout.stage_layers = {0, 17, 15, 0};
    EXPECT_EQ(check_layout(uneven.model, uneven.plan, kGpus, field), "");
}

TEST(Layout, EveryRuleNamesItsKeyAndValues) {
    for (const Rule& rule : rules()) {
        Job job;
        rule.breaks(job);
        std::string field;
        const std::string sentence = check_layout(job.model, job.plan, kGpus, field);
        EXPECT_NE(sentence, "") << rule.name;
        EXPECT_EQ(field, rule.field) << rule.name << ": " << sentence;
        for (const std::string& part : rule.says)
            EXPECT_NE(sentence.find(part), std::string::npos) << rule.name << ": " << sentence << " lacks " << part;
    }
}

TEST(Layout, ShardingGroupsOfExpertsMustDivide) {
    Job job;
    job.model.moe = {.experts = 8, .top_k = 2, .ffn = 1024};
    job.plan.layout.tp = job.plan.layout.pp = 1;
    job.plan.layout.dp = 20;
    job.plan.layout.ep = 4;
    job.plan.layout.zero = 3;
    job.plan.layout.shard_group = 10;  // 10 / 4 ranks of the 5 that share an expert
    job.plan.global_batch = 40;
    std::string field;
    EXPECT_NE(check_layout(job.model, job.plan, 20, field).find("groups of 10 leave 2 ranks"), std::string::npos);
    EXPECT_EQ(field, "training.layout.shard_group");
    job.plan.layout.shard_group = 4;
    EXPECT_EQ(check_layout(job.model, job.plan, 20, field), "");
}

}  // namespace
}  // namespace fabricast
