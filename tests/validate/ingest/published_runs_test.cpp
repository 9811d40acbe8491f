#include "validate/ingest/published_runs.hpp"

#include <map>

#include <gtest/gtest.h>

#include "sim/observed/ingest_error.hpp"

namespace fabricast {
namespace {

const char* const kHeader =
    "id,source,gpu,gpus,gpus_per_node,intranode,internode,model,params_b,layers,hidden,heads,kv_heads,ffn_hidden,vocab,"
    "seq_len,experts,topk,precision,tp,sp,pp,vpp,cp,ep,dp,zero_stage_or_fsdp,micro_batch,global_batch,recompute,"
    "flash_attention,overlap,measured_step_s,mfu,hfu,notes,source_key,config\n";

std::string row(const std::string& gpus, const std::string& step, const std::string& config) {
    return "a-1,paper,H100-80G-SXM," + gpus + ",8,,,m,8.03,32,4096,32,8,14336,,8192,,,bf16,2,no,1,,1,1,4,,1,16,,yes,," +
           step + ",0.4,,\"two, words\",a," + config + "\n";
}

TEST(PublishedRuns, ReadsTheCollectionCompletely) {
    const auto runs = read_published_runs(FABRICAST_SOURCE_DIR "/tests/validate/ingest/data/published_runs.csv");
    ASSERT_EQ(runs.size(), 834u);
    std::map<std::string, int> sources;
    for (const PublishedRun& run : runs) {
        ++sources[run.source_key];
        EXPECT_EQ(run.global_batch, run.micro_batches() * run.micro_batch * run.dp) << run.id;
        EXPECT_GT(run.step_s, 0);
    }
    EXPECT_EQ(sources.size(), 13u);
    EXPECT_EQ(sources["llmfoundry"], 216);
    EXPECT_EQ(sources["dgxc"], 213);
    EXPECT_EQ(sources["korthikanti"], 8);
}

TEST(PublishedRuns, BlankStaysBlank) {
    const auto runs = parse_published_runs(kHeader + row("8", "1.5", "full") + row("8", "1.5", "partial"), "t.csv");
    ASSERT_EQ(runs.size(), 1u);
    const PublishedRun& run = runs.front();
    EXPECT_FALSE(run.vocab.has_value());
    EXPECT_FALSE(run.vpp.has_value());
    EXPECT_TRUE(run.recompute.empty());
    EXPECT_EQ(run.kv_heads, 8);
    EXPECT_EQ(run.micro_batches(), 4);
    EXPECT_EQ(run.notes, "two, words");
    EXPECT_DOUBLE_EQ(run.step_s, 1.5);
}

TEST(PublishedRuns, RefusesWhatContradictsItself) {
    const auto error = [](const std::string& text) -> std::string {
        try {
            parse_published_runs(text, "t.csv");
        } catch (const IngestError& refused) {
            return refused.what();
        }
        return {};
    };
    EXPECT_EQ(error(kHeader + row("16", "1.5", "full")),
              "t.csv:2: tp 2 x pp 1 x cp 1 x dp 4 is not the 16 GPUs of the row");
    EXPECT_EQ(error(kHeader + row("8", "0", "full")), "t.csv:2: measured_step_s: 0 s is no step time");
    EXPECT_NE(error(kHeader + row("none", "1", "full")).find("t.csv:2"), std::string::npos);
    EXPECT_NE(error("id,gpu\n1,2\n").find("config"), std::string::npos);
}

}  // namespace
}  // namespace fabricast
