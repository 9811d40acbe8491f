// Which keys of two scenarios differ.
#include "sim/scenario/differences.hpp"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace fabricast {
namespace {

class Files : public ::testing::Test {
protected:
    std::string write(const std::string& name, const std::string& text) {
        const std::string test =
            ::testing::UnitTest::GetInstance()->current_test_info()->name();  // tests run side by side
        const std::string path = ::testing::TempDir() + "fabricast-differences-" + test + "-" + name;
        std::ofstream(path) << text;
        return path;
    }
    static const KeyDifference* find(const std::vector<KeyDifference>& all, const std::string& key) {
        for (const KeyDifference& one : all) {
            if (one.key == key)
                return &one;
        }
        return nullptr;
    }
    std::string base_ = write("a.yaml",
                              "name: a\ncluster: {node: hgx-h100}\nmodel: llama3.1-8b\n"
                              "training: {sequence: 4096 tokens, global_batch: 64 sequences, layout: {zero: 3}}\n");
};

TEST_F(Files, OfOneFileNothingDiffers) { EXPECT_TRUE(differing_keys(base_, {}, base_, {}).empty()); }

TEST_F(Files, SpellingAndUnitsDoNotDiffer) {
    const std::string other =
        write("b.yaml",
              "name: b\ncluster: {node: {preset: hgx-h100}, nodes: 1}\nmodel: {preset: llama3.1-8b}\n"
              "training: {sequence: 4.096 ktokens, global_batch: 64 samples, layout: {zero: 3, tp: 1}}\n");
    for (const KeyDifference& one : differing_keys(base_, {}, other, {}))
        ADD_FAILURE() << one.key << ": " << one.a << ", " << one.b;
}

TEST_F(Files, ADefaultIsSaid) {
    const auto keys = differing_keys(base_, {}, base_, {"training.layout.tp=2", "cluster.nodes=2"});
    ASSERT_EQ(keys.size(), 2u);
    EXPECT_EQ(keys[0].key, "cluster.nodes");  // in the order of the table
    EXPECT_EQ(keys[1].key, "training.layout.tp");
    EXPECT_EQ(keys[1].a, "1 (default)");
    EXPECT_EQ(keys[1].b, "2");
}

TEST_F(Files, WhatHasNoDefaultIsNotSaid) {
    const auto keys = differing_keys(base_, {}, base_, {"comm.env.NCCL_ALGO=Ring", "cluster.node.nic=200 Gb/s"});
    const KeyDifference* nic = find(keys, "cluster.node.nic");
    ASSERT_NE(nic, nullptr);
    EXPECT_EQ(nic->a, "-");
    EXPECT_EQ(nic->b, "200 Gb/s");
    const KeyDifference* algo = find(keys, "comm.env.NCCL_ALGO");
    ASSERT_NE(algo, nullptr);
    EXPECT_EQ(algo->b, "Ring");
}

TEST_F(Files, ABaseFileIsMergedFirst) {
    const std::string other =
        write("c.yaml", "name: c\nextends: fabricast-differences-a.yaml\ntraining: {recompute: full}\n");
    const auto keys = differing_keys(base_, {}, other, {});
    ASSERT_EQ(keys.size(), 1u);
    EXPECT_EQ(keys[0].key, "training.recompute");
    EXPECT_EQ(keys[0].a, "none (default)");
}

}  // namespace
}  // namespace fabricast
