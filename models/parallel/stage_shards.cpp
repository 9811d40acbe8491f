// Data parallelism of a stage: gathers of sharded parameters, buckets of gradients, the update, and what waits for the end.
#include "models/parallel/stage_program.hpp"

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
    if (software_.host_per_shard_s > 0 && layout_.zero == 1 && dense_.ranks > 1)
        copy_shards();
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

}  // namespace fabricast::stage
