// Data parallelism of a stage: gathers of sharded parameters, buckets of gradients, the update, and what waits for the end.
#include "models/parallel/stage_program.hpp"
#include "models/parallel/stage_update.hpp"

namespace fabricast::stage {
namespace {

// Of the copies sharded training makes (SoftwareFeatures::fsdp_copy_bytes, half with 16-bit reduction) the copy-out of the
// forward's gather; the backward has another copy-out, the copy-in, cast and pre-divide of the reduction. Estimate.
constexpr double kShardCopyForwardShare = 0.3;

// ZeRO-1 over lists of tensors, a shard of each on every rank (nanotron's reduce_scatter_coalesced, all_gather_coalesced and
// the list forms of torch.distributed below them). Bytes a parameter: fp32 gradients flattened twice 16; 16-bit parameters
// flattened, unpacked, copied to their places 12. The last copies are one by one, tensors x ranks of them.
constexpr std::int64_t kShardListBytes = 28;

// Weights of a layer: products, two norms.
std::int64_t tensors_of_layer(const Architecture& a, const SoftwareFeatures& f) {
    const std::int64_t split = f.split_projections ? 2 + (a.gated ? 1 : 0) : 0;
    return 6 + split;
}

}  // namespace

Kernel StageBuilder::shard_copies(const Unit& unit, Phase phase) const {
    const double share = phase == Phase::forward ? kShardCopyForwardShare : 1.0 - kShardCopyForwardShare;
    Kernel kernel;
    kernel.fusion = Fusion::eager;
    const double bytes = software_.fsdp_copy_bytes * (gradient_bytes_ == 4 ? 1.0 : 0.5) * share;
    kernel.bytes = static_cast<std::int64_t>(bytes * static_cast<double>(unit.parameters.total()));
    return kernel;
}

// Forward: fp32 read, 16 bit written. Backward: the product writes a 16-bit gradient, which is cast to fp32 and added; of the
// 20 bytes the 8 of reading and writing the sum are in the price of a product that accumulates.
Kernel StageBuilder::casts(const Unit& unit, Phase phase) const {
    Kernel kernel;
    kernel.fusion = Fusion::eager;
    kernel.bytes = (phase == Phase::forward ? 6 : 12) * unit.parameters.total();
    return kernel;
}

// Parameters that ranks share or that rest on the host; those a rank holds alone are never gathered.
Bytes StageBuilder::unit_bytes(const Unit& unit, Bytes width) const {
    const bool host = plan_.offload.parameters;
    return ((dense_.ranks > 1 || host ? unit.parameters.dense : 0) +
            (experts_.ranks > 1 || host ? unit.parameters.expert : 0)) *
           width;
}

std::uint32_t StageBuilder::gather_unit(const Unit& unit, std::uint8_t stream, Phase phase,
                                        std::vector<std::uint32_t> waits) {
    std::uint32_t node = program::kNone;
    if (plan_.offload.parameters) {
        const std::vector<std::uint32_t> before = stream == kCompute ? std::vector<std::uint32_t>{last_main_} : waits;
        node = host_copy(HostRoute::up, shard_elements(unit.parameters) * activation_bytes_, "weights from host", phase,
                         before);
        waits.push_back(node);
        next_waits_.push_back(node);
    }
    const Held wire = parameter_wire(unit);
    if (dense_.ranks > 1)
        node = collective(stream, Slot::parameter, Collective::all_gather, wire.dense, gather_name(false),
                          Account::comm_parameter, phase, waits, unit.layer);
    if (experts_.ranks > 1 && unit.parameters.expert > 0)
        node = collective(stream, Slot::expert_parameter, Collective::all_gather, wire.expert, gather_name(true),
                          Account::comm_parameter, phase, std::move(waits), unit.layer);
    add_parameter_codes(unit);
    return node;
}

void StageBuilder::regather_edge(const Unit& unit) {
    const bool edge = unit.kind == Unit::Kind::embedding || unit.kind == Unit::Kind::head;
    const bool whole = layout_.zero == 1 || layout_.zero == 2 || kept_;
    if (!software_.edges_regathered || !edge || !whole || dense_.ranks == 1)
        return;
    flush("backward", Phase::backward);
    const bool aside = plan_.overlap_param_gather;  // the stream of this communicator
    Operation begin;                                // where the pass stands, also when a repeat opens with it
    begin.kind = OpKind::compute;
    begin.payload = parts_.costs.intern({}, {});
    begin.label = label("backward", Account::gemm_ideal, Phase::backward);
    const std::uint32_t after = aside ? push(std::move(begin)) : program::kNone;
    const std::uint32_t node = gather_unit(unit, aside ? kParameter : kCompute, Phase::backward, {after});
    if (aside)
        next_waits_.push_back(node);
}

// Memory that comes with a gather; where there is none, with the segment that follows.
void StageBuilder::hold_with(std::uint32_t gather, Bytes bytes) {
    if (gather == program::kNone)
        hold(MemoryCause::gathered_parameters, bytes);
    else if (bytes != 0)
        t_.operations[t_.nodes[gather].operation].memory.push_back({MemoryCause::gathered_parameters, bytes});
}

std::uint32_t StageBuilder::gather_ahead(const Unit& unit, const Unit* next, bool first, Phase phase,
                                         std::uint32_t after) {
    const bool ahead = plan_.overlap_param_gather;
    const std::uint32_t node = gather_unit(unit, ahead ? kParameter : kCompute, phase,
                                           ahead ? std::vector<std::uint32_t>{after} : std::vector<std::uint32_t>{});
    if (!ahead || first)
        hold_with(node, unit_bytes(unit, activation_bytes_));
    if (ahead && next != nullptr)
        hold_with(node, unit_bytes(*next, activation_bytes_));
    if (ahead && node != program::kNone)
        next_waits_.push_back(node);
    return node;
}

// Parameters of the next unit of a backward that has `done` units behind it; memory for its gradients beside.
void StageBuilder::gather_for_backward(const std::vector<Unit>& list, std::size_t done,
                                       const std::vector<std::uint32_t>& ends, Bytes gradients) {
    flush("backward", Phase::backward);
    const Unit* next = done + 1 < list.size() ? &list[list.size() - 2 - done] : nullptr;
    const std::uint32_t node = gather_ahead(list[list.size() - 1 - done], next, done == 0, Phase::backward,
                                            done >= 2 ? ends[done - 2] : program::kNone);
    hold_with(node, gradients);
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
        if (dense_.ranks * dense_.replicas > 1 || gradients_leave_)
            reduce_bucket(false, unit.parameters.dense * gradient_bytes_, part_of_unit(unit, false));
        if (unit.parameters.expert > 0 && (experts_.ranks * experts_.replicas > 1 || gradients_leave_))
            reduce_bucket(true, unit.parameters.expert * gradient_bytes_, part_of_unit(unit, true));
        return;
    }
    if (experts_.ranks * experts_.replicas > 1 || gradients_leave_)
        reduce_expert_bucket(unit.parameters.expert * gradient_bytes_, chunk, last_unit);
    if (dense_.ranks * dense_.replicas == 1 && !gradients_leave_)
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
            reduce_bucket(false, edge - bucket_.reduced, dense_matrices_);
            bucket_.open -= edge - bucket_.reduced;
            bucket_.reduced = edge;
        }
    } else {
        const Bytes cap = bucket_cap();
        while (bucket_.open >= cap && !one_bucket(chunk)) {
            reduce_bucket(false, cap, dense_matrices_);
            bucket_.open -= cap;
        }
    }
    if (last_unit && bucket_.open > 0)
        reduce_bucket(false, bucket_.open, dense_matrices_);
    if (last_unit)
        bucket_ = {};
}

