// Threads and shards never show; what the table says of a layout is what `run` says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "sim/plan/told.hpp"
#include "sim/step/forecast.hpp"
#include "tests/sim/plan/small_spaces.hpp"

namespace fabricast::plan {
namespace {

// What a layout does, without what means nothing to it.
std::string job_of(const TrainingPlan& p) {
    const Layout& l = p.layout;
    const bool copies = l.dp * l.cp > 1;
    std::string text =
        fmt::format("tp {} {} cp {} {} ep {} pp {} {} vpp {} dp {} micro {}", l.tp, l.tp > 1 && l.sequence_parallel,
                    l.cp, l.cp > 1 ? context_exchange_name(p.context) : "", l.ep, l.pp,
                    l.pp > 1 ? schedule_name(l.schedule) : "", l.vpp, l.dp, p.micro_batch);
    if (copies)
        text += fmt::format(" zero {} group {} overlap {} {}", l.zero, l.zero > 0 ? l.shard_group : 0,
                            p.overlap_grad_reduce, p.overlap_param_gather);
    return text;
}

TEST(Space, NumbersAndChoicesGoBothWays) {
    const PlanRequest request = request_of(kExperts);
    const Scenario s = request.source.load({});
    const auto clusters = plan_clusters(request.source, s.plan);
    const PlanSpace space(s.plan, clusters);
    EXPECT_EQ(space.size(), 2u * 2 * 2 * 3 * 2 * 2 * 2 * 2);
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

TEST(Space, NoJobIsListedTwiceAndNoneIsLost) {
    PlanRequest request = request_of(kDense);
    request.source.overrides = {
        "plan={tp: [1, 2], sp: [true, false], cp: [1, 2, 16], cp_exchange: [ring, ulysses], pp: [1, 2, 4], vpp: [1, "
        "3], "
        "schedule: [interleaved, 1f1b, gpipe], zero: [0, 1, 3], shard_group: [0, 2], overlap: [none, both], "
        "micro_batch: 1, recompute: none}"};
    const Scenario s = request.source.load({});
    const auto clusters = plan_clusters(request.source, s.plan);
    const PlanSpace space(s.plan, clusters);
    std::set<std::string> jobs;
    std::uint64_t same = 0;
    for (std::uint64_t i = 0; i < space.size(); ++i) {
        std::string rule, why;
        const TrainingPlan plan = space.plan(space.at(i), rule, why);
        if (rule.empty()) {
            EXPECT_TRUE(jobs.insert(job_of(plan)).second) << job_of(plan);
        }
    }
    for (std::uint64_t i = 0; i < space.size(); ++i) {
        std::string rule, why, field;
        const TrainingPlan plan = space.plan(space.at(i), rule, why);
        same += rule == "same" ? 1 : 0;
        // without a pipeline any schedule is the same job; 1f1b stands for all there
        TrainingPlan ran = plan;
        if (plan.layout.pp == 1)
            ran.layout.schedule = Schedule::one_f_one_b;
        if (plan.layout.world() == 16 && check_layout(s.model, ran, 16, field).empty()) {
            EXPECT_TRUE(jobs.contains(job_of(ran))) << job_of(ran);
        }
    }
    EXPECT_GT(same, space.size() / 2);
    EXPECT_GT(jobs.size(), 100u);
}

TEST(Space, ChunksWithoutAScheduleForThemAreToldAsSuch) {
    PlanRequest request = request_of(kDense);
    request.source.overrides = {"plan={tp: 8, pp: 2, vpp: [3], schedule: [1f1b], zero: 1}"};
    const PlanResult plan = make_plan(request);
    EXPECT_FALSE(plan.found.removed.contains("same"));
    EXPECT_NE(nothing_left(plan).find("vpp 3 needs schedule: interleaved"), std::string::npos) << nothing_left(plan);
    request.source.overrides = {"plan={tp: 8, pp: 2, vpp: [1, 3], schedule: [1f1b], zero: 1}"};
    EXPECT_TRUE(make_plan(request).found.removed.contains("same")) << "vpp 1 is the job";
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

// What a scenario says of its layers is its own layout's: kept there, and cleared where others cut them evenly.
TEST(Search, StatedLayersAreOfTheStatedLayout) {
    const std::vector<std::string> stated = {"training.layout={tp: 8, sp: true, pp: 2, zero: 1, stage_layers: [5, 7]}",
                                             "training.recompute=none"};
    PlanRequest request = request_of(kDense);
    request.source.overrides = stated;
    request.source.overrides.emplace_back("plan={tp: [8], pp: [1, 2, 4], vpp: [1], micro_batch: [1], zero: [1]}");
    const PlanResult plan = make_plan(request);
    ASSERT_TRUE(plan.yours && plan.yours->evaluation.ran());
    EXPECT_EQ(plan.yours->plan.layout.stage_layers, (std::vector<std::int64_t>{5, 7}));
    std::size_t own = 0, even = 0;
    for (const PlanRow& row : plan.rows()) {
        const std::vector<std::int64_t>& layers = row.plan.layout.stage_layers;
        own += row.plan.layout.pp == 2 && layers == std::vector<std::int64_t>{5, 7} ? 1 : 0;
        even += row.plan.layout.pp != 2 && layers.empty() ? 1 : 0;
        if (row.plan.layout.pp == 2 && row.plan.recompute == Recompute::none) {
            EXPECT_EQ(row.evaluation.step.ps, plan.yours->evaluation.step.ps);
        }
        const std::vector<std::string> set = plan_overrides(plan, row.cluster, row.plan);
        EXPECT_EQ(forecast(parse_scenario(kDense, "plan.yaml", set)).step.ps, row.evaluation.step.ps);
    }
    EXPECT_EQ(own + even, plan.rows().size());
    EXPECT_GT(own, 0u);
    EXPECT_GT(even, 0u);
    EXPECT_FALSE(plan.yours->change.empty()) << "found in the space, with neighbours";
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

// Nothing is answered that was not asked: a key that a row says itself, or that changes no step, would print +0.0 %.
TEST(Plan, WhatIfsThatCannotBeAskedAreRefusedBeforeTheSearch) {
    PlanRequest request = request_of(kLong);
    request.source.overrides = {"plan.nic=[100 Gb/s, 400 Gb/s]"};
    std::uint64_t told = 0;
    request.search.progress = [&](const SearchProgress&) { ++told; };
    const auto refusal = [&](const std::string& text) {
        request.what_ifs = {text};
        try {
            make_plan(request);
        } catch (const ScenarioError& error) {
            return std::string(error.what());
        }
        return std::string("not refused");
    };
    for (const char* text :
         {"training.layout.tp 1 -> 2", "training.sequence -> 8192 tokens", "training.global_batch -> 64 sequences",
          "training.overlap.grad_reduce -> false", "comm.compression.gradients -> fp8", "plan.top 10 -> 3",
          "plan.tp -> [1]", "expect.mfu -> [0.1, 0.2]", "name long -> short", "seed 1 -> 2", "extends -> x.yaml",
          "faults.burst_cv -> 2", "run.spares -> 2"})
        EXPECT_NE(refusal(text).find("cannot be asked: "), std::string::npos) << text << ": " << refusal(text);
    EXPECT_NE(refusal("training.layout.tp 1 -> 2").find("vary it under `plan:`"), std::string::npos);
    // what only reading the changed scenario tells, of any cluster
    for (const char* text : {"nic -> fast", "cluster.node.gpu.hbm -> 0 TB/s", "cluster.nodes 2 -> -1",
                             "nic 200 -> 50 Gb/s", "price 2 EUR/GPU-h -> 3 USD/GPU-h"})
        EXPECT_NE(refusal(text), "not refused") << text;
    EXPECT_EQ(told, 0u) << "a search began";
    request.what_ifs = {"nic 400 -> 200 Gb/s", "training.software.p2p_overlap -> false"};
    const PlanResult plan = make_plan(request);
    EXPECT_GT(told, 0u);
    ASSERT_EQ(plan.what_ifs.size(), 2u);
    EXPECT_EQ(plan.what_ifs[0].skipped, std::vector<std::uint32_t>{0}) << "that cluster has 100 Gb/s";
    for (const auto& [row, evaluation] : plan.what_ifs[0].rows)
        EXPECT_EQ(plan.rows()[row].cluster, 1u);
    EXPECT_TRUE(plan.what_ifs[1].skipped.empty());
}

// The single change that helps most is one that the conditions allow; a schedule brings the chunks it needs.
TEST(Plan, TheChangeThatHelpsMeetsTheConditions) {
    PlanRequest request = request_of(kDense);
    request.source.overrides = {"training.layout={tp: 8, sp: true, pp: 2, zero: 1}", "training.recompute=none"};
    const PlanResult free = make_plan(request);
    ASSERT_TRUE(free.yours && free.yours->evaluation.ran());
    ASSERT_TRUE(free.yours->change.starts_with("tp 8 -> ")) << free.yours->change;
    request.where = {"tp = 8"};
    const PlanResult narrow = make_plan(request);
    ASSERT_FALSE(narrow.yours->change.empty());
    EXPECT_FALSE(narrow.yours->change.starts_with("tp ")) << narrow.yours->change;
    EXPECT_LT(narrow.yours->faster, free.yours->faster);
    request.where = {fmt::format("step >= {}", narrow.yours->figures.step_s)};
    EXPECT_EQ(make_plan(request).yours->change, "") << "conditions on what a run tells count too";
    request.where.clear();
    request.source.overrides = {"training.layout={tp: 1, pp: 4, zero: 1}", "training.global_batch=32 sequences",
                                "plan={tp: 1, pp: 4, vpp: [1, 3], micro_batch: 1, zero: 1, recompute: none}"};
    EXPECT_EQ(make_plan(request).yours->change, "schedule 1f1b -> interleaved, vpp 1 -> 3");
}

TEST(Plan, PricesSayWhereTheyComeFrom) {
    PlanRequest request = request_of(kDense);
    request.source.overrides = {"plan={node: [hgx-h100, hgx-a100-80g], tp: 8, pp: 1, zero: 1, micro_batch: 1}"};
    EXPECT_EQ(prices_text(make_plan(request)), "");
    request.source.overrides.emplace_back("plan.price.h100=2.50 EUR/GPU-h");
    const PlanResult part = make_plan(request);
    EXPECT_FALSE(has_price(part));
    EXPECT_EQ(prices_text(part), "a GPU-hour: H100-SXM-80G 2.50 EUR (plan.price.h100), A100-SXM-80G without a price");
    request.source.overrides.emplace_back("run.price=1.25 EUR/GPU-h");
    const PlanResult both = make_plan(request);
    EXPECT_TRUE(has_price(both));
    EXPECT_EQ(prices_text(both),
              "a GPU-hour: H100-SXM-80G 2.50 EUR (plan.price.h100), A100-SXM-80G 1.25 EUR (run.price)");
    for (const char* wrong : {"2.50 per hour", "2.50x", "cheap", "-1", "2.50 USD/GPU-h"}) {
        PlanRequest bad = request;
        bad.source.overrides.push_back(std::string("plan.price.a100=") + wrong);
        EXPECT_THROW(make_plan(bad), ScenarioError) << wrong;
    }
}

TEST(Plan, SaysWhyTheRestLostAndWhatTheWinnerHangsOn) {
    const PlanResult plan = make_plan(request_of(kLong));
    ASSERT_FALSE(plan.classes.empty());
    std::set<Dimension> dimensions;
    std::size_t cut = 0;
    for (const ClassLoss& c : plan.classes) {
        dimensions.insert(c.dimension);
        EXPECT_TRUE(c.best || c.at_least > 0 || !c.removed.empty())
            << dimension_name(c.dimension) << " " << plan.space->value_text(c.dimension, c.value);
        EXPECT_GT(c.layouts, 0u);
        if (c.best) {
            EXPECT_GE(c.slower, 0);
            EXPECT_EQ(plan.rows()[*c.best].choice[static_cast<std::size_t>(c.dimension)], c.value);
        }
        cut += c.at_least > 0 ? 1 : 0;
    }
    EXPECT_GT(cut, 0u) << "layouts that the bound cut say by how much";
    EXPECT_TRUE(dimensions.contains(Dimension::cp));
    ASSERT_GE(plan.sensitivity.size(), 5u);
    for (const Sensitivity& s : plan.sensitivity) {
        EXPECT_GE(s.low_change, -1e-3) << s.what;
        EXPECT_LE(s.high_change, 1e-3) << s.what;
    }
}

}  // namespace
}  // namespace fabricast::plan
