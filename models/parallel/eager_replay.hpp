// Memory of a pipeline stage of an eager PyTorch stack, by replaying its tensors one by one through the caching
// allocator (caching_allocator.hpp): what is reserved, what is handed out at most, whether an allocation fails.
//
// For dense gated models with grouped-query flash attention, RMSNorm and rotary positions on tp (with sequence
// parallelism) x pp x dp, ZeRO 0 or 1, no recomputation, one chunk a stage: what nanotron runs. T tokens of a
// micro-batch, x = 2 T h bytes, t = tp, s = t with sequence parallelism.
//
//   held        weights 2 P; DDP's gradient buckets 2 P with dp > 1; fp32 gradients 4 P; fp32 weights and two Adam moments
//               4 P each (/dp with ZeRO 1; the moments appear in the first optimizer step)
//   layer       keeps x/s four times (inputs and outputs of both norms), Q, K, V and the core's output, log-sum-exp,
//               gate and up, SiLU's output, their product: 2 T (4 h/s + (2 a + 2 g) d/t + 4 f/t) + 4 T a/t bytes. On the
//               way: q, k, v before and after they are made contiguous and rotated; with s > 1 the output of row-parallel
//               layers in full width (x), read by a reduce-scatter. The gathered input lives in one buffer a rank for
//               the whole run (x), as does the gathered output gradient.
//   head        16-bit logits, their fp32 copy, fp32 softmax (kept, becomes the gradient): 2, 4, 4 bytes a logit
//   stage       keeps the output it sent on until its backward, x/s a micro-batch in flight
//   backward    16-bit gradients of all weights of the stage live until the end of a micro-batch's backward, then are
//               added to the fp32 ones
//   optimizer   with ZeRO 1 and dp > 1 the gather of updated weights goes through dp + 1 flat copies of 2 P / dp each
//
// The host issues work ahead of the GPU; what a collective read is free for it only when the GPU is through, so a lead
// costs up to two outputs in full width (2 x) a layer. How far ahead (found on the sweep's reserved peaks):
//   one stage   it never waits: until the launch queue is full
//   pipelines   the host waits for the GPU where it needs a message: before the forward of all but the first stage, before
//               the backward of all but the last; before every pass where the stack waits for each exchange. Within a pass it
//               gains only what the GPU's own kernels take longer than issuing them (kHostPerLaunchS); collectives hold
//               up both. From the third forward in a row on (kStalledForward, warm-up of the first stage, pp >= 4) the GPU
//               stands in the send before the last, in the only hardware queue (CUDA_DEVICE_MAX_CONNECTIONS=1), and the
//               host goes on without it.
//
// In the first step communicators of the data-parallel and gradient-norm groups do not exist yet when the forward and
// backward run; if the allocator has to give segments back there (it took all memory), the library finds none for
// their buffers: counted as failed.
// Not modelled: copies that reduce-scatters of the last micro-batch make (up to 5 GiB too little at dp 2 to 8); hosts that
// are slower than the network (a part of the sweep: a time per collective that grows with its ranks, no lead at all).
// Sources: huggingface/nanotron, models/llama.py, parallel/tensor_parallel/functional.py (MemoryBuffer,
// _ShardedCrossEntropy), optim/gradient_accumulator.py (FP32GradientAccumulator), optim/zero.py (_all_gather_params),
// parallel/pipeline_parallel/engine.py, distributed.py (all_gather_coalesced); autograd of PyTorch (saved tensors); torch
// DDP (buckets of 25 MiB).
#pragma once

#include "models/compute/compute_model.hpp"
#include "models/parallel/layout.hpp"

namespace fabricast {

struct ReplayedMemory {
    Bytes reserved = 0;   ///< at most, after the first step
    Bytes used = 0;       ///< handed out at most, after the first step
    Bytes optimizer = 0;  ///< handed out at most in the optimizer step ("allocated" in nanotron's log)
    Bytes held = 0;       ///< weights, gradients, optimizer state
    bool failed = false;  ///< an allocation found no memory
};

/// The stack asks for it and the job is of the kind above.
bool replays_tensors(const Architecture& a, const TrainingPlan& plan, const SoftwareFeatures& software);

/// limit: bytes the allocator may reserve. Precondition: replays_tensors().
ReplayedMemory replay_stage(const Architecture& a, const TrainingPlan& plan, const SoftwareFeatures& software,
                            const ComputeModel& compute, std::int64_t stage, Bytes limit);

}  // namespace fabricast
