#include "models/parallel/chunk_steps.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

#include <fmt/format.h>

#include "models/collectives/execution.hpp"
#include "models/collectives/latency.hpp"
#include "models/collectives/wiring.hpp"

namespace fabricast {
namespace {

using program::Node;
using program::Operation;
using program::OpKind;
using program::Program;
using program::Template;

// Steps a sender may be ahead of the receiver: the FIFO of a connection (NCCL_STEPS).
constexpr std::uint32_t kBufferSlots = 8;

// A set of channel patterns that share all neighbours: one ring of messages.
struct Ring {
    std::vector<GpuId> order;
    std::uint32_t channels = 0;
};

std::vector<Ring> rings_of(const CommGroup& group) {
    std::vector<Ring> out;
    std::map<std::vector<std::pair<GpuId, GpuId>>, std::size_t> known;  // sorted (member, next)
    for (std::uint32_t pattern = 0; pattern < group.ring.patterns(); ++pattern) {
        const std::vector<GpuId> order = ring_order(group.order, pattern);
        std::vector<std::pair<GpuId, GpuId>> next;
        for (std::size_t i = 0; i < order.size(); ++i)
            next.emplace_back(order[i], order[(i + 1) % order.size()]);
        std::sort(next.begin(), next.end());
        const auto [at, fresh] = known.try_emplace(std::move(next), out.size());
        if (fresh)
            out.push_back({order, 0});
        out[at->second].channels += group.ring.channels_of_pattern(pattern);
    }
    return out;
}

std::int64_t steps_of(Collective kind, std::int64_t n) { return kind == Collective::all_reduce ? 2 * (n - 1) : n - 1; }

struct Expansion {
    bool rings = false;       ///< the call becomes chunk steps on this shape
    std::uint32_t count = 0;  ///< rings
    std::int64_t steps = 0;
    Picoseconds base = 0;
    std::vector<Bytes> chunk;         ///< by ring
    std::vector<std::uint16_t> slot;  ///< by ring: peer slot of next; previous is slot + 1
};

class Expander {
public:
    Expander(const Program& source, const std::vector<CallInfo>& infos, const CommModel& comm, const Cluster& cluster,
             GpuGeneration generation, ChunkStepOptions options)
        : infos_(infos), comm_(comm), cluster_(cluster), generation_(generation), options_(options), p_(source) {}

    Program run() {
        for (program::Rank& rank : p_.ranks)
            slots_ = std::max<std::size_t>(slots_, rank.peers.size());
        for (std::uint32_t c = 0; c < infos_.size(); ++c)
            plan_call(c);
        for (std::uint32_t t = 0; t < p_.templates.size(); ++t)
            rewrite(t);
        return std::move(p_);
    }

private:
    // Decides per call and shape; binds the peers of every group.
    void plan_call(std::uint32_t call) {
        const CallInfo& info = infos_[call];
        std::map<std::uint32_t, Expansion>& shapes = expansions_[call];
        const auto first_slot = static_cast<std::uint16_t>(slots_);
        std::uint32_t most = 0;
        for (program::Group& group : p_.groups) {
            if (group.shape >= p_.plans[call].size() || p_.plans[call][group.shape].activities.empty())
                continue;
            if (group.members.size() > options_.max_ranks || info.kind == Collective::broadcast)
                continue;
            std::vector<GpuId> members;
            for (const std::uint32_t rank : group.members)
                members.push_back(GpuId{rank});
            const CommGroup comm_group = comm_.make_group(members);
            const CollectivePlan plan = comm_.plan(comm_group, info.kind, info.bytes);
            if (plan.algorithm != Algorithm::ring)
                continue;
            if (!calls_on(group, call))
                continue;
            const std::vector<Ring> rings = rings_of(comm_group);
            Expansion& e = shapes[group.shape];
            e.rings = true;
            e.count = static_cast<std::uint32_t>(rings.size());
            const auto n = static_cast<std::int64_t>(group.members.size());
            e.steps = steps_of(info.kind, n);
            e.chunk.clear();
            e.slot.clear();
            const Bytes wire = wire_bytes(info.bytes * info.share / 1000, plan.protocol);
            const Pace pace = pace_of(comm_group, info, plan, static_cast<double>(wire) / static_cast<double>(n));
            e.base = pace.base;
            for (std::size_t r = 0; r < rings.size(); ++r) {
                e.chunk.push_back(
                    scaled_up(wire, rings[r].channels, static_cast<std::int64_t>(comm_group.ring.channels) * n));
                const auto slot = static_cast<std::uint16_t>(first_slot + 2 * r);
                e.slot.push_back(slot);
                bind(rings[r], slot, pace, static_cast<double>(rings[r].channels) / comm_group.ring.channels);
            }
            most = std::max(most, e.count);
        }
        slots_ += 2 * most;
    }

