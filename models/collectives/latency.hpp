// Time of a collective in which its links are idle: launch and hops, and filling or draining the pipeline. Both
// go into the latency of a plan, which passes first and holds no link.
//
// Hops: the tuner's latency (with its plateau factor), except
//   ring, one NVLink node   base + hops x hop with base and hop fitted per generation: NCCL's table is one for all
//                           generations and meets the measured tables to 24 % (median), the fit to 3-6 %
//   broadcast, reduce       every rank is passed; the tuner counts one hop
// and NetworkTiming::hop_us for each network hop on the longest path.
// Fill:
//   ring, one NVLink node   the last of n steps only stores locally: (S / n) / (channels x channel rate)
//   broadcast, reduce       n - 2 further ranks each pass one chunk of every channel on
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
};

double hop_latency_s(const LatencyInput& in);
double fill_s(const LatencyInput& in);

}  // namespace fabricast
