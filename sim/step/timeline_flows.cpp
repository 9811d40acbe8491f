// Arrows from sends to receives, and what links carry.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "sim/step/bottleneck.hpp"
#include "sim/step/record_timeline.hpp"

namespace fabricast {
namespace {

// Slices of the sends (or receives) of a lane on one peer slot, from the first step on; kNone where not shown.
using Halves = std::map<std::uint16_t, std::vector<std::uint32_t>>;

Halves halves_of(const TimelineSource& source, std::uint32_t rank, const std::vector<std::uint32_t>& slice_of,
                 bool sends) {
    Halves halves;
    const std::vector<std::uint32_t>& records = source.of_row[source.class_of[rank]];
    for (std::size_t i = 0; i < records.size(); ++i) {
        const program::Operation& op = source.operation(rank, source.records[records[i]]);
        if (op.kind != program::OpKind::p2p_batch)
            continue;
        for (const program::MessageHalf& half : source.program->batches[op.payload].halves) {
            if (half.is_send == sends)
                halves[half.peer_slot].push_back(slice_of[i]);
        }
    }
    return halves;
}

// The receives of a lane, by slot, that take what `sender` sends to `to`; null where there are none. Two slots may lead to
// one rank (a pipeline of two stages has the same neighbour on both sides): the one that receives counts.
const std::vector<std::uint32_t>* receives_from(const program::Program& p, std::uint32_t sender,
                                                const program::Peer& to, const Halves& receives) {
    const std::vector<program::Peer>& peers = p.ranks[to.rank].peers;
    for (const auto& [slot, slices] : receives) {
        const program::Peer& peer = peers[slot];
        const std::uint32_t channel = peer.receive_channel == program::kNone ? peer.channel : peer.receive_channel;
        if (peer.rank == sender && channel == to.channel)
            return &slices;
    }
    return nullptr;
}

}  // namespace

// A peer that is not shown is stood for by the lane of its class, where there is one.
void add_flows(StepTimeline& timeline, const TimelineSource& source,
               const std::vector<std::vector<std::uint32_t>>& slice_of) {
    const program::Program& p = *source.program;
    std::map<std::uint32_t, std::uint32_t> lane_of_rank, lane_of_class;
    std::vector<Halves> receives;
    for (std::uint32_t n = 0; n < timeline.lanes.size(); ++n) {
        const std::uint32_t rank = timeline.lanes[n].rank;
        lane_of_rank[rank] = n;
        lane_of_class.try_emplace(source.class_of[rank], n);
        receives.push_back(halves_of(source, rank, slice_of[n], false));
    }
    for (std::uint32_t n = 0; n < timeline.lanes.size(); ++n) {
        const std::uint32_t rank = timeline.lanes[n].rank;
        for (const auto& [slot, sends] : halves_of(source, rank, slice_of[n], true)) {
            const program::Peer& peer = p.ranks[rank].peers[slot];
            std::uint32_t other = program::kNone;
            if (const auto at = lane_of_rank.find(peer.rank); at != lane_of_rank.end())
                other = at->second;
            else if (const auto like = lane_of_class.find(source.class_of[peer.rank]);
                     like != lane_of_class.end() && lane_of_class.at(source.class_of[rank]) == n)
                other = like->second;
            if (other == program::kNone)
                continue;
            const std::vector<std::uint32_t>* taken = receives_from(p, rank, peer, receives[other]);
            for (std::size_t k = 0; taken != nullptr && k < std::min(sends.size(), taken->size()); ++k) {
                if (sends[k] != program::kNone && (*taken)[k] != program::kNone)
                    timeline.flows.push_back({sends[k], (*taken)[k]});
            }
        }
    }
}

namespace {

// Links a lane owns: the GPU's NVLink and PCIe, its adapters' network links.
std::vector<LinkId> links_of(const Cluster& cluster, GpuId gpu) {
    std::vector<LinkId> links;
    if (cluster.has_nvswitch()) {
        links.push_back(cluster.nvlink_up(gpu));
        links.push_back(cluster.nvlink_down(gpu));
    }
    if (cluster.has_pcie()) {
        links.push_back(cluster.pcie_up(gpu));
        links.push_back(cluster.pcie_down(gpu));
    }
    for (const NicId nic : cluster.nics_of(gpu)) {
        links.push_back(cluster.nic_up(nic));
        links.push_back(cluster.nic_down(nic));
    }
    return links;
}

// A time in which a link carries a part of its capacity.
struct Load {
    Picoseconds from, to;
    double use;
};

class LinkWatch {
public:
    LinkWatch(const StepTimeline& timeline, const TimelineSource& source)
        : timeline_(timeline), source_(source), p_(*source.program) {}

    void watch(LinkId link) { number_.try_emplace(static_cast<std::uint32_t>(link), loads_.size()), grow(); }
    const std::vector<Load>& loads(LinkId link) const { return loads_[number_.at(static_cast<std::uint32_t>(link))]; }

