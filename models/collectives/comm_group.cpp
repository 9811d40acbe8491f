// How a communicator lies in the cluster: its nodes, what NCCL's search finds there, channels over links.
#include "models/collectives/comm_group.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "models/collectives/tuner.hpp"

namespace fabricast {

namespace {

constexpr std::uint64_t kShapeSeed = 0x66616272;
constexpr double kGb = 1e9;

/// What NCCL's search may fill inside the nodes: NVLink of one GPU in all rings, or the narrowest step over PCIe.
void inside_of_nodes(const Cluster& cluster, const CommFacts& facts, const GroupOrder& order, SearchInput& in) {
    in.nvlink_gb_per_s = cluster.has_nvswitch() ? facts.nvlink_nccl_bytes_per_s / kGb : 0;
    in.pcie_gb_per_s = facts.pcie_nccl_bytes_per_s / kGb;
    double rings = std::numeric_limits<double>::infinity();
    bool sockets = false;
    for (const NodeRings& node : order.rings) {
        if (!cluster.has_nvswitch() && node.cycles.front().size() > 1) {
            rings = std::min(rings, node.bytes_per_s / kGb);
            sockets = sockets || node.sockets;
        }
    }
    if (rings < std::numeric_limits<double>::infinity()) {
        const bool scaled = facts.nvlink_bytes_per_s > 0 && facts.nvlink_nccl_bytes_per_s > 0;
        in.nvlink_gb_per_s = rings * (scaled ? facts.nvlink_nccl_bytes_per_s / facts.nvlink_bytes_per_s : 1);
    }
    if (sockets && in.nvlink_gb_per_s == 0 && facts.socket_nccl_bytes_per_s > 0) {
        in.pcie_gb_per_s = std::min(in.pcie_gb_per_s, facts.socket_nccl_bytes_per_s / kGb);
    }
}

SearchInput search_input(const Cluster& cluster, const CommFacts& facts, const CommSettings& settings,
                         const GroupOrder& order) {
    SearchInput in;
    in.generation = facts.generation;
    in.nccl_2_30 = nccl_version(settings.library) == NcclVersion::v2_30;
    in.nvls = facts.nvls && settings.nvls_enabled && cluster.has_nvswitch() && facts.nvswitch &&
              nvls_efficiency_percent(facts.generation) > 0;
    in.nodes = order.nodes();
    inside_of_nodes(cluster, facts, order, in);
    in.nic_gb_per_s = facts.nic_line_bytes_per_s / kGb;
    return in;
}

std::uint32_t distinct_nics(const Cluster& cluster, std::span<const GpuId> gpus) {
    if (cluster.nics_per_node() == 0) {
        return 0;
    }
    std::vector<NicId> nics;  // few: a node's
    for (const GpuId gpu : gpus) {
        if (std::find(nics.begin(), nics.end(), cluster.nic_of(gpu)) == nics.end()) {
            nics.push_back(cluster.nic_of(gpu));
        }
    }
    return static_cast<std::uint32_t>(nics.size());
}

/// A channel may be several lanes wide: on one node of direct NVLinks every ring carries its part.
int over_cycles(const GroupOrder& order, int channels) {
    if (order.nodes() > 1 || order.rings.empty() || order.rings.front().cycles.size() == 1) {
        return channels;
    }
    const int cycles = static_cast<int>(order.rings.front().cycles.size());
    return cycles * std::max(1, (channels + cycles / 2) / cycles);
}

int collnet_channels(const Cluster& cluster, const CommGroup& group) {
    std::uint32_t fewest = group.fewest_on_node;
    for (std::uint32_t i = 0; i < group.nodes; ++i) {
        fewest = std::min(fewest, distinct_nics(cluster, group.order.node(i)));
    }
    return static_cast<int>(fewest);
}

}  // namespace

bool collnet_works(const CommFacts& facts, const CommSettings& settings, const CommGroup& group) {
    return facts.sharp && settings.collnet && group.nodes > 1;
}

Wiring laid_wiring(const CommGroup& group, Algorithm a) {
    return a == Algorithm::ring                                ? Wiring::ring
           : a == Algorithm::tree                              ? Wiring::tree
           : a == Algorithm::pat                               ? Wiring::pat
           : a == Algorithm::nvls || a == Algorithm::nvls_tree ? (group.nodes > 1 ? Wiring::nvls_tree : Wiring::nvls)
                                                               : Wiring::collnet_direct;
}

CommGroup CommModel::make_group(std::span<const GpuId> members) const {
    CommGroup group = outline(members);
    std::uint64_t& hash = group.shape_hash;
    if (group.ranks > 1) {
        group.ring = classify(group, Wiring::ring, over_cycles(group.order, group.search.ring.channels), hash, nullptr);
        group.tree = classify(group, Wiring::tree, over_cycles(group.order, group.search.tree.channels), hash, nullptr);
        if (group.search.nvls.channels > 0) {
            group.nvls =
                classify(group, laid_wiring(group, Algorithm::nvls), group.search.nvls.channels, hash, nullptr);
        }
        if (collnet_works(facts_, settings_, group)) {
            group.collnet = classify(group, Wiring::collnet_direct, collnet_channels(*cluster_, group), hash, nullptr);
        }
    }
    return group;
}

CommGroup CommModel::outline(std::span<const GpuId> members) const {
    CommGroup group;
    group.order = order_by_node(*cluster_, members);
    group.members.assign(members.begin(), members.end());
    group.ranks = group.order.ranks();
    group.nodes = group.order.nodes();
    group.ranks_per_node = group.ranks / group.nodes;
    group.fewest_on_node = group.ranks;
    std::uint64_t hash = mix(mix(kShapeSeed, group.ranks), group.nodes);
    std::uint32_t fewest_nics = group.ranks;
    for (std::uint32_t i = 0; i < group.nodes; ++i) {
        const auto gpus = group.order.node(i);
        const auto count = static_cast<std::uint32_t>(gpus.size());
        const std::uint32_t nics = distinct_nics(*cluster_, gpus);
        group.fewest_on_node = std::min(group.fewest_on_node, count);
        group.most_on_node = std::max(group.most_on_node, count);
        fewest_nics = std::min(fewest_nics, nics);
        hash = mix(mix(hash, count), nics);
    }
    if (group.ranks > 1) {
        SearchInput in = search_input(*cluster_, facts_, settings_, group.order);
        in.gpus = group.fewest_on_node;
        in.nics = std::min(fewest_nics, in.gpus);
        group.search = search_channels(in);
        if (group.most_on_node != group.fewest_on_node) {
            in.gpus = group.most_on_node;
            group.search = combine(group.search, search_channels(in));
        }
        if (group.nodes > 1) {
            group.pace = ring_pace(group, in.nics);
            group.ranks_per_nic = static_cast<double>(group.most_on_node) / std::max(1u, in.nics);
        }
    }
    hash = mix(mix(hash, std::bit_cast<std::uint64_t>(group.pace.inside)),
               std::bit_cast<std::uint64_t>(group.pace.outside));
    if (!cluster_->has_nvswitch()) {  // equal links do not tell how many rings there are
        hash = mix(mix(hash, static_cast<std::uint64_t>(group.search.ring.channels)), group.search.nvlink_intra);
    }
    group.shape_hash = hash;
    return group;
}

ChannelClasses CommModel::classify(const CommGroup& group, Wiring wiring, int channels, std::uint64_t& hash,
                                   std::vector<std::vector<LinkUse>>* demands) const {
    return ChannelWiring(*cluster_, group.order, wiring, nvls_efficiency_percent(facts_.generation))
        .classify(static_cast<std::uint32_t>(channels), hash, demands);
}

void CommModel::lay(CommGroup& group, Algorithm a) const {
    CommGroup::Laid& laid = group.laid[static_cast<std::size_t>(a)];
    if (laid.hash != 0 || group.ranks < 2) {
        return;
    }
    laid.hash = mix(kShapeSeed, static_cast<std::uint64_t>(a));
    int channels = 0;
    ChannelClasses* classes = nullptr;
    switch (a) {
        case Algorithm::ring:
            classes = &group.ring;
            channels = over_cycles(group.order, group.search.ring.channels);
            break;
        case Algorithm::tree:
            classes = &group.tree;
            channels = over_cycles(group.order, group.search.tree.channels);
            break;
        case Algorithm::nvls:
        case Algorithm::nvls_tree:
            classes = &group.nvls;
            channels = group.search.nvls.channels;
            break;
        case Algorithm::collnet_direct:
        case Algorithm::collnet_chain:
            classes = &group.collnet;
            channels = collnet_works(facts_, settings_, group) ? collnet_channels(*cluster_, group) : 0;
            break;
        default: break;  // one class of channels
    }
    if (channels > 0) {
        *classes = classify(group, laid_wiring(group, a), channels, laid.hash, &laid.demands);
    }
}

RingPace CommModel::ring_pace(const CommGroup& group, std::uint32_t nics) const {
    const auto seconds_a_byte = [&](LinkId link) { return 1 / bytes_per_s(cluster_->links().capacity[index(link)]); };
    constexpr double kNone = std::numeric_limits<double>::infinity();
    RingPace pace{kNone, kNone};
    std::vector<LinkId> route;
    for (std::uint32_t i = 0; i < group.nodes; ++i) {
        const auto gpus = group.order.node(i);
        const double local = static_cast<double>(gpus.size());
        if (gpus.size() > 1) {  // each GPU is the last of its node on one pattern of `local`
            route.clear();
            cluster_->route(gpus[0], gpus[1], route);
            double slowest = 0;
            for (const LinkId link : route) {
                slowest = std::max(slowest, seconds_a_byte(link) * (local - 1) / local);
            }
            pace.inside = std::min(pace.inside, slowest);
        }
        double slowest =  // one NVSwitch may join servers that have no adapter
            nics > 0 ? seconds_a_byte(cluster_->nic_up(cluster_->nic_of(gpus[0]))) / nics : 0;
        if (cluster_->has_pcie()) {
            slowest = std::max(slowest, seconds_a_byte(cluster_->pcie_up(gpus[0])) / local);
        }
        pace.outside = std::min(pace.outside, slowest);
    }
    return {pace.inside == kNone ? 0 : pace.inside, pace.outside};
}

}  // namespace fabricast
