// Chunk steps: a Program in which every ring collective runs chunk by chunk, for validation of the fluid model.
//
// A ring of n ranks is taken apart as the library runs it: n chunks a channel, 2 (n-1) steps for all-reduce, n - 1 for
// all-gather and reduce-scatter. In each step a rank sends one chunk to the next of the ring and receives one from
// the previous; what it sends in step k is what it received in step k - 1. Patterns of channels (rotations of the
// ring) with the same neighbours everywhere travel together. A step's message has the latency of its hop; the base
// latency of the collective passes once. Sends and receives of a pattern have streams of their own.
//
// Agreement with the fluid model (measured in tests/sim/step/chunk_steps_test.cpp): the wire time is the same. On one node the
// two are within 1 %. Over several nodes they differ by at most the latency of the plan: a ring of chunks hides hops behind
// the data of the slowest hop, T = steps / n x max(n s_max, sum over hops of (s + latency)), s the wire time of a chunk; the
// fluid model, as NCCL's own estimate, lets all hops pass first (and multiplies them by the plateau factor). Measurements
// side with the latter: ring rows of public logs of 16, 20 and 80 GPUs over 2 and 10 nodes (85 rows from 1 MiB on; A100,
// H100, H200) are met to 9.6 / 35 % (median / p90) by the fluid model and to 12.9 / 37 % by the overlapped form; with the
// log's own NIC rate the 20-GPU log to 0.8-1.9 % against 0.9-2.0 % in the median, 6-7 % against 10-15 % in p90. Exchanges and
// chains are taken apart by message_steps.hpp.
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
