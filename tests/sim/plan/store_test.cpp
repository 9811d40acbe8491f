// What a store promises: numbers come back exactly, what is there is not run again, another plan is refused with what
// differs, damage and a full disk are told.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

#include "sim/plan/shards.hpp"
#include "tests/sim/plan/small_spaces.hpp"

namespace fabricast::plan {
namespace {

namespace fs = std::filesystem;

class Stores : public ::testing::Test {
protected:
    Stores() {
        std::string pattern = (fs::temp_directory_path() / "fabricast-store-XXXXXX").string();
        if (mkdtemp(pattern.data()) != nullptr)
            folder_ = pattern;
    }
    ~Stores() override { fs::remove_all(folder_); }
    std::string path(const std::string& name) const { return (folder_ / name).string(); }

    PlanResult plan(const std::string& store, std::vector<std::string> overrides = {}) const {
        PlanRequest request = plan::request_of(kDense);
        request.store = path(store);
        request.source.overrides = std::move(overrides);
        request.search.prune = prune_;
        return make_plan(request);
    }
    std::string refusal(const std::string& store, std::vector<std::string> overrides = {}) const {
        try {
            plan(store, std::move(overrides));
        } catch (const ScenarioError& error) {
            return error.what();
        }
        return "not refused";
    }
    PlanResult shard(const std::string& store, std::uint32_t i, std::uint32_t n,
                     std::vector<std::string> where = {"mfu > 0.2"}, std::vector<std::string> overrides = {}) const {
        PlanRequest request = plan::request_of(kDense);
        request.source.overrides = std::move(overrides);
        request.store = shard_store(path(store), i);
        request.where = std::move(where);
        request.search.shard = i;
        request.search.shards = n;
        return make_plan(request);
    }

    bool prune_ = true;

private:
    fs::path folder_;
};

Evaluation made_up(int i) {
    Evaluation e;
    e.fits = i % 3 != 0;
    e.failure = i % 5 == 0 ? std::string("a \0 byte and \xff", 14) : "";
    e.stage = i;
    e.memory = std::numeric_limits<std::int64_t>::max() - i;
    e.capacity = i;
    e.events = std::numeric_limits<std::uint64_t>::max() - static_cast<std::uint64_t>(i);
    StepResult& s = e.step;
    s.ps = 123456789012345 + i;
    s.ranks = 1 << 20;
    for (std::size_t a = 0; a < kAccountCount; ++a)
        s.accounts[a] = (static_cast<__int128>(a + 1) << 100) - i;
    s.accounts[3] = -s.accounts[3];
    s.by_stage = {s.accounts, {}, s.accounts};
    s.ranks_by_stage = {1, 2, -3};
    s.tokens = 0.1 * i;
    s.model_flops = std::numeric_limits<double>::denorm_min();
    s.hardware_flops = -0.0;
    s.attention_flops = 1e300 / 3;
    s.attention_hardware_flops = std::numeric_limits<double>::infinity();
    s.attention_flops_whole = 1.0 / 3;
    s.peak_flops = 989.4e12;
    s.steps_simulated = 3;
    s.periodic = i % 2 == 0;
    return e;
}

void expect_equal(const Evaluation& a, const Evaluation& b) {
    EXPECT_EQ(a.fits, b.fits);
    EXPECT_EQ(a.failure, b.failure);
    EXPECT_EQ(a.stage, b.stage);
    EXPECT_EQ(a.memory, b.memory);
    EXPECT_EQ(a.capacity, b.capacity);
    EXPECT_EQ(a.events, b.events);
    const StepResult &s = a.step, &t = b.step;
    EXPECT_EQ(s.ps, t.ps);
    EXPECT_EQ(s.ranks, t.ranks);
    EXPECT_TRUE(s.accounts == t.accounts);
    EXPECT_TRUE(s.by_stage == t.by_stage);
    EXPECT_EQ(s.ranks_by_stage, t.ranks_by_stage);
    EXPECT_EQ(s.tokens, t.tokens);
    EXPECT_EQ(s.model_flops, t.model_flops);
    EXPECT_EQ(std::signbit(s.hardware_flops), std::signbit(t.hardware_flops));
    EXPECT_EQ(s.attention_flops, t.attention_flops);
    EXPECT_EQ(s.attention_hardware_flops, t.attention_hardware_flops);
    EXPECT_EQ(s.attention_flops_whole, t.attention_flops_whole);
    EXPECT_EQ(s.peak_flops, t.peak_flops);
    EXPECT_EQ(s.steps_simulated, t.steps_simulated);
    EXPECT_EQ(s.periodic, t.periodic);
}

const Facts kFacts = {{"program", "version", "1"}, {"scenario", "model.layers", "12"}};

TEST_F(Stores, GiveBackWhatTheyTook) {
    constexpr int kRows = 400;
    {
        Store store(path("a.db"), kFacts, {});
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&, t] {
                for (int i = t; i < kRows; i += 4)
                    store.keep(static_cast<std::uint64_t>(i) * 7, made_up(i));
            });
        }
        for (std::thread& thread : threads)
            thread.join();
        EXPECT_EQ(store.size(), std::uint64_t{kRows});
        EXPECT_TRUE(fs::exists(path("a.db-wal"))) << "written ahead while it is open";
    }
    EXPECT_TRUE(fs::exists(path("a.db")));
    EXPECT_FALSE(fs::exists(path("a.db-wal"))) << "closed, a store is one file";
    Store again(path("a.db"), kFacts, {});
    EXPECT_EQ(again.size(), std::uint64_t{kRows});
    EXPECT_EQ(again.repeats(), 0u);
    for (int i = 0; i < kRows; ++i) {
        Evaluation out;
        ASSERT_TRUE(again.find(static_cast<std::uint64_t>(i) * 7, out));
        expect_equal(out, made_up(i));
    }
    Evaluation out;
    EXPECT_FALSE(again.find(1, out));
    again.keep(0, made_up(0));
    EXPECT_EQ(again.size(), std::uint64_t{kRows});
    EXPECT_EQ(again.repeats(), 1u);
}