    bool calls_on(const program::Group& group, std::uint32_t call) const {
        const program::Rank& rank = p_.ranks[group.members.front()];
        const std::uint16_t slot = p_.calls[call].slot;
        return slot < rank.groups.size() && rank.groups[slot] != program::kNone &&
               &p_.groups[rank.groups[slot]] == &group;
    }

    // What a step costs on a hop in a node and between nodes, and the most that all channels together move there: over
    // nodes the pace they keep when all are busy, on one node the ceiling of the plan.
    struct Pace {
        Picoseconds base = 0, inside = 0, outside = 0;
        double inside_bytes_per_s = 0, outside_bytes_per_s = 0;  ///< 0: none
    };
    Pace pace_of(const CommGroup& group, const CallInfo& info, const CollectivePlan& plan, double step_bytes) const {
        Pace pace;
        if (group.nodes > 1) {
            const RingStep step = comm_.ring_steps(group, info.kind, info.bytes * info.share / 1000, plan);
            pace.base = picoseconds_from_s(step.base);
            pace.inside = picoseconds_from_s(step.inside_latency);
            pace.outside = picoseconds_from_s(step.outside_latency);
            pace.inside_bytes_per_s = step.inside_step > 0 ? step_bytes / step.inside_step : 0;
            pace.outside_bytes_per_s = step.outside_step > 0 ? step_bytes / step.outside_step : 0;
            return pace;
        }
        const bool nvlink = over_nvlink(cluster_, group);
        const HopLatency inside = nvlink ? nvlink_ring_latency(generation_, plan.protocol)
                                         : HopLatency{base_latency_us(plan.algorithm, plan.protocol),
                                                      hop_latency_us(plan.algorithm, plan.protocol, nvlink, false)};
        // The last of n steps only stores locally; on one NVLink node the plan's fill is that step.
        pace.base = picoseconds_from_s(inside.base_us * 1e-6) + plan.fill;
        pace.inside = picoseconds_from_s(inside.hop_us * 1e-6);
        for (const PlannedActivity& activity : plan.activities)
            pace.inside_bytes_per_s += bytes_per_s(activity.cap);
        return pace;
    }

    void bind(const Ring& ring, std::uint16_t slot, const Pace& pace, double share) {
        const std::size_t n = ring.order.size();
        for (std::size_t i = 0; i < n; ++i) {
            const GpuId from = ring.order[i], to = ring.order[(i + 1) % n], previous = ring.order[(i + n - 1) % n];
            program::Rank& rank = p_.ranks[index(from)];
            if (rank.peers.size() < slot + 2u)
                rank.peers.resize(slot + 2u);
            const PathType path = cluster_.path_type(from, to);
            const bool network = path == PathType::net;
            std::vector<LinkId> links;
            cluster_.route(from, to, links);
            std::vector<LinkUse> uses;
            for (const LinkId link : links)
                uses.push_back({link, kCoefficientOne});
            program::Route route;
            route.latency = network ? pace.outside : pace.inside;
            route.demand = static_cast<std::uint32_t>(p_.demands.size());
            route.uses_network = network;
            route.uses_nvlink = path == PathType::nvl || path == PathType::nvb;
            const double most = network ? pace.outside_bytes_per_s : pace.inside_bytes_per_s;
            if (most > 0)
                route.cap = std::max<Rate>(1, rate_from_bytes_per_s(most * share));
            p_.demands.push_back(std::move(uses));
            rank.peers[slot] = {static_cast<std::uint32_t>(index(to)), 1000u + slot,
                                static_cast<std::uint32_t>(p_.routes.size()), kBufferSlots};
            rank.peers[slot + 1u] = {static_cast<std::uint32_t>(index(previous)), 1000u + slot, program::kNone};
            p_.routes.push_back(route);
        }
    }

