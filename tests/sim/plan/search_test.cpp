// Threads and shards never show; what the table says of a layout is what `run` says.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "sim/plan/told.hpp"
#include "sim/step/forecast.hpp"
#include "tests/sim/plan/small_spaces.hpp"

namespace fabricast::plan {
namespace {

TEST(Space, NumbersAndChoicesGoBothWays) {
    const PlanRequest request = request_of(kExperts);
    const Scenario s = request.source.load({});
    const auto clusters = plan_clusters(request.source, s.plan);
    const PlanSpace space(s.plan, clusters);
    EXPECT_EQ(space.size(), 2u * 2 * 2 * 3 * 2 * 2 * 2 * 2);
    std::set<std::string> jobs;
    for (std::uint64_t i = 0; i < space.size(); ++i) {
        const Choice choice = space.at(i);
        EXPECT_EQ(space.index_of(choice), i);
        std::string rule, why;
        const TrainingPlan plan = space.plan(choice, rule, why);
        EXPECT_EQ(rule.empty(), why.empty());
        if (!rule.empty())
            continue;
        Choice found;
        ASSERT_TRUE(space.find(plan, 0, found)) << i;
        EXPECT_EQ(space.index_of(found), i);
    }
}

TEST(Space, LayersThatDoNotDivideAreLightAtBothEnds) {
    EXPECT_EQ(light_ends(126, 16).front(), 7);
    EXPECT_EQ(light_ends(126, 16)[1], 8);
    EXPECT_EQ(light_ends(126, 16).back(), 7);
    EXPECT_TRUE(light_ends(80, 16).empty()) << "even";
    EXPECT_TRUE(light_ends(81, 16).empty()) << "neither";
}

TEST(Search, TheTableSaysWhatRunSays) {
    const PlanRequest request = request_of(kDense);
    const PlanResult plan = make_plan(request);
    for (const std::size_t place : {std::size_t{0}, std::size_t{3}, plan.ranking.size() - 1}) {
        const PlanRow& row = plan.rows()[plan.ranking[place]];
        const Scenario s = parse_scenario(kDense, "plan.yaml", plan_overrides(plan, row.cluster, row.plan));
        const Result run = forecast(s);
        EXPECT_EQ(run.step.ps, row.evaluation.step.ps);
        EXPECT_EQ(run.memory[static_cast<std::size_t>(row.evaluation.stage)].total_bytes, row.evaluation.memory);
        EXPECT_EQ(run.step.accounts, row.evaluation.step.accounts);
    }
}

TEST(Search, ShardsDoNotShow) {
    const PlanRequest request = request_of(kDense);
    const Scenario s = request.source.load({});
    const auto clusters = plan_clusters(request.source, s.plan);
    const PlanSpace space(s.plan, clusters);
    const std::vector<Condition> conditions = {Condition("mfu > 0.2", "test")};
    const auto shard = [&](std::uint32_t i, std::uint32_t n) {
        return search(space, clusters, conditions, {.top = 10, .shard = i, .shards = n, .threads = 1});
    };
    const SearchResult whole = shard(0, 1);
    std::uint64_t looked_at = 0, cut = 0, events = 0;
    std::map<std::uint64_t, Picoseconds> rows;
    std::map<std::string, std::uint64_t> removed;
    for (const std::uint32_t i : {2u, 0u, 1u}) {
        const SearchResult part = shard(i, 3);
        looked_at += part.looked_at;
        cut += part.cut;
        events += part.events;
        for (const PlanRow& row : part.rows) {
            EXPECT_EQ(shard_of(row.index, 3), i);
            EXPECT_TRUE(rows.emplace(row.index, row.evaluation.step.ps).second);
        }
        for (const auto& [rule, gone] : part.removed)
            removed[rule] += gone.count;
    }
    EXPECT_EQ(whole.looked_at, space.size());
    EXPECT_EQ(looked_at, whole.looked_at);
    EXPECT_EQ(cut, whole.cut);
    EXPECT_EQ(events, whole.events);
    ASSERT_EQ(rows.size(), whole.rows.size());
    for (const PlanRow& row : whole.rows)
        EXPECT_EQ(rows.at(row.index), row.evaluation.step.ps);
    ASSERT_EQ(removed.size(), whole.removed.size());
    for (const auto& [rule, gone] : whole.removed)
        EXPECT_EQ(removed.at(rule), gone.count) << rule;
    // in rounds fewer run, and the ten best are the same
    const SearchResult rounds = search(space, clusters, conditions, {.top = 10, .threads = 1});
    for (std::size_t i = 0; i < 10; ++i)
        EXPECT_EQ(rounds.rows[i].index, whole.rows[i].index);
}

TEST(Search, EveryLayoutIsAccountedFor) {
    PlanRequest request = request_of(kLong);
    request.where = {"tp <= 2", "bubble < 0.5"};
    const PlanResult plan = make_plan(request);
    std::uint64_t sum = plan.found.cut + plan.ranking.size();
    for (const auto& [rule, removed] : plan.found.removed)
        sum += removed.count;
    EXPECT_EQ(sum, plan.found.size);
}

TEST(Conditions, OfProductsAndFigures) {
    Values v = {};
    v[static_cast<std::size_t>(Quantity::tp)] = 8;
    v[static_cast<std::size_t>(Quantity::pp)] = 2;
    v[static_cast<std::size_t>(Quantity::mfu)] = 0.45;
    EXPECT_TRUE(Condition("tp * pp <= 16", "t").holds(v));
    EXPECT_FALSE(Condition("tp*pp<16", "t").holds(v));
    EXPECT_TRUE(Condition("mfu > 0.4", "t").holds(v));
    EXPECT_TRUE(Condition("mfu > 0.4", "t").needs_run());
    EXPECT_FALSE(Condition("2 * pp != 4", "t").holds(v));
    EXPECT_TRUE(Condition("tp == 8", "t").holds(v));
    EXPECT_FALSE(Condition("tp = 8", "t").needs_run());
    for (const char* wrong : {"tp", "tp <", "tpp < 8", "tp << 8", "tp < 8 < 9"})
        EXPECT_THROW(Condition(wrong, "t"), ScenarioError) << wrong;
}

TEST(Conditions, ThatLeaveNothingAreNamed) {
    PlanRequest request = request_of(kDense);
    request.where = {"tp <= 2", "pp <= 4", "tp >= 8"};
    const PlanResult both = make_plan(request);
    EXPECT_TRUE(both.ranking.empty());
    EXPECT_EQ(both.found.contradiction, "no layout that can run meets both `tp <= 2` and `tp >= 8`");
    EXPECT_NE(nothing_left(both).find("meets both"), std::string::npos);
    request.where = {"tp > 8"};
    EXPECT_EQ(make_plan(request).found.contradiction, "no layout that can run meets `tp > 8`");
    request.where = {"mfu > 0.99"};
    const std::string late = nothing_left(make_plan(request));
    EXPECT_NE(late.find("where mfu > 0.99"), std::string::npos) << late;
}

TEST(Conditions, MemoryThatIsTooSmallIsNamed) {
    PlanRequest request = request_of(kDense);
    request.source.overrides = {"cluster.node.gpu_memory=3 GiB"};
    const PlanResult plan = make_plan(request);
    EXPECT_TRUE(plan.ranking.empty());
    EXPECT_NE(nothing_left(plan).find("`does not fit in memory` removed most"), std::string::npos)
        << nothing_left(plan);
}

TEST(Plan, SeveralClustersGiveAFrontOfCostAndDays) {
    PlanRequest request = request_of(kDense);
    request.source.overrides = {"plan.gpus=[8, 16, 32]",  "plan.node=[hgx-h100, hgx-a100-80g]",
                                "plan.price.h100=2.50",   "plan.price.a100=1.25",
                                "run.tokens=100 Gtokens", "plan.micro_batch=[1]",
                                "plan.recompute=[none]"};
    const PlanResult plan = make_plan(request);
    EXPECT_EQ(plan.clusters.size(), 6u);
    ASSERT_GE(plan.front.size(), 2u);
    for (std::size_t i = 1; i < plan.front.size(); ++i) {
        const Figures &a = plan.rows()[plan.front[i - 1]].figures, &b = plan.rows()[plan.front[i]].figures;
        EXPECT_LT(a.days, b.days);
        EXPECT_GT(a.cost, b.cost);
    }
    for (const PlanRow& row : plan.rows()) {
        const bool beaten = std::any_of(plan.front.begin(), plan.front.end(), [&](std::size_t i) {
            const Figures& f = plan.rows()[i].figures;
            return f.days <= row.figures.days && f.cost <= row.figures.cost;
        });
        EXPECT_TRUE(beaten);
    }
    EXPECT_EQ(plan.rows()[plan.ranking.front()].figures.days, plan.rows()[plan.front.front()].figures.days);
}

TEST(Plan, WhatIfsPriceTheRankingAgain) {
    PlanRequest request = request_of(kLong);
    request.what_ifs = {"nic 100 -> 25 Gb/s", "oversubscription 1 -> 4"};
    const PlanResult plan = make_plan(request);
    ASSERT_EQ(plan.what_ifs.size(), 2u);
    ASSERT_EQ(plan.what_ifs[0].rows.size(), 10u);
    for (const auto& [row, evaluation] : plan.what_ifs[0].rows)
        EXPECT_GE(evaluation.step.ps, plan.rows()[row].evaluation.step.ps);
    const auto first = std::find_if(plan.what_ifs[0].rows.begin(), plan.what_ifs[0].rows.end(),
                                    [&](const auto& one) { return one.first == plan.ranking[0]; });
    ASSERT_NE(first, plan.what_ifs[0].rows.end());
    const PlanRow& winner = plan.rows()[plan.ranking[0]];
    std::vector<std::string> keys = plan_overrides(plan, winner.cluster, winner.plan);
    keys.push_back("cluster.fabric.nic=25 Gb/s");
    EXPECT_EQ(forecast(parse_scenario(kLong, "plan.yaml", keys)).step.ps, first->second.step.ps);
    request.what_ifs = {"nic 400 -> 200 Gb/s"};
    try {
        make_plan(request);
        FAIL() << "the scenario has 100 Gb/s";
    } catch (const ScenarioError& error) {
        EXPECT_NE(std::string(error.what()).find("the scenario has 100 Gb/s"), std::string::npos) << error.what();
    }
    for (const char* wrong : {"nic", "nicc 1 -> 2", "nic 100 Gb/s", "nic 100 ->"}) {
        request.what_ifs = {wrong};
        EXPECT_THROW(make_plan(request), ScenarioError) << wrong;
    }
}

TEST(Plan, SaysWhyTheRestLostAndWhatTheWinnerHangsOn) {
    const PlanResult plan = make_plan(request_of(kLong));
    ASSERT_FALSE(plan.classes.empty());
    std::set<Dimension> dimensions;
    for (const ClassLoss& c : plan.classes) {
        dimensions.insert(c.dimension);
        EXPECT_TRUE(c.best || c.at_least >= 0 || !c.removed.empty());
        if (c.best) {
            EXPECT_GE(c.slower, 0);
        }
    }
    EXPECT_TRUE(dimensions.contains(Dimension::cp));
    ASSERT_GE(plan.sensitivity.size(), 5u);
    for (const Sensitivity& s : plan.sensitivity) {
        EXPECT_GE(s.low_change, -1e-3) << s.what;
        EXPECT_LE(s.high_change, 1e-3) << s.what;
    }
}

}  // namespace
}  // namespace fabricast::plan
