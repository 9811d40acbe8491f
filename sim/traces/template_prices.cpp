// What the nodes of a list take alone, and how they enter the communication table.
#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "sim/traces/template_builder.hpp"

namespace fabricast::traces {
namespace {

constexpr Picoseconds kNoTime = 1000;  ///< 1 ns: what a node without a duration takes

}  // namespace

const TemplateBuilder::Collective& TemplateBuilder::collective_of(const TraceNode& node) {
    const auto [at, fresh] = collectives_.try_emplace({node.slot, node.collective, node.bytes});
    if (fresh)
        price(node, at->second);
    return at->second;
}

void TemplateBuilder::price(const TraceNode& node, Collective& out) {
    const GroupUse& use = bound_->groups[node.slot];
    const std::uint32_t all = chunks_of(node.bytes, inputs_.system);
    try {
        out.phases = communicators_.phases_of(node, use);
        out.chunks = out.phases.size() > 1 ? all : 1;
        for (const Phase& phase : out.phases) {
            const std::uint16_t slot = slot_of({phase.dimension, phase.dimension == Phase::kFlat ? node.slot : 0u});
            out.slot.push_back(slot);
            CallSpec spec = {slot, phase.kind, phase.dimension, phase.algorithm, phase.bytes, all, CallSpec::Part::all};
            std::array<std::uint32_t, 2> calls = {};
            if (out.phases.size() == 1) {
                calls.fill(communicators_.call_of(spec));
            } else {
                spec.part = CallSpec::Part::chunk;
                calls[0] = communicators_.call_of(spec);
                spec.part = CallSpec::Part::last_chunk;
                calls[1] = communicators_.call_of(spec);
            }
            for (const std::uint32_t call : calls) {
                std::vector<std::uint32_t>& known = built_.calls_of_slot[slot];
                if (std::find(known.begin(), known.end(), call) == known.end())
                    known.push_back(call);
            }
            out.calls.push_back(calls);
        }
    } catch (const std::runtime_error& error) {
        refuse(node, error.what());
    }
    // Alone: chunks follow one another through the phases, as the streams below make them.
    std::vector<double> chunk_done(out.chunks, 0), free(inputs_.network.dimension_count() + 1, 0);
    std::string algorithm, limit;
    double slowest = -1;
    for (std::size_t p = 0; p < out.phases.size(); ++p) {
        const Phase& phase = out.phases[p];
        const std::uint32_t group = communicators_.group_of(use, phase.dimension, rank_);
        double& busy = free[phase.dimension == Phase::kFlat ? free.size() - 1 : phase.dimension];
        for (std::uint32_t c = 0; c < out.chunks; ++c) {
            const double time = communicators_.time_alone(out.calls[p][c + 1 == out.chunks ? 1 : 0], group);
            busy = chunk_done[c] = std::max(busy, chunk_done[c]) + time;
            if (c == 0 && time > slowest) {
                slowest = time;
                limit = communicators_.narrowest_link(out.calls[p][0], group);
            }
        }
        const Pattern pattern = pattern_of(phase.kind, phase.algorithm, 2);
        const std::string name = pattern == Pattern::chain  ? "chain"
                                 : pattern == Pattern::star ? "star"
                                                            : std::string(algorithm_name(phase.algorithm.kind));
        if (p < (out.phases.size() + 1) / 2 || algorithm.empty())
            algorithm += (p > 0 ? " x " : "") + name;
    }
    out.alone = picoseconds_from_s(chunk_done.back());
    std::uint32_t ranks = 1;
    if (out.phases.front().dimension == Phase::kFlat) {
        ranks = static_cast<std::uint32_t>(inputs_.workload.groups[use.group].members.size());
    } else {
        for (std::size_t d = 0; d < inputs_.network.dimension_count(); ++d)
            ranks *= (use.dimensions >> d & 1u) != 0 ? inputs_.network.dimension(d).count : 1;
    }
    bool fresh = false;
    out.traffic = traffic_of(std::string(collective_name(node.collective)), ranks, node.bytes, algorithm, fresh);
    if (fresh) {
        TraceTraffic& row = out_.traffic[out.traffic];
        row.time_s = seconds(out.alone);
        row.bus_bytes_per_s = bus_bandwidth(node.collective, static_cast<double>(node.bytes), ranks, row.time_s);
        row.limiting_link = limit;
    }
}

std::uint32_t TemplateBuilder::traffic_of(const std::string& kind, std::uint32_t ranks, Bytes bytes,
                                          const std::string& algorithm, bool& fresh) {
    const auto [at, entered] =
        traffic_of_.try_emplace({kind, ranks, bytes, algorithm}, static_cast<std::uint32_t>(out_.traffic.size()));
    fresh = entered;
    if (fresh) {
        TraceTraffic& row = out_.traffic.emplace_back();
        row.kind = kind;
        row.ranks = ranks;
        row.bytes = bytes;
        row.algorithm = algorithm;
        traffic_count_.resize(out_.traffic.size(), 0);
    }
    return at->second;
}

void TemplateBuilder::count_message(const TraceNode& node) {
    bool fresh = false;
    const std::uint32_t t = traffic_of("send", 2, node.bytes, "", fresh);
    ++traffic_count_[t];
    if (!fresh)
        return;
    TraceTraffic& row = out_.traffic[t];
    std::vector<LinkId> route;
    row.time_s = inputs_.network.route(rank_, bound_->messages[node.slot].peer, route);
    double slowest = 0;
    for (const LinkId link : route) {
        const double time = static_cast<double>(node.bytes) / inputs_.network.bytes_per_s(link);
        if (time > slowest) {
            slowest = time;
            row.limiting_link = inputs_.network.link_name(link);
        }
    }
    row.time_s += slowest;
    row.bus_bytes_per_s = row.time_s > 0 ? static_cast<double>(node.bytes) / row.time_s : 0;
}

Picoseconds TemplateBuilder::compute_time(const TraceNode& node) const {
    const SystemConfig& system = inputs_.system;
    const bool priced = system.roofline && !system.replay_only && node.kind == NodeKind::compute;
    if (!priced || (node.flops <= 0 && node.bytes <= 0))
        return std::max(node.duration, kNoTime);
    const double time =
        std::max(node.flops / system.flops_per_s, static_cast<double>(node.bytes) / system.memory_bytes_per_s);
    return std::max<Picoseconds>(picoseconds_from_s(std::min(time, 1e6)), 1);
}

Picoseconds TemplateBuilder::alone(const TraceNode& node) {
    if (inputs_.system.replay_only && node.kind != NodeKind::skipped)
        return std::max(node.duration, kNoTime);
    switch (node.kind) {
        case NodeKind::skipped: return 0;
        case NodeKind::compute:
        case NodeKind::host: return compute_time(node);
        case NodeKind::memory:
            if (inputs_.memory.kind == RemoteMemory::Kind::none)
                return std::max(node.duration, kNoTime);
            return picoseconds_from_s(inputs_.memory.latency_s +
                                      static_cast<double>(node.bytes) / inputs_.memory.bytes_per_s);
        case NodeKind::collective: return collective_of(node).alone;
        case NodeKind::send:
        case NodeKind::receive: break;
    }
    std::vector<LinkId> route;
    const std::uint32_t peer = bound_->messages[node.slot].peer;
    double time = node.kind == NodeKind::send ? inputs_.network.route(rank_, peer, route)
                                              : inputs_.network.route(peer, rank_, route);
    double slowest = 0;
    for (const LinkId link : route)
        slowest = std::max(slowest, static_cast<double>(node.bytes) / inputs_.network.bytes_per_s(link));
    return picoseconds_from_s(time + slowest);
}

}  // namespace fabricast::traces
