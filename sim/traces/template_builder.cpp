#include "sim/traces/template_builder.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/traces/node_order.hpp"
#include "topologies/importers/import_error.hpp"

namespace fabricast::traces {
namespace {

bool is_communication(NodeKind kind) {
    return kind == NodeKind::collective || kind == NodeKind::send || kind == NodeKind::receive;
}

}  // namespace

void TemplateBuilder::refuse(const TraceNode& node, const std::string& sentence) const {
    throw importers::ImportError(inputs_.workload.file_of(rank_), 0,
                                 describe(inputs_.workload, node) + ": " + sentence);
}

BuiltTemplate TemplateBuilder::build(std::uint32_t rank, const std::vector<Picoseconds>& not_before) {
    begin(rank);
    find_streams();
    const std::size_t count = list_->nodes.size();
    std::vector<std::uint32_t> resources(count);
    std::vector<Picoseconds> durations(count);
    for (std::size_t n = 0; n < count; ++n) {
        resources[n] = resource(list_->nodes[n]);
        durations[n] = alone(list_->nodes[n]);
    }
    TemplateOrder& made = out_.orders.emplace_back();
    made.rank = rank;
    made.order = issue_order(*list_, resources, kStreams + 1, durations, not_before);
    for (const std::uint32_t n : made.order)
        emit(n);
    made.end.assign(count, kNone);
    for (std::size_t n = 0; n < count; ++n) {
        if (list_->nodes[n].kind != NodeKind::skipped)
            made.end[n] = ends_[n].back();
    }
    end_step();
    built_.tmpl = static_cast<std::uint32_t>(program_.templates.size());
    program_.templates.push_back(std::move(tmpl_));
    for (std::uint32_t t = 0; t < traffic_count_.size(); ++t) {
        if (traffic_count_[t] > 0)
            built_.traffic.emplace_back(t, traffic_count_[t]);
    }
    return std::move(built_);
}

void TemplateBuilder::begin(std::uint32_t rank) {
    rank_ = rank;
    bound_ = &inputs_.workload.ranks[rank];
    list_ = &inputs_.workload.lists[bound_->list];
    built_ = {};
    tmpl_ = {};
    tmpl_.name = fmt::format("like rank {}", rank);
    tmpl_.nodes.emplace_back();  // the step
    tmpl_.nodes[0].kind = program::Node::Kind::repeat;
    collectives_.clear();
    traffic_count_.assign(out_.traffic.size(), 0);
    ends_.assign(list_->nodes.size(), {});
    waited_ = {};
    last_communication_.clear();
}

// Who gets a stream of its own: what cannot do without first, then groups, then message channels.
void TemplateBuilder::find_streams() {
    const std::size_t dimensions = inputs_.network.dimension_count();
    std::uint32_t next = 1;
    bool host = false, memory = false, replay = false;
    std::vector<bool> flat(list_->group_slots, false), line(dimensions, false);
    for (const TraceNode& node : list_->nodes) {
        host = host || node.kind == NodeKind::host;
        memory = memory || node.kind == NodeKind::memory;
        if (inputs_.system.replay_only) {
            replay = replay || is_communication(node.kind);
        } else if (node.kind == NodeKind::collective) {
            for (const Phase& phase : collective_of(node).phases) {
                if (phase.dimension == Phase::kFlat)
                    flat[node.slot] = true;
                else
                    line[phase.dimension] = true;
            }
        }
    }
    const auto give = [&](bool needed) { return static_cast<std::uint8_t>(needed ? next++ : 0); };
    host_stream_ = give(host);
    memory_stream_ = give(memory);
    replay_stream_ = give(replay);
    dimension_stream_.assign(dimensions, 0);
    for (std::size_t d = 0; d < dimensions; ++d)
        dimension_stream_[d] = give(line[d]);
    const auto groups = static_cast<std::uint32_t>(std::count(flat.begin(), flat.end(), true));
    const std::uint32_t messages = inputs_.system.replay_only ? 0 : list_->message_slots;
    const std::uint32_t left = kStreams - next;
    const std::uint32_t for_messages = std::min(messages, std::max(left - std::min(left, groups), left / 2));
    const std::uint32_t for_groups = std::min(groups, left - for_messages);
    shared_streams_ = shared_streams_ || for_messages < messages || for_groups < groups;
    group_stream_.assign(list_->group_slots, 0);
    std::uint32_t given = 0;
    for (std::size_t g = 0; g < flat.size(); ++g) {
        if (flat[g])
            group_stream_[g] = static_cast<std::uint8_t>(next + given++ % for_groups);
    }
    next += for_groups;
    // Channels that share a stream should at least lead the same way.
    message_stream_.assign(messages, 0);
    std::map<std::pair<std::uint32_t, bool>, std::uint32_t> ways;
    for (std::uint32_t m = 0; m < messages; ++m) {
        const MessageUse& use = bound_->messages[m];
        const std::uint32_t way =
            for_messages == messages
                ? m
                : ways.try_emplace({use.peer, use.is_send}, static_cast<std::uint32_t>(ways.size())).first->second;
        message_stream_[m] = static_cast<std::uint8_t>(next + way % for_messages);
    }
    next += for_messages;
    tmpl_.streams = static_cast<std::uint8_t>(next);
}

std::uint16_t TemplateBuilder::slot_of(const SlotSpec& spec) {
    const auto at = std::find(built_.slots.begin(), built_.slots.end(), spec);
    const auto slot = static_cast<std::uint16_t>(at - built_.slots.begin());
    if (at == built_.slots.end()) {
        built_.slots.push_back(spec);
        built_.calls_of_slot.emplace_back();
    }
    return slot;
}

std::uint32_t TemplateBuilder::resource(const TraceNode& node) {
    switch (node.kind) {
        case NodeKind::skipped: return kNone;
        case NodeKind::compute: return 0;
        case NodeKind::host: return host_stream_;
        case NodeKind::memory: return memory_stream_;
        case NodeKind::collective:
        case NodeKind::send:
        case NodeKind::receive: break;
    }
    if (inputs_.system.replay_only)
        return replay_stream_;
    if (inputs_.serial_communication && node.kind != NodeKind::receive)
        return kStreams;
    if (node.kind != NodeKind::collective)
        return message_stream_[node.slot];
    const Collective& collective = collective_of(node);
    return stream_of(node, &collective, 0);
}

std::uint8_t TemplateBuilder::stream_of(const TraceNode& node, const Collective* collective, std::size_t phase) const {
    const std::uint32_t d = collective->phases[phase].dimension;
    return d == Phase::kFlat ? group_stream_[node.slot] : dimension_stream_[d];
}

// ---- operations ------------------------------------------------------------------------------------------------------

std::uint32_t TemplateBuilder::add(program::OpKind kind, std::uint8_t stream, std::uint32_t payload,
                                   std::uint32_t label) {
    const auto o = static_cast<std::uint32_t>(tmpl_.operations.size());
    program::Operation& op = tmpl_.operations.emplace_back();
    op.kind = kind;
    op.stream = stream;
    op.payload = payload;
    op.label = label;
    std::array<std::uint32_t, kStreams>& known = waited_[stream];
    for (std::uint8_t other = 0; other < tmpl_.streams; ++other) {
        if (other == stream || needed_[other] <= known[other])
            continue;
        op.waits.push_back(needed_[other]);  // operation o is node o + 1 of the tree
        known[other] = needed_[other];
    }
    program::Node& node = tmpl_.nodes.emplace_back();
    node.operation = o;
    return o;
}

void TemplateBuilder::emit(std::uint32_t n) {
    const TraceNode& node = list_->nodes[n];
    needed_.fill(0);
    const auto need = [&](std::uint32_t operation) {
        std::uint32_t& latest = needed_[tmpl_.operations[operation].stream];
        latest = std::max(latest, operation + 1);
    };
    for (std::uint32_t p = 0; p < node.parent_count; ++p) {
        for (const std::uint32_t operation : ends_[list_->parents[node.first_parent + p]])
            need(operation);
    }
    const bool serial =
        inputs_.serial_communication && (node.kind == NodeKind::collective || node.kind == NodeKind::send);
    if (serial) {
        for (const std::uint32_t operation : last_communication_)
            need(operation);
    }
    using program::OpKind;
    std::vector<std::uint32_t>& ends = ends_[n];
    const auto takes = [&](std::uint8_t stream, Account account) {
        ends = {add(OpKind::host, stream, duration(alone(node)), label(node.name, account))};
    };
    if (inputs_.system.replay_only && is_communication(node.kind)) {
        takes(replay_stream_, Account::comm_other);
        return;
    }
    switch (node.kind) {
        case NodeKind::skipped:
            for (const std::uint32_t latest : needed_) {
                if (latest > 0)
                    ends.push_back(latest - 1);
            }
            return;
        case NodeKind::compute:
            ends = {add(OpKind::compute, 0, cost(node), label(node.name, Account::gemm_ideal))};
            return;
        case NodeKind::host: takes(host_stream_, Account::host_bound); return;
        case NodeKind::memory:
            if (inputs_.memory.kind == RemoteMemory::Kind::none || inputs_.system.replay_only) {
                if (node.duration == 0)
                    refuse(node, "a memory node without a duration; say with --remote-memory what the memory is like");
                takes(memory_stream_, Account::data_wait);
                return;
            }
            built_.uses_memory = true;
            ends = {add(OpKind::transfer, memory_stream_, transfer(node.bytes), label(node.name, Account::data_wait))};
            return;
        case NodeKind::collective: emit_collective(n); break;
        case NodeKind::send: count_message(node); [[fallthrough]];
        case NodeKind::receive:
            ends = {add(OpKind::p2p_batch, message_stream_[node.slot], batch(node, node.kind == NodeKind::send),
                        label(node.name, Account::comm_pp))};
            break;
    }
    if (serial)
        last_communication_ = ends;
}

void TemplateBuilder::emit_collective(std::uint32_t n) {
    const TraceNode& node = list_->nodes[n];
    const Collective& collective = collective_of(node);
    ++traffic_count_[collective.traffic];
    const std::uint32_t name = label(node.name, Account::comm_other);
    const std::array<std::uint32_t, kStreams> before = needed_;
    std::vector<std::uint32_t> of_chunk(collective.chunks);
    for (std::size_t p = 0; p < collective.phases.size(); ++p) {
        const std::uint8_t stream = stream_of(node, &collective, p);
        for (std::uint32_t c = 0; c < collective.chunks; ++c) {
            if (p == 0) {
                needed_ = before;
            } else {
                needed_.fill(0);
                needed_[tmpl_.operations[of_chunk[c]].stream] = of_chunk[c] + 1;
            }
            of_chunk[c] =
                add(program::OpKind::collective, stream, collective.calls[p][c + 1 == collective.chunks ? 1 : 0], name);
        }
    }
    ends_[n] = {of_chunk.back()};
}

void TemplateBuilder::end_step() {
    needed_.fill(0);
    for (std::uint32_t o = 0; o < tmpl_.operations.size(); ++o)
        needed_[tmpl_.operations[o].stream] = o + 1;
    const auto name = static_cast<std::uint32_t>(program_.names.size() - 1);  // "end of the trace"
    add(program::OpKind::step_end, 0, 0, label(name, Account::idle));
    tmpl_.nodes[0].end = static_cast<std::uint32_t>(tmpl_.nodes.size());
}

std::uint32_t TemplateBuilder::label(std::uint32_t name, Account account) {
    const auto [at, fresh] = label_of_.try_emplace({name, account}, static_cast<std::uint32_t>(program_.labels.size()));
    if (fresh) {
        program::Label& made = program_.labels.emplace_back();
        made.name = name;
        made.account = account;
    }
    return at->second;
}

std::uint32_t TemplateBuilder::duration(Picoseconds time) {
    const auto [at, fresh] = duration_of_.try_emplace(time, static_cast<std::uint32_t>(program_.durations.size()));
    if (fresh)
        program_.durations.push_back(time);
    return at->second;
}

std::uint32_t TemplateBuilder::cost(const TraceNode& node) {
    const Picoseconds time = compute_time(node);
    Picoseconds ideal = time;
    if (inputs_.system.roofline && !inputs_.system.replay_only && (node.flops > 0 || node.bytes > 0))
        ideal = std::min(time, picoseconds_from_s(std::min(node.flops / inputs_.system.flops_per_s, 1e6)));
    const auto [at, fresh] = cost_of_.try_emplace({time, ideal}, static_cast<std::uint32_t>(program_.costs.size()));
    if (fresh) {
        program::CostClass& made = program_.costs.emplace_back();
        made.work = time;
        made.parts[static_cast<std::size_t>(Account::gemm_ideal)] = ideal;
        made.parts[static_cast<std::size_t>(Account::memory_bound)] = time - ideal;
    }
    return at->second;
}

std::uint32_t TemplateBuilder::batch(const TraceNode& node, bool is_send) {
    const auto [at, fresh] =
        batch_of_.try_emplace({node.slot, is_send, node.bytes}, static_cast<std::uint32_t>(program_.batches.size()));
    if (fresh) {
        if (node.slot > 0xFFFF)
            refuse(node, "more than 65536 message channels of a rank");
        program_.batches.push_back({{{static_cast<std::uint16_t>(node.slot), is_send, node.bytes}}});
    }
    return at->second;
}

std::uint32_t TemplateBuilder::transfer(Bytes bytes) {
    const auto [at, fresh] = transfer_of_.try_emplace(bytes, static_cast<std::uint32_t>(program_.transfers.size()));
    if (fresh)
        program_.transfers.push_back({0, bytes});
    return at->second;
}

}  // namespace fabricast::traces