void StageBuilder::reduce_expert_bucket(Bytes bytes, std::int64_t chunk, bool last_unit) {
    expert_bucket_.open += bytes;
    const Bytes cap = bucket_cap();
    while (expert_bucket_.open >= cap && !one_bucket(chunk)) {
        reduce_bucket(true, cap, expert_matrices_);
        expert_bucket_.open -= cap;
    }
    if (last_unit && expert_bucket_.open > 0)
        reduce_bucket(true, expert_bucket_.open, expert_matrices_);
    if (last_unit)
        expert_bucket_ = {};
}

void StageBuilder::reduce_bucket(bool expert, Bytes bytes, double matrices) {
    const NarrowBucket narrow = narrow_bucket(expert, bytes, matrices);
    if (narrow.memory > 0) {
        Kernel codes;
        codes.bytes = narrow.memory;
        add({codes});
    }
    flush("backward", Phase::backward);
    const Sharding& sharding = expert ? experts_ : dense_;
    const std::string prefix = expert ? "expert gradient" : "gradient";
    const std::uint8_t stream = plan_.overlap_grad_reduce ? kGradient : kCompute;
    std::uint32_t node = program::kNone;
    const auto reduce = [&](Slot slot, Collective kind, Bytes size, const std::string& what) {
        node = collective(stream, slot, kind, size, what, Account::comm_gradient, Phase::reduce, {last_main_});
    };
    for (const CallInfo& call : narrow.calls)
        reduce(call.slot, call.kind, call.bytes, call.what);
    if (sharding.ranks > 1 && layout_.zero >= 1 && narrow.plain > 0)
        reduce(expert ? Slot::expert_gradient : Slot::gradient, Collective::reduce_scatter, narrow.plain,
               prefix + " reduce-scatter");
    else if (sharding.ranks > 1 && narrow.plain > 0)
        reduce(expert ? Slot::expert_gradient : Slot::gradient, Collective::all_reduce, narrow.plain,
               prefix + " all-reduce");
    if (sharding.replicas > 1)
        reduce(expert ? Slot::expert_replica : Slot::replica, Collective::all_reduce,
               (bytes + sharding.ranks - 1) / sharding.ranks, prefix + " all-reduce (replicas)");
    if (plan_.overlap_grad_reduce && node != program::kNone)
        reduction_nodes_ = {node};  // later reductions of the stream end later
    if (gradients_leave_)
        gradients_down((bytes + sharding.ranks - 1) / sharding.ranks, node != program::kNone ? node : last_main_);
}

