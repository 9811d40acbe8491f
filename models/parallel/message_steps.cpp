#include "models/parallel/message_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "models/collectives/exchange_legs.hpp"
#include "models/collectives/execution.hpp"
#include "models/collectives/tuner.hpp"
#include "models/collectives/wiring.hpp"

namespace fabricast {
namespace {

using program::Node;
using program::Operation;
using program::OpKind;
using program::Program;
using program::Template;

constexpr std::uint32_t kBufferSlots = 8;                   // NCCL_STEPS
constexpr Bytes kChunk[] = {32 << 10, 576'000, 512 << 10};  // LL, LL128, Simple

Program empty_program(const Cluster& cluster) {
    Program p;
    p.names = {"message", "step end"};
    p.labels = {{0, Account::comm_other, program::Phase::none, -1, -1, -1},
                {1, Account::idle, program::Phase::none, -1, -1, -1}};
    p.ranks.resize(cluster.gpu_count());
    return p;
}

std::uint32_t add(Template& t, Operation op) {
    const auto n = static_cast<std::uint32_t>(t.nodes.size());
    Node node;
    node.operation = static_cast<std::uint32_t>(t.operations.size());
    node.end = n + 1;
    t.streams = std::max<std::uint8_t>(t.streams, static_cast<std::uint8_t>(op.stream + 1));
    t.nodes.push_back(node);
    t.operations.push_back(std::move(op));
    return n;
}

Operation operation(OpKind kind, std::uint8_t stream, std::uint32_t payload, std::vector<std::uint32_t> waits = {}) {
    Operation op;
    op.kind = kind;
    op.stream = stream;
    op.payload = payload;
    op.label = kind == OpKind::step_end ? 1 : 0;
    op.waits = std::move(waits);
    return op;
}

std::uint32_t add_route(Program& p, const std::vector<LinkId>& links, Picoseconds latency) {
    std::vector<LinkUse> uses;
    for (const LinkId link : links)
        uses.push_back({link, kCoefficientOne});
    program::Route route;
    route.latency = latency;
    route.demand = static_cast<std::uint32_t>(p.demands.size());
    p.demands.push_back(std::move(uses));
    p.routes.push_back(route);
    return static_cast<std::uint32_t>(p.routes.size() - 1);
}

/// Ranks outside the group end their step at once.
void add_others(Program& p, const std::vector<bool>& member) {
    Template other;
    other.name = "other";
    add(other, operation(OpKind::step_end, 0, 0));
    for (std::size_t r = 0; r < p.ranks.size(); ++r) {
        if (!member[r])
            p.ranks[r].tmpl = static_cast<std::uint32_t>(p.templates.size());
    }
    p.templates.push_back(std::move(other));
}

CommGroup group_of(const CommModel& comm, const std::vector<std::uint32_t>& members) {
    std::vector<GpuId> gpus;
    for (const std::uint32_t rank : members)
        gpus.push_back(GpuId{rank});
    return comm.make_group(gpus);
}

}  // namespace

Program every_message(const Cluster& cluster, const CommModel& comm, GpuGeneration generation,
                      const std::vector<std::uint32_t>& members, const PairTraffic& traffic, bool pxn) {
    const CommGroup group = group_of(comm, members);
    const CollectivePlan plan = comm.exchange(group, traffic).plan;
    const PairWays ways(cluster, group, pxn);
    const auto n = group.ranks;
    const auto whole = static_cast<std::int64_t>(traffic.whole);
    std::uint32_t largest = 0;
    for (std::uint32_t a = 0; a < n; ++a) {
        for (std::uint32_t b = 0; b < n; ++b)
            largest = std::max(largest, a == b ? 0 : traffic.at(a, b));
    }
    Program p = empty_program(cluster);
    p.durations = {plan.latency};
    std::vector<bool> member(p.ranks.size(), false);
    std::vector<LinkId> links;
    for (std::uint32_t a = 0; a < n; ++a) {
        const std::uint32_t rank_number = members[a];
        member[rank_number] = true;
        program::Rank& rank = p.ranks[rank_number];
        program::Batch batch;
        const auto bytes = [&](std::uint32_t from, std::uint32_t to) {
            return exchange_wire_bytes(
                generation, over_nvlink(cluster, group), traffic, scaled_up(traffic.size, largest, whole),
                scaled_up(traffic.size, traffic.at(from, to), whole), ways.way(from, to).kind == PairWays::local);
        };
        for (std::uint32_t b = 0; b < n; ++b) {
            if (a == b)
                continue;
            const auto slot = static_cast<std::uint16_t>(rank.peers.size());
            rank.peers.push_back({members[b], 0, program::kNone, 0});
            if (traffic.at(a, b) > 0) {
                links.clear();
                const PairWays::Way way = ways.way(a, b);
                if (way.relay != a)
                    cluster.route(group.members[a], group.members[way.relay], links);
                cluster.route(group.members[way.relay], group.members[b], links);
                rank.peers.back().send_route = add_route(p, links, 0);
                const bool nvlink = way.kind == PairWays::local && over_nvlink(cluster, group);
                const std::uint32_t channels = pair_channels(nvlink, n, scaled_up(traffic.size, largest, whole));
                p.routes.back().cap = rate_from_bytes_per_s(channels * pair_channel_gb_per_s(nvlink, generation) * 1e9);
                batch.halves.push_back({slot, true, bytes(a, b)});
            }
            if (traffic.at(b, a) > 0)
                batch.halves.push_back({slot, false, bytes(b, a)});
        }
        Template t;
        t.name = fmt::format("member {}", a);
        add(t, operation(OpKind::host, 0, 0));
        if (!batch.halves.empty()) {
            add(t, operation(OpKind::p2p_batch, 0, static_cast<std::uint32_t>(p.batches.size())));
            p.batches.push_back(std::move(batch));
        }
        add(t, operation(OpKind::step_end, 0, 0));
        rank.tmpl = static_cast<std::uint32_t>(p.templates.size());
        p.templates.push_back(std::move(t));
    }
    add_others(p, member);
    return p;
}

Program every_chunk(const Cluster& cluster, const CommModel& comm, GpuGeneration generation,
                    const std::vector<std::uint32_t>& members, Collective kind, Bytes size) {
    const CommGroup group = group_of(comm, members);
    const CollectivePlan plan = comm.plan(group, kind, size);
    if ((kind != Collective::broadcast && kind != Collective::reduce) || plan.algorithm != Algorithm::ring ||
        plan.activities.empty())
        throw std::invalid_argument(fmt::format("{} does not run as a chain here", collective_name(kind)));
    if (plan.protocol != Protocol::simple)
        throw std::invalid_argument("lines of LL and LL128 pass on as they arrive; there are no chunks to follow");
    Program p = empty_program(cluster);
    const std::uint32_t n = group.ranks;
    // The chain starts (broadcast) or ends (reduce) at the root, the first member. Channels of one chain travel together.
    struct Chain {
        std::vector<GpuId> order;
        std::uint32_t channels;
    };
    std::vector<Chain> chains;
    for (std::uint32_t r = 0; r < group.ring.patterns(); ++r) {
        std::vector<GpuId> order = ring_order(group.order, r);
        std::rotate(order.begin(), std::find(order.begin(), order.end(), group.members.front()), order.end());
        if (kind == Collective::reduce)
            std::rotate(order.begin(), order.begin() + 1, order.end());
        const auto known = std::find_if(chains.begin(), chains.end(), [&](const Chain& c) { return c.order == order; });
        if (known != chains.end())
            known->channels += group.ring.channels_of_pattern(r);
        else
            chains.push_back({std::move(order), group.ring.channels_of_pattern(r)});
    }
    Rate most_of_all = 0;  // of the library, all channels together
    for (const PlannedActivity& activity : plan.activities)
        most_of_all += activity.cap;
    const double channel = channel_gb_per_s(generation) * 1e9;
    double link_bytes_per_s = bytes_per_s(most_of_all > 0 ? most_of_all : rate_from_bytes_per_s(channel));
    std::vector<LinkId> first_hop;
    if (n > 1)
        cluster.route(chains[0].order[0], chains[0].order[1], first_hop);
    for (const LinkId link : first_hop)
        link_bytes_per_s = std::min(link_bytes_per_s, bytes_per_s(cluster.links().capacity[index(link)]));
    const Bytes wire = wire_bytes(size, plan.protocol);
    const std::uint32_t crossings = group.nodes == 1 ? 0 : group.nodes - (group.most_on_node == 1 ? 1 : 0);
    const double outside_us = crossings > 0 ? hop_latency_us(Algorithm::ring, plan.protocol, true, true) : 0;
    const Picoseconds base = picoseconds_from_s(base_latency_us(Algorithm::ring, plan.protocol) * 1e-6);
    const Picoseconds crossing = picoseconds_from_s(outside_us * 1e-6);
    const Picoseconds hops = plan.latency - plan.fill - base - crossings * crossing;
    const Picoseconds inside = n > 1 + crossings ? hops / (n - 1 - crossings) : 0;
    p.durations = {std::max<Picoseconds>(base, 0)};
    std::vector<bool> member(p.ranks.size(), false);
    for (std::uint32_t a = 0; a < n; ++a) {
        const std::uint32_t number = members[a];
        member[number] = true;
        program::Rank& rank = p.ranks[number];
        Template t;
        t.name = fmt::format("member {}", a);
        const std::uint32_t begin = add(t, operation(OpKind::host, 0, 0));
        std::vector<std::uint32_t> ends;
        for (std::uint32_t r = 0; r < chains.size(); ++r) {
            const std::vector<GpuId>& chain = chains[r].order;
            const auto at =
                static_cast<std::size_t>(std::find(chain.begin(), chain.end(), GpuId{number}) - chain.begin());
            const std::uint32_t channels = chains[r].channels;
            const Bytes share = scaled_up(wire, channels, group.ring.channels);
            const double used = static_cast<double>(plan.channels) * channels / group.ring.channels;
            // On one node channels that share a link take turns: those that fill it travel together.
            const double turns = group.nodes > 1 ? 1 : std::max(1.0, used * channel / link_bytes_per_s);
            const auto full = static_cast<Bytes>(
                static_cast<double>(wire_bytes(kChunk[static_cast<int>(plan.protocol)], plan.protocol)) * used);
            const auto most =
                std::max<Bytes>(1, static_cast<Bytes>(static_cast<double>(std::min(full, share)) / turns));
            const std::int64_t chunks = share / most;
            const auto next = static_cast<std::uint16_t>(rank.peers.size());
            rank.peers.push_back(
                {static_cast<std::uint32_t>(index(chain[(at + 1) % n])), 100 + r, program::kNone, kBufferSlots});
            rank.peers.push_back(
                {static_cast<std::uint32_t>(index(chain[(at + n - 1) % n])), 100 + r, program::kNone, 0});
            const auto half = [&](bool send, Bytes chunk, std::vector<std::uint32_t> waits) {
                const auto stream = static_cast<std::uint8_t>(1 + 2 * r + (send ? 1 : 0));
                p.batches.push_back({{{static_cast<std::uint16_t>(next + (send ? 0 : 1)), send, chunk}}});
                return add(t, operation(OpKind::p2p_batch, stream, static_cast<std::uint32_t>(p.batches.size() - 1),
                                        std::move(waits)));
            };
            if (at + 1 < n) {
                std::vector<LinkId> links;
                cluster.route(chain[at], chain[at + 1], links);
                const bool network = cluster.path_type(chain[at], chain[at + 1]) == PathType::net;
                rank.peers[next].send_route = add_route(p, links, network ? crossing : inside);
                p.routes.back().cap = rate_from_bytes_per_s(used * channel);
                if (most_of_all > 0 && (network || group.nodes == 1))  // over nodes it is the network's
                    p.routes.back().cap = std::min(p.routes.back().cap, most_of_all / group.ring.channels * channels);
                const double pace = network ? group.pace.outside : group.pace.inside;  // all channels busy
                if (pace > 0)
                    p.routes.back().cap =
                        std::min(p.routes.back().cap, rate_from_bytes_per_s(channels / pace / group.ring.channels));
            }
            const auto pass_on = [&](Bytes chunk) {
                std::uint32_t received = begin;
                if (at > 0)
                    ends.push_back(received = half(false, chunk, {begin}));
                if (at + 1 < n)
                    ends.push_back(half(true, chunk, {received}));
            };
            if (chunks > 0) {
                const auto loop = static_cast<std::uint32_t>(t.nodes.size());
                Node repeat;
                repeat.kind = Node::Kind::repeat;
                repeat.count = chunks;
                t.nodes.push_back(repeat);
                pass_on(most);
                t.nodes[loop].end = static_cast<std::uint32_t>(t.nodes.size());
            }
            if (share > chunks * most)
                pass_on(share - chunks * most);
        }
        add(t, operation(OpKind::step_end, 0, 0, std::move(ends)));
        rank.tmpl = static_cast<std::uint32_t>(p.templates.size());
        p.templates.push_back(std::move(t));
    }
    add_others(p, member);
    return p;
}

}  // namespace fabricast
