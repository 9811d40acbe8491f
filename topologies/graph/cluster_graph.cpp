#include "topologies/graph/cluster_graph.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace fabricast {
namespace {

/// A Rate ends at 9.0e15 bytes/s: the sum of two capacities still fits.
constexpr double kMaxBytesPerS = 4e15;
/// Beyond any link; 9200 hops of it still fit Picoseconds.
constexpr double kMaxLatencyS = 1000;

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
    throw std::invalid_argument(fmt::format(text, std::forward<Args>(args)...));
}

constexpr bool is_switch(VertexKind kind) { return kind == VertexKind::leaf || kind == VertexKind::spine; }
constexpr bool is_pcie(VertexKind kind) { return kind == VertexKind::pcie_switch || kind == VertexKind::host; }
constexpr bool is_attachable(VertexKind kind) { return is_pcie(kind) || kind == VertexKind::nic; }

/// Kind of a link between two vertices; false when they cannot be linked.
bool link_kind(VertexKind a, VertexKind b, LinkKind& kind) {
    if (b == VertexKind::gpu || (b == VertexKind::nic && a != VertexKind::gpu)) {
        std::swap(a, b);
    }
    if (a == VertexKind::gpu && (b == VertexKind::nvswitch || b == VertexKind::gpu)) {
        kind = LinkKind::nvlink;
    } else if ((a == VertexKind::gpu || a == VertexKind::nic) && is_pcie(b)) {
        kind = LinkKind::pcie;
    } else if (a == VertexKind::host && b == VertexKind::host) {
        kind = LinkKind::host;
    } else if (is_pcie(a) && is_pcie(b)) {
        kind = LinkKind::pcie;
    } else if (a == VertexKind::nic && is_switch(b)) {
        kind = LinkKind::nic;
    } else if (is_switch(a) && is_switch(b)) {
        kind = LinkKind::fabric;
    } else {
        return false;
    }
    return true;
}

}  // namespace

void ClusterBuilder::reserve(std::size_t links) {
    links_.capacity.reserve(links);
    links_.latency.reserve(links);
    links_.kind.reserve(links);
    links_.parallel.reserve(links);
    links_.name.reserve(links);
}

ClusterBuilder::VertexId ClusterBuilder::add_vertex(VertexKind kind, std::uint32_t node, std::uint32_t local) {
    const VertexId vertex = boost::add_vertex(graph_);
    graph_[vertex].kind = kind;
    graph_[vertex].node = node;
    graph_[vertex].local = local;
    return vertex;
}

ClusterBuilder::VertexId ClusterBuilder::add_gpu(NodeId node) {
    gpus_.resize(std::max(gpus_.size(), index(node) + 1));
    std::vector<VertexId>& gpus = gpus_[index(node)];
    gpus.push_back(
        add_vertex(VertexKind::gpu, static_cast<std::uint32_t>(node), static_cast<std::uint32_t>(gpus.size())));
    return gpus.back();
}

ClusterBuilder::VertexId ClusterBuilder::add_nic(NodeId node) {
    nics_.resize(std::max(nics_.size(), index(node) + 1));
    std::vector<VertexId>& nics = nics_[index(node)];
    nics.push_back(
        add_vertex(VertexKind::nic, static_cast<std::uint32_t>(node), static_cast<std::uint32_t>(nics.size())));
    return nics.back();
}

/// PCIe switches and hosts are numbered by kind in their server.
ClusterBuilder::VertexId ClusterBuilder::add_inside(VertexKind kind, NodeId node, std::uint32_t numa) {
    inside_.resize(std::max(inside_.size(), index(node) + 1));
    std::vector<VertexId>& inside = inside_[index(node)];
    const auto number = std::count_if(inside.begin(), inside.end(), [&](VertexId v) { return graph_[v].kind == kind; });
    const VertexId vertex = add_vertex(kind, static_cast<std::uint32_t>(node), static_cast<std::uint32_t>(number));
    graph_[vertex].numa = numa;
    inside.push_back(vertex);
    return vertex;
}

