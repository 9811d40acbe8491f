// Reads the workload text of SimAI (AICB) and ASTRA-sim 1.0 into a Workload: every rank does the same rows.
//
//   line 1   policy, then "key: value" pairs: model_parallel_NPU_group (tp), ep, pp, vpp, ga, all_gpus, checkpoints: N
//            ids, checkpoint_initiates: N ids, pp_comm (its colon may be missing)
//   line 2   number of rows; where it disagrees with the file, the file counts
//   rows     name, dependency, then compute ns, collective, bytes for forward, input gradient and weight gradient, then
//            ns of the update
// Forward runs top to bottom, then backward bottom to top: input gradient, weight gradient. Forward and input-gradient
// collectives are waited for; weight-gradient ones run on beside, and an update follows each. Where checkpoints are told,
// backward first repeats the forward rows from the checkpoint to the row that initiates it.
// A collective without a suffix is of the tensor-parallel group (forward, input gradient) or of the data-parallel one
// (weight gradient), with _EP of the expert-parallel and with _DP_EP of the data-parallel group of experts. Rank =
// (stage x dp + d) x tp + t; dp = gpus / (tp pp), of which ep neighbours are an expert group.
// Sizes are whole buffers, all-gather's too (its output), unlike Chakra's. Times are ns, as SimAI takes them.
// Policies: HYBRID_TRANSFORMER, HYBRID_TRANSFORMER_FWD_IN_BCKWD, DATA (weight gradients over all ranks), MODEL (the
// others over all ranks). Others are refused.
// Not simulated: pipeline bubbles and pp_comm - the rows are those of one stage, and SimAI adds both by formula.
#pragma once

#include <string>

#include "sim/traces/workload.hpp"

namespace fabricast::traces {

/// ranks: of the network; must be all_gpus where that is told. Throws ImportError with the line.
Workload read_simai(const std::string& path, std::uint32_t ranks);

}  // namespace fabricast::traces
