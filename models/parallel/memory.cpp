#include "models/parallel/memory.hpp"

#include <algorithm>
#include <limits>

#include "models/parallel/eager_replay.hpp"
#include "models/parallel/placement.hpp"
#include "models/parallel/ranks.hpp"
#include "models/parallel/stage_update.hpp"

namespace fabricast {
namespace {

// CUDA context 300-500 MB (public memory estimators).
constexpr Bytes kContextBytes = 450'000'000;
// Buffers of a NCCL communicator: 342 MB for 2 GPUs, 392 MB for 4 to 8 (published system tables of a serving estimator).
constexpr Bytes kCommunicatorBytes = 392'000'000, kPairBytes = 342'000'000;
// Reserved / allocated by the caching allocator: median 1.038, range 1.007-1.093 (344 published records, 8 GPUs).
constexpr double kAllocatorOverhead = 0.038;

Bytes context_of(const GpuSpec& gpu) { return kContextBytes + (gpu.driver_memory_mib << 20); }

Bytes share(Bytes bytes, std::int64_t parts) { return (bytes + parts - 1) / parts; }

Bytes& part(program::MemoryPeak& peak, MemoryCause cause) { return peak.parts[static_cast<std::size_t>(cause)]; }

// Layers of one kind share their placeholders; of experts one has the shape of all.
Bytes placeholders(const StageParameters& parameters) {
    std::int64_t most = 0;
    for (const Held& layer : parameters.layers)
        most = std::max(most, layer.dense);
    return 2 * (most + parameters.head);
}

std::int64_t bucket_elements(const TrainingPlan& plan) {
    return std::max<std::int64_t>(40'000'000, 1'000'000 * replicas(plan.layout) * plan.layout.cp);
}

// What is lost of gradients in compression and added to the next ones.
Bytes kept_errors(const Architecture& a, const TrainingPlan& plan, std::int64_t stage) {
    constexpr Bytes kError = 4;
    const Compression method = plan.compression.gradients;
    if (method != Compression::one_bit_adam && method != Compression::powersgd)
        return 0;
    const LayerMatrices m = stage_matrices(a, plan.layout, stage);
    const std::int64_t dense = element_count(m.dense), experts = element_count(m.experts);
    const bool sums = method == Compression::one_bit_adam;
    return kError * (dense + experts) + (sums ? share(kError * dense, dense_sharding(plan.layout).ranks) +
                                                    share(kError * experts, expert_sharding(plan.layout).ranks)
                                              : 0);
}

Updated on_gpu(const Offload& offload, Updated updated) {
    updated.elements -= static_cast<std::int64_t>(offload.optimizer * static_cast<double>(updated.elements));
    return updated;
}

program::MemoryPeak with_allocator(program::MemoryPeak peak) {
    const Bytes tensors = peak.total - part(peak, MemoryCause::context) - part(peak, MemoryCause::communication);
    const Bytes extra = static_cast<Bytes>(kAllocatorOverhead * static_cast<double>(tensors));
    part(peak, MemoryCause::temporary) += extra;
    peak.total += extra;
    return peak;
}

}  // namespace

void set_base_memory(program::Template& t, const Architecture& a, const TrainingPlan& plan,
                     const SoftwareFeatures& software, const GpuSpec& gpu, std::int64_t stage,
                     const StageParameters& parameters) {
    const Layout& l = plan.layout;
    const Held held = parameters.sum();
    const Sharding dense = dense_sharding(l), experts = expert_sharding(l);
    const Bytes weight = software.autocast || plan.precision == Precision::fp32 ? 4 : 2;
    const bool wide = software.autocast || (software.fp32_gradients && software.fp32_reduce);
    const Bytes gradient = wide || plan.precision == Precision::fp32 ? 4 : 2;
    const auto set = [&](MemoryCause cause, Bytes bytes) { t.base_memory[static_cast<std::size_t>(cause)] = bytes; };
    const auto state = [&](Bytes width, int from) {
        const bool cut = l.zero >= from;
        return share(held.dense * width, cut ? dense.ranks : 1) + share(held.expert * width, cut ? experts.ranks : 1);
    };
    const Offload& offload = plan.offload;
    Bytes gradients = state(gradient, 2);
    if (offload.optimizer > 0 && l.zero >= 2)  // they leave, but for a bucket
        gradients -= std::max<Bytes>(
            static_cast<Bytes>(offload.optimizer * static_cast<double>(gradients)) - bucket_elements(plan) * gradient,
            0);
    set(MemoryCause::weights, offload.parameters ? 0 : state(weight, 3));
    set(MemoryCause::gradients, gradients + (software.placeholder_gradients ? placeholders(parameters) : 0));
    Optimizer optimizer = plan.optimizer;
    if (software.autocast)  // the fp32 weights themselves
        optimizer.master = StateType::none;
    set(MemoryCause::optimizer,
        optimizer_bytes(optimizer, plan.precision, on_gpu(offload, stage_update(a, plan, stage, parameters))));
    set(MemoryCause::context, context_of(gpu));
    const int communicators = (l.tp > 1) + (replicas(l) * l.cp > 1) + (l.pp > 1) + (l.cp > 1) + (l.ep > 1);
    set(MemoryCause::communication, communicators * kCommunicatorBytes + kept_errors(a, plan, stage));
}

Bytes host_bytes(const Architecture& a, const TrainingPlan& plan, const SoftwareFeatures& software, std::int64_t stage,
                 const StageParameters& parameters) {
    if (!plan.offload.active())
        return 0;
    Updated own = stage_update(a, plan, stage, parameters);
    const Bytes weight = plan.precision == Precision::fp32 ? 4 : 2;
    Bytes out = plan.offload.parameters ? own.total() * weight : 0;
    own.elements -= on_gpu(plan.offload, own).elements;
    const Bytes gradient = software.fp32_reduce || plan.precision == Precision::fp32 ? 4 : 2;
    return out + optimizer_bytes(plan.optimizer, plan.precision, own) + own.elements * gradient;
}

Bytes checkpoint_bytes(const Architecture& a, const TrainingPlan& plan) {
    TrainingPlan alone = plan;
    alone.layout = {};
    const Updated all = stage_update(a, alone, 0, stage_parameters(a, alone.layout, 0));
    const Bytes weight = plan.precision == Precision::fp32 ? 4 : 2;
    return weight * all.total() + optimizer_bytes(plan.optimizer, plan.precision, all);
}

Bytes outside_tensors(const TrainingPlan& plan, const GpuSpec& gpu, std::int64_t stage) {
    const Layout& l = plan.layout;
    const int groups = 1 + (l.tp > 1) + (l.dp > 1) + (l.tp * l.pp > 1);
    const int neighbours = (stage > 0) + (stage + 1 < l.pp);
    return context_of(gpu) + groups * kCommunicatorBytes + neighbours * kPairBytes;
}

program::MemoryPeak stage_peak(const Architecture& a, const TrainingPlan& plan, const SoftwareFeatures& software,
                               const ComputeModel& compute, std::int64_t stage, const program::Template& t) {
    if (!replays_tensors(a, plan, software))
        return with_allocator(program::peak_memory(t));
    const Bytes outside = outside_tensors(plan, compute.gpu(), stage);
    const Bytes capacity = (compute.gpu().memory_mib << 20) - outside;
    ReplayedMemory replayed = replay_stage(a, plan, software, compute, stage, capacity);
    if (replayed.failed)
        replayed = replay_stage(a, plan, software, compute, stage, std::numeric_limits<Bytes>::max() / 2);
    program::MemoryPeak peak;
    peak.parts = t.base_memory;
    part(peak, MemoryCause::communication) = outside - context_of(compute.gpu());
    Bytes state = 0;
    for (const MemoryCause cause : {MemoryCause::weights, MemoryCause::gradients, MemoryCause::optimizer})
        state += part(peak, cause);
    part(peak, MemoryCause::gradients) += std::max<Bytes>(replayed.held - state, 0);  // buckets
    state = std::max(state, replayed.held);
    part(peak, MemoryCause::activations) = std::max<Bytes>(replayed.used - state, 0);
    part(peak, MemoryCause::temporary) =
        std::max<Bytes>(replayed.reserved - state - part(peak, MemoryCause::activations), 0);
    for (const Bytes bytes : peak.parts)
        peak.total += bytes;
    return peak;
}

Bytes allocated_peak(const program::MemoryPeak& peak) {
    const auto of = [&](MemoryCause cause) { return peak.parts[static_cast<std::size_t>(cause)]; };
    const Bytes tensors = peak.total - of(MemoryCause::context) - of(MemoryCause::communication);
    return static_cast<Bytes>(static_cast<double>(tensors) / (1 + kAllocatorOverhead));
}

}  // namespace fabricast