TEST_F(Stores, OneProcessAtATimeWritesOne) {
    Store store(path("a.db"), kFacts, {});
    try {
        Store other(path("a.db"), kFacts, {});
        FAIL() << "two writers";
    } catch (const ScenarioError& error) {
        EXPECT_NE(std::string(error.what()).find("another process has it open"), std::string::npos) << error.what();
    }
}

TEST_F(Stores, NothingIsRunTwice) {
    prune_ = false;
    const PlanResult first = plan("p.db"), second = plan("p.db");
    EXPECT_EQ(first.found.known, 0u);
    EXPECT_GE(second.found.known, second.found.rows.size());
    ASSERT_EQ(first.ranking, second.ranking);
    for (const std::size_t i : first.ranking)
        expect_equal(first.rows()[i].evaluation, second.rows()[i].evaluation);
    // another question about the same layouts costs nothing
    const PlanResult narrow =
        plan("p.db", {"plan.where=tp <= 2", "plan.top=3", "run.tokens=15 Ttokens", "plan.by=cost"});
    EXPECT_EQ(narrow.found.known, narrow.found.rows.size());
    EXPECT_EQ(Store(path("p.db")).repeats(), 0u);
}

// What stands beside the ranking is remembered too, each under its own question.
TEST_F(Stores, WhatIfsAndSensitivityAreNotRunTwice) {
    PlanRequest request = plan::request_of(kDense);
    request.store = path("p.db");
    request.source.overrides = {"training.layout={tp: 8, pp: 2, zero: 1}"};
    const PlanResult first = make_plan(request);
    const std::uint64_t without = Store(path("p.db")).size();
    EXPECT_GE(without, first.rows().size() + 2 * first.sensitivity.size());
    request.what_ifs = {"nic 400 -> 200 Gb/s"};
    const PlanResult asked = make_plan(request);
    const std::uint64_t with = Store(path("p.db")).size();
    EXPECT_EQ(with, without + 10) << "ten rows on the other machine, nothing else";
    request.what_ifs = {"nic 400 -> 100 Gb/s", "nic 400 -> 200 Gb/s"};
    const PlanResult more = make_plan(request);
    EXPECT_EQ(Store(path("p.db")).size(), with + 10);
    EXPECT_EQ(Store(path("p.db")).repeats(), 0u);
    ASSERT_EQ(more.what_ifs.size(), 2u);
    ASSERT_EQ(more.what_ifs[1].rows.size(), asked.what_ifs[0].rows.size());
    for (std::size_t i = 0; i < more.what_ifs[1].rows.size(); ++i)
        expect_equal(more.what_ifs[1].rows[i].second, asked.what_ifs[0].rows[i].second);
    EXPECT_NE(more.what_ifs[0].rows[0].second.step.ps, more.what_ifs[1].rows[0].second.step.ps);
    ASSERT_EQ(more.sensitivity.size(), first.sensitivity.size());
    for (std::size_t i = 0; i < more.sensitivity.size(); ++i)
        EXPECT_EQ(more.sensitivity[i].low_change, first.sensitivity[i].low_change);
}

