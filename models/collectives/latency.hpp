// Time of a collective in which its links are idle: launch and hops, and filling or draining the pipeline. Both
// go into the latency of a plan, which passes first and holds no link.
//
// Hops: the tuner's latency (with its plateau factor), except
//   ring, one NVLink node   base + hops x hop with base and hop fitted per generation: NCCL's table is one for all
//                           generations and meets the measured tables to 24 % (median), the fit to 3-6 %
//   ring over nodes         see below
//   broadcast, reduce       every rank is passed; the tuner counts one hop. Simple keeps NCCL's figures on one node too: a
//                           chunk of a chain is one slice, those of the fit two
// and NetworkTiming::hop_us for each network hop on the longest path; that is the cost on a tree, rings pay of it what
// NCCL's table has for them (2.7 / 5.0 for LL, 4.0 / 8.5 for LL128, as much for Simple). Messages of Simple take turns on
// an adapter that ranks share: their hop costs hop_us x ranks per adapter. Logs of shared and own adapters meet so: 49, 53
// and 36 us on Slingshot (2, 2, 1 GPUs an adapter), 84 and 78 with TCPX and TCPXO (2, 1), 18, 25, 16 with RoCE (4, 1, 1).
// Rings over nodes (all-reduce, all-gather, reduce-scatter): a rank handles one chunk at a time, and a chunk goes on when
// it has arrived. With s the time of a chunk on a hop when all channels are busy, l the latency of that hop,
//   T = base + max(steps x s_max + l_network, sum over the longest path of (s + l))
// A hop's s is the larger of what its link and what the channel's thread block allow: for LL128 and LL the library's
// ceilings, 10 and 18.35 GB/s a channel (LL128 on A100, H100), which is why hops in a node count like those between nodes
// there, while Simple hides much of them. The plan's latency is what of T the wire (steps x s_max) does not cover.
// Fill:
//   ring, one NVLink node   the last of n steps only stores locally: (S / n) / (channels x channel rate)
//   broadcast, reduce       each rank passes a chunk on: on one node at its channel's own rate (channels that share a link
//                           take turns), over nodes at the pace of the hop with all channels busy. Over NVLink that is
//                           Simple; LL and LL128 carry a flag in every line, and a GPU passes a line on as it arrives
//                           (src/device/prims_ll128.h), so that only the adapter, which sends whole chunks, holds them
//   tree all-reduce         NCCL's size correction c of tree bandwidth is this effect: S / bw (1 / c - 1)
//   trees over nodes, Simple  each of the first 8 chunks of a channel (the slots of a connection) waits
//                           NetworkTiming::slot_us
//   NVLS, one node          loops of heads x channels x chunk; a loop of wire time t takes sqrt(t^2 + r^2), r = 8 us
//                           the round trip through the switch (two hops of 4 us), and one loop more fills the stages
//
// Source: NCCL 2.28.9 src/graph/tuning.cc, src/enqueue.cc (chunks). Fits: NCCL tables measured on one node of A100,
// H100, H200, B200, GB200 (aiconfigurator 095f58a; 2, 4, 8 GPUs, 512 B .. 512 MiB, fp16 and int8), least mean
// relative error. Not modelled: launch skew between ranks (the engine has it), fused groups.
#pragma once

#include "models/collectives/comm_model.hpp"
#include "models/collectives/tuner.hpp"

namespace fabricast {

struct HopLatency {
    double base_us, hop_us;
};
/// LL or Simple over NVLink in one node, fitted; LL128 as in NCCL's table.
HopLatency nvlink_ring_latency(GpuGeneration generation, Protocol p);

struct LatencyInput {
    const TunerInput& tuner;
    Collective kind;
    Algorithm algorithm;
    Protocol protocol;
    Bytes size;
    double channels;          ///< used, as a fraction
    const TunerEntry& entry;  ///< of this algorithm and protocol
    NetworkTiming network = {};
    RingPace pace = {};
    double ranks_per_nic = 1;
    double wire_bytes = 0;  ///< one rank sends, all channels
    double cap = 0;         ///< bytes/s of all channels; 0: none
};

/// Of a ring over nodes: the two kinds of hop, seconds. `step` is the time of a chunk of all channels.
struct RingStep {
    double base = 0;
    double inside_latency = 0, outside_latency = 0;
    double inside_step = 0, outside_step = 0;
};
RingStep ring_step(const LatencyInput& in);
/// Network hop of a ring over that of a tree.
double ring_hop_share(const TunerInput& tuner, Protocol p);

/// Beyond NCCL's tables, for a network hop of a tree.
double extra_hop_us(const LatencyInput& in);
double hop_latency_s(const LatencyInput& in);
double fill_s(const LatencyInput& in);

}  // namespace fabricast
