#include "models/parallel/stage_builder.hpp"

#include <fmt/format.h>

#include <set>

#include "models/parallel/stage_program.hpp"

namespace fabricast {
namespace stage {

// Timers around a pass that synchronise: the CPU runs ahead inside it alone.
void StageBuilder::host_waits_for_pass() {
    if (software_.host_waits_for_passes && last_main_ != program::kNone)
        t_.operations[t_.nodes[last_main_].operation].host_sync = true;
}

void StageBuilder::chunk_forward(const ScheduleStep& step) {
    receive(step, true);
    const std::vector<Unit> list = units(step.chunk);
    std::vector<std::uint32_t> ends;  // last main operation of each unit
    for (std::size_t u = 0; u < list.size(); ++u) {
        if (sharded_ && (!kept_ || step.first)) {
            flush("forward", Phase::forward);
            const Unit* next = u + 1 < list.size() ? &list[u + 1] : nullptr;
            gather_ahead(list[u], next, u == 0, Phase::forward,
                         u >= 2       ? ends[u - 2]
                         : step.first ? updated_
                                      : program::kNone);
            add({shard_copies(list[u], Phase::forward)});
        } else if (!sharded_ && step.first) {
            const auto at = gathered_.find({step.chunk, u});
            if (at != gathered_.end()) {
                flush("forward", Phase::forward);
                next_waits_.push_back(at->second);
            }
        }
        if (software_.autocast)
            add({casts(list[u], Phase::forward)});
        unit_forward(list[u]);
        if (sharded_) {
            if (!kept_)
                hold(MemoryCause::gathered_parameters, -unit_bytes(list[u], activation_bytes_));
            flush("forward", Phase::forward, list[u].layer);
            ends.push_back(last_main_);
        }
    }
    flush("forward", Phase::forward);
    host_waits_for_pass();
    agree_on_scales(true);
    send(step, true);
}

void StageBuilder::chunk_backward(const ScheduleStep& step) {
    receive(step, false);
    const std::vector<Unit> list = units(step.chunk);
    std::vector<std::uint32_t> ends;
    for (std::size_t done = 0; done < list.size(); ++done) {
        const Unit& unit = list[list.size() - 1 - done];
        if (sharded_ && !kept_)
            gather_for_backward(list, done, ends, unit_bytes(unit, gradient_bytes_));
        if (kept_ && step.first)
            hold(MemoryCause::gathered_parameters, unit_bytes(unit, gradient_bytes_));
        regather_edge(unit);
        unit_backward(unit);
        if (software_.autocast)
            add({casts(unit, Phase::backward)});
        if (sharded_ && (!kept_ || step.last)) {
            add({shard_copies(unit, Phase::backward)});
            hold(MemoryCause::gathered_parameters, -unit_bytes(unit, activation_bytes_ + gradient_bytes_));
            flush("backward", Phase::backward, unit.layer);
            ends.push_back(last_main_);
        }
        const bool waits = unit.kind == Unit::Kind::head && head_waits_;
        if (reduces_now(step.last) && !waits)
            reduce_unit(unit, step.chunk, done + 1 == list.size());
    }
    flush("backward", Phase::backward);
    host_waits_for_pass();
    agree_on_scales(false);
    send(step, false);
}

void StageBuilder::chunk_backward_input(const ScheduleStep& step) {
    receive(step, false);
    const std::vector<Unit> list = units(step.chunk);
    std::vector<std::uint32_t> ends;
    for (std::size_t done = 0; done < list.size(); ++done) {
        const Unit& unit = list[list.size() - 1 - done];
        if (sharded_ && !kept_)
            gather_for_backward(list, done, ends, 0);
        regather_edge(unit);
        unit_backward_input(unit);
        if (sharded_ && !kept_) {
            hold(MemoryCause::gathered_parameters, -unit_bytes(unit, activation_bytes_));
            flush("backward", Phase::backward, unit.layer);
            ends.push_back(last_main_);
        }
    }
    flush("backward", Phase::backward);
    host_waits_for_pass();
    agree_on_scales(false);
    send(step, false);
}

// One buffer for all chunks of the stage: Transformer Engine keeps three values a product forward, two backward, of four
// products a layer (reduce_and_update_fp8_tensors in transformer_engine/pytorch/fp8.py, release 1.6 and later: at the end of
// a chunk's forward and behind its first layer's backward, in line with the work).
void StageBuilder::agree_on_scales(bool forward) {
    if (!agrees_on_scales(plan_, software_))
        return;
    std::int64_t layers = 0;
    for (std::int64_t chunk = 0; chunk < chunks_held(layout_); ++chunk)
        layers += layers_of(a_, layout_, virtual_stage_of(chunk));
    const Bytes bytes = layers * 4 * (forward ? 3 : 2) * 4;
    collective(kCompute, Slot::scaling, Collective::all_reduce, bytes, "fp8 scaling all-reduce", Account::comm_other,
               forward ? Phase::forward : Phase::backward);
}

// Needs no parameters; a gradient is whole, and reduced, only here.
void StageBuilder::chunk_backward_weight(const ScheduleStep& step) {
    const std::vector<Unit> list = units(step.chunk);
    for (std::size_t done = 0; done < list.size(); ++done) {
        const Unit& unit = list[list.size() - 1 - done];
        if (sharded_ && (!kept_ || step.first))
            hold(MemoryCause::gathered_parameters, unit_bytes(unit, gradient_bytes_));
        unit_backward_weight(unit);
        if (software_.autocast)
            add({casts(unit, Phase::backward)});
        if (sharded_ && (!kept_ || step.last)) {
            add({shard_copies(unit, Phase::backward)});
            const Bytes given_back = gradient_bytes_ + (kept_ ? activation_bytes_ : 0);
            hold(MemoryCause::gathered_parameters, -unit_bytes(unit, given_back));
            flush("weight gradients", Phase::backward, unit.layer);
        }
        if (reduces_now(step.last))
            reduce_unit(unit, step.chunk, done + 1 == list.size());
    }
    flush("weight gradients", Phase::backward);
}

// One run of the schedule. Where the last heads wait with their weight gradients, a repeat that holds their first is cut.
void StageBuilder::schedule_block(const ScheduleBlock& whole) {
    std::int64_t heads = 0;  // of one iteration
    for (const ScheduleStep& step : whole.steps)
        heads +=
            step.kind == ScheduleStep::Kind::backward && virtual_stage_of(step.chunk) == virtual_stages(layout_) - 1;
    const bool whole_backward = layout_.schedule == Schedule::one_f_one_b || layout_.schedule == Schedule::interleaved;
    // recipes that defer are those of dense models
    const bool defers = layout_.pp > 1 && !sharded_ && whole_backward && a_.moe.experts == 0;
    const std::int64_t defer = defers ? software_.head_weight_deferred : 0;
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

// The CPU works while the GPU has nothing to run.
void StageBuilder::host_work(double seconds, std::string_view what) {
    Operation op;
    op.kind = OpKind::host;
    op.host_sync = true;
    op.payload = static_cast<std::uint32_t>(p_.durations.size());
    op.label = label(what, Account::host_bound, Phase::none);
    p_.durations.push_back(picoseconds_from_s(seconds));
    push(std::move(op));
}

void StageBuilder::host_of_step() {
    if (software_.host_per_step_s > 0)
        host_work(software_.host_per_step_s, "between steps");
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

namespace {

// The first pass of every chunk that leaves gradients of weights, from which on they are whole until its last.
std::vector<ScheduleStep> first_gradients_marked(std::vector<ScheduleStep> order) {
    std::set<std::int16_t> begun;
    for (ScheduleStep& step : order) {
        if (step.kind == ScheduleStep::Kind::backward || step.kind == ScheduleStep::Kind::backward_weight)
            step.first = begun.insert(step.chunk).second;
    }
    return order;
}

}  // namespace

std::uint32_t StageBuilder::build(const std::vector<ScheduleStep>& order, std::int64_t steps) {
    t_.name = fmt::format("stage {}", stage_);
    const std::uint32_t repeat = open_repeat(steps);
    optimizer();
    for (const ScheduleBlock& block : fold(kept_ ? first_gradients_marked(order) : order, layout_.pp, layout_.vpp))
        schedule_block(block);
    deferred_head();
    reduce_at_end();
    host_of_step();
    Operation end;
    end.kind = OpKind::step_end;
    end.label = label("step end", Account::idle, Phase::none);
    push(std::move(end));
    close(repeat);
    compact_streams();
    p_.templates.push_back(std::move(t_));
    return static_cast<std::uint32_t>(p_.templates.size() - 1);
}

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
        case Slot::scaling: return "fp8 scaling";
        case Slot::gradient_inside: return "dp inside";
        case Slot::gradient_across: return "dp across";
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
        case Slot::gradient_inside:
        case Slot::gradient_across:
        case Slot::replica:
        case Slot::expert_gradient:
        case Slot::expert_replica: return Account::comm_gradient;
        case Slot::norm:
        case Slot::embedding:
        case Slot::scaling:
        case Slot::count: break;
    }
    return Account::comm_other;
}

bool agrees_on_scales(const TrainingPlan& plan, const SoftwareFeatures& software) {
    const Layout& l = plan.layout;
    const std::int64_t ranks = l.tp * l.cp * (software.fp8_largest == LargestValues::stage ? l.dp : 1);
    return plan.precision == Precision::fp8 && software.fp8_largest != LargestValues::own && ranks > 1;
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
