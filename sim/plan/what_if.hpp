// "nic 400 -> 200 Gb/s": one figure of the machine changed, and layouts priced again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/plan/evaluate.hpp"

namespace fabricast::plan {

struct PlanRow;

/// NAME FROM -> TO [UNIT]: NAME is nic, oversubscription, nodes, price or a key of the scenario; FROM may be left out, else
/// it must be what the scenario has where that can be told. Throws ScenarioError.
struct Change {
    explicit Change(const std::string& text);
    std::string text, key, from, to;  ///< key "cluster.fabric.nic"; values with their unit
    std::string override_text() const { return key + "=" + to; }
    /// Throws ScenarioError where `from` is not what the cluster has.
    void check(const PlanCluster& cluster) const;
};

/// The cluster with the change.
std::unique_ptr<PlanCluster> changed(const PlanSource& source, const PlanSpec& spec, const PlanCluster& cluster,
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
