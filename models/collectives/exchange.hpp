// Collectives made of sends and receives: all-to-all (equal or unequal), send-recv, gather, scatter.
//
// NCCL runs them on its point-to-point engine: in round k rank r sends to r + d_k and receives from r - d_k, some
// channels a peer. What loads the links is the sum over pairs, so pairs of one class are one activity whose link
// coefficients are bytes on the link / bytes on its busiest link:
//   local   both on one node: NVLink (or PCIe)
//   rail    other node, same rail: source NIC, fabric, destination NIC
//   cross   other node and rail. With PXN an NVLink hop to the GPU of the source's node that sits on the destination's
//           rail, then as rail; without PXN (or without a member there) the NIC of the source's own rail and the spine
// Pairs whose slowest link is the slowest of their class (half a NIC, say) are an activity of their own. Balanced
// all-to-all of S bytes a rank over n ranks, g a node: a NIC carries S (n - g) / n, NVLink S (g - 1) / n locally and
// S (n - g) / n x (g - 1) / g forwarded. The exchange ends with its slowest activity.
//
// Latency (passes first, holds no link): launch and hops, one more posting for each further peer, on one NVLink node the
// ramp to full rate and a rank's copy to itself; tables in exchange.cpp. Messages of at most 16 KiB to peers of the own
// node run with LL (two wire bytes a byte). A rank has 32 channels, a pair over the network 2 (1 where 2 x ranks pass 4 x 32), a pair on NVLink 32 / n
// (n rounded up to a power of two), doubled while a channel's part is above 16 MiB.
//
// Not modelled: order of rounds (the sum over links is the same), incast at a receiver beyond its link rate, NCCL 2.29.2 and
// later, which keep two channels a network peer at any size.
// Source: NCCL 2.28.9 src/enqueue.cc, src/graph/paths.cc; fits on one-node tables (aiconfigurator 095f58a).
#pragma once

#include <cstdint>
#include <vector>

#include "models/collectives/comm_model.hpp"

namespace fabricast {

/// Who sends how much to whom, ranks numbered as CommGroup::members.
struct PairTraffic {
    Collective kind = Collective::all_to_all;
    std::uint32_t ranks = 0;
    std::vector<std::uint32_t>
        units;                ///< [from * ranks + to], a share of `size`; empty: one for every pair and to itself
    std::uint64_t whole = 1;  ///< units that make `size`
    Bytes size = 0;

    std::uint32_t at(std::uint32_t from, std::uint32_t to) const {
        return units.empty() ? 1 : units[std::size_t{from} * ranks + to];
    }
};

/// The traffic of a point-to-point collective, size as in nccl-tests. send_recv: every rank to the next; gather and
/// scatter: root is rank 0. Throws std::invalid_argument for other kinds.
PairTraffic traffic_of(Collective kind, std::uint32_t ranks, Bytes size);

/// All-to-all of unequal sizes. bytes[from][to]; each row has as many entries as there are rows. Throws
/// std::invalid_argument for a matrix that is not square or a negative size.
PairTraffic all_to_all_v(const std::vector<std::vector<Bytes>>& bytes);

/// All-to-all where rank 0 receives `imbalance` times the mean and the others share the rest; size is what a rank
/// sends. 1 <= imbalance <= ranks, otherwise std::invalid_argument.
PairTraffic imbalanced_all_to_all(std::uint32_t ranks, Bytes size, double imbalance);

/// What the channels of one pair move, GB/s; `local_nvlink`: both behind one NVSwitch.
std::uint32_t pair_channels(bool local_nvlink, std::uint32_t ranks, Bytes message);
double pair_channel_gb_per_s(bool local_nvlink, GpuGeneration generation);

/// Wire bytes of `payload` of an exchange whose largest message is `largest`: LL doubles what stays in a node, NVLink to
/// many peers at once reaches a share of its rate (counted as more bytes).
Bytes exchange_wire_bytes(GpuGeneration generation, bool nvlink, const PairTraffic& traffic, Bytes largest,
                          Bytes payload, bool local);

}  // namespace fabricast
