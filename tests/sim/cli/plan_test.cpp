// plan end to end, on a machine of eight GPUs.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "binary.hpp"
#include "sim/cli/progress_bar.hpp"

namespace fabricast::testing {
namespace {

using nlohmann::json;

std::string plan(const std::string& options) {
    return "plan '" + scenario_path("acceptance/a6-llama-13b-tp4.yaml") + "' --jobs 1 --quiet " +
           "--set 'plan={tp: [2, 4], pp: [1, 2], vpp: 1, zero: 1, recompute: none}' " + options;
}

std::string plan_aloud(const std::string& options) {
    std::string text = plan(options);
    return text.replace(text.find(" --quiet"), 8, "");
}

// "tp: 2" as a key of its own: "etp: 2" and "tp: 24" do not say it.
bool says(const std::string& yaml, const std::string& key, const std::string& value) {
    return std::regex_search(yaml, std::regex("(^|[^a-z_])" + key + ": " + value + "($|[^0-9a-z.])"));
}

// The page's command, as a reader would copy it.
std::string command_of(const std::string& page) {
    const std::string begin = "<pre>fabricast ";
    const std::size_t at = page.find(begin), end = page.find("</pre>", at);
    std::string text = at == std::string::npos ? "" : page.substr(at + begin.size(), end - at - begin.size());
    const std::pair<const char*, const char*> marks[] = {
        {"&#39;", "'"}, {"&quot;", "\""}, {"&gt;", ">"}, {"&amp;", "&"}};
    for (const auto& [mark, plain] : marks)
        for (std::size_t i = 0; (i = text.find(mark)) != std::string::npos;)
            text.replace(i, std::string_view(mark).size(), plain);
    return text;
}

// Overrides, tokens, prices and a calibration of the question are part of the answer.
TEST(PlanVerb, TheLineOfThePageRunsTheFirstAgain) {
    const Scratch scratch;
    std::ofstream(scratch.path("site.yaml")) << "calibration: 1\nname: \"it's a site\"\ngpus:\n  A100-SXM-80G:\n    "
                                                "gemm.sustained: 0.7\n";
    std::ofstream(scratch.path("job.yaml"))
        << "name: job\n"
           "cluster: {nodes: 1, node: dgx-a100}\n"
           "model: {preset: llama-7b, layers: 18}\n"
           "training:\n"
           "  sequence: 4096 tokens\n"
           "  global_batch: 32 sequences\n"
           "  layout: {tp: 2, sp: true, pp: 4, stage_layers: [3, 5, 5, 5], zero: 1}\n"
           "  recompute: full\n"
           "  recompute_layers: 1\n";
    const std::string in = "cd '" + scratch.path("") + "' &&";
    const std::string asked =
        "plan job.yaml --jobs 1 --quiet --calibration site.yaml --tokens 1T --price a100=1.50 --by cost --top 50 "
        "--set 'training.sequence=2048 tokens' --set 'cluster.node.gpu.hbm=1.6 TB/s' "
        "--set 'plan={tp: [1, 2], pp: [2, 4], vpp: 1, recompute: [full, none], micro_batch: 1, zero: 1, global_batch: "
        "[32, 64]}' ";
    const Ended ended = fabricast(asked + "--json --output plan.html", in);
    ASSERT_EQ(ended.code, 0) << ended.err;
    const json result = json::parse(ended.out);
    const json& first = result["ranking"][0];
    EXPECT_EQ(result["prices"], "a GPU-hour: A100-SXM-80G 1.50 USD (plan.price.a100)");
    const std::string command = command_of(read_text(scratch.path("plan.html")));
    EXPECT_TRUE(command.starts_with("run job.yaml --calibration site.yaml --set ")) << command;
    const Ended same = fabricast(command + " --json --quiet", in);
    ASSERT_EQ(same.code, 0) << same.err;
    const json run = json::parse(same.out);
    EXPECT_EQ(run["step"]["ps"], first["step_ps"]);
    EXPECT_EQ(run["scenario"]["price_per_gpu_hour"], 1.5);
    EXPECT_EQ(run["scenario"]["sequence"], 2048);
    // and every other row, the stated layout among them
    std::size_t stated = 0, cleared = 0;
    for (const json& row : result["ranking"]) {
        std::string line = "run job.yaml --calibration site.yaml --json --quiet";
        for (const json& key : row["set"]) {
            line += " --set '" + key.get<std::string>() + "'";
            stated += key == "training.layout.stage_layers=[3, 5, 5, 5]" ? 1 : 0;
            cleared += key == "training.layout.stage_layers=[]" ? 1 : 0;
        }
        EXPECT_EQ(json::parse(fabricast(line, in).out)["step"]["ps"], row["step_ps"]) << line;
    }
    EXPECT_GT(stated, 0u);
    EXPECT_GT(cleared, 0u);
}

TEST(PlanVerb, JsonNamesTheKeysThatRunTakes) {
    const Ended ended =
        fabricast(plan("--json --tokens 1T --price a100=1.50 --what-if 'cluster.node.gpu.hbm -> 1.5 TB/s'"));
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(ended.err, "");
    const json result = json::parse(ended.out);
    ASSERT_GE(result["ranking"].size(), 2u);
    const json& first = result["ranking"][0];
    EXPECT_GT(first["cost"].get<double>(), 0);
    EXPECT_GT(result["what_ifs"][0]["ranking"][0]["step_change"].get<double>(), 0);
    std::string run = "run '" + scenario_path("acceptance/a6-llama-13b-tp4.yaml") + "' --json --quiet";
    for (const json& key : first["set"])
        run += " --set '" + key.get<std::string>() + "'";
    const Ended same = fabricast(run);
    EXPECT_EQ(json::parse(same.out)["step"]["ps"], first["step_ps"]) << same.err;
}

TEST(PlanVerb, ExportsTheWinnerForImportersToRead) {
    const Scratch scratch;
    const json first = json::parse(fabricast(plan("--json")).out)["ranking"][0];
    const Ended script = fabricast(plan("--export megatron"));
    ASSERT_EQ(script.code, 0) << script.err;
    std::ofstream(scratch.path("launch.sh")) << script.out;
    const Ended read =
        fabricast("import megatron '" + scratch.path("launch.sh") + "' --output '" + scratch.path("back.yaml") + "'");
    ASSERT_EQ(read.code, 0) << read.err;
    const Ended run = fabricast("run '" + scratch.path("back.yaml") +
                                "' --json --quiet --set 'cluster={nodes: 1, node: hgx-a100-80g}'");
    ASSERT_EQ(run.code, 0) << run.err;
    std::size_t compared = 0;
    for (const json& key : first["set"]) {
        const std::string text = key.get<std::string>();
        for (const char* name : {"tp", "pp", "dp", "zero", "sp"}) {
            const std::string begin = std::string("training.layout.") + name + "=";
            if (text.starts_with(begin)) {
                EXPECT_TRUE(says(read_text(scratch.path("back.yaml")), name, text.substr(begin.size()))) << text;
                ++compared;
            }
        }
    }
    EXPECT_EQ(compared, 5u);
    const Ended second = fabricast(plan_aloud("--export torchtitan:2"));
    EXPECT_EQ(second.code, 0) << second.err;
    EXPECT_TRUE(contains(second.out, "tensor_parallel_degree = ")) << second.out;
    EXPECT_TRUE(contains(second.err, "not said in it: ZeRO stage 1")) << second.err;
    const Ended quiet = fabricast(plan("--export torchtitan:2"));
    EXPECT_EQ(quiet.out, second.out);
    EXPECT_EQ(quiet.err, "");
    EXPECT_EQ(json::parse(fabricast(plan("--export deepspeed")).out)["zero_optimization"]["stage"], 1);
    for (const char* wrong : {"--export nemo", "--export megatron:0", "--export megatron:x", "--export megatron:99999",
                              "--export megatron --json"})
        EXPECT_EQ(fabricast(plan(wrong)).code, 2) << wrong;
    const Ended behind = fabricast(plan("--top 2 --export megatron:3"));
    EXPECT_EQ(behind.code, 2);
    EXPECT_TRUE(contains(behind.err, "row 3 is behind the 2 of the table") && contains(behind.err, "--top 3"))
        << behind.err;
    EXPECT_EQ(fabricast(plan("--top 3 --export megatron:3")).code, 0);
    EXPECT_TRUE(contains(fabricast(plan("--export megatorn")).err, "did you mean"))
        << fabricast(plan("--export megatorn")).err;
}

TEST(PlanVerb, ProgressIsForTerminalsOnly) {
    EXPECT_EQ(cli::progress_line({.looked_at = 50, .size = 100}, 0),
              "[##########----------] 50 of 100 layouts looked at");
    EXPECT_EQ(cli::progress_line({.looked_at = 9, .size = 9, .evaluated = 30, .known = 10, .ahead = 90}, 10),
              "[#####---------------] 30 of about 120 simulated, 10 known, 2.0 a second, about 0:45 left");
    EXPECT_EQ(cli::progress_line({.looked_at = 9, .size = 9}, 0), "[--------------------] 0 of about 0 simulated");
    const Ended ended = fabricast(plan_aloud(""), "TERM=xterm");
    EXPECT_TRUE(contains(ended.err, " simulated in ")) << ended.err;
    EXPECT_FALSE(contains(ended.err, "\r")) << ended.err;
}

TEST(PlanVerb, ExitCodes) {
    EXPECT_EQ(fabricast(plan("--where 'tp > 4'")).code, 2);
    EXPECT_EQ(fabricast(plan("--where 'tp >'")).code, 2);
    EXPECT_EQ(fabricast(plan("--gpus 12")).code, 2);
    EXPECT_EQ(fabricast(plan("--what-if 'nic 1'")).code, 2);
    EXPECT_EQ(fabricast("plan").code, 2);
    const Ended full = fabricast(plan("--set 'cluster.node.gpu_memory=20 GiB'"));
    EXPECT_EQ(full.code, 3);
    EXPECT_TRUE(contains(full.err, "does not fit in memory")) << full.err;
    // memory is the reason only where nothing else removed a layout that might have fitted
    const Ended both = fabricast(plan("--set 'cluster.node.gpu_memory=20 GiB' --where 'tp <= 2'"));
    EXPECT_EQ(both.code, 2) << both.err;
    EXPECT_EQ(fabricast(plan("--where 'mfu > 0.99'")).code, 2);
}

TEST(PlanVerb, RefusesWhatItCannotAnswer) {
    const auto err = [](const std::string& options) {
        const Ended ended = fabricast(plan(options));
        EXPECT_EQ(ended.code, 2) << options;
        EXPECT_EQ(ended.out, "") << options;
        return ended.err;
    };
    EXPECT_TRUE(contains(err("--what-if 'training.layout.tp 4 -> 2'"), "every row of the ranking has its own"));
    EXPECT_TRUE(contains(err("--what-if 'plan.top 10 -> 3'"), "it changes no layout's step"));
    for (const char* price : {"--price 'a100=1.50 per hour'", "--price '1.50 per hour'", "--price a100=1.50x",
                              "--price 1.50x", "--price a100="})
        EXPECT_TRUE(contains(err(price), "price")) << price << err(price);
    const Ended euro = fabricast(plan("--json --price 'a100=1.50 EUR/GPU-h'"));
    EXPECT_EQ(json::parse(euro.out)["currency"], "EUR") << euro.err;
    const Ended all = fabricast(plan("--json --price '1.50 EUR/GPU-h'"));
    EXPECT_EQ(json::parse(all.out)["prices"], "a GPU-hour: A100-SXM-80G 1.50 EUR (run.price)") << all.err;
    const std::string help = fabricast("plan --help").out;
    for (const char* part :
         {"a key of cluster, model, comm or training.software", "without --store it is FILE's name with"})
        EXPECT_TRUE(contains(std::regex_replace(help, std::regex("\\s+"), " "), part)) << part << help;
}

}  // namespace
}  // namespace fabricast::testing
