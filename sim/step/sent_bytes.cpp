#include "sim/step/sent_bytes.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "sim/step/traffic_counts.hpp"

namespace fabricast {
namespace {

using program::Program;
using Wide = __int128;

constexpr std::uint32_t kNoNode = std::numeric_limits<std::uint32_t>::max();

// Sums are kept in bytes x kCoefficientOne and rounded once.
class Adder {
public:
    explicit Adder(const Cluster& cluster)
        : leaves_gpu_(cluster.links().size(), false),
          node_(cluster.links().size(), kNoNode),
          of_node_(cluster.node_count()) {
        for (std::uint32_t gpu = 0; gpu < cluster.gpu_count(); ++gpu) {
            if (cluster.has_nvswitch())
                leaves_gpu_[index(cluster.nvlink_up(GpuId{gpu}))] = true;
            if (cluster.has_pcie())
                leaves_gpu_[index(cluster.pcie_up(GpuId{gpu}))] = true;
        }
        for (std::size_t link = 0; !cluster.has_nvswitch() && link < leaves_gpu_.size(); ++link) {
            if (cluster.links().kind[link] == LinkKind::nvlink)
                leaves_gpu_[link] = true;
        }
        for (std::uint32_t nic = 0; nic < cluster.node_count() * cluster.nics_per_node(); ++nic) {
            const std::size_t link = index(cluster.nic_up(NicId{nic}));
            node_[link] = static_cast<std::uint32_t>(index(cluster.node_of(NicId{nic})));
            if (!cluster.has_pcie())
                leaves_gpu_[link] = true;
        }
    }

    void add(const std::vector<LinkUse>& demand, Bytes work, std::int64_t times, Account account) {
        const auto a = static_cast<std::size_t>(account);
        const Wide all = static_cast<Wide>(work) * times;
        for (const LinkUse& use : demand) {
            const Wide bytes = all * static_cast<Wide>(use.coefficient);
            if (leaves_gpu_[index(use.link)])
                from_gpus_[a] += bytes;
            if (node_[index(use.link)] != kNoNode)
                of_node_[node_[index(use.link)]][a] += bytes;
        }
    }

    SentBytes result() const {
        SentBytes out;
        Wide most = -1;
        for (std::uint32_t node = 0; node < of_node_.size(); ++node) {
            const Wide sum = SentBytes::sum(of_node_[node]);
            if (sum > most) {
                most = sum;
                out.busiest_node = node;
            }
            for (std::size_t a = 0; a < kAccountCount; ++a)
                out.over_network[a] += of_node_[node][a];
        }
        out.busiest = of_node_[out.busiest_node];
        out.from_gpus = from_gpus_;
        for (SentBytes::ByAccount* part : {&out.from_gpus, &out.over_network, &out.busiest}) {
            for (Wide& bytes : *part)
                bytes = (bytes + kCoefficientOne / 2) / kCoefficientOne;
        }
        return out;
    }

private:
    std::vector<bool> leaves_gpu_;     ///< [link]
    std::vector<std::uint32_t> node_;  ///< [link]: whose adapter it leaves
    SentBytes::ByAccount from_gpus_ = {};
    std::vector<SentBytes::ByAccount> of_node_;
};

}  // namespace

__int128 SentBytes::sum(const ByAccount& bytes) {
    __int128 out = 0;
    for (const __int128 part : bytes)
        out += part;
    return out;
}

SentBytes sent_bytes(const Program& p, const Cluster& cluster) {
    Adder adder(cluster);
    std::map<std::pair<std::uint32_t, std::vector<std::int64_t>>, TrafficCounts> counts;
    for (std::uint32_t r = 0; r < p.ranks.size(); ++r) {
        const program::Rank& rank = p.ranks[r];
        const auto [at, fresh] = counts.try_emplace({rank.tmpl, rank.bindings});
        if (fresh)
            at->second = traffic_counts(p, rank);
        for (const CallCount& c : at->second.calls) {
            const program::Group& group = p.groups[rank.groups[p.calls[c.call].slot]];
            if (group.members.front() != r)  // once a group
                continue;
            for (const program::Activity& activity : p.plans[c.call][group.shape].activities)
                adder.add(p.demands[group.demands[activity.demand_class]], activity.work, c.times, c.account);
        }
        for (const MessageCount& m : at->second.messages) {
            const program::Peer& peer = rank.peers[m.slot];
            if (m.is_send && peer.rank != program::kNone && peer.send_route != program::kNone)
                adder.add(p.demands[p.routes[peer.send_route].demand], m.bytes, m.times, m.account);
        }
    }
    return adder.result();
}

}  // namespace fabricast
