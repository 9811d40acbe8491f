// What the layouts of one cluster share: the scenario with this cluster, its models of compute and communication, the links.
// Built once; evaluations only read it, from any thread, but for prices of kernels that they share.
//
// A plan's clusters are the product of gpus, node, nic, oversubscription and precision (sim/scenario/plan_spec.hpp); each is
// the scenario file read again with these keys set, so that presets and checks are those of `run`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/collectives/comm_model.hpp"
#include "models/compute/compute_model.hpp"
#include "models/parallel/cost_book.hpp"
#include "sim/scenario/scenario.hpp"
#include "topologies/graph/cluster.hpp"

namespace fabricast::plan {

class PlanCluster {
public:
    PlanCluster(Scenario scenario, std::vector<std::string> changes);

    const Scenario& scenario() const { return scenario_; }
    const ComputeModel& compute() const { return compute_; }
    const Cluster& cluster() const { return cluster_; }
    const CommModel& comm() const { return *comm_; }
    KernelPrices& prices() const { return *prices_; }  ///< filled by evaluations; they change no result
    std::int64_t gpus() const { return std::int64_t{scenario_.nodes} * scenario_.node.gpus; }
    std::int64_t nvlink_domain() const;                            ///< GPUs that reach each other without the network
    double price() const { return scenario_.price_per_gpu_hour; }  ///< of a GPU-hour; 0: not known
    const std::vector<std::string>& changes() const {
        return changes_;
    }  ///< "cluster.nodes=32": overrides that make it

private:
    Scenario scenario_;
    std::vector<std::string> changes_;
    ComputeModel compute_;
    Cluster cluster_;
    std::unique_ptr<CommModel> comm_;
    std::unique_ptr<KernelPrices> prices_ = std::make_unique<KernelPrices>();
};

/// How the scenario was read: to read it again.
struct PlanSource {
    std::string file, text;  ///< text: of a scenario without a file, for tests
    std::vector<std::string> overrides;
    std::shared_ptr<const Calibration> calibration;

    Scenario load(const std::vector<std::string>& more) const;
};

/// One cluster each, in the order gpus, node, nic, oversubscription, precision (the last fastest). Throws ScenarioError.
std::vector<std::unique_ptr<PlanCluster>> plan_clusters(const PlanSource& source, const PlanSpec& spec);

struct Price {
    double value = 0;  ///< of a GPU-hour; 0: none
    std::string from;  ///< "plan.price.h100", "run.price"; empty: none
};
/// By the plan's list: the longest name that the GPU or the server contains; else the run's.
Price price_of(const Scenario& scenario, const PlanSpec& spec);

}  // namespace fabricast::plan