    const Expansion* expansion(std::uint32_t tmpl, std::uint32_t call) const {
        const Expansion* found = nullptr;
        bool plain = false;
        for (const program::Rank& rank : p_.ranks) {
            if (rank.tmpl != tmpl)
                continue;
            const std::uint32_t shape = p_.groups[rank.groups[p_.calls[call].slot]].shape;
            const auto at = expansions_.at(call).find(shape);
            if (at == expansions_.at(call).end()) {
                plain = true;
            } else if (found != nullptr && (found->count != at->second.count || found->chunk != at->second.chunk)) {
                throw std::invalid_argument("chunk steps: groups of one template differ in structure");
            } else {
                found = &at->second;
            }
        }
        if (found != nullptr && plain)
            throw std::invalid_argument("chunk steps: only some groups of a template can be expanded");
        return found;
    }

    void rewrite(std::uint32_t tmpl) {
        const Template source = p_.templates[tmpl];
        Template& t = p_.templates[tmpl];
        t.nodes.clear();
        t.operations.clear();
        std::vector<std::uint32_t> moved(source.nodes.size(),
                                         program::kNone);  // old node -> node that stands for its end
        std::uint8_t streams = source.streams;
        const auto add = [&](Operation op) {
            const auto node = static_cast<std::uint32_t>(t.nodes.size());
            Node n;
            n.operation = static_cast<std::uint32_t>(t.operations.size());
            n.end = node + 1;
            t.nodes.push_back(n);
            t.operations.push_back(std::move(op));
            return node;
        };
        const auto walk = [&](const auto& self, std::uint32_t begin, std::uint32_t end) -> void {
            for (std::uint32_t n = begin; n < end;) {
                const Node& node = source.nodes[n];
                if (node.kind != Node::Kind::operation) {
                    const auto open = static_cast<std::uint32_t>(t.nodes.size());
                    t.nodes.push_back(node);
                    self(self, n + 1, node.end);
                    t.nodes[open].end = static_cast<std::uint32_t>(t.nodes.size());
                    n = node.end;
                    continue;
                }
                Operation op = source.operations[node.operation];
                const Expansion* e = op.kind == OpKind::collective ? expansion(tmpl, op.payload) : nullptr;
                moved[n] =
                    e == nullptr ? add(std::move(op)) : expand(std::move(op), *e, source.streams, streams, add, t);
                ++n;
            }
        };
        walk(walk, 0, static_cast<std::uint32_t>(source.nodes.size()));
        t.streams = streams;
        for (Operation& op : t.operations) {
            for (std::uint32_t& wait : op.waits) {
                if ((wait & kOld) != 0)
                    wait = moved[wait & ~kOld];
            }
            std::erase_if(op.waits, [&](std::uint32_t wait) {
                return t.operations[t.nodes[wait].operation].stream == op.stream;
            });
        }
    }

    // base latency; then per ring a stream of receives and one of sends; the operation ends when all are done
    template <typename Add>
    std::uint32_t expand(Operation op, const Expansion& e, std::uint8_t first_stream, std::uint8_t& streams,
                         const Add& add, Template& t) {
        const std::uint32_t label = op.label;
        const auto delay = [&](Picoseconds time) {
            for (std::uint32_t d = 0; d < p_.durations.size(); ++d) {
                if (p_.durations[d] == time)
                    return d;
            }
            p_.durations.push_back(time);
            return static_cast<std::uint32_t>(p_.durations.size() - 1);
        };
        Operation start;
        start.kind = OpKind::host;
        start.stream = op.stream;
        start.payload = delay(e.base);
        start.label = label;
        for (const std::uint32_t wait : op.waits)
            start.waits.push_back(wait | kOld);
        const std::uint32_t begin = add(std::move(start));
        std::vector<std::uint32_t> ends;
        for (std::uint32_t r = 0; r < e.count; ++r) {
            const auto receive_stream = static_cast<std::uint8_t>(first_stream + 2 * r);
            const auto send_stream = static_cast<std::uint8_t>(receive_stream + 1);
            streams = std::max<std::uint8_t>(streams, static_cast<std::uint8_t>(send_stream + 1));
            const auto half = [&](bool send, std::uint8_t stream, std::vector<std::uint32_t> waits) {
                Operation message;
                message.kind = OpKind::p2p_batch;
                message.stream = stream;
                message.payload = static_cast<std::uint32_t>(p_.batches.size());
                message.label = label;
                message.waits = std::move(waits);
                p_.batches.push_back({{{static_cast<std::uint16_t>(e.slot[r] + (send ? 0 : 1)), send, e.chunk[r]}}});
                return add(std::move(message));
            };
            // step 0 sends the own chunk; step k sends what step k - 1 received
            half(true, send_stream, {begin});
            if (e.steps > 1) {
                const auto loop = static_cast<std::uint32_t>(t.nodes.size());
                Node repeat;
                repeat.kind = Node::Kind::repeat;
                repeat.count = e.steps - 1;
                t.nodes.push_back(repeat);
                const std::uint32_t received = half(false, receive_stream, {begin});
                half(true, send_stream, {received});
                t.nodes[loop].end = static_cast<std::uint32_t>(t.nodes.size());
            }
            ends.push_back(half(false, receive_stream, {begin}));
            ends.push_back(static_cast<std::uint32_t>(e.steps > 1 ? t.nodes.size() - 2 : ends.back() - 1));
        }
        Operation join;
        join.kind = OpKind::host;
        join.stream = op.stream;
        join.payload = delay(0);
        join.label = label;
        join.host_sync = op.host_sync;
        join.memory = std::move(op.memory);
        join.waits = ends;
        return add(std::move(join));
    }

