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

LinkName::Part part_of(VertexKind kind) {
    return kind == VertexKind::host ? LinkName::Part::host : LinkName::Part::pcie_switch;
}

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

LinkName ClusterBuilder::link_name(VertexId from, VertexId to, const LinkSpec& spec) const {
    const ClusterVertex& a = graph_[from];
    const ClusterVertex& b = graph_[to];
    const bool up = a.kind == VertexKind::gpu || a.kind == VertexKind::nic;
    const bool down = b.kind == VertexKind::gpu || b.kind == VertexKind::nic;
    using Form = LinkName::Form;
    LinkName name;
    if (!spec.name.empty()) {
        name.words = spec.name;
    } else if (up && down) {
        name = {.form = Form::nvlink_to, .node = a.node, .a = a.local, .b = b.local};
    } else if (!up && !down) {
        if (!is_pcie(a.kind) || !is_pcie(b.kind) || a.node != b.node) {
            name.words = vertex_name(from) + " to " + vertex_name(to);
            return name;
        }
        name = {.form = Form::joined,
                .a_part = part_of(a.kind),
                .b_part = part_of(b.kind),
                .node = a.node,
                .a = a.local,
                .b = b.local};
    } else {
        const ClusterVertex& end = up ? a : b;
        const VertexKind other = (up ? b : a).kind;
        name.node = end.node;
        name.a = end.local;
        if (end.kind == VertexKind::nic) {
            name.form =
                is_pcie(other) ? (up ? Form::nic_pcie_up : Form::nic_pcie_down) : (up ? Form::nic_up : Form::nic_down);
        } else {
            name.form = other == VertexKind::nvswitch ? (up ? Form::nvlink_up : Form::nvlink_down)
                                                      : (up ? Form::gpu_pcie_up : Form::gpu_pcie_down);
        }
    }
    return name;
}

std::string ClusterBuilder::nic_name(NicId nic) const {
    const std::size_t nics = nics_.empty() ? 1 : nics_.front().size();
    return fmt::format("node {} nic {}", index(nic) / nics, index(nic) % nics);
}

LinkId ClusterBuilder::add_flat_link(const LinkName& name, LinkKind kind, const LinkSpec& spec) {
    if (!(spec.bytes_per_s > 0)) {
        refuse("link {}: bandwidth {} bytes/s must be a number above 0", name.text(), spec.bytes_per_s);
    }
    if (spec.bytes_per_s < 1 || spec.bytes_per_s > kMaxBytesPerS) {
        refuse("link {}: bandwidth {} bytes/s must lie between 1 byte/s and 4 PB/s", name.text(), spec.bytes_per_s);
    }
    if (!(spec.latency_s >= 0 && spec.latency_s <= kMaxLatencyS)) {
        refuse("link {}: latency {} s must lie between 0 and 1000 s", name.text(), spec.latency_s);
    }
    if (spec.parallel == 0) {
        refuse("link {}: needs at least one cable", name.text());
    }
    if (links_.size() >= index(kNoLink)) {
        refuse("link {}: a cluster holds at most 4294967295 links", name.text());
    }
    links_.capacity.push_back(rate_from_bytes_per_s(spec.bytes_per_s));
    links_.latency.push_back(picoseconds_from_s(spec.latency_s));
    links_.kind.push_back(kind);
    links_.parallel.push_back(spec.parallel);
    links_.name.add(name);
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
    edge.link = add_flat_link(link_name(from, to, spec), edge.kind, spec);
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

LinkId ClusterBuilder::add_nic_cable(NicId nic, VertexId leaf, const LinkSpec& up, const LinkSpec& down) {
    const std::size_t nics = nics_.empty() ? 0 : nics_.front().size();
    if (index(nic) >= nics * node_count() || !is_switch(graph_[leaf].kind)) {
        refuse("NIC {} cannot be linked to {}: it is no NIC of a server, or that is no leaf or spine", index(nic),
               vertex_name(leaf));
    }
    if (nic_up_.empty()) {
        nic_up_.assign(nics * node_count(), kNoLink);
        nic_down_ = nic_up_;
        nic_switch_.assign(nic_up_.size(), 0);
    }
    if (nic_up_[index(nic)] != kNoLink) {
        refuse("{} is linked twice: enter parallel cables as one link", nic_name(nic));
    }
    LinkName name = {.form = LinkName::Form::nic_up,
                     .node = static_cast<std::uint32_t>(index(nic) / nics),
                     .a = static_cast<std::uint32_t>(index(nic) % nics)};
    nic_up_[index(nic)] = add_flat_link(name, LinkKind::nic, up);
    name.form = LinkName::Form::nic_down;
    nic_down_[index(nic)] = add_flat_link(name, LinkKind::nic, down);
    nic_switch_[index(nic)] = leaf;
    return nic_up_[index(nic)];
}

void ClusterBuilder::repeat_server(std::uint32_t copies) {
    if (copies == 0) {
        return;
    }
    if (gpus_.size() != 1 || copies_ != 0) {
        refuse("{} servers: the first is repeated, once", node_count());
    }
    copies_ = copies;
    server_links_ = static_cast<std::uint32_t>(links_.size());
    server_vertices_ = static_cast<std::uint32_t>(boost::num_vertices(graph_));
    const std::size_t all = std::size_t{server_links_} * (std::size_t{1} + copies);
    if (all >= index(kNoLink)) {
        refuse("{} servers of {} links: a cluster holds at most 4294967295 links", node_count(), server_links_);
    }
    const auto repeat = [&](auto& values) {
        values.reserve(std::max(values.capacity(), all));
        for (std::size_t i = server_links_; i < all; ++i) {
            values.push_back(values[i - server_links_]);
        }
    };
    repeat(links_.capacity);
    repeat(links_.latency);
    repeat(links_.kind);
    repeat(links_.parallel);
    links_.name.repeat(0, copies);
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
    LinkName name = {.form = LinkName::Form::throughput, .node = graph_[host].node, .a = graph_[host].local};
    if (!spec.name.empty()) {
        name = {.words = spec.name};
    }
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
