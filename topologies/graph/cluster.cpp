#include "topologies/graph/cluster.hpp"

#include <cassert>
#include <stdexcept>

#include <fmt/format.h>

#include "topologies/graph/router.hpp"
#include "topologies/graph/server_routes.hpp"

namespace fabricast {

Cluster::Cluster() = default;
Cluster::Cluster(Cluster&&) noexcept = default;
Cluster& Cluster::operator=(Cluster&&) noexcept = default;
Cluster::~Cluster() = default;

NicId Cluster::nic_of(GpuId gpu) const {
    assert(nics_per_node_ > 0 && "nic_of on a cluster without NICs");
    return gpu_nics_[first_nic_[index(gpu)]];
}

const ServerRoutes& Cluster::server_routes(NodeId node) const { return server_routes_[servers_[index(node)].routes]; }

PathType Cluster::path_type(GpuId a, GpuId b) const {
    if (a != b && share_nvswitch(a, b)) {
        return PathType::nvl;
    }
    return node_of(a) == node_of(b) ? server_routes(node_of(a)).type(local_index(a), local_index(b)) : PathType::net;
}

PathType Cluster::path_type(GpuId gpu, NicId nic) const {
    return node_of(gpu) == node_of(nic)
               ? server_routes(node_of(gpu)).type(local_index(gpu), gpus_per_node_ + local_index(nic))
               : PathType::net;
}

void Cluster::append_inside(NodeId node, std::uint32_t from_end, std::uint32_t to_end, std::vector<LinkId>& out) const {
    const std::uint32_t first = servers_[index(node)].first_link;
    for (const std::uint32_t link : server_routes(node).route(from_end, to_end)) {
        out.push_back(LinkId{first + link});
    }
}

void Cluster::host_route(GpuId from, NicId to, std::vector<LinkId>& out) const {
    const PathType type = path_type(from, to);
    if (type == PathType::net || type == PathType::dis) {
        throw std::runtime_error(fmt::format("no route inside a node from GPU {} to NIC {}", index(from), index(to)));
    }
    append_inside(node_of(from), local_index(from), gpus_per_node_ + local_index(to), out);
}

void Cluster::host_route(NicId from, GpuId to, std::vector<LinkId>& out) const {
    const PathType type = path_type(to, from);
    if (type == PathType::net || type == PathType::dis) {
        throw std::runtime_error(fmt::format("no route inside a node from NIC {} to GPU {}", index(from), index(to)));
    }
    append_inside(node_of(to), gpus_per_node_ + local_index(from), local_index(to), out);
}

/// False, and nothing appended, when there is no way.
bool Cluster::append_network(NicId from, NicId to, std::uint64_t flow, std::vector<LinkId>& out) const {
    const std::size_t before = out.size();
    out.push_back(nic_up(from));
    if (!router_ || !router_->append_fabric_links(from, to, flow, out)) {
        out.resize(before);
        return false;
    }
    out.push_back(nic_down(to));
    return true;
}

void Cluster::network_route(NicId from, NicId to, std::uint64_t flow, std::vector<LinkId>& out) const {
    if (from != to && !append_network(from, to, flow, out)) {
        throw std::runtime_error(fmt::format("no route from node {} nic {} to node {} nic {}", index(node_of(from)),
                                             local_index(from), index(node_of(to)), local_index(to)));
    }
}

void Cluster::place_ends() {
    ends_.clear();
    if (!router_ || !has_nvswitch() || rails_apart_ || nics_per_node_ == 0) {
        return;
    }
    std::vector<LinkId> out, levels, in;
    for (std::uint32_t g = 0; g < gpu_count(); ++g) {
        const GpuId gpu{g};
        const std::span<const NicId> nics = nics_of(gpu);
        out.clear();
        levels.clear();
        in.clear();
        if (nics.size() != 1 || path_type(gpu, nics.front()) == PathType::dis ||
            !router_->append_levels(nics.front(), levels)) {
            ends_.clear();
            return;
        }
        append_inside(node_of(gpu), local_index(gpu), gpus_per_node_ + local_index(nics.front()), out);
        out.push_back(nic_up(nics.front()));
        in.push_back(nic_down(nics.front()));
        append_inside(node_of(gpu), gpus_per_node_ + local_index(nics.front()), local_index(gpu), in);
        if (g == 0) {
            ends_outside_ = static_cast<std::uint32_t>(out.size());
            ends_levels_ = static_cast<std::uint32_t>(levels.size());
            ends_.reserve(std::size_t{gpu_count()} * (2 * ends_outside_ + ends_levels_));
        }
        if (out.size() != ends_outside_ || in.size() != ends_outside_ || levels.size() != ends_levels_) {
            ends_.clear();
            return;
        }
        ends_.insert(ends_.end(), out.begin(), out.end());
        ends_.insert(ends_.end(), levels.begin(), levels.end());
        ends_.insert(ends_.end(), in.begin(), in.end());
    }
}

/// To a GPU behind another NIC.
void Cluster::append_ends(GpuId from, GpuId to, std::vector<LinkId>& out) const {
    const Ends a = ends(from), b = ends(to);
    out.insert(out.end(), a.out.begin(), a.out.end());
    std::size_t climbed = a.levels.size();
    while (climbed > 0 && a.levels[climbed - 2] == b.levels[climbed - 2]) {
        climbed -= 2;
    }
    for (std::size_t level = 0; level < climbed; level += 2) {
        out.push_back(a.levels[level]);
    }
    for (std::size_t level = climbed; level > 0; level -= 2) {
        out.push_back(b.levels[level - 1]);
    }
    out.insert(out.end(), b.in.begin(), b.in.end());
}

/// Between servers: the first pair of NICs that meet.
void Cluster::append_between(GpuId from, GpuId to, std::uint64_t flow, std::vector<LinkId>& out) const {
    const std::size_t before = out.size();
    for (const NicId source : nics_of(from)) {
        host_route(from, source, out);
        for (const NicId destination : nics_of(to)) {
            if (append_network(source, destination, flow, out)) {
                host_route(destination, to, out);
                return;
            }
        }
        out.resize(before);
    }
    throw std::runtime_error(fmt::format("no route from node {} gpu {} to node {} gpu {}", index(node_of(from)),
                                         local_index(from), index(node_of(to)), local_index(to)));
}

void Cluster::route(GpuId from, GpuId to, std::uint64_t flow, std::vector<LinkId>& out) const {
    if (from == to) {
        return;
    }
    if (share_nvswitch(from, to)) {
        out.push_back(nvlink_up(from));
        out.push_back(nvlink_down(to));
    } else if (has_ends() && node_of(from) != node_of(to)) {
        append_ends(from, to, out);
    } else if (node_of(from) == node_of(to)) {
        append_inside(node_of(from), local_index(from), local_index(to), out);
    } else if (rails_apart_ && local_index(from) != local_index(to)) {
        const GpuId via{static_cast<std::uint32_t>(index(node_of(from))) * gpus_per_node_ + local_index(to)};
        route(from, via, flow, out);
        append_between(via, to, flow, out);
    } else {
        append_between(from, to, flow, out);
    }
}

Picoseconds Cluster::latency(std::span<const LinkId> links) const {
    Picoseconds sum = 0;
    for (const LinkId link : links) {
        sum += links_.latency[index(link)];
    }
    return sum;
}

void Cluster::degrade(LinkId link, Rate capacity, std::uint32_t cables_lost) {
    Rate& present = links_.capacity.at(index(link));
    if (capacity <= 0 || capacity > present) {
        throw std::invalid_argument(fmt::format("link {}: {} bytes/s must be above 0 and at most the {} it has",
                                                links_.name[index(link)], bytes_per_s(capacity), bytes_per_s(present)));
    }
    if (cables_lost >= links_.parallel[index(link)]) {
        throw std::invalid_argument(fmt::format("link {}: {} cables lost of the {} it has", links_.name[index(link)],
                                                cables_lost, links_.parallel[index(link)]));
    }
    links_.parallel[index(link)] -= cables_lost;
    present = capacity;
}

}  // namespace fabricast
