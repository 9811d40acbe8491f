#include "models/collectives/comm_model.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/collectives/comm_group.hpp"
#include "models/collectives/exchange.hpp"
#include "models/collectives/execution.hpp"
#include "models/collectives/latency.hpp"
#include "models/collectives/tuner.hpp"

namespace fabricast {

namespace {

constexpr double kGb = 1e9;

template <typename T>
bool allowed(const std::vector<T>& list, T value) {
    return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

bool simple_only(Algorithm a) { return a != Algorithm::tree && a != Algorithm::ring; }

constexpr Bytes kBarrierBytes = 4;  // the frameworks' barrier is an all-reduce of one word

ChannelLimits limits_of(const CommSettings& settings) {
    return {std::min(settings.min_channels.value_or(1), kMaxChannels),
            std::min(settings.max_channels.value_or(kMaxChannels), kMaxChannels)};
}

TunerInput tuner_input(const Cluster& cluster, const CommFacts& facts, const CommSettings& settings,
                       const CommGroup& group) {
    TunerInput in;
    in.version = nccl_version(settings.library);
    in.generation = facts.generation;
    in.amd_cpu = facts.amd_cpu;
    in.ranks = group.ranks;
    in.nodes = group.nodes;
    in.one_rank_a_node = group.most_on_node == 1;
    in.ll128 = group.search.nvlink_intra;
    in.collnet = collnet_works(facts, settings, group);
    in.nvswitch = group.search.nvlink_intra && facts.nvswitch && cluster.has_nvswitch() && group.most_on_node > 1;
    in.most_on_node = group.most_on_node;
    in.channels = executed_channels(group.search, facts.generation, group.nodes, limits_of(settings));
    in.search = group.search;
    return in;
}

Wiring wiring_of(Algorithm a, Collective kind, bool network) {
    switch (a) {
        case Algorithm::ring: return Wiring::ring;
        case Algorithm::tree: return Wiring::tree;
        case Algorithm::pat: return Wiring::pat;
        case Algorithm::nvls_tree: return Wiring::nvls_tree;
        case Algorithm::collnet_direct: return Wiring::collnet_direct;
        case Algorithm::collnet_chain: return Wiring::collnet_chain;
        default: break;
    }
    if (network) {
        return Wiring::nvls_collnet;
    }
    return kind == Collective::all_gather       ? Wiring::nvls_gather
           : kind == Collective::reduce_scatter ? Wiring::nvls_scatter
                                                : Wiring::nvls;
}

/// Bytes per unit coefficient: what one rank sends on a ring; the payload for trees and NVLS.
Bytes work_bytes(Algorithm a, Protocol p, Collective kind, Bytes size, std::uint32_t ranks) {
    const std::int64_t n = ranks;
    if (a == Algorithm::ring || a == Algorithm::pat) {
        if (kind == Collective::all_reduce) {
            return wire_bytes(scaled_up(size, 2 * (n - 1), n), p);
        }
        if (kind != Collective::broadcast && kind != Collective::reduce) {
            return wire_bytes(scaled_up(size, n - 1, n), p);
        }
    }
    return wire_bytes(size, p);
}

/// Work rate (bytes/s) the channels themselves allow, whatever the links; 0 = nothing known to bind.
double channel_cap(const TunerInput& in, const NetworkTiming& network, Algorithm a, Protocol p, Collective kind,
                   double used, const TunerEntry& entry) {
    const double n = in.ranks;
    double block = channel_gb_per_s(in.generation);
    if (a == Algorithm::ring && in.nodes > 1 && network.channel_gb_per_s > 0) {
        block = std::min(block, network.channel_gb_per_s);
    }
    const double blocks = used * block;
    const double ring_channels = in.search.ring.channels;
    double cap = 0;  // GB/s
    if (a == Algorithm::ring) {
        cap = p == Protocol::ll      ? std::min(blocks, 2 * ll_total_gb_per_s(in))
              : p == Protocol::ll128 ? std::min(blocks, ring_channels * ring_ll128_channel_gb_per_s(in) * 128 / 120)
                                     : blocks;
    } else if (a == Algorithm::tree) {
        const double tree_channels = in.search.tree.channels;
        cap = p == Protocol::ll      ? 2 * ll_total_gb_per_s(in)
              : p == Protocol::ll128 ? tree_channels * tree_channel_gb_per_s(in, p) * 128 / 120
                                     : tree_channels * tree_channel_gb_per_s(in, p);
        cap = .5 * std::min(blocks, cap) * (in.search.plain_tree ? .85 : 1);  // payload goes up and comes down
    } else if (a == Algorithm::nvls_tree) {
        cap = in.search.nvls.channels * nvls_tree_channel_gb_per_s(in) * n / (2 * (n - 1));
    } else if (a == Algorithm::pat) {
        cap = entry.bandwidth_gb_per_s * (n - 1) / n;
    } else if (kind != Collective::all_reduce || in.collnet) {
        // NVLS gather or scatter, CollNet: NCCL's own estimate. NVLS with SHARP, 64 H100: 195.3 predicted, 195.3 GB/s
        // measured (all-reduce of 8 GiB, public log).
        cap = entry.bandwidth_gb_per_s;
    }
    return cap * kGb;
}

const ChannelClasses& classes_of(const CommGroup& group, Algorithm a) {
    static const ChannelClasses kOne{.channels = 1, .class_of = {0}, .size = {1}};
    switch (a) {
        case Algorithm::ring: return group.ring;
        case Algorithm::tree: return group.tree;
        case Algorithm::pat: return kOne;
        case Algorithm::collnet_direct:
        case Algorithm::collnet_chain: return group.collnet;
        default: return group.nvls;
    }
}

bool only_one_node(const Cluster& cluster) {
    return cluster.node_count() == 1 || (cluster.has_nvswitch() && cluster.nvlink_domain_count() == 1);
}

std::string names(const std::vector<std::string>& list) {
    return list.empty() ? "nothing" : fmt::format("{}", fmt::join(list, ", "));
}

}  // namespace

std::string_view collective_name(Collective kind) {
    constexpr std::string_view kNames[] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
                                           "all_to_all", "send_recv",  "gather",         "scatter",   "barrier"};
    return kNames[static_cast<int>(kind)];
}
std::optional<Collective> find_collective(std::string_view name) {
    for (int k = 0; k < static_cast<int>(Collective::count); ++k) {
        if (collective_name(static_cast<Collective>(k)) == name) {
            return static_cast<Collective>(k);
        }
    }
    return std::nullopt;
}
double bus_bandwidth_factor(Collective kind, std::uint32_t ranks) {
    const double n = ranks;
    switch (kind) {
        case Collective::all_reduce: return 2 * (n - 1) / n;
        case Collective::broadcast:
        case Collective::reduce:
        case Collective::send_recv: return 1;
        case Collective::barrier: return 0;
        default: return (n - 1) / n;
    }
}
const std::vector<Algorithm>& CommSettings::algorithms_for(Collective kind) const {
    for (const Function& f : functions) {
        if (f.kind == kind && f.algorithms)
            return *f.algorithms;
    }
    return algorithms;
}
const std::vector<Protocol>& CommSettings::protocols_for(Collective kind) const {
    for (const Function& f : functions) {
        if (f.kind == kind && f.protocols)
            return *f.protocols;
    }
    return protocols;
}
std::string_view algorithm_name(Algorithm a) {
    constexpr std::string_view kNames[] = {"Tree", "Ring",     "CollNetDirect", "CollNetChain",
                                           "NVLS", "NVLSTree", "PAT",           "P2P"};
    return kNames[static_cast<int>(a)];
}
std::string_view protocol_name(Protocol p) {
    constexpr std::string_view kNames[] = {"LL", "LL128", "Simple"};
    return kNames[static_cast<int>(p)];
}

CommModel::CommModel(const Cluster& cluster, CommFacts facts, CommSettings settings)
    : cluster_(&cluster), facts_(facts), settings_(std::move(settings)) {
    nccl_version(settings_.library);
    const int least = settings_.min_channels.value_or(1);
    const int most = settings_.max_channels.value_or(kMaxChannels);
    if (least < 1 || most < 1 || least > most) {
        throw std::invalid_argument(fmt::format("channels {}..{} are no range of at least one channel", least, most));
    }
    if (!only_one_node(cluster) && facts_.nic_line_bytes_per_s <= 0) {
        throw std::invalid_argument(
            fmt::format("nic_line_bytes_per_s {} on a cluster of {} nodes: the line rate of a NIC must be positive",
                        facts_.nic_line_bytes_per_s, cluster.node_count()));
    }
    if ((!cluster.has_nvlink() || facts_.nvlink_nccl_bytes_per_s <= 0) && facts_.pcie_nccl_bytes_per_s <= 0) {
        throw std::invalid_argument(
            "nvlink_nccl_bytes_per_s and pcie_nccl_bytes_per_s: one must be positive for GPUs to talk");
    }
    const auto leaves_something = [&](const std::vector<Algorithm>& algorithms,
                                      const std::vector<Protocol>& protocols) {
        for (int a = 0; a < static_cast<int>(Algorithm::p2p); ++a) {
            for (int p = 0; p < static_cast<int>(Protocol::count); ++p) {
                const auto algorithm = static_cast<Algorithm>(a);
                const auto protocol = static_cast<Protocol>(p);
                const bool collnet = algorithm == Algorithm::collnet_direct || algorithm == Algorithm::collnet_chain;
                const bool nvls = algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree;
                if (allowed(algorithms, algorithm) && allowed(protocols, protocol) &&
                    (!collnet || (facts_.sharp && settings_.collnet)) &&
                    (protocol == Protocol::simple || !simple_only(algorithm)) && (!nvls || settings_.nvls_enabled)) {
                    return true;
                }
            }
        }
        return false;
    };
    bool any = leaves_something(settings_.algorithms, settings_.protocols);
    for (const CommSettings::Function& f : settings_.functions) {
        any = any && leaves_something(settings_.algorithms_for(f.kind), settings_.protocols_for(f.kind));
    }
    if (!any) {
        throw std::invalid_argument(
            "the settings leave no algorithm: CollNet needs a SHARP plugin, NVLS, NVLSTree and PAT "
            "run only with protocol Simple, NVLS must not be switched off where it is asked for");
    }
}

bool over_nvlink(const Cluster& cluster, const CommGroup& group) {
    return cluster.has_nvswitch() || (cluster.has_nvlink() && group.search.nvlink_intra);
}

TunerTable CommModel::tuner(const CommGroup& group, Collective kind) const {
    return tune(tuner_input(*cluster_, facts_, settings_, group), kind);
}

CommModel::Choice CommModel::choose(const CommGroup& group, const TunerInput& in, const TunerTable& table,
                                    Collective kind, Bytes size) const {
    Choice choice;
    double best = std::numeric_limits<double>::infinity();
    std::vector<std::string> offered;
    for (int a = 0; a < static_cast<int>(Algorithm::count); ++a) {
        for (int p = 0; p < static_cast<int>(Protocol::count); ++p) {
            const auto algorithm = static_cast<Algorithm>(a);
            const auto protocol = static_cast<Protocol>(p);
            if (!allowed(settings_.algorithms_for(kind), algorithm) ||
                !allowed(settings_.protocols_for(kind), protocol)) {
                continue;
            }
            const double time = tuner_time_s(in, table, kind, algorithm, protocol, size);
            if (time < best) {
                best = time;
                choice.algorithm = algorithm;
                choice.protocol = protocol;
            }
        }
    }
    if (best == std::numeric_limits<double>::infinity()) {
        for (int a = 0; a < static_cast<int>(Algorithm::count); ++a) {
            for (int p = 0; p < static_cast<int>(Protocol::count); ++p) {
                if (table.entry[a][p].bandwidth_gb_per_s > 0) {
                    offered.push_back(fmt::format("{}/{}", algorithm_name(static_cast<Algorithm>(a)),
                                                  protocol_name(static_cast<Protocol>(p))));
                }
            }
        }
        throw std::invalid_argument(fmt::format(
            "{} over {} ranks on {} {} cannot run with the algorithms and protocols allowed; NCCL offers {} here",
            collective_name(kind), group.ranks, group.nodes, group.nodes == 1 ? "node" : "nodes", names(offered)));
    }
    choice.time_s = best;
    return choice;
}

std::optional<Algorithm> CommModel::algorithm(const CommGroup& group, Collective kind, Bytes size) const {
    if (kind == Collective::barrier) {
        return algorithm(group, Collective::all_reduce, kBarrierBytes);
    }
    if (group.ranks < 2 || size == 0 || is_exchange(kind)) {
        return std::nullopt;
    }
    const TunerInput in = tuner_input(*cluster_, facts_, settings_, group);
    return choose(group, in, tune(in, kind), kind, size).algorithm;
}

CollectivePlan CommModel::plan(const CommGroup& group, Collective kind, Bytes size) const {
    CollectivePlan plan = uncorrected_plan(group, kind, size);
    const CollectiveCorrection& correction =
        (group.nodes > 1 ? facts_.outside : facts_.inside)[static_cast<std::size_t>(kind)];
    if (group.ranks < 2 || size == 0 || (correction.latency_s == 0 && correction.rate == 1)) {
        return plan;
    }
    assert(correction.latency_s >= 0 && correction.rate > 0 && correction.rate <= 1 && "a correction only slows");
    plan.latency += picoseconds_from_s(correction.latency_s);
    for (PlannedActivity& activity : plan.activities) {
        activity.work = static_cast<Bytes>(static_cast<double>(activity.work) / correction.rate + .5);
    }
    return plan;
}

CollectivePlan CommModel::uncorrected_plan(const CommGroup& group, Collective kind, Bytes size) const {
    assert(size >= 0 && "a size is not negative");
    CollectivePlan plan;
    if (kind == Collective::barrier) {
        return group.ranks < 2 ? plan : uncorrected_plan(group, Collective::all_reduce, kBarrierBytes);
    }
    if (group.ranks < 2 || size == 0) {
        return plan;
    }
    if (is_exchange(kind)) {
        return exchange(group, traffic_of(kind, group.ranks, size)).plan;
    }
    const TunerInput in = tuner_input(*cluster_, facts_, settings_, group);
    const TunerTable table = tune(in, kind);
    const Choice choice = choose(group, in, table, kind, size);
    plan.algorithm = choice.algorithm;
    plan.protocol = choice.protocol;
    const Algorithm a = plan.algorithm;
    const Protocol p = plan.protocol;
    const TunerEntry& entry = table.entry[static_cast<int>(a)][static_cast<int>(p)];
    const bool nvls = a == Algorithm::nvls || a == Algorithm::nvls_tree;
    const int executed = nvls ? nvls_channels(in.generation, in.nodes, limits_of(settings_)) : in.channels;
    const double used = used_channels(a, p, size, group.ranks, group.search, executed);
    plan.channels = static_cast<int>(used);
    plan.tuner_s = choice.time_s;
    const Bytes work = work_bytes(a, p, kind, size, group.ranks);
    const double cap = channel_cap(in, facts_.network, a, p, kind, used, entry);
    const LatencyInput run{.tuner = in,
                           .kind = kind,
                           .algorithm = a,
                           .protocol = p,
                           .size = size,
                           .channels = used,
                           .entry = entry,
                           .network = facts_.network,
                           .pace = group.pace,
                           .ranks_per_nic = group.ranks_per_nic,
                           .wire_bytes = static_cast<double>(work),
                           .cap = cap};
    plan.fill = picoseconds_from_s(fill_s(run));
    plan.latency = picoseconds_from_s(hop_latency_s(run)) + plan.fill;
    plan.uses_network = group.nodes > 1;
    plan.uses_nvlink = group.most_on_node > 1 && over_nvlink(*cluster_, group);

    const ChannelClasses& classes = classes_of(group, a);
    assert(!classes.size.empty() && "an algorithm that is laid");
    for (std::uint32_t c = 0; c < classes.size.size(); ++c) {
        const double share = static_cast<double>(classes.size[c]) / classes.channels;
        PlannedActivity activity;
        activity.work = scaled_up(work, classes.size[c], classes.channels);
        activity.weight = static_cast<std::uint32_t>(std::max(1.0, plan.channels * share + .5));
        activity.cap = cap > 0 ? std::max<Rate>(1, rate_from_bytes_per_s(cap * share)) : 0;
        activity.demand = c;
        plan.activities.push_back(activity);
    }
    return plan;
}

RingStep CommModel::ring_steps(const CommGroup& group, Collective kind, Bytes size, const CollectivePlan& plan) const {
    assert(plan.algorithm == Algorithm::ring && group.nodes > 1 && "a ring over nodes");
    const TunerInput in = tuner_input(*cluster_, facts_, settings_, group);
    const Algorithm a = plan.algorithm;
    const double used = used_channels(a, plan.protocol, size, group.ranks, group.search, in.channels);
    const TunerEntry entry;
    return ring_step({.tuner = in,
                      .kind = kind,
                      .algorithm = a,
                      .protocol = plan.protocol,
                      .size = size,
                      .channels = used,
                      .entry = entry,
                      .network = facts_.network,
                      .pace = group.pace,
                      .ranks_per_nic = group.ranks_per_nic,
                      .wire_bytes = static_cast<double>(work_bytes(a, plan.protocol, kind, size, group.ranks)),
                      .cap = channel_cap(in, facts_.network, a, plan.protocol, kind, used, entry)});
}

std::vector<LinkUse> CommModel::demand(const CommGroup& group, Collective kind, const CollectivePlan& plan,
                                       std::uint32_t demand_index) const {
    if (is_exchange(kind)) {
        return exchange(group, traffic_of(kind, group.ranks, group.ranks)).demands[demand_index];
    }
    const Wiring wiring = wiring_of(plan.algorithm, kind, group.nodes > 1);
    const CommGroup::Laid& laid = group.laid[static_cast<std::size_t>(plan.algorithm)];
    if (!laid.demands.empty() && wiring == laid_wiring(group, plan.algorithm)) {
        return laid.demands.at(demand_index);
    }
    return ChannelWiring(*cluster_, group.order, wiring, nvls_efficiency_percent(facts_.generation))
        .demand(classes_of(group, plan.algorithm), demand_index);
}

}  // namespace fabricast
