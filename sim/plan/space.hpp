// The layouts of a plan, by number.
//
// A choice takes one value of every dimension; index = mixed radix over the dimensions, the cluster slowest. Nothing is kept
// per layout: at(index) says what it is, so that shards and stores name layouts by number.
//
// Defaults of dimensions that the scenario does not name (values without a source are ours, and `plan:` overrides them):
//   tp            powers of two up to the GPUs that an NVSwitch or a server joins
//   cp            1; from 16384 tokens on powers of two up to 16
//   pp            up to 64: those that cut the layers evenly, or with one layer less at both ends (as Llama 3's 126 layers)
//   vpp           1, 2, 3, 4, 6, 8        ep  powers of two that divide the experts
//   micro_batch   1, 2, 4, 8              zero  1, 3         recompute  none, selective, full
//   schedule      1f1b, interleaved       overlap  both      sp  true  cp_exchange, order, global_batch, the scenario's
//
// Where the scenario states a layout its values are added to these defaults, and layouts with its pp and vpp cut the layers as
// its stage_layers say.
//
// A choice is left out by the first rule it breaks, in this order: `same` (another choice is the same job), `gpus`, what
// check_layout says by its field, the conditions of `where` on what is known without a run.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/plan/plan_cluster.hpp"

namespace fabricast::plan {

enum class Dimension : std::uint8_t {
    cluster,
    tp,
    sp,
    cp,
    context,
    ep,
    pp,
    vpp,
    schedule,
    global_batch,
    micro_batch,
    zero,
    shard_group,
    recompute,
    overlap,
    order,
    count
};
inline constexpr std::size_t kDimensions = static_cast<std::size_t>(Dimension::count);
std::string_view dimension_name(Dimension dimension);  ///< "tp", "micro-batch"

/// Place of a value in its dimension.
using Choice = std::array<std::uint32_t, kDimensions>;

class PlanSpace {
public:
    /// Keeps a reference to the clusters; at least one.
    PlanSpace(const PlanSpec& spec, const std::vector<std::unique_ptr<PlanCluster>>& clusters);

    std::uint64_t size() const { return size_; }
    Choice at(std::uint64_t index) const;
    std::uint64_t index_of(const Choice& choice) const;
    std::size_t values(Dimension dimension) const { return counts_[static_cast<std::size_t>(dimension)]; }
    std::string value_text(Dimension dimension, std::uint32_t value) const;  ///< "8", "selective"
    const PlanCluster& cluster(const Choice& choice) const { return *clusters_[choice[0]]; }

    /// The layout of a choice, with dp = GPUs / (tp cp pp). `rule` names what it breaks ("same", "gpus", a scenario key),
    /// `why` says it; both empty: a layout that can run, if it fits in memory.
    TrainingPlan plan(const Choice& choice, std::string& rule, std::string& why) const;

    /// The choice under which the job is listed where values of `choice` mean nothing to it: without tensor or context
    /// parallelism, pipeline or copies (rule "same") these take their first, and dp follows.
    Choice settled(const Choice& choice) const;

    /// The choice that a plan is, where it is in the space.
    bool find(const TrainingPlan& plan, std::uint32_t cluster, Choice& choice) const;

private:
    TrainingPlan raw(const Choice& choice) const;
    void add_own(const TrainingPlan& plan, const PlanSpec& spec);

    const std::vector<std::unique_ptr<PlanCluster>>& clusters_;
    std::vector<std::int64_t> tp_, cp_, pp_, vpp_, ep_, micro_, global_, zero_, shard_;
    std::vector<bool> sp_;
    std::vector<Schedule> schedule_;
    std::vector<Recompute> recompute_;
    std::vector<std::string> overlap_, order_;
    std::vector<ContextExchange> context_;
    std::array<std::uint32_t, kDimensions> counts_ = {};
    std::uint32_t plain_schedule_ = 0;  ///< of layouts without a pipeline
    std::uint32_t one_chunk_ = 0;       ///< place of vpp 1; vpp_.size(): it is not there
    std::uint64_t size_ = 0;
};

/// Layers by chunk, where nothing is stated and they cannot be cut evenly but with one less at both ends can; else empty.
std::vector<std::int64_t> light_ends(std::int64_t layers, std::int64_t chunks);

}  // namespace fabricast::plan
