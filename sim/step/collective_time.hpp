// One collective alone on a cluster, timed by the engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/collectives/comm_model.hpp"
#include "topologies/graph/cluster.hpp"

namespace fabricast {

struct CollectiveRequest {
    Collective kind = Collective::all_reduce;
    std::vector<std::uint32_t> members;  ///< ranks, that is GPUs of the cluster
    double imbalance = 1;                ///< all-to-all: rank 0 receives so many times the mean
    bool hierarchical = false;           ///< composed: in the node, between nodes, in the node
};

struct CollectiveTime {
    Picoseconds time = 0;
    CollectivePlan plan;  ///< empty for hierarchical ones, which are several
    std::string limit;    ///< "latency", "channels", "nothing" for one rank, or the link that sets the rate
    double alg_bytes_per_s = 0, bus_bytes_per_s = 0;  ///< as nccl-tests defines them; 0 when it takes no time
};

/// bytes as nccl-tests counts them. Throws std::invalid_argument as CommModel does; std::logic_error when the engine does
/// not end the program (our bug).
CollectiveTime time_collective(const Cluster& cluster, const CommModel& comm, const CollectiveRequest& request,
                               Bytes bytes);

/// The same collective taken apart into its steps (models/parallel/chunk_steps.hpp, message_steps.hpp), for comparison with
/// the fluid time: rings and chains chunk by chunk, exchanges message by message. Empty for trees, NVLS, PAT, CollNet,
/// composed ones, and for more than kMostRanksInSteps ranks.
std::optional<Picoseconds> time_in_steps(const Cluster& cluster, const CommModel& comm, GpuGeneration generation,
                                         const CollectiveRequest& request, Bytes bytes);
inline constexpr std::size_t kMostRanksInSteps = 64;
/// The two agree within this share from this size on (tests/sim/step/chunk_steps_test.cpp, collectives_test.cpp).
inline constexpr double kStepsBound = .05;
inline constexpr Bytes kStepsBoundFrom = Bytes{1} << 20;

}  // namespace fabricast
