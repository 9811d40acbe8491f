// Internal: the builder of a stage's template. Sources: stage_builder.cpp the schedule and the passes of a chunk,
// stage_shards.cpp what data parallelism gathers, reduces and updates, stage_messages.cpp the pipeline's messages,
// stage_offload.cpp what lives on the host, stage_compress.cpp what is sent in fewer bytes.
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
          gradients_leave_(plan.offload.optimizer > 0 && layout_.zero >= 2),
          sharded_(layout_.zero == 3 && (data_parallel_ || plan.offload.parameters)),
          kept_(sharded_ && !plan.reshard_after_forward) {
        if (plan.compression.narrow_gradients() && !sharded_) {
            dense_matrices_ = matrix_share(false);
            expert_matrices_ = matrix_share(true);
        }
    }

    std::uint32_t build(const std::vector<ScheduleStep>& order, std::int64_t steps);

private:
    using UnitPlace = std::pair<std::int64_t, std::size_t>;  ///< chunk of the stage, unit of the chunk
    struct Bucket {
        Bytes open = 0, reduced = 0;
    };

    Kernel shard_copies(const Unit& unit, Phase phase) const;
    Kernel casts(const Unit& unit, Phase phase) const;  ///< of parameters and gradients under autocast
    // Emits what gathers a unit's parameters; the last node of it, none where no rank shares them.
    std::uint32_t gather_unit(const Unit& unit, std::uint8_t stream, Phase phase, std::vector<std::uint32_t> waits);
    // The same before its pass, with memory. Prefetched (overlap), it runs while the unit before computes, once the one before
    // that, `after`, has ended; the first of a pass cannot run ahead. Returns as gather_unit does.
    std::uint32_t gather_ahead(const Unit& unit, const Unit* next, bool first, Phase phase, std::uint32_t after);
    // Embedding or head of a stack that gives them back after each forward, though the step keeps layers whole.
    void regather_edge(const Unit& unit);
    void hold_with(std::uint32_t gather, Bytes bytes);
    Bytes unit_bytes(const Unit& unit, Bytes width) const;
    void host_waits_for_pass();
    void chunk_forward(const ScheduleStep& step);
    void chunk_backward(const ScheduleStep& step);
    void gather_for_backward(const std::vector<Unit>& list, std::size_t done, const std::vector<std::uint32_t>& ends,
                             Bytes gradients);
    void chunk_pair(const ScheduleStep& forward, const ScheduleStep& backward);
    void interleave(std::size_t begin, std::size_t middle);
    void chunk_backward_input(const ScheduleStep& step);
    void chunk_backward_weight(const ScheduleStep& step);
    void agree_on_scales(bool forward);
    void receive(const ScheduleStep& step, bool forward);
    void post_after(std::uint32_t receive, std::int64_t ahead);
    void send(const ScheduleStep& step, bool forward);
    std::vector<std::int64_t> chunks_in_model_order(bool forward) const;
    void reduce_unit(const Unit& unit, std::int64_t chunk, bool last_unit);
    void reduce_bucket(bool expert, Bytes bytes, double matrices);
    // stage_compress.cpp
    struct NarrowBucket {
        Bytes plain = 0;              ///< that goes as it is
        std::vector<CallInfo> calls;  ///< for the rest
        Bytes memory = 0;             ///< traffic of encoding and decoding
    };
    NarrowBucket narrow_bucket(bool expert, Bytes bytes, double matrices) const;
    Held unit_matrices(const Unit& unit) const;
    double matrix_share(bool expert) const;
    Held parameter_wire(const Unit& unit) const;
    void add_parameter_codes(const Unit& unit);
    std::string gather_name(bool expert) const {
        const Compression method = plan_.compression.parameters;
        const std::string what = expert ? "expert parameter all-gather" : "parameter all-gather";
        return method == Compression::none ? what : what + " (" + std::string(compression_name(method)) + ")";
    }
    double part_of_unit(const Unit& unit, bool expert) const {
        const Held all = unit_matrices(unit);
        const std::int64_t held = expert ? unit.parameters.expert : unit.parameters.dense;
        return held > 0 ? static_cast<double>(expert ? all.expert : all.dense) / static_cast<double>(held) : 0;
    }
    void reduce_expert_bucket(Bytes bytes, std::int64_t chunk, bool last_unit);
    void exchange(const ScheduleStep& step);
    void gather_message();
    std::uint32_t message(std::uint8_t stream, PeerSlot slot, bool send, std::vector<std::uint32_t> waits);
    void gather_after_optimizer();
    void gather_chunks(const std::vector<std::int64_t>& chunks);
    bool updates_in_two(const Updated& here) const;
    void update(const Updated& part);
    void broadcast_by_owners();
    std::uint32_t host_copy(HostRoute route, Bytes bytes, std::string_view what, Phase phase,
                            const std::vector<std::uint32_t>& waits);
    std::uint32_t host_update(std::int64_t elements, std::uint32_t after);
    void gradients_down(Bytes bytes, std::uint32_t after);
    std::uint32_t update_on_host(std::int64_t elements);
    std::int64_t shard_elements(const Held& held) const {
        return (held.dense + dense_.ranks - 1) / dense_.ranks + (held.expert + experts_.ranks - 1) / experts_.ranks;
    }
    void reduce_at_end();
    void wait_for_tensor_traffic();
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
    // Of a gathered parameter: fp8 stacks may send layers in the type they multiply in, autocast keeps fp32.
    Bytes parameter_width(const Unit& unit) const {
        if (software_.autocast)
            return 4;
        const bool fp8 = plan_.precision == Precision::fp8 && software_.fp8_parameter_gather;
        return fp8 && unit.kind == Unit::Kind::layer ? 1 : activation_bytes_;
    }
    Bytes bucket_cap() const {
        if (plan_.bucket_bytes > 0)
            return plan_.bucket_bytes;
        const std::int64_t rule =
            std::max(kBucketParameters, kBucketParametersPerRank * replicas(layout_) * layout_.cp);
        return (software_.bucket_parameters > 0 ? software_.bucket_parameters : rule) * gradient_bytes_;
    }
    // Megatron-Core cuts a chunk into buckets only where the end of the step waits for them: the chunk that goes backward
    // last, and no chunk when the first is gathered beside the update (disable_bucketing in its DistributedDataParallel).
    bool one_bucket(std::int64_t chunk) const {
        if (plan_.bucket_bytes > 0 || layout_.pp == 1)
            return false;
        return (software_.buckets_on_first_stage && plan_.overlap_grad_reduce && virtual_stage_of(chunk) != 0) ||
               (software_.gathers_beside_update && layout_.vpp > 1);
    }
    bool reduces_now(bool last) const {
        // DualPipe: the copies end in opposite order, so both wait until the stage is through.
        return (data_parallel_ || gradients_leave_) &&
               ((sharded_ && (!kept_ || last)) || layout_.zero == 2 || plan_.reduce_every == ReduceEvery::micro_batch ||
                (plan_.overlap_grad_reduce && last && layout_.schedule != Schedule::dual_pipe));
    }

    Sharding dense_, experts_;
    double dense_matrices_ = 0, expert_matrices_ = 0;  ///< share of weight matrices in a bucket
    bool data_parallel_;
    bool gradients_leave_;  ///< for the host, as soon as they are reduced
    bool sharded_;
    bool kept_;  ///< sharded, but whole from a chunk's first forward to its last backward: one gather, one reduction
    std::uint32_t updated_ = program::kNone;           ///< the optimizer: parameters of this step exist
    std::map<UnitPlace, std::uint32_t> gathered_;      ///< parameter gather of this step
    std::uint32_t down_ = program::kNone;              ///< last copy of gradients to the host
    std::vector<std::uint32_t> reduction_nodes_;       ///< overlapped reductions the norm waits for
    std::int64_t heads_done_ = 0, heads_waiting_ = 0;  ///< micro-batches whose head went backward, waits for weights
    Bucket bucket_, expert_bucket_;                    ///< gradient bytes in the open bucket, already reduced
    std::vector<std::uint32_t> ends_;                  ///< last node of every step emitted
    std::int64_t block_begin_ = 0, block_steps_ = 0;   ///< of the open repeat, in steps; 0 steps: none open
    std::vector<std::pair<std::uint32_t, std::int64_t>> late_posts_;  ///< receive, step of the iteration before
};

}  // namespace fabricast::stage
