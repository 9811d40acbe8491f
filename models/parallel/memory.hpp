// Memory of a pipeline stage: what is held all the time, what lies outside tensors, what the allocator adds.
//
// Static memory of a rank with P parameters (bytes a parameter):
//   weights 2 (4 in fp32; /dp with ZeRO-3), gradients 4 or 2 (/dp with ZeRO-2 and 3), optimizer 12 with Adam: fp32 copy
//   and two moments (8 in fp32: no copy; others: models/transformer/optimizer.hpp), /dp with ZeRO-1, 2, 3
// Gradients take 4 bytes where they accumulate and travel in fp32; where they travel in 16 bit, the buffer that is reduced
// is the one that accumulates (Megatron-Core's _ParamAndGradBuffer with grad_reduce_in_fp32 off; apex grad_sync_dtype).
// Stacks whose products add to fp32 gradients and still return a 16-bit gradient (placeholder_gradients) keep one for every
// shape of a layer's weights and one of the head: 2 bytes a parameter of one layer (of one expert) and of the head.
// Outside tensors: CUDA context and what the driver keeps of the memory it reports (one cause, context); buffers of every NCCL communicator. Stacks that are replayed tensor by tensor
// (eager_replay.hpp) count communicators as PyTorch makes them: world, tp, dp, the group of the gradient norm, a pair
// with each pipeline neighbour.
// The allocator reserves more than it hands out: a share on top, or what the replay finds; memory whose replay fails
// within the GPU is the replay's without limit.
#pragma once

#include "models/parallel/stage_builder.hpp"
#include "models/program/program.hpp"

namespace fabricast {

void set_base_memory(program::Template& t, const Architecture& a, const TrainingPlan& plan,
                     const SoftwareFeatures& software, const GpuSpec& gpu, std::int64_t stage,
                     const StageParameters& parameters);

/// Training state of a rank of the stage in host memory (offload.hpp).
Bytes host_bytes(const Architecture& a, const TrainingPlan& plan, const SoftwareFeatures& software, std::int64_t stage,
                 const StageParameters& parameters);

/// What a checkpoint of the whole model holds: weights and optimizer state, each once.
Bytes checkpoint_bytes(const Architecture& a, const TrainingPlan& plan);

/// Context, driver and communicators of a rank of a replayed stack.
Bytes outside_tensors(const TrainingPlan& plan, const GpuSpec& gpu, std::int64_t stage);

/// Peak of a stage whose template has its base memory.
program::MemoryPeak stage_peak(const Architecture& a, const TrainingPlan& plan, const SoftwareFeatures& software,
                               const ComputeModel& compute, std::int64_t stage, const program::Template& t);

/// Of a peak of stage_peak without replay: what is handed out, without the allocator's share, context, communicators.
Bytes allocated_peak(const program::MemoryPeak& peak);

}  // namespace fabricast
