// Internal: the builder of a stage's template. Three sources: stage_builder.cpp the schedule and the passes of a chunk,
// stage_shards.cpp what data parallelism gathers, reduces and updates, stage_messages.cpp the pipeline's messages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "models/parallel/placement.hpp"
#include "models/parallel/stage_layers.hpp"

namespace fabricast::stage {

// Default bucket of Megatron's distributed optimizer: max(40e6, 1e6 * dp) parameters (distributed_data_parallel_config.py).
constexpr std::int64_t kBucketParameters = 40'000'000;
constexpr std::int64_t kBucketParametersPerRank = 1'000'000;

class StageBuilder : LayerEmitter {
public:
    StageBuilder(const Architecture& a, const TrainingPlan& plan, const SoftwareFeatures& software, std::int64_t stage,
                 ProgramParts parts)
        : LayerEmitter(a, plan, software, stage, parts),
          dense_(dense_sharding(layout_)),
          experts_(expert_sharding(layout_)),
          data_parallel_(dense_.ranks * dense_.replicas > 1 ||
                         (parameters_.sum().expert > 0 && experts_.ranks * experts_.replicas > 1)),
          sharded_(layout_.zero == 3 && data_parallel_),
          kept_(sharded_ && !plan.reshard_after_forward) {}

    std::uint32_t build(const std::vector<ScheduleStep>& order, std::int64_t steps);

private:
    using UnitPlace = std::pair<std::int64_t, std::size_t>;  ///< chunk of the stage, unit of the chunk
    struct Bucket {
        Bytes open = 0, reduced = 0;
    };

    Kernel shard_copies(const Unit& unit, Phase phase) const;
    // Emits what gathers a unit's parameters; the last node of it, none where no rank shares them.
    std::uint32_t gather_unit(const Unit& unit, std::uint8_t stream, Phase phase, std::vector<std::uint32_t> waits);
    // The same before its pass, with memory. Prefetched (overlap), it runs while the unit before computes, once the one before
    // that, `after`, has ended; the first of a pass cannot run ahead. Returns as gather_unit does.
    std::uint32_t gather_ahead(const Unit& unit, const Unit* next, bool first, Phase phase, std::uint32_t after);
    void hold_with(std::uint32_t gather, Bytes bytes);
    Bytes unit_bytes(const Unit& unit, Bytes width) const;
    void chunk_forward(const ScheduleStep& step);
    void chunk_backward(const ScheduleStep& step);
    void gather_for_backward(const std::vector<Unit>& list, std::size_t done, const std::vector<std::uint32_t>& ends,
                             Bytes gradients);
    void chunk_pair(const ScheduleStep& forward, const ScheduleStep& backward);
    void interleave(std::size_t begin, std::size_t middle);
    void chunk_backward_input(const ScheduleStep& step);
    void chunk_backward_weight(const ScheduleStep& step);
    void receive(const ScheduleStep& step, bool forward);
    void post_after(std::uint32_t receive, std::int64_t ahead);
    void send(const ScheduleStep& step, bool forward);
    std::vector<std::int64_t> chunks_in_model_order(bool forward) const;
    void reduce_unit(const Unit& unit, std::int64_t chunk, bool last_unit);
    void reduce_bucket(bool expert, Bytes bytes);
    void reduce_expert_bucket(Bytes bytes, bool last_unit);
    void exchange(const ScheduleStep& step);
    void gather_message();
    std::uint32_t message(std::uint8_t stream, PeerSlot slot, bool send, std::vector<std::uint32_t> waits);
    void gather_after_optimizer();
    void reduce_at_end();
    void optimizer();
    void schedule_block(const ScheduleBlock& block);
    void deferred_head();
    void host_of_step();
    void host_work(double seconds, std::string_view what);
    void copy_shards();
    void compact_streams();
    Bytes message_bytes() const {
        const bool cut = layout_.tp > 1 && (shard_.sequence_parallel || software_.p2p_scatter_gather);
        return cut ? hidden_bytes() / layout_.tp : hidden_bytes();
    }
    // Of a gathered parameter: fp8 stacks may send layers in the type they multiply in.
    Bytes parameter_width(const Unit& unit) const {
        const bool fp8 = plan_.precision == Precision::fp8 && software_.fp8_parameter_gather;
        return fp8 && unit.kind == Unit::Kind::layer ? 1 : activation_bytes_;
    }
    Bytes bucket_cap() const {
        if (plan_.bucket_bytes > 0)
            return plan_.bucket_bytes;
        return std::max(kBucketParameters, kBucketParametersPerRank * replicas(layout_) * layout_.cp) * gradient_bytes_;
    }
    bool reduces_now(bool last) const {
        // DualPipe: the copies end in opposite order, so both wait until the stage is through.
        return data_parallel_ &&
               ((sharded_ && (!kept_ || last)) || layout_.zero == 2 || plan_.reduce_every == ReduceEvery::micro_batch ||
                (plan_.overlap_grad_reduce && last && layout_.schedule != Schedule::dual_pipe));
    }

    Sharding dense_, experts_;
    bool data_parallel_, sharded_;
    bool kept_;  ///< sharded, but whole from a chunk's first forward to its last backward: one gather, one reduction
    std::uint32_t updated_ = program::kNone;           ///< the optimizer: parameters of this step exist
    std::map<UnitPlace, std::uint32_t> gathered_;      ///< parameter gather of this step
    std::vector<std::uint32_t> reduction_nodes_;       ///< overlapped reductions the norm waits for
    std::int64_t heads_done_ = 0, heads_waiting_ = 0;  ///< micro-batches whose head went backward, waits for weights
    Bucket bucket_, expert_bucket_;                    ///< gradient bytes in the open bucket, already reduced
    std::vector<std::uint32_t> ends_;                  ///< last node of every step emitted
    std::int64_t block_begin_ = 0, block_steps_ = 0;   ///< of the open repeat, in steps; 0 steps: none open
    std::vector<std::pair<std::uint32_t, std::int64_t>> late_posts_;  ///< receive, step of the iteration before
};

}  // namespace fabricast::stage
