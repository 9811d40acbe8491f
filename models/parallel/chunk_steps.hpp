// Chunk steps: a Program in which every ring collective runs chunk by chunk, for validation of the fluid model.
//
// A ring of n ranks is taken apart as the library runs it: n chunks a channel, 2 (n-1) steps for all-reduce, n - 1 for
// all-gather and reduce-scatter. In each step a rank sends one chunk to the next of the ring and receives one from
// the previous; what it sends in step k is what it received in step k - 1. Patterns of channels (rotations of the
// ring) with the same neighbours everywhere travel together. A step's message has the latency of its hop; the base
// latency of the collective passes once. Sends and receives of a pattern have streams of their own.
//
// Agreement with the fluid model (tests/sim/step/chunk_steps_test.cpp): within 1 % from 1 MiB on, 2 to 64 ranks. Both say
// T = base + max(steps x s_max + l, sum over the longest path of (s + l)): a chunk waits for the one before it, so hops
// hide behind the slowest one's data only as far as the others have time to spare (models/collectives/latency.hpp). A hop
// keeps the pace it has when all channels are busy. Rows of public logs on rings over nodes (149 rows from 1 MiB on, 17
// curves, hop cost and NIC rate fitted to each curve): met to 1.5 / 8.1 % (median / p90) by this form, to 1.3 / 8.3 % by one
// that adds all hops to the wire time, as NCCL's own estimate does, to 1.5 / 13.6 % by this form without the library's
// ceilings on the thread blocks of LL and LL128, which is where its chunks lose their time. Exchanges and chains are taken
// apart by message_steps.hpp.
//
// Not expanded: collectives the tuner gives to trees, NVLS or PAT, and groups of more than max_ranks; they stay
// activities.
#pragma once

#include <vector>

#include "models/collectives/comm_model.hpp"
#include "models/parallel/stage_builder.hpp"
#include "models/program/program.hpp"

namespace fabricast {

struct ChunkStepOptions {
    std::uint32_t max_ranks = 64;
};

/// infos: what each call of `source` is. Every call of a slot must find groups of one structure (equal pattern counts) among
/// the ranks of a template; otherwise std::invalid_argument. Message sizes are rounded up to whole bytes.
program::Program expand_chunk_steps(const program::Program& source, const std::vector<CallInfo>& infos,
                                    const CommModel& comm, const Cluster& cluster, GpuGeneration generation,
                                    ChunkStepOptions options = {});

/// One collective of one group over all ranks of a cluster as a program of a single step, for tests and tables.
/// infos receives the call. Precondition: members are ranks of the cluster.
program::Program single_collective(const Cluster& cluster, const CommModel& comm, std::vector<std::uint32_t> members,
                                   Collective kind, Bytes size, std::vector<CallInfo>& infos);

}  // namespace fabricast