void StageBuilder::optimizer() {
    Updated here = stage_update(a_, plan_, stage_, parameters_);
    std::uint32_t ready = program::kNone;
    if (plan_.offload.optimizer > 0) {
        const auto there = static_cast<std::int64_t>(plan_.offload.optimizer * static_cast<double>(here.elements));
        here.elements -= there;
        ready = update_on_host(there);
    }
    const std::int64_t updated_here = here.total();
    const bool in_two = updates_in_two(here);
    if (in_two) {
        Held first;
        for (const Unit& unit : units(0)) {
            first.dense += unit.parameters.dense;
            first.expert += unit.parameters.expert;
        }
        Updated part;
        part.elements = std::min(here.elements, shard_elements(first));
        update(part);
        gather_chunks({0});
        here.elements -= part.elements;
    }
    update(here);
    if (plan_.offload.parameters && updated_here > 0)
        ready = host_copy(HostRoute::down, updated_here * activation_bytes_, "weights to host", Phase::optimizer,
                          {last_main_});
    if (ready != program::kNone) {
        next_waits_.push_back(ready);
        flush("optimizer", Phase::optimizer);
    }
    updated_ = last_main_;
    if (in_two) {
        std::vector<std::int64_t> others = chunks_in_model_order(true);
        others.erase(others.begin());
        gather_chunks(others);
    } else if (layout_.zero == 1 || layout_.zero == 2) {
        gather_after_optimizer();
    }
}

void StageBuilder::update(const Updated& part) {
    add(optimizer_kernels(plan_.optimizer, plan_.precision, part, gradient_bytes_, plan_.clip_gradients));
    flush("optimizer", Phase::optimizer);
}

// overlap_param_gather_with_optimizer_step of Megatron-Core.
bool StageBuilder::updates_in_two(const Updated& here) const {
    return software_.gathers_beside_update && plan_.overlap_param_gather && layout_.pp > 1 && layout_.vpp > 1 &&
           layout_.schedule == Schedule::interleaved && (layout_.zero == 1 || layout_.zero == 2) &&
           here.elements == here.total() && plan_.offload.optimizer == 0;
}

// One broadcast an owner, one after the other; neighbours of one size are one repeat.
void StageBuilder::broadcast_by_owners() {
    const std::vector<std::int64_t> owned = owned_parameters(parameter_tensors(a_, layout_, stage_), dense_.ranks);
    for (std::size_t i = 0, end = 0; i < owned.size(); i = end) {
        while (end < owned.size() && owned[end] == owned[i])
            ++end;
        const std::uint32_t repeat = end - i > 1 ? open_repeat(static_cast<std::int64_t>(end - i)) : 0;
        collective(kCompute, Slot::parameter, Collective::broadcast, owned[i] * activation_bytes_,
                   "parameter broadcast", Account::comm_parameter, Phase::gather);
        if (end - i > 1)
            close(repeat);
    }
}

void StageBuilder::gather_after_optimizer() {
    if (software_.owner_broadcasts && dense_.ranks > 1 && parameters_.sum().expert == 0) {
        broadcast_by_owners();
        return;
    }
    gather_chunks(chunks_in_model_order(true));
    if (software_.host_per_shard_s > 0 && layout_.zero == 1 && dense_.ranks > 1)
        copy_shards();
}