TEST_F(Stores, OfAnotherPlanSayWhatDiffers) {
    plan("p.db");
    const auto tells = [&](const std::vector<std::string>& overrides, std::string_view part) {
        const std::string text = refusal("p.db", overrides);
        EXPECT_NE(text.find(part), std::string::npos) << text;
    };
    tells({"training.global_batch=128 sequences"},
          "training.global_batch is 64 sequences there and 128 sequences here");
    tells({"plan.tp=[1, 2]"}, "plan.tp is 1, 2, 8 there and 1, 2 here");
    tells({"plan.cp=[1, 2]"}, "plan.cp is not said there and 1, 2 here");
    tells({"cluster.node=hgx-a100-80g"}, "cluster.node.preset is hgx-h100 there and hgx-a100-80g here");
    EXPECT_NE(differences({{"program", "version", "0.0.9"}}, {{"program", "version", "0.1.0"}})
                  .find("fabricast 0.0.9 wrote it, this is 0.1.0"),
              std::string::npos);
    EXPECT_EQ(differences({{"code", "sources", "1"}}, {{"code", "sources", "2"}}),
              "another build of fabricast wrote it, whose code may forecast otherwise");
    EXPECT_EQ(differences({{"constants", "the catalogue's gpus.yaml", "1"}},
                          {{"constants", "the catalogue's gpus.yaml", "2"}}),
              "the catalogue's gpus.yaml is 1 there and 2 here");
}

TEST_F(Stores, ThatAreNoneAreRefused) {
    const auto put = [&](const std::string& name, const std::string& text) {
        std::ofstream(path(name), std::ios::binary) << text;
    };
    put("text.db", std::string(5000, 'x'));
    EXPECT_NE(refusal("text.db").find("it is not a store of fabricast plan"), std::string::npos) << refusal("text.db");
    EXPECT_NE(refusal("no/such.db").find("it cannot be opened"), std::string::npos) << refusal("no/such.db");
    EXPECT_NE(refusal(".").find("it is a directory"), std::string::npos);
    put("empty.db", "");
    EXPECT_EQ(refusal("empty.db"), "not refused") << "an empty file becomes a store";
}

