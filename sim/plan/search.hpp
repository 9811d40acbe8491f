// The search: all layouts of a space by number, rules and memory first, then a lower bound, then the step itself.
//
//   every index   rules of the space and conditions known beforehand; static memory; lower bound on the time of a token
//   seed set      of every cluster the kSeeds layouts of the lowest bounds (ties by index), evaluated
//   rounds        of kRound layouts in the order of their bounds; the incumbents, the `top` best of the cluster by time per
//                 token that meet all conditions, change between rounds only; what is bounded above the last of them is cut
//
// Every cluster keeps incumbents of its own, so that its best, and with them the front of cost against days, is never cut.
// Nothing depends on threads. A shard i of n, i = 0 .. n-1, evaluates the seed set and its indices (shard_of) and cuts
// with the seed set alone: the union of all shards is what one shard of one gives. A search in rounds evaluates fewer of the
// same, with the same ranking: from a memory that holds what all shards evaluated it needs no run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/evaluate.hpp"
#include "sim/plan/space.hpp"

namespace fabricast::plan {

struct SearchProgress {
    std::uint64_t looked_at = 0, size = 0;            ///< layouts
    std::size_t evaluated = 0, known = 0, ahead = 0;  ///< of those not removed; ahead: about so many more
};

struct SearchOptions {
    std::size_t top = 10;
    std::uint32_t shard = 0, shards = 0;                            ///< shards 0: in rounds
    bool prune = true;                                              ///< false: runs everything that fits, for tests
    unsigned threads = 0;                                           ///< 0: as many as there are
    std::function<void(const SearchProgress&)> progress = nullptr;  ///< from any thread
    // A memory of earlier evaluations (store.hpp). Both are called from any thread.
    std::function<bool(std::uint64_t index, Evaluation&)> known =
        nullptr;  ///< true: evaluated before, this is the result
    std::function<void(std::uint64_t index, const Evaluation&)> finished = nullptr;  ///< evaluated just now
    bool only_known = false;  ///< nothing is run: what is not known is told in SearchResult::missing
    std::uint32_t parts = 0;  ///< with only_known: missing is all that so many shards had to evaluate
};

/// A layout that ran.
struct PlanRow {
    std::uint64_t index = 0;
    std::uint32_t cluster = 0;
    Choice choice = {};
    TrainingPlan plan;
    Evaluation evaluation;
    Figures figures;
    double bound_s = 0;
    bool meets = true;  ///< all conditions
    double per_token() const { return evaluation.step_s() / evaluation.step.tokens; }
};

/// Layouts that a rule removed, and one of them as an example.
struct Removed {
    std::uint64_t count = 0;
    std::string example;
};

/// What became of the layouts with one value of a dimension.
struct ClassFate {
    std::uint64_t layouts = 0, ran = 0, out_of_memory = 0, cut = 0;
    double lowest_bound = 0;  ///< seconds a token, of those cut; 0: none
    std::map<std::string, std::uint64_t> removed;
};

struct SearchResult {
    std::uint64_t size = 0, looked_at = 0;   ///< looked_at: by this shard
    std::map<std::string, Removed> removed;  ///< by rule; conditions as "where tp <= 8", memory as "memory"
    std::uint64_t cut = 0;                   ///< by the lower bound
    std::uint64_t failed = 0;                ///< fit and did not run
    std::uint64_t events = 0;
    std::vector<PlanRow> rows;  ///< that ran: by cluster, time per token, index
    std::vector<std::array<std::vector<ClassFate>, kDimensions>> classes;  ///< [cluster][dimension][value]
    std::string contradiction;           ///< conditions that leave nothing together; empty otherwise
    std::uint64_t known = 0;             ///< evaluations that were not run again
    std::vector<std::uint64_t> missing;  ///< indices, ascending; with only_known
};

/// The shard that an index belongs to: mixed, as neighbours are alike and their costs go with the dimensions.
std::uint32_t shard_of(std::uint64_t index, std::uint32_t shards);

/// Of a layout of the space: from memory (`known` is set then), or run and handed on; empty where nothing is to be run.
std::optional<Evaluation> evaluate_once(const SearchOptions& options, std::uint64_t index, const PlanCluster& cluster,
                                        const TrainingPlan& plan, bool& known);

SearchResult search(const PlanSpace& space, const std::vector<std::unique_ptr<PlanCluster>>& clusters,
                    const std::vector<Condition>& conditions, const SearchOptions& options);

}  // namespace fabricast::plan