ClusterBuilder::VertexId ClusterBuilder::add_named(VertexKind kind, std::string name) {
    names_.push_back(std::move(name));
    const VertexId vertex = add_vertex(kind, 0, static_cast<std::uint32_t>(names_.size() - 1));
    graph_[vertex].named = true;
    return vertex;
}

ClusterBuilder::VertexId ClusterBuilder::add_in_node(VertexKind kind, NodeId node) {
    if (kind == VertexKind::nvswitch) {
        return add_vertex(kind, static_cast<std::uint32_t>(node), 0);
    }
    if (!is_pcie(kind)) {
        refuse("only an NVSwitch, a PCIe switch or a host is added by add_in_node");
    }
    return add_inside(kind, node, 0);
}

ClusterBuilder::VertexId ClusterBuilder::add_host(NodeId node, std::uint32_t numa) {
    return add_inside(VertexKind::host, node, numa);
}

ClusterBuilder::VertexId ClusterBuilder::add_nvlink_domain(std::string name) {
    return add_named(VertexKind::nvswitch, std::move(name));
}

ClusterBuilder::VertexId ClusterBuilder::add_switch(VertexKind kind, std::string name) {
    if (!is_switch(kind)) {
        refuse("{}: only a leaf or a spine is added by add_switch", name);
    }
    return add_named(kind, std::move(name));
}

std::string ClusterBuilder::vertex_name(VertexId vertex) const {
    const ClusterVertex& v = graph_[vertex];
    if (v.named) {
        return names_[v.local];
    }
    switch (v.kind) {
        case VertexKind::gpu: return fmt::format("node {} gpu {}", v.node, v.local);
        case VertexKind::nic: return fmt::format("node {} nic {}", v.node, v.local);
        case VertexKind::pcie_switch: return fmt::format("node {} pcie switch {}", v.node, v.local);
        case VertexKind::host: return fmt::format("node {} host {}", v.node, v.local);
        default: return fmt::format("node {} nvswitch", v.node);
    }
}

std::string ClusterBuilder::composed_link_name(VertexId from, VertexId to) const {
    const ClusterVertex& a = graph_[from];
    const ClusterVertex& b = graph_[to];
    const bool up = a.kind == VertexKind::gpu || a.kind == VertexKind::nic;
    const bool down = b.kind == VertexKind::gpu || b.kind == VertexKind::nic;
    if (up && down) {
        return fmt::format("node {} gpu {} nvlink to gpu {}", a.node, a.local, b.local);
    }
    if (!up && !down) {
        return fmt::format("{} to {}", vertex_name(from), vertex_name(to));
    }
    const ClusterVertex& end = up ? a : b;
    const VertexKind other = (up ? b : a).kind;
    const char* direction = up ? "up" : "down";
    if (end.kind == VertexKind::nic) {
        return fmt::format("node {} nic {} {}{}", end.node, end.local, is_pcie(other) ? "pcie " : "", direction);
    }
    return fmt::format("node {} gpu {} {} {}", end.node, end.local, other == VertexKind::nvswitch ? "nvlink" : "pcie",
                       direction);
}

LinkId ClusterBuilder::add_flat_link(std::string name, LinkKind kind, const LinkSpec& spec) {
    if (!(spec.bytes_per_s > 0)) {
        refuse("link {}: bandwidth {} bytes/s must be a number above 0", name, spec.bytes_per_s);
    }
    if (spec.bytes_per_s < 1 || spec.bytes_per_s > kMaxBytesPerS) {
        refuse("link {}: bandwidth {} bytes/s must lie between 1 byte/s and 4 PB/s", name, spec.bytes_per_s);
    }
    if (!(spec.latency_s >= 0 && spec.latency_s <= kMaxLatencyS)) {
        refuse("link {}: latency {} s must lie between 0 and 1000 s", name, spec.latency_s);
    }
    if (spec.parallel == 0) {
        refuse("link {}: needs at least one cable", name);
    }
    if (links_.size() >= index(kNoLink)) {
        refuse("link {}: a cluster holds at most 4294967295 links", name);
    }
    links_.capacity.push_back(rate_from_bytes_per_s(spec.bytes_per_s));
    links_.latency.push_back(picoseconds_from_s(spec.latency_s));
    links_.kind.push_back(kind);
    links_.parallel.push_back(spec.parallel);
    links_.name.push_back(std::move(name));
    return LinkId{static_cast<std::uint32_t>(links_.size() - 1)};
}