TEST_F(Stores, DamageIsTold) {
    prune_ = false;
    const PlanResult first = plan("p.db");
    std::ostringstream whole;
    whole << std::ifstream(path("p.db"), std::ios::binary).rdbuf();
    const std::string good = whole.str();
    std::size_t noticed = 0, damaged = 0;
#ifdef NDEBUG
    constexpr std::size_t kStride = 4211;
#else
    constexpr std::size_t kStride = 8423;  // sanitized searches take seconds
#endif
    for (std::size_t at = 4096; at + 8 < good.size(); at += kStride) {
        std::string bad = good;
        for (std::size_t i = 0; i < 8; ++i)
            bad[at + i] = static_cast<char>(bad[at + i] ^ 0x5a);
        for (const char* file : {"bad.db-wal", "bad.db"})
            fs::remove(path(file));
        std::ofstream(path("bad.db"), std::ios::binary) << bad;
        ++damaged;
        try {
            // What is not noticed stood in no row, but in a free part of a page.
            const PlanResult same = plan("bad.db");
            ASSERT_EQ(same.ranking, first.ranking) << at;
            for (std::size_t i = 0; i < first.rows().size(); ++i)
                expect_equal(same.rows()[i].evaluation, first.rows()[i].evaluation);
        } catch (const ScenarioError& error) {
            EXPECT_NE(std::string(error.what()).find("it is damaged"), std::string::npos) << error.what();
            ++noticed;
        }
    }
    EXPECT_GT(damaged, 44'000 / kStride);
    EXPECT_GT(noticed, 22'000 / kStride);
    std::ofstream(path("cut.db"), std::ios::binary) << good.substr(0, good.size() / 2);
    EXPECT_NE(refusal("cut.db").find("it is damaged"), std::string::npos) << refusal("cut.db");
}

TEST_F(Stores, OfShardsMakeTheTableOfOneProcess) {
    PlanRequest alone = plan::request_of(kDense);
    alone.where = {"mfu > 0.2"};
    const PlanResult whole = make_plan(alone);
    std::uint64_t looked_at = 0, most = 0;
    for (std::uint32_t i = 0; i < 5; ++i) {
        const PlanResult part = shard("p.db", i, 5);
        looked_at += part.found.looked_at;
        most = std::max(most, part.found.looked_at);
        EXPECT_TRUE(part.classes.empty());
    }
    EXPECT_EQ(looked_at, whole.found.size);
    EXPECT_LT(most, 2 * whole.found.size / 5) << "shards are of like size";
    Merged merged = merge_shards(path("p.db"), {});
    EXPECT_EQ(merged.shards, 5u);
    const PlanResult joined = make_plan(merged.request);
    EXPECT_TRUE(joined.found.missing.empty());
    EXPECT_EQ(joined.found.looked_at, whole.found.looked_at);
    EXPECT_EQ(joined.found.cut, whole.found.cut);
    ASSERT_EQ(joined.ranking, whole.ranking);
    for (std::size_t i = 0; i < whole.rows().size(); ++i) {
        EXPECT_EQ(joined.rows()[i].index, whole.rows()[i].index);
        expect_equal(joined.rows()[i].evaluation, whole.rows()[i].evaluation);
    }
    EXPECT_EQ(joined.classes.size(), whole.classes.size());
    merge_shards(path("p.db"), {});  // again: nothing is counted twice
    EXPECT_EQ(Store(path("p.db")).repeats(), 0u);
}

TEST_F(Stores, OfShardsThatAreMissingAreNamed) {
    const std::vector<std::string> many = {"plan.top=60"};
    for (const std::uint32_t i : {0u, 2u})
        shard("p.db", i, 3, {}, many);
    Merged merged = merge_shards(path("p.db"), {});
    const PlanResult joined = make_plan(merged.request);
    ASSERT_FALSE(joined.found.missing.empty());
    EXPECT_TRUE(joined.classes.empty());
    std::string list;
    const std::string text = missing_text(merged, joined.found.missing, list);
    EXPECT_EQ(list, "1");
    EXPECT_EQ(text, "shard 1 was not begun and lacks " + std::to_string(joined.found.missing.size()) + " layouts");
    for (const std::uint64_t index : joined.found.missing)
        EXPECT_EQ(shard_of(index, 3), 1u);
    // and by the third shard, or by one process that goes on with the merged store
    merged.request.search.only_known = false;
    const PlanResult rest = make_plan(merged.request);
    EXPECT_GT(rest.found.known, 0u);
    shard("p.db", 1, 3, {}, many);
    EXPECT_TRUE(make_plan(merge_shards(path("p.db"), {}).request).found.missing.empty());
}

TEST_F(Stores, OfShardsOfDifferentPlansDoNotMerge) {
    shard("p.db", 0, 3);
    shard("p.db", 1, 3, {"mfu > 0.3"});
    plan("whole.db");
    const auto refused = [&](const std::string& store, std::vector<std::string> files) {
        try {
            merge_shards(path(store), std::move(files));
        } catch (const ScenarioError& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_NE(refused("p.db", {}).find("conditions is [mfu > 0.2] there and [mfu > 0.3] here"), std::string::npos)
        << refused("p.db", {});
    EXPECT_NE(refused("x.db", {path("whole.db")}).find("a whole plan, not of a shard"), std::string::npos);
    EXPECT_NE(refused("none.db", {}).find("no store of a shard is beside it"), std::string::npos);
    EXPECT_NE(refused("y.db", {path("none.db.0")}).find("there is no such file"), std::string::npos);
}

}  // namespace
}  // namespace fabricast::plan
