// A plan in parts: shard i of n, i = 0 .. n-1, keeps its evaluations in a store of its own, and all stores together are what
// one process would have. No two shards talk to each other; each may be stopped and begun again at any time.
#pragma once

#include "sim/plan/plan.hpp"
#include "sim/plan/store.hpp"

namespace fabricast::plan {

/// "plan.db.3": where shard 3 of plan.db is.
std::string shard_store(const std::string& store, std::uint32_t shard);

/// A request as a store keeps it, and back; files by their full paths. The calibration is read again.
Facts question_of(const PlanRequest& request);
PlanRequest request_of(const Facts& question);

/// Facts of the request's store, in order; `search` is the request's with its top.
Facts store_facts(const PlanSource& source, const SearchOptions& search, const std::vector<std::string>& where,
                  const std::vector<std::unique_ptr<PlanCluster>>& clusters, const PlanSpace& space);

struct Merged {
    PlanRequest request;  ///< what the shards were asked, to be asked of the whole store without running anything
    std::uint32_t shards = 0;
    std::vector<bool> there;  ///< by shard: it has a store
};
/// Takes what the shards have into `store`. files empty: all that are beside it. Throws ScenarioError for stores that are not
/// shards of one plan, or that are being written.
Merged merge_shards(const std::string& store, std::vector<std::string> files);

/// "shard 3 lacks 14 layouts, shard 17 was not begun and lacks 12"; empty where nothing is missing. `list`: "3,17".
std::string missing_text(const Merged& merged, const std::vector<std::uint64_t>& missing, std::string& list);

}  // namespace fabricast::plan
