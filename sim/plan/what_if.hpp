// "nic 400 -> 200 Gb/s": one figure of the machine changed, and layouts priced again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/plan/evaluate.hpp"

namespace fabricast::plan {

/// NAME FROM -> TO [UNIT]: NAME is nic, oversubscription, nodes, price or a key of the scenario that acts on a step and that
/// rows of a ranking do not say themselves: none of training (but its software), plan, expect. FROM may be left out, else it
/// must be what the scenario has where that can be told. Throws ScenarioError.
struct Change {
    explicit Change(const std::string& text);
    std::string text, key, from, to;  ///< key "cluster.fabric.nic"; values with their unit
    std::string override_text() const { return key + "=" + to; }
    /// What the cluster has where that is not `from`: "100 Gb/s"; else empty. Throws ScenarioError for a `from` that is none.
    std::string other(const PlanCluster& cluster) const;
};

/// The cluster with the change.
std::unique_ptr<PlanCluster> changed(const PlanSource& source, const PlanSpec& spec, const PlanCluster& cluster,
                                     const Change& change);

/// All of them; null: the cluster has something else than the change's `from`. Throws ScenarioError where all have.
std::vector<std::unique_ptr<PlanCluster>> changed_clusters(const PlanSource& source, const PlanSpec& spec,
                                                           const std::vector<std::unique_ptr<PlanCluster>>& clusters,
                                                           const Change& change);

/// One figure of the machine lower and higher.
struct Swing {
    std::string what, low, high;
    std::unique_ptr<PlanCluster> with_low, with_high;  ///< null: does not apply
};
/// Adapters at half and double rate, oversubscription doubled, NVLink, memory bandwidth and matrix products 20 % slower and
/// faster, GPUs all alike and twice as unequal: round figures, no spread of a machine's own.
std::vector<Swing> swings(const PlanCluster& cluster);

}  // namespace fabricast::plan
