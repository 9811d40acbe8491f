#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "binary.hpp"

namespace fabricast::testing {
namespace {

TEST(CommandLine, HelpListsOnlyVerbsThatExist) {
    for (const char* spelling : {"--help", "-h", "help"}) {
        const Ended ended = fabricast(spelling);
        EXPECT_EQ(ended.code, 0);
        EXPECT_EQ(ended.err, "");
        for (const char* part : {"run", "explain", "compare", "plan", "nccl", "topo", "import", "presets", "schema",
                                 "examples", "exit codes"})
            EXPECT_TRUE(contains(ended.out, part));
        for (const char* verb : {"sweep"}) {
            EXPECT_FALSE(contains(ended.out, std::string("\n  ") + verb)) << verb;
        }
    }
}

TEST(CommandLine, EveryVerbHasHelpWithExamples) {
    for (const char* verb : {"run", "explain", "compare", "plan", "nccl", "topo", "import", "presets", "schema"}) {
        const Ended ended = fabricast(std::string(verb) + " --help");
        EXPECT_EQ(ended.code, 0) << verb;
        EXPECT_TRUE(contains(ended.out, "usage: fabricast")) << verb;
        EXPECT_TRUE(contains(ended.out, "examples")) << verb;
    }
}

TEST(CommandLine, VersionIsOneLine) {
    const Ended ended = fabricast("--version");
    EXPECT_EQ(ended.code, 0);
    EXPECT_TRUE(ended.out.starts_with("fabricast ")) << ended.out;
    EXPECT_EQ(std::count(ended.out.begin(), ended.out.end(), '\n'), 1);
}

TEST(CommandLine, ValidateRunsItsSibling) {
    const Ended version = fabricast("validate --version");
    EXPECT_EQ(version.code, 0) << version.err;
    EXPECT_TRUE(version.out.starts_with("fabricast-validate ")) << version.out;
    EXPECT_EQ(fabricast("validate scroe").code, 2);  // its exit code is passed on
}

TEST(CommandLine, NothingToDoIsBadInput) {
    const Ended ended = fabricast("");
    EXPECT_EQ(ended.code, 2);
    EXPECT_EQ(ended.out, "");
    EXPECT_TRUE(contains(ended.err, "usage"));
}

TEST(CommandLine, MisspeltVerbAndOptionGetTheNearestOne) {
    const Ended verb = fabricast("rnu x.yaml");
    EXPECT_EQ(verb.code, 2);
    EXPECT_EQ(verb.out, "");
    EXPECT_TRUE(contains(verb.err, "unknown verb `rnu`; did you mean `run`?")) << verb.err;

    const Ended option = fabricast("run x.yaml --outptu y.json");
    EXPECT_EQ(option.code, 2);
    EXPECT_TRUE(contains(option.err, "`--outptu`; did you mean `--output`?")) << option.err;

    const Ended top = fabricast("--verison");
    EXPECT_EQ(top.code, 2);
    EXPECT_TRUE(contains(top.err, "did you mean `--version`?")) << top.err;
}

TEST(CommandLine, OptionsAreNotAbbreviated) {
    const Ended ended = fabricast("presets --jso");
    EXPECT_EQ(ended.code, 2);
    EXPECT_TRUE(contains(ended.err, "--jso"));
}

TEST(CommandLine, FullDiskIsTold) {
    const Ended ended = fabricast("--help >/dev/full");
    EXPECT_EQ(ended.code, 2);
    EXPECT_TRUE(contains(ended.err, "standard output"));
}

TEST(Schema, IsJsonOfDraft7) {
    const Ended ended = fabricast("schema");
    ASSERT_EQ(ended.code, 0) << ended.err;
    const nlohmann::json schema = nlohmann::json::parse(ended.out);
    EXPECT_TRUE(contains(schema.at("$schema").get<std::string>(), "draft-07"));
    EXPECT_TRUE(schema.at("properties").contains("training"));
    EXPECT_EQ(fabricast("schema x").code, 2);
}

TEST(Presets, ListEveryKind) {
    const Ended ended = fabricast("presets");
    ASSERT_EQ(ended.code, 0) << ended.err;
    for (const char* name : {"hgx-h800", "H800-SXM-80G", "rail-fat-tree", "llama-70b", "megatron-core-2024"}) {
        EXPECT_TRUE(contains(ended.out, name)) << name;
    }
    EXPECT_FALSE(contains(ended.out, "\x1b"));
}

TEST(Presets, AsJson) {
    const Ended ended = fabricast("presets --json");
    ASSERT_EQ(ended.code, 0) << ended.err;
    const nlohmann::json presets = nlohmann::json::parse(ended.out);
    for (const char* kind : {"nodes", "gpus", "fabrics", "networks", "models", "software"}) {
        ASSERT_FALSE(presets.at(kind).empty()) << kind;
        EXPECT_TRUE(presets.at(kind)[0].contains("name")) << kind;
    }
}

TEST(Presets, UnknownNameGetsTheNearestOne) {
    const Ended ended = fabricast("presets --scenario llama-7O");
    EXPECT_EQ(ended.code, 2);
    EXPECT_TRUE(contains(ended.err, "did you mean `llama-7")) << ended.err;
    const Ended gpu = fabricast("presets --scenario H800-SXM-80G");
    EXPECT_EQ(gpu.code, 2);
    EXPECT_TRUE(contains(gpu.err, "hgx-h800")) << gpu.err;
}

}  // namespace
}  // namespace fabricast::testing
