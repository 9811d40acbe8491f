// Recovers what a log does not say outright: its collective, its rank count, its nodes.
//
// Collective: the start banner, else a command line before the run, else the columns, else the file name. The columns
// decide by operation and root and by r = busbw / algbw (all_reduce 2(n-1)/n, shares (n-1)/n, others 1), and by the
// in-place half, which alltoall and sendrecv do not check (N/A).
//
// Ranks: the device list (its highest rank + 1), else NCCL's init lines, else r: n = 2 / (2 - r) for all_reduce,
// 1 / (1 - r) where the factor is (n-1)/n. Each printed pair gives an interval of r; n is told when exactly one integer
// lies in all of them. Else the number before the first 'x' of the file name ("16xh100..."), if r allows it.
//
// Nodes: distinct hosts, when the device list names every rank or its hosts, filled to their last device, hold them all.
#pragma once

#include "validate/ingest/nccl_check.hpp"
#include "validate/ingest/nccl_log.hpp"

namespace fabricast {

void recover_identity(NcclRun& run, const NcclTrace& trace);

}  // namespace fabricast
