// A plan: the search of a scenario's layouts, and what a reader asks of its winners.
//
//   ranking      rows that meet all conditions, by days or cost of the run's tokens (10^12 where it states none)
//   front        rows that no other beats in both cost (GPU-hours where there is no price) and days
//   classes      for every value of a dimension that the winner has not: its best row and what it loses by, or why it has none
//   sensitivity  the winner priced again with one figure of the machine lower and higher
//   what-ifs     the ranking priced again with one key changed: "nic 400 -> 200 Gb/s"
//   yours        the layout the scenario states, and the best of the layouts that differ from it in one dimension (with the
//                dp that follows; schedule and vpp change together) and meet the conditions
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/plan/search.hpp"

namespace fabricast::plan {

struct PlanRequest {
    PlanSource source;
    std::vector<std::string> where, what_ifs;  ///< besides the scenario's own conditions
    SearchOptions search;                      ///< top is the scenario's
    std::string store;  ///< a file that remembers evaluations (store.hpp); of a shard its own. Empty: none
};

/// A value of a dimension that the winner has not.
struct ClassLoss {
    Dimension dimension = Dimension::tp;
    std::uint32_t value = 0;
    std::uint64_t layouts = 0;
    std::optional<std::size_t> best;  ///< index into rows
    double slower = 0;                ///< time per token of `best` over the winner's, minus 1
    Account cause = Account::count;   ///< that grew most, and by which share of the winner's step
    double cause_share = 0;
    double at_least = 0;  ///< without a run: slower by so much or more, by its lower bound; 0: not known
    std::string removed;  ///< without either: the rule that removed most, and how many
    std::uint64_t by_rule = 0;
};

struct Sensitivity {
    std::string what, low, high;
    double low_change = 0, high_change = 0;  ///< of the step time, as a share; 0 where it does not apply
};

struct WhatIf {
    std::string text;
    std::vector<std::uint32_t> skipped;  ///< clusters that have something else than what the text changes: not asked
    std::vector<std::pair<std::size_t, Evaluation>> rows;  ///< index into rows, in the new order
    std::vector<Figures> figures;
};

struct Yours {
    std::uint32_t cluster = 0;
    TrainingPlan plan;
    Evaluation evaluation;
    Figures figures;
    std::string refused;  ///< the layout does not fit the cluster; nothing else is filled
    bool listed = false;  ///< it is in the space; else no change of it was tried
    std::string change;   ///< "tp 8 -> 4": the single change that helps most; empty: none does
    double faster = 0;    ///< by which it is faster, as a share of the time per token
};

struct PlanResult {
    std::string name;
    PlanSource source;
    PlanSpec spec;
    std::vector<std::unique_ptr<PlanCluster>> clusters;
    std::unique_ptr<PlanSpace> space;
    SearchResult found;
    std::vector<std::size_t> ranking, front;  ///< indices into found.rows
    std::vector<ClassLoss> classes;
    std::vector<Sensitivity> sensitivity;
    std::vector<WhatIf> what_ifs;
    std::optional<Yours> yours;

    const std::vector<PlanRow>& rows() const { return found.rows; }
};

/// All clusters have a price, or none counts.
bool has_price(const PlanResult& result);

/// Throws ScenarioError for conditions, what-ifs and clusters that cannot be.
PlanResult make_plan(const PlanRequest& request);

/// Layouts of the space; checks the request as make_plan does before it searches.
std::uint64_t layouts_of(const PlanRequest& request);

}  // namespace fabricast::plan
