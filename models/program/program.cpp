#include "models/program/program.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

namespace fabricast::program {
namespace {

constexpr std::size_t kMaxStreams = 32;
constexpr std::size_t kMaxLoopDepth = 4;
constexpr std::size_t kMaxWaits = 255;

/// True when some repeat holds both nodes.
bool share_a_repeat(const Template& t, std::uint32_t a, std::uint32_t b) {
    const std::uint32_t first = std::min(a, b), last = std::max(a, b);
    for (std::uint32_t n = 0; n < first; ++n) {
        if (t.nodes[n].kind == Node::Kind::repeat && t.nodes[n].end > last)
            return true;
    }
    return false;
}

std::string validate_prices(const Program& p) {
    for (std::size_t c = 0; c < p.costs.size(); ++c) {
        const CostClass& cost = p.costs[c];
        Picoseconds sum = 0;
        for (const Picoseconds part : cost.parts)
            sum += part;
        if (cost.work < 0 || sum != cost.work)
            return fmt::format("cost class {}: parts sum to {} ps, work is {} ps", c, sum, cost.work);
        if (cost.host < 0 || cost.host_first < 0 || cost.tail < 0)
            return fmt::format("cost class {}: a negative time", c);
        for (const std::uint32_t speed : cost.speed) {
            if (speed == 0 || speed > kFullSpeed)
                return fmt::format("cost class {}: speed {} outside 1..65536", c, speed);
        }
    }
    for (std::size_t c = 0; c < p.plans.size(); ++c) {
        for (const Plan& plan : p.plans[c]) {
            if (plan.latency < 0)
                return fmt::format("call {}: a plan has a negative latency", c);
            for (const Activity& activity : plan.activities) {
                if (activity.work < 0 || activity.weight == 0 || activity.cap < 0)
                    return fmt::format("call {}: a plan has an impossible activity", c);
            }
        }
    }
    for (std::size_t r = 0; r < p.routes.size(); ++r) {
        const Route& route = p.routes[r];
        if (route.latency < 0 || route.cap < 0)
            return fmt::format("route {}: a negative latency or cap", r);
        if (route.demand >= p.demands.size())
            return fmt::format("route {} has no demand", r);
        if (p.demands[route.demand].empty() && route.cap == 0)
            return fmt::format("route {} has neither links nor a cap", r);
    }
    for (std::size_t d = 0; d < p.demands.size(); ++d) {
        std::set<LinkId> used;
        for (const LinkUse& use : p.demands[d]) {
            if (use.coefficient == 0)
                return fmt::format("demand {} names link {} without using it", d, index(use.link));
            if (!used.insert(use.link).second)
                return fmt::format("demand {} names link {} twice", d, index(use.link));
        }
    }
    for (std::size_t t = 0; t < p.transfers.size(); ++t) {
        if (p.transfers[t].bytes < 0)
            return fmt::format("transfer {} moves a negative number of bytes", t);
    }
    for (std::size_t d = 0; d < p.durations.size(); ++d) {
        if (p.durations[d] < 0)
            return fmt::format("duration {} is negative", d);
    }
    for (std::size_t s = 0; s < p.sources.size(); ++s) {
        const Source& source = p.sources[s];
        if (source.ahead == 0 || source.times.empty() || source.start < 0)
            return fmt::format("source {}: nothing ahead, no times or a negative start", s);
        if (std::any_of(source.times.begin(), source.times.end(), [](Picoseconds t) { return t < 0; }))
            return fmt::format("source {}: a negative time", s);
    }
    return {};
}

std::string validate_template(const Program& p, const Template& t) {
    const auto where = [&](std::size_t op) { return fmt::format("template {} operation {}", t.name, op); };
    if (t.streams == 0 || t.streams > kMaxStreams)
        return fmt::format("template {}: {} streams, 1..{} allowed", t.name, t.streams, kMaxStreams);
    std::vector<int> seen(t.operations.size(), 0);
    std::vector<std::uint32_t> open;  // ends of the enclosing repeats and blocks
    std::vector<bool> open_repeat;
    for (std::uint32_t n = 0; n < t.nodes.size(); ++n) {
        while (!open.empty() && open.back() <= n) {
            open.pop_back();
            open_repeat.pop_back();
        }
        const Node& node = t.nodes[n];
        if (node.kind == Node::Kind::operation) {
            if (node.operation >= t.operations.size())
                return fmt::format("template {}: node {} names no operation", t.name, n);
            if (seen[node.operation]++ != 0)
                return where(node.operation) + " occurs twice in the tree";
            continue;
        }
        if (node.end <= n || node.end > t.nodes.size() || (!open.empty() && node.end > open.back())) {
            return fmt::format("template {}: node {} does not nest", t.name, n);
        }
        if (node.kind == Node::Kind::repeat && node.bound == kNone && node.count < 0)
            return fmt::format("template {}: repeat {} has a negative count", t.name, n);
        open.push_back(node.end);
        open_repeat.push_back(node.kind == Node::Kind::repeat);
        if (std::count(open_repeat.begin(), open_repeat.end(), true) > static_cast<long>(kMaxLoopDepth)) {
            return fmt::format("template {}: repeats nest deeper than {}", t.name, kMaxLoopDepth);
        }
    }
    std::vector<std::uint32_t> node_of(t.operations.size(), 0);
    for (std::uint32_t n = 0; n < t.nodes.size(); ++n) {
        if (t.nodes[n].kind == Node::Kind::operation)
            node_of[t.nodes[n].operation] = n;
    }
    std::map<std::uint16_t, std::uint8_t> stream_of_slot;
    std::map<std::pair<std::uint16_t, bool>, std::uint8_t> stream_of_peer;
    for (std::size_t i = 0; i < t.operations.size(); ++i) {
        const Operation& op = t.operations[i];
        if (seen[i] == 0)
            return where(i) + " is not in the tree";
        if (op.stream >= t.streams)
            return where(i) + " runs on a stream the template lacks";
        if (op.label >= p.labels.size())
            return where(i) + " has no label";
        if (op.kind == OpKind::compute && op.stream != 0)
            return where(i) + " computes outside stream 0";
        if (op.late != 0 && (op.kind != OpKind::collective || op.stream != 0))
            return where(i) + " expects a late member, which only a collective on stream 0 may";
        if (op.kind == OpKind::step_end && op.stream != 0)
            return where(i) + " ends the step outside stream 0";
        const std::size_t limit = op.kind == OpKind::compute      ? p.costs.size()
                                  : op.kind == OpKind::collective ? p.calls.size()
                                  : op.kind == OpKind::p2p_batch  ? p.batches.size()
                                  : op.kind == OpKind::transfer   ? p.transfers.size()
                                  : op.kind == OpKind::step_end   ? std::size_t{1} + op.payload
                                  : op.kind == OpKind::fetch      ? p.fetches.size()
                                                                  : p.durations.size();
        if (op.payload >= limit)
            return where(i) + " has no payload";
        if (op.waits.size() > kMaxWaits)
            return where(i) + fmt::format(" waits for {} operations, {} allowed", op.waits.size(), kMaxWaits);
        for (const std::uint32_t wait : op.waits) {
            if (wait >= t.nodes.size() || t.nodes[wait].kind != Node::Kind::operation)
                return where(i) + " waits for no operation";
            if (t.operations[t.nodes[wait].operation].stream == op.stream)
                return where(i) + " waits inside its own stream";
            if (wait > node_of[i] && !share_a_repeat(t, wait, node_of[i]))
                return where(i) + " waits for a later operation outside any common repeat";
        }
        if (op.kind == OpKind::collective) {
            const auto [at, fresh] = stream_of_slot.try_emplace(p.calls[op.payload].slot, op.stream);
            if (!fresh && at->second != op.stream)
                return where(i) + " calls a communicator from a second stream";
        }
        if (op.kind == OpKind::p2p_batch) {
            std::set<std::pair<std::uint16_t, bool>> used;
            for (const MessageHalf& half : p.batches[op.payload].halves) {
                if (half.bytes < 0)
                    return where(i) + " moves a negative number of bytes";
                if (!used.insert({half.peer_slot, half.is_send}).second)
                    return where(i) + " uses a peer slot twice in one direction";
                const auto [at, fresh] = stream_of_peer.try_emplace({half.peer_slot, half.is_send}, op.stream);
                if (!fresh && at->second != op.stream)
                    return where(i) + " uses a peer slot from a second stream";
            }
        }
    }
    return {};
}

std::string validate_rank(const Program& p, std::size_t r) {
    const Rank& rank = p.ranks[r];
    if (rank.tmpl >= p.templates.size())
        return fmt::format("rank {} has no template", r);
    for (const Node& node : p.templates[rank.tmpl].nodes) {
        if (node.kind == Node::Kind::repeat && node.bound != kNone &&
            (node.bound >= rank.bindings.size() || rank.bindings[node.bound] < 0)) {
            return fmt::format("rank {} does not bind a repeat of template {}", r, p.templates[rank.tmpl].name);
        }
    }
    for (const Operation& op : p.templates[rank.tmpl].operations) {
        if (op.kind == OpKind::collective) {
            const Call& call = p.calls[op.payload];
            if (call.slot >= rank.groups.size() || rank.groups[call.slot] >= p.groups.size())
                return fmt::format("rank {} lacks communicator slot {}", r, call.slot);
            const Group& group = p.groups[rank.groups[call.slot]];
            if (op.payload >= p.plans.size() || group.shape >= p.plans[op.payload].size())
                return fmt::format("call {} has no plan on group {}", op.payload, group.name);
            for (const Activity& activity : p.plans[op.payload][group.shape].activities) {
                if (activity.demand_class >= group.demands.size()) {
                    return fmt::format("call {} has no demand on group {}", op.payload, group.name);
                }
                if (p.demands[group.demands[activity.demand_class]].empty() && activity.cap == 0) {
                    return fmt::format("call {} has neither links nor a cap on group {}", op.payload, group.name);
                }
            }
        }
        if (op.kind == OpKind::p2p_batch) {
            for (const MessageHalf& half : p.batches[op.payload].halves) {
                if (half.peer_slot >= rank.peers.size() || rank.peers[half.peer_slot].rank >= p.ranks.size())
                    return fmt::format("rank {} lacks peer slot {}", r, half.peer_slot);
                const Peer& peer = rank.peers[half.peer_slot];
                if (half.is_send && peer.send_route >= p.routes.size()) {
                    return fmt::format("rank {} has no route to rank {}", r, peer.rank);
                }
            }
        }
        if (op.kind == OpKind::transfer && p.transfers[op.payload].route_slot >= rank.transfer_routes.size())
            return fmt::format("rank {} lacks a transfer route", r);
        if (op.kind == OpKind::fetch && p.fetches[op.payload].slot >= rank.sources.size())
            return fmt::format("rank {} lacks a source", r);
    }
    return {};
}

}  // namespace

std::string validate(const Program& program) {
    if (std::string broken = validate_prices(program); !broken.empty())
        return broken;
    for (const Template& t : program.templates) {
        if (std::string broken = validate_template(program, t); !broken.empty())
            return broken;
    }
    std::vector<std::vector<std::uint32_t>> member_of(program.ranks.size());
    for (std::uint32_t g = 0; g < program.groups.size(); ++g) {
        for (const std::uint32_t demand : program.groups[g].demands) {
            if (demand >= program.demands.size())
                return fmt::format("group {} names demand {}, there are {}", program.groups[g].name, demand,
                                   program.demands.size());
        }
        for (const std::uint32_t member : program.groups[g].members) {
            if (member >= program.ranks.size())
                return fmt::format("group {} names rank {}, there are {}", program.groups[g].name, member,
                                   program.ranks.size());
            std::vector<std::uint32_t>& groups = member_of[member];
            if (!groups.empty() && groups.back() == g)
                return fmt::format("rank {} is twice in group {}", member, program.groups[g].name);
            groups.push_back(g);
        }
    }
    // Ranks of one template and equal slots (up to which group and which peer) pass or fail the rest together.
    std::set<
        std::tuple<std::uint32_t, std::vector<std::uint32_t>, std::vector<int>, std::size_t, std::vector<std::int64_t>>>
        done;
    for (std::size_t r = 0; r < program.ranks.size(); ++r) {
        const Rank& rank = program.ranks[r];
        if (rank.slowness < kFullSpeed)  // a faster rank has cost classes of its own
            return fmt::format("rank {} has slowness {}, at least {} is allowed", r, rank.slowness, kFullSpeed);
        std::vector<std::uint32_t> shapes = {}, groups = rank.groups;
        for (const std::uint32_t g : rank.groups) {
            if (g == kNone)
                continue;
            if (g >= program.groups.size())
                return fmt::format("rank {} names group {}, there are {}", r, g, program.groups.size());
            if (!std::binary_search(member_of[r].begin(), member_of[r].end(), g))
                return fmt::format("rank {} is no member of group {}", r, program.groups[g].name);
            shapes.push_back(program.groups[g].shape);
            shapes.push_back(static_cast<std::uint32_t>(program.groups[g].demands.size()));
        }
        std::erase(groups, kNone);
        std::sort(groups.begin(), groups.end());
        if (std::adjacent_find(groups.begin(), groups.end()) != groups.end())
            return fmt::format("rank {} has a group in two slots", r);
        std::vector<int> peers;
        for (const Peer& peer : rank.peers)
            peers.push_back((peer.rank < program.ranks.size() ? 1 : 0) +
                            (peer.send_route < program.routes.size() ? 2 : 0));
        for (const std::uint32_t route : rank.transfer_routes) {
            if (route >= program.routes.size())
                return fmt::format("rank {} names route {}, there are {}", r, route, program.routes.size());
        }
        for (const std::uint32_t source : rank.sources) {
            if (source >= program.sources.size())
                return fmt::format("rank {} names source {}, there are {}", r, source, program.sources.size());
        }
        const std::size_t slots = rank.transfer_routes.size() << 16 | rank.sources.size();
        if (!done.insert({rank.tmpl, shapes, peers, slots, rank.bindings}).second)
            continue;
        if (std::string broken = validate_rank(program, r); !broken.empty())
            return broken;
    }
    return {};
}

namespace {

std::int64_t passes_of(const Node& node, const std::vector<std::int64_t>& bindings) {
    if (node.kind == Node::Kind::block)
        return 1;
    if (node.bound == kNone)
        return node.count;
    return node.bound < bindings.size() ? bindings[node.bound] : 1;
}

}  // namespace

MemoryPeak peak_memory(const Template& tmpl, const std::vector<std::int64_t>& bindings) {
    MemoryPeak now, peak;
    now.parts = tmpl.base_memory;
    for (const Bytes bytes : now.parts)
        now.total += bytes;
    peak = now;
    const auto apply = [&](const Operation& op) {
        for (const MemoryChange& change : op.memory) {
            if (change.bytes <= 0)
                continue;
            now.parts[static_cast<std::size_t>(change.cause)] += change.bytes;
            now.total += change.bytes;
        }
        if (now.total > peak.total)
            peak = now;
        for (const MemoryChange& change : op.memory) {
            if (change.bytes >= 0)
                continue;
            now.parts[static_cast<std::size_t>(change.cause)] += change.bytes;
            now.total += change.bytes;
        }
    };
    // A pass that leaves memory as it found it need not be repeated.
    const auto walk = [&](const auto& self, std::uint32_t begin, std::uint32_t end) -> void {
        for (std::uint32_t n = begin; n < end;) {
            const Node& node = tmpl.nodes[n];
            if (node.kind == Node::Kind::operation) {
                apply(tmpl.operations[node.operation]);
                ++n;
                continue;
            }
            const std::int64_t passes = passes_of(node, bindings);
            for (std::int64_t pass = 0; pass < passes; ++pass) {
                const MemoryPeak before = now;
                self(self, n + 1, node.end);
                if (now.total == before.total && now.parts == before.parts)
                    break;
            }
            n = node.end;
        }
    };
    walk(walk, 0, static_cast<std::uint32_t>(tmpl.nodes.size()));
    return peak;
}

std::vector<std::int64_t> executions(const Template& tmpl, const std::vector<std::int64_t>& bindings) {
    std::vector<std::int64_t> out(tmpl.operations.size(), 0);
    const auto walk = [&](const auto& self, std::uint32_t begin, std::uint32_t end, std::int64_t times) -> void {
        for (std::uint32_t n = begin; n < end;) {
            const Node& node = tmpl.nodes[n];
            if (node.kind == Node::Kind::operation) {
                out[node.operation] += times;
                ++n;
            } else {
                self(self, n + 1, node.end, times * passes_of(node, bindings));
                n = node.end;
            }
        }
    };
    if (!tmpl.nodes.empty())
        walk(walk, 1, tmpl.nodes[0].end, 1);
    return out;
}

}  // namespace fabricast::program