LinkId ClusterBuilder::add_link(VertexId from, VertexId to, const LinkSpec& spec) {
    ClusterEdge edge;
    const ClusterVertex& a = graph_[from];
    const ClusterVertex& b = graph_[to];
    if (from == to || !link_kind(a.kind, b.kind, edge.kind)) {
        refuse(
            "{} cannot be linked to {}: a link joins a GPU and an NVSwitch, two GPUs, a GPU or NIC and a PCIe switch "
            "or host, two of these, a NIC and a leaf or spine, or two different switches",
            vertex_name(from), vertex_name(to));
    }
    const bool in_server = edge.kind != LinkKind::nic && edge.kind != LinkKind::fabric;
    if (in_server && a.node != b.node && !a.named && !b.named) {
        refuse("{} cannot be linked to {}: they are in different nodes", vertex_name(from), vertex_name(to));
    }
    if (spec.c2c && !((a.kind == VertexKind::gpu && b.kind == VertexKind::host) ||
                      (a.kind == VertexKind::host && b.kind == VertexKind::gpu))) {
        refuse("{} to {}: a chip-to-chip link joins a GPU and a host", vertex_name(from), vertex_name(to));
    }
    edge.link = add_flat_link(spec.name.empty() ? composed_link_name(from, to) : spec.name, edge.kind, spec);
    edge.capacity = links_.capacity.back();
    edge.latency = links_.latency.back();
    edge.parallel = spec.parallel;
    edge.c2c = spec.c2c;
    boost::add_edge(from, to, edge, graph_);
    return edge.link;
}

LinkId ClusterBuilder::add_cable(VertexId a, VertexId b, const LinkSpec& spec) {
    const LinkId forward = add_link(a, b, spec);
    add_link(b, a, spec);
    return forward;
}

void ClusterBuilder::attach(VertexId a, VertexId b) {
    if (a == b || !is_attachable(graph_[a].kind) || !is_attachable(graph_[b].kind) ||
        graph_[a].node != graph_[b].node) {
        refuse("{} cannot be attached to {}: an attachment joins PCIe switches, NICs and the host of one node",
               vertex_name(a), vertex_name(b));
    }
    ClusterEdge edge;
    edge.is_link = false;
    edge.kind = LinkKind::pcie;
    boost::add_edge(a, b, edge, graph_);
    boost::add_edge(b, a, edge, graph_);
}

LinkId ClusterBuilder::limit(VertexId host, const LinkSpec& spec) {
    if (graph_[host].kind != VertexKind::host || graph_[host].limit != kNoLink) {
        refuse("{} cannot be limited: only a host can, and once", vertex_name(host));
    }
    const std::string name = spec.name.empty() ? vertex_name(host) + " throughput" : spec.name;
    graph_[host].limit = add_flat_link(name, LinkKind::host, spec);
    return graph_[host].limit;
}

void ClusterBuilder::use_nics(VertexId gpu, const std::vector<VertexId>& nics) {
    if (graph_[gpu].kind != VertexKind::gpu || nics.empty()) {
        refuse("{}: use_nics wants a GPU and at least one NIC", vertex_name(gpu));
    }
    for (const VertexId nic : nics) {
        if (graph_[nic].kind != VertexKind::nic || graph_[nic].node != graph_[gpu].node) {
            refuse("{} cannot use {}: it is no NIC of its node", vertex_name(gpu), vertex_name(nic));
        }
        if (std::count(nics.begin(), nics.end(), nic) > 1) {
            refuse("{} is given {} twice", vertex_name(gpu), vertex_name(nic));
        }
    }
    nics_of_gpus_.emplace_back(gpu, nics);
}

}  // namespace fabricast
