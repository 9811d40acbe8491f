#include "sim/traces/messages.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace fabricast::traces {
namespace {

/// The messages of one slot of one rank.
struct Side {
    std::uint32_t source, target;
    std::uint64_t tag;
    Bytes bytes;
    bool is_send;
    std::uint32_t count, rank, node;

    auto channel() const { return std::tie(source, target, tag, bytes); }
};

/// How often a list uses each message slot, and its last node that does.
struct SlotUse {
    std::uint32_t count = 0, node = 0;
};

std::vector<Side> sides_of(const Workload& workload) {
    std::vector<std::vector<SlotUse>> uses(workload.lists.size());
    for (std::size_t l = 0; l < workload.lists.size(); ++l) {
        const NodeList& list = workload.lists[l];
        uses[l].resize(list.message_slots);
        for (std::uint32_t n = 0; n < list.nodes.size(); ++n) {
            const TraceNode& node = list.nodes[n];
            if (node.kind == NodeKind::send || node.kind == NodeKind::receive) {
                ++uses[l][node.slot].count;
                uses[l][node.slot].node = n;
            }
        }
    }
    std::vector<Side> sides;
    for (std::uint32_t rank = 0; rank < workload.ranks.size(); ++rank) {
        const RankTrace& bound = workload.ranks[rank];
        for (std::size_t slot = 0; slot < bound.messages.size(); ++slot) {
            const MessageUse& use = bound.messages[slot];
            const SlotUse& of = uses[bound.list][slot];
            sides.push_back({use.is_send ? rank : use.peer, use.is_send ? use.peer : rank, use.tag, use.bytes,
                             use.is_send, of.count, rank, of.node});
        }
    }
    std::sort(sides.begin(), sides.end(), [](const Side& a, const Side& b) {
        return std::tuple_cat(a.channel(), std::tie(a.is_send)) < std::tuple_cat(b.channel(), std::tie(b.is_send));
    });
    return sides;
}

std::string complaint(const Workload& workload, const Side& side, std::uint32_t missing) {
    const NodeList& list = workload.lists[workload.ranks[side.rank].list];
    std::string text =
        fmt::format("rank {} {} {} {} bytes {} rank {} with tag {}", side.rank,
                    describe(workload, list.nodes[side.node]), side.is_send ? "sends" : "expects", side.bytes,
                    side.is_send ? "to" : "from", side.is_send ? side.target : side.source, side.tag);
    if (missing > 1)
        text += fmt::format(", {} times more", missing);
    text += side.is_send ? ", which receives no such message" : ", which sends no such message";
    return text;
}

}  // namespace

std::string unmatched_messages(const Workload& workload) {
    const std::vector<Side> sides = sides_of(workload);
    constexpr std::size_t kShown = 4;
    std::string text;
    std::size_t found = 0;
    for (std::size_t i = 0; i < sides.size();) {
        const bool pair = i + 1 < sides.size() && sides[i].channel() == sides[i + 1].channel();
        const std::uint32_t first = sides[i].count, second = pair ? sides[i + 1].count : 0;
        if (first != second) {
            if (found++ < kShown) {
                const Side& more = first > second ? sides[i] : sides[i + 1];
                text += (text.empty() ? "" : "; ") +
                        complaint(workload, more, first > second ? first - second : second - first);
            }
        }
        i += pair ? 2 : 1;
    }
    if (found > kShown)
        text += fmt::format("; and {} more", found - kShown);
    return text;
}

void bind_messages(const Workload& workload, const GridNetwork& network, LinkTable& links, program::Program& program) {
    std::map<std::pair<std::uint64_t, Bytes>, std::uint32_t> channel_of;
    std::unordered_map<std::uint64_t, std::uint32_t> route_of;  // source, destination
    std::vector<LinkId> route;
    for (std::uint32_t rank = 0; rank < workload.ranks.size(); ++rank) {
        for (const MessageUse& use : workload.ranks[rank].messages) {
            program::Peer& peer = program.ranks[rank].peers.emplace_back();
            peer.rank = use.peer;
            peer.channel = channel_of.try_emplace({use.tag, use.bytes}, static_cast<std::uint32_t>(channel_of.size()))
                               .first->second;
            if (!use.is_send)
                continue;
            peer.slots = kNone;  // any number of messages ahead of the receiver
            const std::uint64_t key = static_cast<std::uint64_t>(rank) << 32 | use.peer;
            const auto [at, fresh] = route_of.try_emplace(key, static_cast<std::uint32_t>(program.routes.size()));
            if (fresh) {
                route.clear();
                program::Route& made = program.routes.emplace_back();
                made.latency = picoseconds_from_s(network.route(rank, use.peer, route));
                made.demand = static_cast<std::uint32_t>(program.demands.size());
                made.uses_network = true;
                std::vector<LinkUse>& demand = program.demands.emplace_back();
                for (const LinkId link : route)
                    demand.push_back({links.of(link), kCoefficientOne});
            }
            peer.send_route = at->second;
        }
    }
}

}  // namespace fabricast::traces
