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
//   backward    16-bit gradients of all weights of the stage live until the end of a micro-batch's backward, then are
//               added to the fp32 ones
//   optimizer   with ZeRO 1 and dp > 1 the gather of updated weights goes through one flat copy, 2 P + 2 P / dp
//
// In the first step communicators of the data-parallel and gradient-norm groups do not exist yet when the forward and
// backward run; if the allocator has to give segments back there (it took all memory), the library finds none for
// their buffers: counted as failed. The host waits for the GPU where it needs a message: before the forward of all but
// the first stage, before the backward of all but the last; before every pass where the stack waits for each exchange.
// Sources: huggingface/nanotron, models/llama.py, parallel/tensor_parallel/functional.py (MemoryBuffer,
// _ShardedCrossEntropy), optim/gradient_accumulator.py (FP32GradientAccumulator), optim/zero.py (_all_gather_params),
// parallel/pipeline_parallel/engine.py; autograd of PyTorch (saved tensors); torch DDP (buckets of 25 MiB).
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
