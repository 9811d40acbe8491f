// The rows of `fabricast nccl`: one collective alone on the cluster, timed by the engine, size by size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/collectives/comm_model.hpp"
#include "sim/cli/nccl_sizes.hpp"
#include "topologies/graph/cluster.hpp"

namespace fabricast::cli {

struct NcclRow {
    TestedSize size;
    double time_s = 0, latency_s = 0;  ///< latency: the part in which links are idle
    double alg_bytes_per_s = 0, bus_bytes_per_s = 0;
    std::string algorithm, protocol;  ///< "Ring", "LL128"
    int channels = 0;
    std::string limit;  ///< "latency", "channels", or the name of the link that sets the rate
    std::uint64_t events = 0;
};

struct NcclRequest {
    Collective kind = Collective::all_reduce;
    std::vector<std::uint32_t> members;
    double imbalance = 1;  ///< all-to-all: rank 0 receives so many times the mean
    bool hierarchical = false;
};

/// Throws std::invalid_argument as CommModel does; std::logic_error when the engine does not end the program.
NcclRow measure(const Cluster& cluster, const CommModel& comm, const NcclRequest& request, TestedSize size);

}  // namespace fabricast::cli
