#include "topologies/graph/bisection.hpp"

#include <vector>

namespace fabricast {

Bisection bisection(const Cluster& cluster, std::uint32_t flows_per_nic) {
    const std::uint32_t half = cluster.node_count() / 2;
    const std::uint32_t nics = cluster.nics_per_node();
    const std::uint32_t apart = cluster.node_count() - half;
    Bisection result;
    if (half == 0 || nics == 0 || flows_per_nic == 0) {
        return result;
    }
    std::vector<std::uint32_t> flows(cluster.links().size(), 0);
    std::vector<LinkId> route;
    for (std::uint32_t nic = 0; nic < half * nics; ++nic) {
        const NicId near{nic}, far{nic + apart * nics};
        for (std::uint32_t flow = 0; flow < flows_per_nic; ++flow) {
            cluster.network_route(near, far, flow, route);
            cluster.network_route(far, near, flow, route);
        }
    }
    for (const LinkId link : route) {
        ++flows[index(link)];
    }
    for (std::size_t link = 0; link < flows.size(); ++link) {
        const double rate = flows[link] == 0 ? 0 : bytes_per_s(cluster.links().capacity[link]) / flows[link];
        if (rate > 0 && (result.nic_bytes_per_s == 0 || rate < result.nic_bytes_per_s)) {
            result.nic_bytes_per_s = rate;
            result.bottleneck = LinkId{static_cast<std::uint32_t>(link)};
        }
    }
    result.nic_bytes_per_s *= flows_per_nic;
    result.bytes_per_s = result.nic_bytes_per_s * half * nics;
    return result;
}

}  // namespace fabricast
