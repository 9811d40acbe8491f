#include "sim/step/communication_total.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/engine/network.hpp"
#include "sim/step/bottleneck.hpp"
#include "sim/step/traffic_counts.hpp"

namespace fabricast {
namespace {

using program::Program;

class Prices {
public:
    Prices(const Program& p, const Links& links) : p_(p), links_(links) {}

    Picoseconds call(std::uint32_t call, std::uint32_t g) {
        const auto [at, fresh] = calls_.try_emplace({call, g}, 0);
        if (!fresh)
            return at->second;
        const program::Group& group = p_.groups[g];
        const program::Plan& plan = p_.plans[call][group.shape];
        Picoseconds slowest = 0;
        for (const program::Activity& activity : plan.activities) {
            if (activity.work > 0)
                slowest = std::max(slowest, time(group.demands[activity.demand_class], activity.cap, activity.work));
        }
        return at->second = plan.latency + slowest;
    }

    /// The route belongs to the sending side.
    Picoseconds message(std::uint32_t rank, const MessageCount& message) {
        const program::Peer& peer = p_.ranks[rank].peers[message.slot];
        if (peer.rank == program::kNone)
            return 0;
        const std::uint32_t route = message.is_send ? peer.send_route : route_between(peer.rank, rank, peer.channel);
        if (route == program::kNone)
            return 0;
        const program::Route& r = p_.routes[route];
        return r.latency + (message.bytes > 0 ? time(r.demand, r.cap, message.bytes) : 0);
    }

private:
    Picoseconds time(std::uint32_t demand, Rate cap, Bytes bytes) {
        const auto [at, fresh] = rates_.try_emplace({demand, cap}, INT64_MAX);
        if (const Rate rate = fresh ? bottleneck_rate(links_, p_.demands[demand], cap) : 0; rate > 0)
            at->second = rate;
        return engine::Network::duration(bytes, at->second);
    }
    std::uint32_t route_between(std::uint32_t from, std::uint32_t to, std::uint32_t channel) const {
        for (const program::Peer& peer : p_.ranks[from].peers) {
            if (peer.rank == to && peer.channel == channel && peer.send_route != program::kNone)
                return peer.send_route;
        }
        return program::kNone;
    }
    const Program& p_;
    const Links& links_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, Picoseconds> calls_;
    std::map<std::pair<std::uint32_t, Rate>, Rate> rates_;
};

}  // namespace

std::array<__int128, kAccountCount> communication_total(const Program& p, const Links& links) {
    std::array<__int128, kAccountCount> out = {};
    std::map<std::pair<std::uint32_t, std::vector<std::int64_t>>, TrafficCounts> counts;
    Prices prices(p, links);
    for (std::uint32_t rank = 0; rank < p.ranks.size(); ++rank) {
        const auto [at, fresh] = counts.try_emplace({p.ranks[rank].tmpl, p.ranks[rank].bindings});
        if (fresh)
            at->second = traffic_counts(p, p.ranks[rank]);
        for (const CallCount& c : at->second.calls) {
            const std::uint32_t group = p.ranks[rank].groups[p.calls[c.call].slot];
            out[static_cast<std::size_t>(c.account)] += static_cast<__int128>(prices.call(c.call, group)) * c.times;
        }
        for (const MessageCount& m : at->second.messages)
            out[static_cast<std::size_t>(m.account)] += static_cast<__int128>(prices.message(rank, m)) * m.times;
    }
    return out;
}

}  // namespace fabricast
