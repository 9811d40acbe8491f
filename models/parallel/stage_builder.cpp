#include "models/parallel/stage_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/parallel/stage_layers.hpp"

namespace fabricast {
namespace stage {
namespace {

// Default bucket of Megatron's distributed optimizer: max(40e6, 1e6 * dp) parameters (distributed_data_parallel_config.py).
constexpr std::int64_t kBucketParameters = 40'000'000;
constexpr std::int64_t kBucketParametersPerRank = 1'000'000;
// Of the copies sharded training makes (SoftwareFeatures::fsdp_copy_bytes, half with 16-bit reduction) the copy-out of the
// forward's gather; the backward has another copy-out, the copy-in, cast and pre-divide of the reduction. Estimate.
constexpr double kShardCopyForwardShare = 0.3;

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

    Kernel shard_copies(const Unit& unit, double share) const;
    // Emits what gathers a unit's parameters; the last node of it.
    std::uint32_t gather_unit(const Unit& unit, std::uint8_t stream, Phase phase, std::vector<std::uint32_t> waits);
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

Kernel StageBuilder::shard_copies(const Unit& unit, double share) const {
    Kernel kernel;
    kernel.fusion = Fusion::eager;
    const double bytes = software_.fsdp_copy_bytes * (gradient_bytes_ == 4 ? 1.0 : 0.5) * share;
    kernel.bytes = static_cast<std::int64_t>(bytes * static_cast<double>(unit.parameters.total()));
    return kernel;
}

// Parameters that ranks share; those a rank holds alone are never gathered.
Bytes StageBuilder::unit_bytes(const Unit& unit, Bytes width) const {
    return ((dense_.ranks > 1 ? unit.parameters.dense : 0) + (experts_.ranks > 1 ? unit.parameters.expert : 0)) * width;
}

std::uint32_t StageBuilder::gather_unit(const Unit& unit, std::uint8_t stream, Phase phase,
                                        std::vector<std::uint32_t> waits) {
    std::uint32_t node = program::kNone;
    if (dense_.ranks > 1)
        node =
            collective(stream, Slot::parameter, Collective::all_gather, unit.parameters.dense * parameter_width(unit),
                       "parameter all-gather", Account::comm_parameter, phase, waits, unit.layer);
    if (experts_.ranks > 1 && unit.parameters.expert > 0)
        node = collective(stream, Slot::expert_parameter, Collective::all_gather,
                          unit.parameters.expert * activation_bytes_, "expert parameter all-gather",
                          Account::comm_parameter, phase, std::move(waits), unit.layer);
    return node;
}

void StageBuilder::chunk_forward(const ScheduleStep& step) {
    receive(step, true);
    const std::vector<Unit> list = units(step.chunk);
    std::vector<std::uint32_t> ends;  // last main operation of each unit
    for (std::size_t u = 0; u < list.size(); ++u) {
        if (sharded_ && (!kept_ || step.first)) {
            // Prefetch: the gather of a unit may run while the unit before it computes.
            flush("forward", Phase::forward);
            const std::uint8_t stream = plan_.overlap_param_gather ? kParameter : kCompute;
            std::vector<std::uint32_t> waits;
            if (stream != kCompute)
                waits = {u >= 2 ? ends[u - 2] : step.first ? updated_ : program::kNone};
            const std::uint32_t node = gather_unit(list[u], stream, Phase::forward, waits);
            // Prefetched parameters are there while the unit before computes.
            if (stream == kCompute || u == 0)
                hold_gathered(unit_bytes(list[u], activation_bytes_));
            if (stream != kCompute && u + 1 < list.size())
                hold_gathered(unit_bytes(list[u + 1], activation_bytes_));
            if (stream != kCompute)
                next_waits_.push_back(node);
            if (kept_)
                hold(MemoryCause::gathered_parameters, unit_bytes(list[u], gradient_bytes_));
            add({shard_copies(list[u], kShardCopyForwardShare)});
        } else if (!sharded_ && step.first) {
            const auto at = gathered_.find({step.chunk, u});
            if (at != gathered_.end()) {
                flush("forward", Phase::forward);
                next_waits_.push_back(at->second);
            }
        }
        unit_forward(list[u]);
        if (sharded_) {
            if (!kept_)
                hold(MemoryCause::gathered_parameters, -unit_bytes(list[u], activation_bytes_));
            flush("forward", Phase::forward, list[u].layer);
            ends.push_back(last_main_);
        }
    }
    flush("forward", Phase::forward);
    send(step, true);
}

// Parameters of the next unit of a backward that has `done` units behind it; memory for its gradients beside.
void StageBuilder::gather_for_backward(const std::vector<Unit>& list, std::size_t done,
                                       const std::vector<std::uint32_t>& ends, Bytes gradients) {
    const Unit& unit = list[list.size() - 1 - done];
    flush("backward", Phase::backward);
    const std::uint8_t stream = plan_.overlap_param_gather ? kParameter : kCompute;
    std::vector<std::uint32_t> waits;
    if (stream != kCompute)
        waits = {done >= 2 ? ends[done - 2] : program::kNone};
    const std::uint32_t node = gather_unit(unit, stream, Phase::backward, waits);
    if (stream == kCompute || done == 0)
        hold_gathered(unit_bytes(unit, activation_bytes_));
    if (stream != kCompute && done + 1 < list.size())
        hold_gathered(unit_bytes(list[list.size() - 2 - done], activation_bytes_));
    if (gradients != 0)
        hold_gathered(gradients);
    if (stream != kCompute)
        next_waits_.push_back(node);
}

void StageBuilder::chunk_backward(const ScheduleStep& step) {
    receive(step, false);
    const std::vector<Unit> list = units(step.chunk);
    std::vector<std::uint32_t> ends;
    for (std::size_t done = 0; done < list.size(); ++done) {
        const Unit& unit = list[list.size() - 1 - done];
        if (sharded_ && !kept_)
            gather_for_backward(list, done, ends, unit_bytes(unit, gradient_bytes_));
        unit_backward(unit);
        if (sharded_ && (!kept_ || step.last)) {
            add({shard_copies(unit, 1.0 - kShardCopyForwardShare)});
            hold(MemoryCause::gathered_parameters, -unit_bytes(unit, activation_bytes_ + gradient_bytes_));
            flush("backward", Phase::backward, unit.layer);
            ends.push_back(last_main_);
        }
        const bool waits = unit.kind == Unit::Kind::head && head_waits_;
        if (reduces_now(step.last) && !waits)
            reduce_unit(unit, step.chunk, done + 1 == list.size());
    }
    flush("backward", Phase::backward);
    send(step, false);
}

// A forward and the backward of another micro-batch side by side: both inputs first, both outputs last, between them the
// work of one runs while the other communicates on a stream of its own.
void StageBuilder::chunk_pair(const ScheduleStep& forward, const ScheduleStep& backward) {
    receive(forward, true);
    receive(backward, false);
    ScheduleStep ahead = forward, back = backward;
    ahead.receives_forward = ahead.sends_forward = back.receives_backward = back.sends_backward = false;
    const std::size_t begin = t_.nodes.size();
    chunk_forward(ahead);
    const std::size_t middle = t_.nodes.size();
    chunk_backward(back);
    interleave(begin, middle);
    send(forward, true);
    send(backward, false);
}

// Merges the operations of [begin, middle) and those from middle on: in turn from each, a run of the compute stream with
// the communication behind it.
void StageBuilder::interleave(std::size_t begin, std::size_t middle) {
    const std::size_t end = t_.nodes.size();
    const auto on_compute = [&](std::size_t node) {
        return t_.operations[t_.nodes[node].operation].stream == kCompute;
    };
    std::vector<std::size_t> order;
    const auto take = [&](std::size_t& at, std::size_t stop) {
        while (at < stop && on_compute(at))
            order.push_back(at++);
        while (at < stop && !on_compute(at))
            order.push_back(at++);
    };
    for (std::size_t first = begin, second = middle; first < middle || second < end;) {
        take(first, middle);
        take(second, end);
    }
    std::vector<std::uint32_t> place(end - begin);
    std::vector<std::uint32_t> operations;
    for (std::size_t i = 0; i < order.size(); ++i) {
        place[order[i] - begin] = static_cast<std::uint32_t>(begin + i);
        operations.push_back(t_.nodes[order[i]].operation);
    }
    const auto moved = [&](std::uint32_t& node) {
        if (node != program::kNone && node >= begin)
            node = place[node - begin];
    };
    for (std::size_t i = 0; i < operations.size(); ++i) {
        t_.nodes[begin + i].operation = operations[i];
        for (std::uint32_t& wait : t_.operations[operations[i]].waits)
            moved(wait);
        if (on_compute(begin + i))
            last_main_ = static_cast<std::uint32_t>(begin + i);
    }
    for (std::uint32_t& wait : next_waits_)
        moved(wait);
}

void StageBuilder::chunk_backward_input(const ScheduleStep& step) {
    receive(step, false);
    const std::vector<Unit> list = units(step.chunk);
    std::vector<std::uint32_t> ends;
    for (std::size_t done = 0; done < list.size(); ++done) {
        const Unit& unit = list[list.size() - 1 - done];
        if (sharded_ && !kept_)
            gather_for_backward(list, done, ends, 0);
        unit_backward_input(unit);
        if (sharded_ && !kept_) {
            hold(MemoryCause::gathered_parameters, -unit_bytes(unit, activation_bytes_));
            flush("backward", Phase::backward, unit.layer);
            ends.push_back(last_main_);
        }
    }
    flush("backward", Phase::backward);
    send(step, false);
}

// Needs no parameters; a gradient is whole, and reduced, only here.
void StageBuilder::chunk_backward_weight(const ScheduleStep& step) {
    const std::vector<Unit> list = units(step.chunk);
    for (std::size_t done = 0; done < list.size(); ++done) {
        const Unit& unit = list[list.size() - 1 - done];
        if (sharded_ && !kept_)
            hold(MemoryCause::gathered_parameters, unit_bytes(unit, gradient_bytes_));
        unit_backward_weight(unit);
        if (sharded_ && (!kept_ || step.last)) {
            add({shard_copies(unit, 1.0 - kShardCopyForwardShare)});
            const Bytes given_back = gradient_bytes_ + (kept_ ? activation_bytes_ : 0);
            hold(MemoryCause::gathered_parameters, -unit_bytes(unit, given_back));
            flush("weight gradients", Phase::backward, unit.layer);
        }
        if (reduces_now(step.last))
            reduce_unit(unit, step.chunk, done + 1 == list.size());
    }
    flush("weight gradients", Phase::backward);
}

// Copies of a stage (DualPipe) reach the chunks they share in one order.
std::vector<std::int64_t> StageBuilder::chunks_in_model_order(bool forward) const {
    std::vector<std::int64_t> out;
    for (std::int64_t chunk = 0; chunk < chunks_held(layout_); ++chunk)
        out.push_back(chunk);
    std::sort(out.begin(), out.end(), [&](std::int64_t x, std::int64_t y) {
        return forward ? virtual_stage_of(x) < virtual_stage_of(y) : virtual_stage_of(x) > virtual_stage_of(y);
    });
    return out;
}

// Gradients of a unit are complete: reduce whole buckets. Every model chunk has buckets of its own, routed experts too.
void StageBuilder::reduce_unit(const Unit& unit, std::int64_t chunk, bool last_unit) {
    if (sharded_) {
        if (dense_.ranks * dense_.replicas > 1)
            reduce_bucket(false, unit.parameters.dense * gradient_bytes_);
        if (unit.parameters.expert > 0 && experts_.ranks * experts_.replicas > 1)
            reduce_bucket(true, unit.parameters.expert * gradient_bytes_);
        return;
    }
    if (experts_.ranks * experts_.replicas > 1)
        reduce_expert_bucket(unit.parameters.expert * gradient_bytes_, last_unit);
    if (dense_.ranks * dense_.replicas == 1)
        return;
    bucket_.open += unit.parameters.dense * gradient_bytes_;
    if (!plan_.bucket_split.empty()) {
        double sum = 0, upto = 0;
        for (const double part : plan_.bucket_split)
            sum += part;
        Bytes total = 0;
        for (const Unit& one : units(chunk))
            total += one.parameters.dense * gradient_bytes_;
        for (std::size_t i = 0; i < plan_.bucket_split.size(); ++i) {
            upto += plan_.bucket_split[i];
            const Bytes edge = i + 1 == plan_.bucket_split.size()
                                   ? total
                                   : static_cast<Bytes>(upto / sum * static_cast<double>(total));
            if (edge <= bucket_.reduced)
                continue;
            if (bucket_.reduced + bucket_.open < edge)
                break;
            reduce_bucket(false, edge - bucket_.reduced);
            bucket_.open -= edge - bucket_.reduced;
            bucket_.reduced = edge;
        }
    } else {
        const Bytes cap = bucket_cap();
        while (bucket_.open >= cap) {
            reduce_bucket(false, cap);
            bucket_.open -= cap;
        }
    }
    if (last_unit && bucket_.open > 0)
        reduce_bucket(false, bucket_.open);
    if (last_unit)
        bucket_ = {};
}

void StageBuilder::reduce_expert_bucket(Bytes bytes, bool last_unit) {
    expert_bucket_.open += bytes;
    const Bytes cap = bucket_cap();
    while (expert_bucket_.open >= cap) {
        reduce_bucket(true, cap);
        expert_bucket_.open -= cap;
    }
    if (last_unit && expert_bucket_.open > 0)
        reduce_bucket(true, expert_bucket_.open);
    if (last_unit)
        expert_bucket_ = {};
}

void StageBuilder::reduce_bucket(bool expert, Bytes bytes) {
    flush("backward", Phase::backward);
    const Sharding& sharding = expert ? experts_ : dense_;
    const std::string prefix = expert ? "expert gradient" : "gradient";
    const std::uint8_t stream = plan_.overlap_grad_reduce ? kGradient : kCompute;
    std::uint32_t node = program::kNone;
    const auto reduce = [&](Slot slot, Collective kind, Bytes size, const std::string& what) {
        node = collective(stream, slot, kind, size, what, Account::comm_gradient, Phase::reduce, {last_main_});
    };
    if (sharding.ranks > 1 && layout_.zero >= 1)
        reduce(expert ? Slot::expert_gradient : Slot::gradient, Collective::reduce_scatter, bytes,
               prefix + " reduce-scatter");
    else if (sharding.ranks > 1)
        reduce(expert ? Slot::expert_gradient : Slot::gradient, Collective::all_reduce, bytes, prefix + " all-reduce");
    if (sharding.replicas > 1)
        reduce(expert ? Slot::expert_replica : Slot::replica, Collective::all_reduce,
               (bytes + sharding.ranks - 1) / sharding.ranks, prefix + " all-reduce (replicas)");
    if (plan_.overlap_grad_reduce && node != program::kNone)
        reduction_nodes_ = {node};  // later reductions of the stream end later
}

std::uint32_t StageBuilder::message(std::uint8_t stream, PeerSlot slot, bool send, std::vector<std::uint32_t> waits) {
    program::Batch batch;
    batch.halves.push_back({static_cast<std::uint16_t>(slot), send, message_bytes()});
    Operation op;
    op.kind = OpKind::p2p_batch;
    op.stream = stream;
    op.payload = static_cast<std::uint32_t>(p_.batches.size());
    op.label = label(send ? "pipeline send" : "pipeline receive", Account::comm_pp, Phase::none);
    for (const std::uint32_t wait : waits) {
        if (wait != program::kNone)
            op.waits.push_back(wait);
    }
    p_.batches.push_back(std::move(batch));
    return push(std::move(op));
}

void StageBuilder::receive(const ScheduleStep& step, bool forward) {
    if (!(forward ? step.receives_forward : step.receives_backward))
        return;
    const bool up = runs_up(layout_.schedule, step.chunk);
    const std::uint8_t stream =
        forward ? (up ? kReceiveForwardUp : kReceiveForward) : (up ? kReceiveBackwardUp : kReceiveBackward);
    const PeerSlot slot = forward ? (up ? PeerSlot::receive_forward_up : PeerSlot::receive_forward)
                                  : (up ? PeerSlot::receive_backward_up : PeerSlot::receive_backward);
    const std::uint32_t node = message(stream, slot, false, {});
    if (splits_backward(layout_.schedule))
        post_after(node, step.ahead);
    next_waits_.push_back(node);
    gather_message();
}

// The receive of the step at hand is posted when all but `ahead` of the steps before it are done.
void StageBuilder::post_after(std::uint32_t receive, std::int64_t ahead) {
    const auto here = static_cast<std::int64_t>(ends_.size());
    const std::int64_t after = here - 1 - ahead;
    if (after >= block_begin_ || block_steps_ == 0) {
        const std::uint32_t node = after >= 0 ? ends_[static_cast<std::size_t>(after)] : updated_;
        t_.operations[t_.nodes[receive].operation].waits.push_back(node);
    } else {  // a step of the iteration before; its node comes later
        late_posts_.emplace_back(receive, std::max(after + block_steps_, here));
    }
}

void StageBuilder::send(const ScheduleStep& step, bool forward) {
    if (!(forward ? step.sends_forward : step.sends_backward))
        return;
    const bool up = runs_up(layout_.schedule, step.chunk);
    const std::uint8_t stream = forward ? (up ? kSendForwardUp : kSendForward) : (up ? kSendBackwardUp : kSendBackward);
    const PeerSlot slot = forward ? (up ? PeerSlot::send_forward_up : PeerSlot::send_forward)
                                  : (up ? PeerSlot::send_backward_up : PeerSlot::send_backward);
    message(stream, slot, true, {last_main_});
}

// A message that came in 1/tp pieces is put together inside the node.
void StageBuilder::gather_message() {
    if (layout_.tp == 1 || shard_.sequence_parallel || !software_.p2p_scatter_gather)
        return;
    tensor(Collective::all_gather, hidden_bytes(), "tp all-gather (pipeline input)", "pipeline input", Phase::none, -1);
}

void StageBuilder::exchange(const ScheduleStep& step) {
    flush("forward", Phase::forward);
    program::Batch batch;
    const auto half = [&](bool wanted, PeerSlot slot, bool send) {
        if (wanted)
            batch.halves.push_back({static_cast<std::uint16_t>(slot), send, message_bytes()});
    };
    half(step.sends_forward, PeerSlot::send_forward, true);
    half(step.receives_forward, PeerSlot::receive_forward, false);
    half(step.sends_backward, PeerSlot::send_backward, true);
    half(step.receives_backward, PeerSlot::receive_backward, false);
    Operation op;
    op.kind = OpKind::p2p_batch;
    op.payload = static_cast<std::uint32_t>(p_.batches.size());
    op.label = label("pipeline exchange", Account::comm_pp, Phase::none);
    op.host_sync = software_.host_waits_for_messages;
    p_.batches.push_back(std::move(batch));
    push(std::move(op));
    if (step.receives_forward)
        gather_message();
    if (step.receives_backward)
        gather_message();
}

void StageBuilder::optimizer() {
    const Held held = parameters_.sum();
    const auto part = [](std::int64_t whole, std::int64_t parts) { return (whole + parts - 1) / parts; };
    const std::int64_t own =
        layout_.zero >= 1 ? part(held.dense, dense_.ranks) + part(held.expert, experts_.ranks) : held.total();
    const std::int64_t gradients = own;
    std::vector<Kernel> kernels = optimizer_kernels(own, gradients, gradient_bytes_ == 4);
    if (!plan_.clip_gradients)
        kernels.erase(kernels.begin());  // the gradient norm
    add(std::move(kernels));
    flush("optimizer", Phase::optimizer);
    updated_ = last_main_;
    if (layout_.zero == 1 || layout_.zero == 2)
        gather_after_optimizer();
}

void StageBuilder::gather_after_optimizer() {
    const bool overlap = plan_.overlap_param_gather;
    const std::uint8_t stream = overlap ? kParameter : kCompute;
    const Bytes whole = parameters_.total() * activation_bytes_;
    const Bytes cap = overlap ? bucket_cap() / gradient_bytes_ * activation_bytes_ : whole;
    Held open;
    Bytes open_bytes = 0;  ///< dense parameters on the wire
    std::vector<UnitPlace> members;
    const auto emit = [&] {
        std::uint32_t node = program::kNone;
        if (open.dense > 0 && dense_.ranks > 1)
            node = collective(stream, Slot::parameter, Collective::all_gather, open_bytes, "parameter all-gather",
                              Account::comm_parameter, Phase::gather, {last_main_});
        if (open.expert > 0 && experts_.ranks > 1)
            node = collective(stream, Slot::expert_parameter, Collective::all_gather, open.expert * activation_bytes_,
                              "expert parameter all-gather", Account::comm_parameter, Phase::gather, {last_main_});
        if (overlap && node != program::kNone) {
            for (const UnitPlace& unit : members)
                gathered_[unit] = node;
        }
        open = {};
        open_bytes = 0;
        members.clear();
    };
    for (const std::int64_t chunk : chunks_in_model_order(true)) {
        const std::vector<Unit> list = units(chunk);
        for (std::size_t u = 0; u < list.size(); ++u) {
            open.dense += list[u].parameters.dense;
            open_bytes += list[u].parameters.dense * parameter_width(list[u]);
            open.expert += list[u].parameters.expert;
            members.emplace_back(chunk, u);
            if (open.total() * activation_bytes_ >= cap)
                emit();
        }
    }
    emit();
}

// Reductions that were not hidden behind the backward pass, and those of gradients shared by two stages.
void StageBuilder::reduce_at_end() {
    const bool late = data_parallel_ && !sharded_ && layout_.zero != 2 && plan_.reduce_every == ReduceEvery::step &&
                      !(plan_.overlap_grad_reduce && layout_.schedule != Schedule::dual_pipe);
    if (late) {
        bucket_ = {};
        expert_bucket_ = {};
        for (const std::int64_t chunk : chunks_in_model_order(false)) {
            const std::vector<Unit> list = units(chunk);
            for (std::size_t done = 0; done < list.size(); ++done) {
                reduce_unit(list[list.size() - 1 - done], chunk, done + 1 == list.size());
            }
        }
    }
    if (a_.tied_embeddings && parts_embedding_and_head(layout_) && (stage_ == 0 || stage_ == layout_.pp - 1)) {
        for (const std::uint32_t node : reduction_nodes_)
            next_waits_.push_back(node);
        flush("embedding gradient", Phase::reduce);
        collective(kCompute, Slot::embedding, Collective::all_reduce,
                   padded_vocab(a_, layout_.tp) * a_.hidden / layout_.tp * gradient_bytes_, "embedding all-reduce",
                   Account::comm_other, Phase::reduce);
    }
    for (const std::uint32_t node : reduction_nodes_)
        next_waits_.push_back(node);
    const std::int64_t members = norm_over_world(layout_) ? layout_.world() : layout_.tp * layout_.pp;
    const bool after_update = layout_.schedule == Schedule::zb_h2 || layout_.schedule == Schedule::zb_v;
    if (plan_.clip_gradients && members > 1 && after_update) {
        flush("step end", Phase::none);  // zero_bubble.hpp: nobody waits for the norm
        collective(kNorm, Slot::norm, Collective::all_reduce, 4, "gradient norm", Account::comm_other, Phase::reduce,
                   {last_main_});
    } else if (plan_.clip_gradients && members > 1) {
        collective(kCompute, Slot::norm, Collective::all_reduce, 4, "gradient norm", Account::comm_other,
                   Phase::reduce);
        t_.operations.back().host_sync = true;
    } else {
        flush("step end", Phase::none);
    }
}

// Streams that are used, numbered without gaps; the compute stream stays 0.
void StageBuilder::compact_streams() {
    std::uint8_t number[kStreamNames] = {};
    bool used[kStreamNames] = {true};
    for (const Operation& op : t_.operations)
        used[op.stream] = true;
    std::uint8_t next = 0;
    for (std::uint8_t s = 0; s < kStreamNames; ++s) {
        if (used[s])
            number[s] = next++;
    }
    t_.streams = next;
    for (Operation& op : t_.operations)
        op.stream = number[op.stream];
}

// One run of the schedule. Where the last heads wait with their weight gradients, a repeat that holds their first is cut.
void StageBuilder::schedule_block(const ScheduleBlock& whole) {
    std::int64_t heads = 0;  // of one iteration
    for (const ScheduleStep& step : whole.steps)
        heads +=
            step.kind == ScheduleStep::Kind::backward && virtual_stage_of(step.chunk) == virtual_stages(layout_) - 1;
    const bool whole_backward = layout_.schedule == Schedule::one_f_one_b || layout_.schedule == Schedule::interleaved;
    const std::int64_t defer = layout_.pp > 1 && !sharded_ && whole_backward ? software_.head_weight_deferred : 0;
    const std::int64_t before = plan_.micro_batches() - defer - heads_done_;  // micro-batches that do not wait
    const std::int64_t own = defer > 0 && heads > 0 ? before / heads : 0;     // iterations without waiting
    if (own > 0 && own < whole.count) {
        ScheduleBlock part = whole;
        part.count = own;
        schedule_block(part);
        part.count = whole.count - own;
        schedule_block(part);
        return;
    }
    const ScheduleBlock& block = whole;
    head_waits_ = defer > 0 && heads > 0 && own <= 0;
    const std::uint32_t node = block.count > 1 ? open_repeat(block.count) : 0;
    block_begin_ = static_cast<std::int64_t>(ends_.size());
    block_steps_ = block.count > 1 ? static_cast<std::int64_t>(block.steps.size()) : 0;
    for (std::size_t i = 0; i < block.steps.size(); ++i) {
        const ScheduleStep& step = block.steps[i];
        switch (step.kind) {
            case ScheduleStep::Kind::forward:
                if (!step.paired) {
                    chunk_forward(step);
                    break;
                }
                chunk_pair(step, block.steps[++i]);
                ends_.push_back(last_main_);
                break;
            case ScheduleStep::Kind::backward: chunk_backward(step); break;
            case ScheduleStep::Kind::backward_input: chunk_backward_input(step); break;
            case ScheduleStep::Kind::backward_weight: chunk_backward_weight(step); break;
            case ScheduleStep::Kind::exchange: exchange(step); break;
        }
        ends_.push_back(last_main_);
    }
    flush("forward", Phase::forward);
    for (const auto& [receive, after] : late_posts_)
        t_.operations[t_.nodes[receive].operation].waits.push_back(ends_[static_cast<std::size_t>(after)]);
    late_posts_.clear();
    if (block.count > 1)
        close(node);
    heads_done_ += block.count * heads;
    heads_waiting_ += head_waits_ ? block.count * heads : 0;
    head_waits_ = false;
}

// In the bubble that ends the last stage's work.
void StageBuilder::deferred_head() {
    if (heads_waiting_ == 0)
        return;
    const Bytes held = head_weight_gradient_bytes(a_, shard_, software_);
    for (std::int64_t i = 0; i < heads_waiting_; ++i) {
        if (shard_.sequence_parallel)
            tensor(Collective::all_gather, hidden_bytes(), "tp all-gather (saved input)", "head", Phase::backward, -1);
        add(head_backward_weight(a_, shard_, software_));
        hold(MemoryCause::activations, -held);
        flush("head weight gradients", Phase::backward);
    }
    const std::int64_t chunk = layout_.vpp - 1;
    for (const Unit& unit : units(chunk))
        if (unit.kind == Unit::Kind::head && reduces_now(true))
            reduce_unit(unit, chunk, true);
}

std::uint32_t StageBuilder::build(const std::vector<ScheduleStep>& order, std::int64_t steps) {
    t_.name = fmt::format("stage {}", stage_);
    const std::uint32_t repeat = open_repeat(steps);
    optimizer();
    for (const ScheduleBlock& block : fold(order, layout_.pp, layout_.vpp))
        schedule_block(block);
    deferred_head();
    reduce_at_end();
    Operation end;
    end.kind = OpKind::step_end;
    end.label = label("step end", Account::idle, Phase::none);
    push(std::move(end));
    close(repeat);
    compact_streams();
    p_.templates.push_back(std::move(t_));
    return static_cast<std::uint32_t>(p_.templates.size() - 1);
}

}  // namespace
}  // namespace stage

std::string_view slot_name(Slot slot) {
    switch (slot) {
        case Slot::tp: return "tp";
        case Slot::context: return "cp";
        case Slot::expert: return "ep";
        case Slot::expert_tensor: return "etp";
        case Slot::parameter:
        case Slot::gradient: return "dp";
        case Slot::replica: return "dp replicas";
        case Slot::expert_parameter:
        case Slot::expert_gradient: return "expert dp";
        case Slot::expert_replica: return "expert dp replicas";
        case Slot::norm: return "all";
        case Slot::embedding: return "embedding";
        case Slot::count: break;
    }
    return "";
}

Account slot_account(Slot slot) {
    switch (slot) {
        case Slot::tp:
        case Slot::expert_tensor: return Account::comm_tp;
        case Slot::context: return Account::comm_cp;
        case Slot::expert: return Account::comm_ep;
        case Slot::parameter:
        case Slot::expert_parameter: return Account::comm_parameter;
        case Slot::gradient:
        case Slot::replica:
        case Slot::expert_gradient:
        case Slot::expert_replica: return Account::comm_gradient;
        case Slot::norm:
        case Slot::embedding:
        case Slot::count: break;
    }
    return Account::comm_other;
}

bool norm_over_world(const Layout& layout) { return layout.zero >= 1 || layout.ep > 1; }

Held StageParameters::sum() const {
    Held out{embedding + head, 0};
    for (const Held& layer : layers) {
        out.dense += layer.dense;
        out.expert += layer.expert;
    }
    return out;
}

Sharding dense_sharding(const Layout& layout) {
    const std::int64_t data = replicas(layout) * layout.cp;
    if (layout.zero == 0 || layout.shard_group == 0)
        return {data, 1};
    return {layout.shard_group, data / layout.shard_group};
}

// A sharding group of g data ranks holds g / ep copies of an expert's data group, at least one.
Sharding expert_sharding(const Layout& layout) {
    const std::int64_t data = layout.tp * layout.cp * replicas(layout) / (layout.expert_tp() * layout.ep);
    if (layout.zero == 0 || layout.shard_group == 0)
        return {data, 1};
    const std::int64_t span = layout.shard_group * layout.tp / (layout.expert_tp() * layout.ep);
    const std::int64_t ranks = std::max<std::int64_t>(1, std::min(span, data));
    return {ranks, data / ranks};
}

Held held_of_layer(const Architecture& a, const Layout& layout, std::int64_t layer) {
    Architecture held = a;
    held.kv_heads = std::max(a.kv_heads, layout.tp);  // fewer heads than ranks: several ranks hold the same one
    const LayerParameters p = layer_parameters(held, layer_shape(a, layer));
    return {(p.attention + p.mlp) / layout.tp + p.norms + p.replicated, p.experts / (layout.ep * layout.expert_tp())};
}

Held held_of_module(const Architecture& a, const Layout& layout, std::int64_t layer) {
    Held out = held_of_layer(a, layout, layer);
    out.dense += 2 * a.hidden * a.hidden / layout.tp + 3 * (a.rms_norm ? 1 : 2) * a.hidden;
    return out;
}

StageParameters stage_parameters(const Architecture& a, const Layout& layout, std::int64_t stage) {
    Architecture held = a;
    held.kv_heads = std::max(a.kv_heads, layout.tp);  // fewer heads than ranks: several ranks hold the same one
    const ParameterCount count = count_parameters(held, padded_vocab(a, layout.tp));
    StageParameters out;
    for (std::int64_t chunk = 0; chunk < chunks_held(layout); ++chunk) {
        const std::int64_t at = virtual_stage(layout.schedule, layout.pp, stage, chunk);
        const std::int64_t first = first_layer_of(a, layout, at);
        for (std::int64_t layer = first; layer < first + layers_of(a, layout, at); ++layer)
            out.layers.push_back(held_of_layer(a, layout, layer));
        if (at == 0)
            out.embedding = count.embedding / layout.tp + count.positions;
        if (at == virtual_stages(layout) - 1) {
            out.head = count.head / layout.tp + count.final_norm;
            if (a.tied_embeddings && parts_embedding_and_head(layout))
                out.head += count.embedding / layout.tp;  // the last stage keeps a copy
            for (std::int64_t m = 0; m < a.mtp_layers; ++m)
                out.layers.push_back(held_of_module(a, layout, a.layers + m));
        }
    }
    return out;
}

bool overlaps_messages(const Layout& layout, const SoftwareFeatures& software) {
    return splits_backward(layout.schedule) || (software.p2p_overlap && layout.schedule == Schedule::interleaved);
}

std::uint32_t build_stage(const Architecture& a, const TrainingPlan& plan, const SoftwareFeatures& software,
                          std::int64_t stage, const std::vector<ScheduleStep>& order, std::int64_t steps,
                          ProgramParts parts) {
    return stage::StageBuilder(a, plan, software, stage, parts).build(order, steps);
}

}  // namespace fabricast
