// Traces, pages and other views from the command line; the manual.
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "tests/sim/cli/binary.hpp"

namespace fabricast {
namespace {

using testing::contains;
using testing::Ended;
using testing::read_text;
using testing::scenario_path;
using testing::Scratch;

const std::string kFile = scenario_path("quickstart.yaml");

TEST(Trace, EndingDecidesAndTheResultStaysTheSame) {
    const Scratch scratch;
    const Ended plain = testing::fabricast("run " + kFile + " --json --quiet");
    const Ended with = testing::fabricast("run " + kFile + " --json --quiet --trace " + scratch.path("step.json"));
    ASSERT_EQ(with.code, 0) << with.err;
    EXPECT_EQ(plain.out, with.out) << "a trace changes no byte of the result";
    const auto trace = nlohmann::json::parse(read_text(scratch.path("step.json")));
    EXPECT_GT(trace["traceEvents"].size(), 100u);
    ASSERT_EQ(testing::fabricast("run " + kFile + " --quiet --trace " + scratch.path("step.pftrace")).code, 0);
    EXPECT_EQ(read_text(scratch.path("step.pftrace")).front(), '\x0a') << "field 1 of Trace, length-delimited";
}

TEST(Trace, RanksCanBeNamed) {
    const Scratch scratch;
    const std::string trace = scratch.path("step.json");
    ASSERT_EQ(testing::fabricast("run " + kFile + " --quiet --trace-ranks 0,2-3 --trace " + trace).code, 0);
    const std::string text = read_text(trace);
    EXPECT_TRUE(contains(text, "\"rank 2 ·"));
    EXPECT_TRUE(contains(text, "\"rank 3 ·"));
    EXPECT_FALSE(contains(text, "\"rank 1 ·"));
    for (const auto& [ranks, part] : {std::pair<std::string, std::string>{"8", "ranks 0 to 7"},
                                      {"x", "`all` or numbers"},
                                      {"3-1", "no range"},
                                      {"1,", "`all` or numbers"}}) {
        const Ended refused = testing::fabricast("run " + kFile + " --trace-ranks " + ranks + " --trace " + trace);
        EXPECT_EQ(refused.code, 2);
        EXPECT_TRUE(contains(refused.err, part)) << refused.err;
    }
}

TEST(Trace, AJobThatDoesNotRunHasNone) {
    const Scratch scratch;
    const Ended ended =
        testing::fabricast("run " + kFile + " --set training.micro_batch=8 --set model=llama3.1-405b --trace " +
                           scratch.path("step.pftrace"));
    EXPECT_EQ(ended.code, 3);
    EXPECT_TRUE(contains(ended.err, "no timeline written")) << ended.err;
    EXPECT_EQ(scratch.files(), 0u);
}

TEST(Views, RunAndReportWriteThePageOfAResult) {
    const Scratch scratch;
    ASSERT_EQ(testing::fabricast("run " + kFile + " --quiet --output " + scratch.path("run.html")).code, 0);
    const std::string page = read_text(scratch.path("run.html"));
    EXPECT_TRUE(contains(page, "<section id=timeline"));
    EXPECT_TRUE(contains(page, "fabricast run quickstart.yaml"));
    ASSERT_EQ(testing::fabricast("run " + kFile + " --quiet --output " + scratch.path("result.json")).code, 0);
    for (const char* view : {"stored.html", "stored.md", "stored.csv", "stored.prom"}) {
        const Ended ended =
            testing::fabricast("report " + scratch.path("result.json") + " --output " + scratch.path(view));
        EXPECT_EQ(ended.code, 0) << ended.err;
        EXPECT_FALSE(read_text(scratch.path(view)).empty()) << view;
    }
    EXPECT_FALSE(contains(read_text(scratch.path("stored.html")), "<section id=timeline"));
    const Ended wrong = testing::fabricast("report " + kFile + " --output " + scratch.path("x.html"));
    EXPECT_EQ(wrong.code, 2);
    EXPECT_TRUE(contains(wrong.err, "not a result of fabricast")) << wrong.err;
    const Ended ending = testing::fabricast("run " + kFile + " --output " + scratch.path("x.pdf"));
    EXPECT_EQ(ending.code, 2);
    EXPECT_TRUE(contains(ending.err, ".html")) << ending.err;
}

TEST(Views, AStoredResultWithTimelineMakesTheSamePage) {
    const Scratch scratch;
    const std::string set = " --quiet --set 'training.global_batch=128 sequences' --output ";
    ASSERT_EQ(testing::fabricast("run " + kFile + set + scratch.path("run.html")).code, 0);
    ASSERT_EQ(testing::fabricast("run " + kFile + " --with-timeline" + set + scratch.path("result.json")).code, 0);
    ASSERT_EQ(
        testing::fabricast("report " + scratch.path("result.json") + " --output " + scratch.path("stored.html")).code,
        0);
    EXPECT_EQ(read_text(scratch.path("run.html")), read_text(scratch.path("stored.html")));
    EXPECT_TRUE(contains(read_text(scratch.path("run.html")),
                         "fabricast run quickstart.yaml --set 'training.global_batch=128 sequences'"));
    const Ended refused = testing::fabricast("run " + kFile + " --with-timeline");
    EXPECT_EQ(refused.code, 2);
    EXPECT_TRUE(contains(refused.err, "--output FILE.json")) << refused.err;
}

TEST(Views, AComparisonHasAPageAndMarkdown) {
    const Scratch scratch;
    const std::string verb =
        "compare " + kFile + " --quiet --set-b training.recompute=full --set-c training.layout.zero=2 ";
    for (const char* file : {"compare.html", "compare.md", "compare.json", "compare.txt"}) {
        const Ended ended = testing::fabricast(verb + "--output " + scratch.path(file));
        EXPECT_EQ(ended.code, 0) << ended.err;
        EXPECT_TRUE(contains(ended.out, "C against A"));
    }
    const std::string page = read_text(scratch.path("compare.html"));
    EXPECT_TRUE(contains(page, "id=difference"));
    EXPECT_TRUE(contains(page, "slower")) << "with full recomputation";
    EXPECT_TRUE(contains(page, "fabricast compare quickstart.yaml --set-b training.recompute=full"));
    EXPECT_TRUE(contains(read_text(scratch.path("compare.md")), "## Figures"));
    // A stored comparison is shown again.
    EXPECT_EQ(
        testing::fabricast("report " + scratch.path("compare.json") + " --output " + scratch.path("again.html")).code,
        0);
    EXPECT_TRUE(contains(read_text(scratch.path("again.html")), "id=difference"));
    const Ended csv = testing::fabricast(verb + "--output " + scratch.path("compare.csv"));
    EXPECT_EQ(csv.code, 2);
    EXPECT_TRUE(contains(csv.err, ".html")) << csv.err;
    EXPECT_EQ(testing::fabricast("compare " + kFile + " --set-b seed=2 --measured c:mfu=0.3").code, 2);
    EXPECT_EQ(testing::fabricast("compare " + kFile + " " + kFile + " " + kFile + " " + kFile).code, 2);
}

TEST(Manual, TellsEveryVerbAndItsOptions) {
    const Ended man = testing::fabricast("manual man");
    ASSERT_EQ(man.code, 0) << man.err;
    EXPECT_TRUE(man.out.starts_with(".TH FABRICAST 1"));
    for (const char* verb : {"run", "explain", "compare", "report", "nccl", "topo", "import", "validate", "presets"})
        EXPECT_TRUE(contains(man.out, std::string(".SS \"fabricast ") + verb)) << verb;
    EXPECT_TRUE(contains(man.out, "\\fB\\-\\-trace\\-ranks\\fR \\fILIST\\fR"));
    EXPECT_EQ(testing::fabricast("manual fish").code, 2);
}

// What bash offers for a line typed so far.
std::string offered(const std::string& words) {
    const Scratch scratch;
    std::ofstream(scratch.path("complete")) << testing::fabricast("manual bash").out;
    const std::string command = "bash -c 'source " + scratch.path("complete") + "; COMP_WORDS=(" + words +
                                "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _fabricast; echo ${COMPREPLY[*]}'";
    FILE* pipe = popen(command.c_str(), "r");
    std::string out;
    for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe))
        out += static_cast<char>(c);
    EXPECT_EQ(pclose(pipe), 0);
    return out;
}

TEST(Manual, BashCompletesVerbsAndOptions) {
    EXPECT_EQ(offered("fabricast exp"), "explain\n");
    EXPECT_EQ(offered("fabricast run --tr"), "--trace --trace-ranks\n");
    EXPECT_EQ(offered("fabricast presets --sc"), "--scenario\n");
}

}  // namespace
}  // namespace fabricast
