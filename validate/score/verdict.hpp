// Healthy or sick: a measured curve against what its machine carries when it is set up right.
//
//   share   measured / expected bus bandwidth at the largest sizes (median of the last three from 1 MiB on)
// expected: prediction with the constants of the network class the machine should run on. An all-reduce over 2 nodes on
//   trees passes each adapter once only and may double the line rate; a ring at the line rate is healthy too, so there
//   the expectation is at most line rate x efficiency.
//   healthy  share 0.70 or more and nothing else says otherwise
//   sick     below that, or NCCL itself says so; `kind` is the likeliest cause, `also` what else shows
//   unclear  the share is low but the line rate was not told, or only latency was measured
// Causes, first that holds:
//   sockets_fallback         NCCL's lines or the words say sockets where the machine has RDMA; or, where nothing is said,
//                            small messages take 1.6 times as long and large ones run below 0.45
//   wrong_transport          another transport than the machine's was used
//   no_gpudirect             NCCL's lines show network connections without GPUDirect RDMA
//   congestion_or_ecmp       3 nodes and more: a ring does not lose bandwidth with nodes, sharing of links does
//   slow_nic_or_link         2 nodes, or inside one node
// and `falling_at_large_sizes` beside them when the curve falls. Healthy runs on one node are `single_node_ok`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "validate/ingest/health.hpp"
#include "validate/score/run_case.hpp"

namespace fabricast {

enum class Health { healthy, sick, unclear };
enum class Cause {
    none,
    single_node_ok,
    sockets_fallback,
    wrong_transport,
    no_gpudirect,
    congestion_or_ecmp,
    slow_nic_or_link,
    falling_at_large_sizes,
    failed,
    count
};
std::string_view name_of(Health health);
std::string_view name_of(Cause cause);

struct Verdict {
    Health health = Health::unclear;
    Cause cause = Cause::none;
    std::vector<Cause> also;
    double share = 0;       ///< measured / expected at large sizes; 0: not measured
    double line_share = 0;  ///< measured / line rate of the adapters of a node; 0: one node
    std::string sentence;
};

/// What was measured and expected at one size.
struct Compared {
    std::int64_t bytes = 0;
    double measured_us = 0, expected_us = 0;
    double measured_busbw = 0, expected_busbw = 0;  ///< GB/s
};

/// points: in order of size, not empty.
/// efficiency: of the adapters, for the ring's ceiling.
Verdict judge_health(const RunCase& run, const std::vector<Compared>& points, double efficiency);

}  // namespace fabricast
