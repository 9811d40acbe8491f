#include "topologies/graph/cluster.hpp"

#include <cassert>
#include <stdexcept>

#include <fmt/format.h>

#include "topologies/graph/router.hpp"

namespace fabricast {

Cluster::Cluster() = default;
Cluster::Cluster(Cluster&&) noexcept = default;
Cluster& Cluster::operator=(Cluster&&) noexcept = default;
Cluster::~Cluster() = default;

NicId Cluster::nic_of(GpuId gpu) const {
    assert(nics_per_node_ > 0 && "nic_of on a cluster without NICs");
    return NicId{static_cast<std::uint32_t>(index(node_of(gpu))) * nics_per_node_ + local_index(gpu) % nics_per_node_};
}

void Cluster::network_route(NicId from, NicId to, std::vector<LinkId>& out) const {
    if (from == to) {
        return;
    }
    const std::size_t before = out.size();
    out.push_back(nic_up(from));
    if (!router_ || !router_->append_fabric_links(from, to, out)) {
        out.resize(before);
        throw std::runtime_error(fmt::format("no route from node {} nic {} to node {} nic {}",
                                             index(from) / nics_per_node_, index(from) % nics_per_node_,
                                             index(to) / nics_per_node_, index(to) % nics_per_node_));
    }
    out.push_back(nic_down(to));
}

void Cluster::route(GpuId from, GpuId to, std::vector<LinkId>& out) const {
    if (from == to) {
        return;
    }
    if (node_of(from) != node_of(to)) {
        out.push_back(pcie_up(from));
        network_route(nic_of(from), nic_of(to), out);
        out.push_back(pcie_down(to));
    } else if (has_nvswitch()) {
        out.push_back(nvlink_up(from));
        out.push_back(nvlink_down(to));
    } else {
        out.push_back(pcie_up(from));
        out.push_back(pcie_down(to));
    }
}

Picoseconds Cluster::latency(std::span<const LinkId> links) const {
    Picoseconds sum = 0;
    for (const LinkId link : links) {
        sum += links_.latency[index(link)];
    }
    return sum;
}

}  // namespace fabricast