    void run() {
        for (std::uint32_t d = 0; d < p_.demands.size(); ++d) {
            for (const LinkUse& use : p_.demands[d]) {
                if (const auto at = number_.find(static_cast<std::uint32_t>(use.link)); at != number_.end())
                    uses_[d].push_back({at->second, use.coefficient, index(use.link)});
            }
        }
        std::set<std::uint32_t> met;  // groups: one member tells the times of all
        for (std::uint32_t rank = 0; rank < p_.ranks.size(); ++rank) {
            const std::vector<program::Operation>& operations = p_.templates[p_.ranks[rank].tmpl].operations;
            std::set<std::uint32_t> fresh;
            for (const std::uint32_t group : p_.ranks[rank].groups) {
                if (group != program::kNone && loads_watched(p_.groups[group].demands) && met.insert(group).second)
                    fresh.insert(group);
            }
            const bool sends = sends_watched(rank);
            if (fresh.empty() && !sends)
                continue;
            for (std::size_t o = 0; o < operations.size(); ++o)
                add(rank, o, operations[o], fresh);
        }
    }

private:
    struct Use {
        std::size_t link;
        std::uint64_t coefficient;
        std::size_t id;
    };
    void grow() { loads_.resize(number_.size()); }
    bool loads_watched(const std::vector<std::uint32_t>& demands) const {
        return std::any_of(demands.begin(), demands.end(), [&](std::uint32_t d) { return uses_.contains(d); });
    }
    bool sends_watched(std::uint32_t rank) const {
        const program::Rank& r = p_.ranks[rank];
        return std::any_of(r.peers.begin(), r.peers.end(),
                           [&](const program::Peer& peer) {
                               return peer.send_route != program::kNone &&
                                      uses_.contains(p_.routes[peer.send_route].demand);
                           }) ||
               std::any_of(r.transfer_routes.begin(), r.transfer_routes.end(),
                           [&](std::uint32_t route) { return uses_.contains(p_.routes[route].demand); });
    }
    void add(std::uint32_t rank, std::size_t number, const program::Operation& op,
             const std::set<std::uint32_t>& fresh) {
        const program::Rank& r = p_.ranks[rank];
        if (op.kind == program::OpKind::collective) {
            const std::uint32_t g = r.groups[p_.calls[op.payload].slot];
            if (!fresh.contains(g))
                return;
            const program::Plan& plan = p_.plans[op.payload][p_.groups[g].shape];
            for (const program::Activity& activity : plan.activities)
                add_runs(rank, number, p_.groups[g].demands[activity.demand_class], activity.work, plan.latency);
        } else if (op.kind == program::OpKind::p2p_batch) {
            for (const program::MessageHalf& half : p_.batches[op.payload].halves) {
                if (!half.is_send)
                    continue;
                const program::Route& route = p_.routes[r.peers[half.peer_slot].send_route];
                add_runs(rank, number, route.demand, half.bytes, route.latency);
            }
        } else if (op.kind == program::OpKind::transfer) {
            const program::Transfer& transfer = p_.transfers[op.payload];
            const program::Route& route = p_.routes[r.transfer_routes[transfer.route_slot]];
            add_runs(rank, number, route.demand, transfer.bytes, route.latency);
        }
    }
    void add_runs(std::uint32_t rank, std::size_t number, std::uint32_t demand, Bytes work, Picoseconds latency) {
        const auto uses = uses_.find(demand);
        if (uses == uses_.end())
            return;
        for (const std::uint32_t i : source_.runs_of(rank, number)) {
            const engine::Record& record = source_.records[i];
            const Picoseconds from = std::min(record.started + latency, record.finished);
            if (record.finished <= timeline_.begin || from >= timeline_.end || from == record.finished)
                continue;
            for (const Use& use : uses->second) {
                const double bytes = static_cast<double>(work) * static_cast<double>(use.coefficient) / kCoefficientOne;
                const double capacity = bytes_per_s(source_.cluster->links().capacity[use.id]);
                loads_[use.link].push_back(
                    {from, record.finished, bytes / (seconds(record.finished - from) * capacity)});
            }
        }
    }

    const StepTimeline& timeline_;
    const TimelineSource& source_;
    const program::Program& p_;
    std::map<std::uint32_t, std::size_t> number_;
    std::vector<std::vector<Load>> loads_;
    std::map<std::uint32_t, std::vector<Use>> uses_;  ///< demand -> watched links
};

}  // namespace

void add_links(StepTimeline& timeline, const TimelineSource& source) {
    LinkWatch watch(timeline, source);
    for (const StepTimeline::Lane& lane : timeline.lanes) {
        for (const LinkId link : links_of(*source.cluster, GpuId{lane.rank}))
            watch.watch(link);
    }
    watch.run();
    const Links& links = source.cluster->links();
    for (std::uint32_t n = 0; n < timeline.lanes.size(); ++n) {
        const StepTimeline::Lane& lane = timeline.lanes[n];
        for (const LinkId id : links_of(*source.cluster, GpuId{lane.rank})) {
            std::map<Picoseconds, double> steps;  // change of use at an instant
            double busy = 0;
            for (const Load& load : watch.loads(id)) {
                steps[std::max(load.from, timeline.begin)] += load.use;
                steps[load.to] -= load.use;
                busy += load.use * seconds(std::max<Picoseconds>(
                                       0, std::min(load.to, lane.end) - std::max(load.from, lane.begin)));
            }
            if (steps.empty())
                continue;
            StepTimeline::Link link{.lane = n,
                                    .name = links.name[index(id)],
                                    .place = place_of(links, id),
                                    .capacity = links.capacity[index(id)],
                                    .mean = lane.end > lane.begin ? busy / seconds(lane.end - lane.begin) : 0,
                                    .samples = {{timeline.begin, 0}}};
            double use = 0;
            for (const auto& [at, change] : steps) {
                use += change;
                link.samples.push_back({at, use < 1e-9 ? 0 : std::min(use, 1.0)});
            }
            timeline.links.push_back(std::move(link));
        }
    }
}

}  // namespace fabricast
