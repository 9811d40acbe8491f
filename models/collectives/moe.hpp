// Expert parallelism: what dispatch and combine put on links, token by token.
//
// R ranks hold the experts, g a node, N nodes. A token goes to k experts, drawn evenly over ranks (or over the M nodes that
// group-limited routing allows a token):
//   distinct ranks a token   D = R' (1 - (1 - 1/R')^k), R' = R, or the ranks of M nodes
//   distinct nodes a token   N' (1 - (1 - 1/N')^k), N' = min(N, M)
// Plain: an all-to-all of tokens x k x row bytes (every copy travels), by the point-to-point engine (exchange.hpp).
// Node-aware (DeepEP): a token crosses the network once for each other node, on its own rail, and is forwarded over
// NVLink to the distinct ranks there. Thread blocks copy at their own pace, so
//   time = launch + max(NVLink bytes / (share x link), NIC bytes / NIC, tokens (a + b D + copied bytes / rate) / SMs)
// Dispatch moves 1 byte an element in FP8 (scales of 4 bytes each 128 elements are left out, as the source does), 2 in
// BF16; combine 2. Several nodes cost a thread block more for each token (factor `between`).
//
// Source: constants fitted on measured DeepEP tables (aiconfigurator 095f58a, 1157 one-node rows, hidden 2048 .. 7168,
// 256 .. 131072 tokens, 12 and 24 SMs; `between` on 2 and 4 nodes of H100). Not modelled: the notify phase, low-latency
// kernels, uneven routing (give the hottest rank's share to exchange.hpp).
#pragma once

#include "models/collectives/comm_model.hpp"

namespace fabricast {

double distinct_bins(double bins, double draws);  ///< expected distinct of `bins` after `draws` even draws

struct MoeTraffic {
    std::int64_t tokens = 0;  ///< of one rank
    std::int64_t hidden = 0;
    double top_k = 0;
    int bytes_an_element = 2;
    bool combine = false;             ///< results come back; else tokens go out
    std::uint32_t nodes_a_token = 0;  ///< group-limited routing; 0 = no limit
    bool operator==(const MoeTraffic&) const = default;
};

/// Every copy of every token by the ordinary all-to-all.
PlannedExchange plain_moe(const CommModel& comm, const CommGroup& group, const MoeTraffic& traffic);

/// Once per node, forwarded over NVLink. sms: thread blocks the library may use, > 0. Throws std::invalid_argument on a
/// cluster without NVLink and where nodes hold different numbers of members.
PlannedExchange node_aware_moe(const Cluster& cluster, const CommFacts& facts, const CommGroup& group,
                               const MoeTraffic& traffic, int sms);

}  // namespace fabricast