// Overlapped: in the buckets of the reductions, chunk by chunk, and a unit waits for the bucket with its last parameters.
void StageBuilder::gather_chunks(const std::vector<std::int64_t>& chunks) {
    const bool overlap = plan_.overlap_param_gather;
    const std::uint8_t stream = overlap ? kParameter : kCompute;
    const Bytes cap = bucket_cap() / gradient_bytes_ * activation_bytes_;
    const bool flat = software_.buckets_on_first_stage || plan_.bucket_bytes > 0;  // else a unit is gathered whole
    Held open;
    Held wire;  ///< bytes of them on the wire
    std::vector<UnitPlace> members;
    const auto emit = [&](std::int64_t pieces) {
        std::uint32_t node = program::kNone;
        const auto piece = [&](Bytes whole, std::int64_t i) { return whole * (i + 1) / pieces - whole * i / pieces; };
        for (std::int64_t i = 0; i < pieces; ++i) {
            if (open.dense > 0 && dense_.ranks > 1)
                node = collective(stream, Slot::parameter, Collective::all_gather, piece(wire.dense, i),
                                  gather_name(false), Account::comm_parameter, Phase::gather, {last_main_});
            if (open.expert > 0 && experts_.ranks > 1)
                node = collective(stream, Slot::expert_parameter, Collective::all_gather, piece(wire.expert, i),
                                  gather_name(true), Account::comm_parameter, Phase::gather, {last_main_});
        }
        if (overlap && node != program::kNone) {
            for (const UnitPlace& unit : members)
                gathered_[unit] = node;
        }
        open = {};
        wire = {};
        members.clear();
    };
    for (const std::int64_t chunk : chunks) {
        const std::vector<Unit> list = units(chunk);
        const bool one = one_bucket(chunk);
        for (std::size_t u = 0; u < list.size(); ++u) {
            open.dense += list[u].parameters.dense;
            open.expert += list[u].parameters.expert;
            const Held narrow = parameter_wire(list[u]);
            wire.dense += narrow.dense;
            wire.expert += narrow.expert;
            add_parameter_codes(list[u]);
            members.emplace_back(chunk, u);
            const Bytes bytes = open.total() * activation_bytes_;
            if (overlap && !one && bytes >= cap)
                emit(flat ? bytes / cap : 1);
        }
        if (overlap)
            emit(1);
    }
    emit(1);
}

void StageBuilder::copy_shards() {
    std::int64_t tensors = 0;
    for (std::int64_t chunk = 0; chunk < chunks_held(layout_); ++chunk)
        for (const Unit& unit : units(chunk))
            tensors += unit.kind == Unit::Kind::layer ? tensors_of_layer(a_, software_) : 1;
    Kernel copies;
    copies.fusion = software_.fusion;
    copies.bytes = kShardListBytes * parameters_.sum().dense;
    add({copies});
    flush("shard copies", Phase::gather);
    host_work(software_.host_per_shard_s * static_cast<double>(tensors * dense_.ranks), "shard copies");
}

// The gradients of the step rest on all tensor-parallel traffic, also on what runs beside the last segment.
void StageBuilder::wait_for_tensor_traffic() {
    std::uint32_t behind = 1;  // of the last repeat inside the step
    for (std::uint32_t n = 1; n < t_.nodes.size(); ++n) {
        if (t_.nodes[n].kind == program::Node::Kind::repeat)
            behind = std::max(behind, t_.nodes[n].end);
    }
    for (auto n = static_cast<std::uint32_t>(t_.nodes.size()); n-- > behind;) {
        if (t_.nodes[n].kind == program::Node::Kind::operation &&
            t_.operations[t_.nodes[n].operation].stream == kTensor) {
            next_waits_.push_back(n);
            return;
        }
    }
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
    if (down_ != program::kNone)
        next_waits_.push_back(down_);
    const std::int64_t members = norm_over_world(layout_) ? layout_.world() : layout_.tp * layout_.pp;
    const bool after_update = layout_.schedule == Schedule::zb_h2 || layout_.schedule == Schedule::zb_v;
    if (plan_.clip_gradients && members > 1 && after_update) {
        flush("step end", Phase::none);  // zero_bubble.hpp: nobody waits for the norm
        collective(kNorm, Slot::norm, Collective::all_reduce, 4, "gradient norm", Account::comm_other, Phase::reduce,
                   {last_main_});
    } else if (plan_.clip_gradients && members > 1) {
        wait_for_tensor_traffic();
        collective(kCompute, Slot::norm, Collective::all_reduce, 4, "gradient norm", Account::comm_other,
                   Phase::reduce);
        t_.operations.back().host_sync = true;
    } else {
        flush("step end", Phase::none);
    }
}

}  // namespace fabricast::stage
