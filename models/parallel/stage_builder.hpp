// The program of one pipeline stage: one template.
//
// The repeated step is cut where all ranks meet, at the gradient norm:
//
//   repeat steps { optimizer, parameter gather, pipeline schedule, gradient reduction, gradient norm, step end }
//
// so that a step of an idle machine usually is the period already. Inside the schedule a piece of work is emitted as
// segments (kernels between synchronisation points) and communication operations:
//
//   tp, no SP   layer forward: [norm attention] AR [residual norm mlp] AR [residual]; backward mirrored
//   tp, SP      all-gather before and reduce-scatter after attention and mlp; the backward gathers the saved input again
//   ZeRO-3      every unit (embedding, layer, head) is gathered before its forward and again before its backward; its
//               gradient is reduce-scattered after the backward of every micro-batch
//   split       backward in two passes (zero-bubble schedules), stage_split.cpp
//   ZeRO 1, 2   parameters are gathered once after the optimizer; gradients reduced per bucket (2: every micro-batch)
//   fp8         delayed scaling: an all-reduce of the largest values behind every pass of a chunk
//   cp          ring: keys and values pass from rank to rank beside the attention of the block before; all-gather: once
//               before the core, gradients reduce-scattered; Ulysses: all-to-all of heads before and after the core
//   experts     [route] dispatch [experts] combine; backward mirrored. With expert tensor parallelism an all-gather
//               before and a reduce-scatter behind the experts. Routed experts are sharded and reduced over ranks of
//               their own (models/parallel/ranks.hpp)
//   HSDP        sharding groups inside the data group: reduce-scatter in the group, all-reduce of the shard across groups
//
// Blocking communication runs on the compute stream; overlapped communication on a stream of its own, with waits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/collectives/comm_model.hpp"
#include "models/collectives/moe.hpp"
#include "models/parallel/cost_book.hpp"
#include "models/parallel/layout.hpp"
#include "models/parallel/schedule.hpp"
#include "models/parallel/stage_parameters.hpp"
#include "models/program/program.hpp"

namespace fabricast {

/// Communicator slots of every rank.
enum class Slot : std::uint16_t {
    tp,
    context,  ///< cp
    expert,   ///< ep: dispatch and combine
    expert_tensor,
    parameter,  ///< gathers of dense parameters, within the sharding group
    gradient,   ///< their reduction, within the sharding group
    replica,    ///< all-reduce of a shard across sharding groups
    expert_parameter,
    expert_gradient,
    expert_replica,
    norm,
    embedding,
    scaling,          ///< fp8: ranks that agree on the largest values
    gradient_inside,  ///< compressed gradients: ranks of a sharding group on one server, and of equal place across servers
    gradient_across,
    count
};
Account slot_account(Slot slot);        ///< where exposed time of its collectives goes
std::string_view slot_name(Slot slot);  ///< dimension in the communication table: "tp", "dp", "expert dp"
/// Peer slots of every rank: forward to the next stage, from the previous; gradients to the previous, from the next. Of
/// chunks that run up (placement.hpp) the other way round.
enum class PeerSlot : std::uint16_t {
    send_forward,
    receive_forward,
    send_backward,
    receive_backward,
    send_forward_up,
    receive_forward_up,
    send_backward_up,
    receive_backward_up,
    count
};

/// Where a call stands in the communication table.
struct CallInfo {
    std::string what;
    Collective kind = Collective::all_reduce;
    Slot slot = Slot::tp;
    Bytes bytes = 0;            ///< of the whole collective
    std::int32_t share = 1000;  ///< per mille of it that this call moves (chunked GEMMs split one collective in two)
    MoeTraffic moe = {};        ///< node-aware dispatch or combine when tokens > 0
    double imbalance = 1;       ///< all-to-all: the hottest rank receives so many times the mean
    bool operator==(const CallInfo&) const = default;
};

/// What all stages share while their templates are built.
struct ProgramParts {
    program::Program& program;
    std::vector<CallInfo>& calls;
    CostBook& costs;
};

/// fp8 with scales that several ranks agree on.
bool agrees_on_scales(const TrainingPlan& plan, const SoftwareFeatures& software);

/// Pipeline messages run beside the work; false: between pieces of it.
bool overlaps_messages(const Layout& layout, const SoftwareFeatures& software);

/// Appends the template of a stage to parts.program and returns its index. order: the stage's list of pipeline_steps,
/// with overlap as overlaps_messages says; steps: repetitions of the step.
std::uint32_t build_stage(const Architecture& a, const TrainingPlan& plan, const SoftwareFeatures& software,
                          std::int64_t stage, const std::vector<ScheduleStep>& order, std::int64_t steps,
                          ProgramParts parts);

}  // namespace fabricast