    static constexpr std::uint32_t kOld = 0x80000000u;  ///< marks a wait that still names a node of the source

    const std::vector<CallInfo>& infos_;
    const CommModel& comm_;
    const Cluster& cluster_;
    GpuGeneration generation_;
    ChunkStepOptions options_;
    Program p_;
    std::size_t slots_ = 0;
    std::map<std::uint32_t, std::map<std::uint32_t, Expansion>> expansions_;
};

}  // namespace

program::Program expand_chunk_steps(const program::Program& source, const std::vector<CallInfo>& infos,
                                    const CommModel& comm, const Cluster& cluster, GpuGeneration generation,
                                    ChunkStepOptions options) {
    Program marked = source;
    for (Template& t : marked.templates) {
        for (Operation& op : t.operations) {
            for (std::uint32_t& wait : op.waits)
                wait |= 0x80000000u;
        }
    }
    return Expander(marked, infos, comm, cluster, generation, options).run();
}

program::Program single_collective(const Cluster& cluster, const CommModel& comm, std::vector<std::uint32_t> members,
                                   Collective kind, Bytes size, std::vector<CallInfo>& infos) {
    Program p;
    std::vector<GpuId> gpus;
    for (const std::uint32_t rank : members)
        gpus.push_back(GpuId{rank});
    const CommGroup group = comm.make_group(gpus);
    const CollectivePlan plan = comm.plan(group, kind, size);
    infos = {{"collective", kind, Slot::tp, size}};
    p.names = {"collective", "step end"};
    p.labels = {{0, Account::comm_tp, program::Phase::none, -1, -1, -1},
                {1, Account::idle, program::Phase::none, -1, -1, -1}};
    p.calls = {{0, static_cast<std::uint8_t>(kind), size}};
    p.plans.assign(1, std::vector<program::Plan>(1));
    program::Plan& out = p.plans[0][0];
    out.latency = plan.latency;
    out.uses_nvlink = plan.uses_nvlink;
    out.uses_network = plan.uses_network;
    program::Group g{"collective", members, 0, {}};
    for (const PlannedActivity& activity : plan.activities) {
        out.activities.push_back(
            {activity.work, activity.weight, activity.cap, static_cast<std::uint32_t>(g.demands.size())});
        g.demands.push_back(static_cast<std::uint32_t>(p.demands.size()));
        p.demands.push_back(comm.demand(group, kind, plan, activity.demand));
    }
    p.groups.push_back(std::move(g));
    Template with, without;
    for (Template* t : {&with, &without}) {
        const bool member = t == &with;
        t->name = member ? "member" : "other";
        if (member) {
            t->nodes.push_back({Node::Kind::operation, 1, 1, program::kNone, 0});
            t->operations.push_back({OpKind::collective, 0, false, 0, 0, {}, {}});
        }
        const auto n = static_cast<std::uint32_t>(t->nodes.size());
        t->nodes.push_back({Node::Kind::operation, n + 1, 1, program::kNone, n});
        t->operations.push_back({OpKind::step_end, 0, false, 0, 1, {}, {}});
    }
    p.templates = {with, without};
    p.ranks.resize(cluster.gpu_count());
    for (program::Rank& rank : p.ranks) {
        rank.tmpl = 1;
        rank.groups = {program::kNone};
    }
    for (const std::uint32_t rank : members) {
        p.ranks[rank].tmpl = 0;
        p.ranks[rank].groups = {0};
    }
    return p;
}

}  // namespace fabricast
