#include "models/parallel/memory.hpp"

#include <algorithm>
#include <limits>

#include "models/parallel/eager_replay.hpp"
#include "models/parallel/placement.hpp"
#include "models/parallel/ranks.hpp"

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

program::MemoryPeak with_allocator(program::MemoryPeak peak) {
    const Bytes tensors = peak.total - part(peak, MemoryCause::context) - part(peak, MemoryCause::communication);
    const Bytes extra = static_cast<Bytes>(kAllocatorOverhead * static_cast<double>(tensors));
    part(peak, MemoryCause::temporary) += extra;
    peak.total += extra;
    return peak;
}

}  // namespace

void set_base_memory(program::Template& t, const TrainingPlan& plan, const SoftwareFeatures& software,
                     const GpuSpec& gpu, const StageParameters& parameters) {
    const Layout& l = plan.layout;
    const Held held = parameters.sum();
    const Sharding dense = dense_sharding(l), experts = expert_sharding(l);
    const Bytes weight = plan.precision == Precision::fp32 ? 4 : 2;
    const bool wide = software.fp32_gradients && software.fp32_reduce;
    const Bytes gradient = wide || plan.precision == Precision::fp32 ? 4 : 2;
    const Bytes optimizer = plan.precision == Precision::fp32 ? 8 : 12;
    const auto set = [&](MemoryCause cause, Bytes bytes) { t.base_memory[static_cast<std::size_t>(cause)] = bytes; };
    const auto state = [&](Bytes width, int from) {
        const bool cut = l.zero >= from;
        return share(held.dense * width, cut ? dense.ranks : 1) + share(held.expert * width, cut ? experts.ranks : 1);
    };
    set(MemoryCause::weights, state(weight, 3));
    set(MemoryCause::gradients, state(gradient, 2) + (software.placeholder_gradients ? placeholders(parameters) : 0));
    set(MemoryCause::optimizer, state(optimizer, 1));
    set(MemoryCause::context, context_of(gpu));
    const int communicators = (l.tp > 1) + (replicas(l) * l.cp > 1) + (l.pp > 1) + (l.cp > 1) + (l.ep > 1);
    set(MemoryCause::communication, communicators * kCommunicatorBytes);
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
