// One collective alone on a cluster, timed by the engine.
#pragma once

#include <cstdint>
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

}  // namespace fabricast
