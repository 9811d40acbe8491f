// Many lives of one job under different luck, and what they have in common.
//
// Replica i runs with seed hash(seed, i); replicas run in parallel and are kept in order, so results do not depend on the
// number of threads. Quantiles are order statistics: the value of rank ceil(q n) of n.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "models/faults/checkpoint_interval.hpp"
#include "sim/campaign/campaign_spec.hpp"
#include "sim/campaign/replica_result.hpp"
#include "sim/campaign/step_times.hpp"

namespace fabricast::campaign {

struct Quantiles {
    double p10 = 0, p50 = 0, p90 = 0, mean = 0;
};

/// What a checkpoint interval should be for the failures of this job (models/faults/checkpoint_interval.hpp).
struct IntervalAdvice {
    faults::CheckpointCase given;          ///< blocking save, mean time between stops, mean restart
    double interval = 0;                   ///< s, as it is
    double young = 0, daly = 0, best = 0;  ///< s; 0: no saves or no failures
    double ettr = 0, ettr_best = 0;        ///< by the exact formula, at `interval` and at `best`
};

struct CampaignResult {
    std::vector<ReplicaResult> replicas;
    ReplicaResult shown;  ///< the one of median ETTR or asked for, with its incidents and course
    std::uint32_t shown_index = 0;
    IntervalAdvice advice;

    Quantiles of(const std::function<double(const ReplicaResult&)>& figure) const;
    double mean_spent(Spent spent) const;              ///< share of all wall time
    double mean_lost_by(std::size_t component) const;  ///< likewise, of ReplicaResult::lost_by
};

/// Seed of all streams of a replica.
std::uint64_t replica_seed(const CampaignSpec& spec, std::uint32_t index);
/// One replica, without the others.
ReplicaResult run_replica(const CampaignSpec& spec, StepTimes& steps, std::uint32_t index, bool record);

using RunOne = std::function<ReplicaResult(const CampaignSpec&, StepTimes&, std::uint32_t index, bool record)>;
/// spec.phases is not empty and has steps. Throws what the steps' simulation throws. `run` is asked from many threads;
/// `shown`: that replica is shown, not the one of median ETTR.
CampaignResult run_campaign(const CampaignSpec& spec, StepTimes& steps, const RunOne& run = run_replica,
                            std::optional<std::uint32_t> shown = std::nullopt);

IntervalAdvice advise(const CampaignSpec& spec, Nanoseconds step);

}  // namespace fabricast::campaign
