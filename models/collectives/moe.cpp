#include "models/collectives/moe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "models/collectives/exchange.hpp"

namespace fabricast {

namespace {

// [Hopper and older, Blackwell][dispatch, combine]
struct Kernel {
    double launch_us;
    double token_us, rank_us;  ///< of one thread block: a token, each distinct rank of it
    double copy_bytes_per_s;   ///< of one thread block
    double share;              ///< of NVLink
    double between;            ///< factor on a thread block's time over several nodes
};
constexpr Kernel kKernels[2][2] = {{{32.8, .398, .0546, 26.6e9, .765, 1.33}, {45.5, .938, 0, 28.1e9, .823, 1.93}},
                                   {{38.5, .451, .103, 27.1e9, .883, 1.33}, {43.7, 1.02, 0, 26.2e9, 1.0, 1.93}}};

}  // namespace

double distinct_bins(double bins, double draws) {
    // (1 - 1/bins)^draws; draws are few and may be a fraction on average: straight between whole numbers
    const double stay = 1 - 1 / bins;
    double power = 1;
    double left = draws;
    for (; left >= 1; left -= 1)
        power *= stay;
    power *= 1 - left / bins;
    return bins * (1 - power);
}

PlannedExchange plain_moe(const CommModel& comm, const CommGroup& group, const MoeTraffic& t) {
    const double bytes = static_cast<double>(t.tokens) * t.top_k * static_cast<double>(t.hidden) * t.bytes_an_element;
    return comm.exchange(group, traffic_of(Collective::all_to_all, group.ranks, static_cast<Bytes>(bytes + .5)));
}

PlannedExchange node_aware_moe(const Cluster& cluster, const CommFacts& facts, const CommGroup& group,
                               const MoeTraffic& t, int sms) {
    if (!cluster.has_nvswitch())
        throw std::invalid_argument("node-aware dispatch forwards over NVLink, which this cluster lacks");
    if (sms <= 0)
        throw std::invalid_argument(fmt::format("node-aware dispatch on {} SMs: it needs one at least", sms));
    if (group.most_on_node != group.fewest_on_node) {
        throw std::invalid_argument(fmt::format("node-aware dispatch needs as many members on every node: {} and {}",
                                                group.fewest_on_node, group.most_on_node));
    }
    PlannedExchange out;
    CollectivePlan& plan = out.plan;
    plan.algorithm = Algorithm::p2p;
    plan.protocol = Protocol::simple;
    plan.channels = sms;
    if (group.ranks < 2 || t.tokens == 0)
        return out;
    const Kernel& kernel = kKernels[facts.generation == GpuGeneration::blackwell][t.combine];
    const double local = group.most_on_node, nodes = group.nodes;
    const double reachable = t.nodes_a_token > 0 ? std::min<double>(t.nodes_a_token, nodes) : nodes;
    const double ranks_a_token = distinct_bins(reachable * local, t.top_k);
    const double nodes_a_token = distinct_bins(reachable, t.top_k);
    const double row = static_cast<double>(t.hidden) * t.bytes_an_element;
    const double tokens = static_cast<double>(t.tokens);
    const double network_rows = nodes_a_token * (nodes - 1) / nodes;
    // A rank's NVLink carries what it forwards (and keeps a part itself): on average as much as it sends.
    const double nvlink_bytes = tokens * ranks_a_token * (local - 1) / local * row;
    const double network_bytes = tokens * network_rows * row;
    const double block_s = (kernel.token_us * 1e-6 + kernel.rank_us * 1e-6 * ranks_a_token +
                            (ranks_a_token + network_rows) * row / kernel.copy_bytes_per_s) *
                           (nodes > 1 ? kernel.between : 1);
    const double blocks_s = tokens * block_s / sms;

    plan.uses_nvlink = local > 1;
    plan.uses_network = nodes > 1;
    plan.latency = picoseconds_from_s(kernel.launch_us * 1e-6);
    const auto activity = [&](double bytes, std::vector<LinkUse> uses) {
        PlannedActivity a;
        a.work = static_cast<Bytes>(bytes) + 1;
        a.weight = static_cast<std::uint32_t>(sms);
        a.cap = std::max<Rate>(1, rate_from_bytes_per_s(static_cast<double>(a.work) / blocks_s));
        a.demand = static_cast<std::uint32_t>(out.demands.size());
        out.demands.push_back(std::move(uses));
        plan.activities.push_back(a);
    };
    if (local > 1) {
        std::vector<LinkUse> uses;
        const auto coefficient = static_cast<std::uint64_t>(kCoefficientOne / kernel.share);
        for (const GpuId gpu : group.order.gpus) {
            uses.push_back({cluster.nvlink_up(gpu), coefficient});
            uses.push_back({cluster.nvlink_down(gpu), coefficient});
        }
        std::sort(uses.begin(), uses.end(), [](const LinkUse& a, const LinkUse& b) { return a.link < b.link; });
        activity(nvlink_bytes, std::move(uses));
    }
    if (nodes > 1) {
        // Each rank sends 1 / (N - 1) of its network bytes to the rank of its rail on each other node.
        std::map<LinkId, std::uint64_t> loads;
        std::vector<LinkId> route;
        for (std::uint32_t a = 0; a < group.nodes; ++a) {
            for (std::uint32_t b = 0; b < group.nodes; ++b) {
                for (std::size_t i = 0; a != b && i < group.order.node(a).size(); ++i) {
                    route.clear();
                    cluster.route(group.order.node(a)[i], group.order.node(b)[i], route);
                    for (const LinkId link : route)
                        ++loads[link];
                }
            }
        }
        std::vector<LinkUse> uses;
        const std::uint64_t whole = group.nodes - 1;
        for (const auto& [link, load] : loads)
            uses.push_back({link, static_cast<std::uint32_t>((load * kCoefficientOne + whole - 1) / whole)});
        activity(network_bytes, std::move(uses));
    }
    return out;
}

PlannedExchange CommModel::expert_exchange(const CommGroup& group, const MoeTraffic& traffic, int sms) const {
    return node_aware_moe(*cluster_, facts_, group, traffic, sms);
}

}  // namespace fabricast
