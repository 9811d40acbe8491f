#include "topologies/graph/cluster_graph.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <boost/graph/connected_components.hpp>
#include <boost/graph/strong_components.hpp>

#include "topologies/graph/bfs_router.hpp"

namespace fabricast {
namespace {

constexpr LinkId kNoLink{0xFFFFFFFFu};

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
    if (b == VertexKind::gpu || b == VertexKind::nic) {
        std::swap(a, b);
    }
    if (a == VertexKind::gpu && b == VertexKind::nvswitch) {
        kind = LinkKind::nvlink;
    } else if (a == VertexKind::gpu && is_pcie(b)) {
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

/// Calls visit(source, target, edge) for every edge, by source in vertex order.
template <typename Visit>
void for_each_edge(const ClusterGraph& graph, Visit visit) {
    for (ClusterBuilder::VertexId source = 0; source < boost::num_vertices(graph); ++source) {
        for (auto [position, end] = boost::out_edges(source, graph); position != end; ++position) {
            visit(source, boost::target(*position, graph), graph[*position]);
        }
    }
}

const char* kind_word(LinkKind kind) {
    return kind == LinkKind::nvlink ? "nvlink" : kind == LinkKind::pcie ? "pcie" : "network";
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
    return boost::add_vertex(ClusterVertex{kind, node, local}, graph_);
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

ClusterBuilder::VertexId ClusterBuilder::add_in_node(VertexKind kind, NodeId node) {
    if (kind != VertexKind::nvswitch && !is_pcie(kind)) {
        refuse("only an NVSwitch, a PCIe switch or a host is added by add_in_node");
    }
    const char* word = kind == VertexKind::nvswitch ? "nvswitch" : kind == VertexKind::host ? "host" : "pcie switch";
    names_.push_back(fmt::format("node {} {}", index(node), word));
    return add_vertex(kind, static_cast<std::uint32_t>(node), static_cast<std::uint32_t>(names_.size() - 1));
}

ClusterBuilder::VertexId ClusterBuilder::add_switch(VertexKind kind, std::string name) {
    if (!is_switch(kind)) {
        refuse("{}: only a leaf or a spine is added by add_switch", name);
    }
    names_.push_back(std::move(name));
    return add_vertex(kind, 0, static_cast<std::uint32_t>(names_.size() - 1));
}

std::string ClusterBuilder::vertex_name(VertexId vertex) const {
    const ClusterVertex& v = graph_[vertex];
    switch (v.kind) {
        case VertexKind::gpu: return fmt::format("node {} gpu {}", v.node, v.local);
        case VertexKind::nic: return fmt::format("node {} nic {}", v.node, v.local);
        default: return names_[v.local];
    }
}

std::string ClusterBuilder::composed_link_name(VertexId from, VertexId to) const {
    const ClusterVertex& a = graph_[from];
    const ClusterVertex& b = graph_[to];
    const bool up = a.kind == VertexKind::gpu || a.kind == VertexKind::nic;
    const bool down = b.kind == VertexKind::gpu || b.kind == VertexKind::nic;
    if (!up && !down) {
        return fmt::format("{} to {}", vertex_name(from), vertex_name(to));
    }
    const ClusterVertex& end = up ? a : b;
    const char* direction = up ? "up" : "down";
    if (end.kind == VertexKind::nic) {
        return fmt::format("node {} nic {} {}", end.node, end.local, direction);
    }
    const bool nvlink = (up ? b : a).kind == VertexKind::nvswitch;
    return fmt::format("node {} gpu {} {} {}", end.node, end.local, nvlink ? "nvlink" : "pcie", direction);
}

LinkId ClusterBuilder::add_link(VertexId from, VertexId to, const LinkSpec& spec) {
    ClusterEdge edge;
    const ClusterVertex& a = graph_[from];
    const ClusterVertex& b = graph_[to];
    if (from == to || !link_kind(a.kind, b.kind, edge.kind)) {
        refuse(
            "{} cannot be linked to {}: a link joins a GPU and an NVSwitch, a GPU and a PCIe switch or host, "
            "a NIC and a leaf or spine, or two different switches",
            vertex_name(from), vertex_name(to));
    }
    if ((edge.kind == LinkKind::nvlink || edge.kind == LinkKind::pcie) && a.node != b.node) {
        refuse("{} cannot be linked to {}: they are in different nodes", vertex_name(from), vertex_name(to));
    }
    std::string name = spec.name.empty() ? composed_link_name(from, to) : spec.name;
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
    edge.capacity = rate_from_bytes_per_s(spec.bytes_per_s);
    edge.latency = picoseconds_from_s(spec.latency_s);
    edge.parallel = spec.parallel;
    edge.link = LinkId{static_cast<std::uint32_t>(links_.size())};
    boost::add_edge(from, to, edge, graph_);
    links_.capacity.push_back(edge.capacity);
    links_.latency.push_back(edge.latency);
    links_.kind.push_back(edge.kind);
    links_.parallel.push_back(edge.parallel);
    links_.name.push_back(std::move(name));
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

void ClusterBuilder::check_counts() const {
    if (gpus_.empty()) {
        refuse("the cluster has no GPU");
    }
    const std::size_t gpus = gpus_.front().size();
    const std::size_t nics = nics_.empty() ? 0 : nics_.front().size();
    if (nics_.size() > gpus_.size()) {
        refuse("node {} has a NIC but no GPU", nics_.size() - 1);
    }
    for (std::size_t node = 0; node < gpus_.size(); ++node) {
        const std::size_t node_nics = node < nics_.size() ? nics_[node].size() : 0;
        if (gpus_[node].size() != gpus || gpus_[node].empty()) {
            refuse("node {} has {} GPUs, node 0 has {}: all nodes need the same number, at least one", node,
                   gpus_[node].size(), gpus);
        }
        if (node_nics != nics) {
            refuse("node {} has {} NICs, node 0 has {}: all nodes need the same number", node, node_nics, nics);
        }
    }
    if (nics == 0 && gpus_.size() > 1) {
        refuse("{} nodes without a NIC: only a single node can do without", gpus_.size());
    }
    if (nics > 0 && gpus % nics != 0) {
        refuse("{} GPUs and {} NICs a node: GPUs must be a multiple of NICs", gpus, nics);
    }
}

void ClusterBuilder::place_links(Cluster& cluster) const {
    const auto gpu_index = [&](const ClusterVertex& v) {
        return std::size_t{v.node} * cluster.gpus_per_node_ + v.local;
    };
    const auto nic_index = [&](const ClusterVertex& v) {
        return std::size_t{v.node} * cluster.nics_per_node_ + v.local;
    };
    const auto place = [&](std::vector<LinkId>& links, std::size_t size, std::size_t at, const ClusterEdge& edge) {
        if (links.empty()) {
            links.assign(size, kNoLink);
        }
        if (links[at] != kNoLink) {
            refuse("{} is the second of its kind and direction: enter parallel cables as one link",
                   links_.name[index(edge.link)]);
        }
        links[at] = edge.link;
    };
    const std::size_t gpu_total = cluster.gpu_count();
    const std::size_t nic_total = std::size_t{cluster.node_count_} * cluster.nics_per_node_;
    for_each_edge(graph_, [&](VertexId source, VertexId target, const ClusterEdge& edge) {
        if (!edge.is_link) {
            return;
        }
        const ClusterVertex& from = graph_[source];
        const ClusterVertex& to = graph_[target];
        const bool up = from.kind == VertexKind::gpu || from.kind == VertexKind::nic;
        switch (edge.kind) {
            case LinkKind::nvlink:
                place(up ? cluster.nvlink_up_ : cluster.nvlink_down_, gpu_total, gpu_index(up ? from : to), edge);
                break;
            case LinkKind::pcie:
                place(up ? cluster.pcie_up_ : cluster.pcie_down_, gpu_total, gpu_index(up ? from : to), edge);
                break;
            case LinkKind::nic:
                place(up ? cluster.nic_up_ : cluster.nic_down_, nic_total, nic_index(up ? from : to), edge);
                break;
            default: break;
        }
    });
}

void ClusterBuilder::check_links_complete(const Cluster& cluster) const {
    const auto check = [&](const std::vector<LinkId>& up, const std::vector<LinkId>& down, bool required,
                           std::uint32_t per_node, const char* device, LinkKind kind) {
        if (per_node == 0 || (!required && up.empty() && down.empty())) {
            return;
        }
        const std::size_t total = std::size_t{cluster.node_count_} * per_node;
        for (std::size_t i = 0; i < total; ++i) {
            const bool has_up = i < up.size() && up[i] != kNoLink;
            const bool has_down = i < down.size() && down[i] != kNoLink;
            if (!has_up || !has_down) {
                refuse("node {} {} {} has no {} link {}", i / per_node, device, i % per_node, kind_word(kind),
                       has_up ? "down" : "up");
            }
        }
    };
    const bool several_gpus = cluster.gpus_per_node_ > 1;
    check(cluster.nvlink_up_, cluster.nvlink_down_, false, cluster.gpus_per_node_, "gpu", LinkKind::nvlink);
    check(cluster.pcie_up_, cluster.pcie_down_, cluster.node_count_ > 1 || (several_gpus && !cluster.has_nvswitch()),
          cluster.gpus_per_node_, "gpu", LinkKind::pcie);
    check(cluster.nic_up_, cluster.nic_down_, true, cluster.nics_per_node_, "nic", LinkKind::nic);
}

/// Inside a server: one NVSwitch plane joins all GPUs, or else PCIe and attachments do; NICs are on PCIe.
void ClusterBuilder::check_inside_nodes(const Cluster& cluster) const {
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS> attachments(boost::num_vertices(graph_));
    std::vector<VertexId> pcie_of_gpu(cluster.gpu_count(), 0), nvswitch_of_gpu(cluster.gpu_count(), 0);
    for_each_edge(graph_, [&](VertexId from, VertexId to, const ClusterEdge& edge) {
        if (!edge.is_link) {
            if (from < to) {  // attachments are entered both ways
                boost::add_edge(from, to, attachments);
            }
        } else if (graph_[from].kind == VertexKind::gpu) {
            const ClusterVertex& gpu = graph_[from];
            auto& of_gpu = edge.kind == LinkKind::pcie ? pcie_of_gpu : nvswitch_of_gpu;
            of_gpu[std::size_t{gpu.node} * cluster.gpus_per_node_ + gpu.local] = to;
        }
    });
    std::vector<std::uint32_t> joined_part(boost::num_vertices(graph_));
    boost::connected_components(attachments, boost::make_iterator_property_map(
                                                 joined_part.begin(), boost::get(boost::vertex_index, attachments)));
    for (std::uint32_t g = 0; g < cluster.gpu_count(); ++g) {
        const GpuId gpu{g};
        const std::size_t first = index(cluster.node_of(gpu)) * cluster.gpus_per_node_;
        const VertexId vertex = gpus_[index(cluster.node_of(gpu))][cluster.local_index(gpu)];
        const bool joined = cluster.has_nvswitch() ? nvswitch_of_gpu[g] == nvswitch_of_gpu[first]
                            : cluster.has_pcie()   ? joined_part[pcie_of_gpu[g]] == joined_part[pcie_of_gpu[first]]
                                                   : cluster.gpus_per_node_ == 1;
        if (!joined) {
            refuse("{} cannot reach gpu 0 of its node: their {} are not joined", vertex_name(vertex),
                   cluster.has_nvswitch() ? "NVSwitches" : "PCIe switches");
        }
        if (cluster.node_count_ > 1) {
            const VertexId nic = nics_[index(cluster.node_of(gpu))][cluster.local_index(gpu) % cluster.nics_per_node_];
            if (joined_part[pcie_of_gpu[g]] != joined_part[nic]) {
                refuse("{} cannot reach {}: its PCIe switch is not attached to it", vertex_name(vertex),
                       vertex_name(nic));
            }
        }
    }
}

/// Every NIC reaches every other through switches: all their switches lie in one strong component.
/// Returns a breadth-first router over the fabric.
std::unique_ptr<Router> ClusterBuilder::check_fabric(const Cluster& cluster) const {
    std::vector<std::uint32_t> fabric_index(boost::num_vertices(graph_), 0);
    std::uint32_t switches = 0;
    for (VertexId v = 0; v < boost::num_vertices(graph_); ++v) {
        if (is_switch(graph_[v].kind)) {
            fabric_index[v] = switches++;
        }
    }
    FabricGraph fabric(switches);
    std::vector<std::uint32_t> switch_up(cluster.nic_up_.size(), 0), switch_down(cluster.nic_down_.size(), 0);
    for_each_edge(graph_, [&](VertexId from, VertexId to, const ClusterEdge& edge) {
        if (!edge.is_link) {
            return;
        }
        if (edge.kind == LinkKind::fabric) {
            boost::add_edge(fabric_index[from], fabric_index[to], FabricEdge{edge.link}, fabric);
        } else if (edge.kind == LinkKind::nic) {
            const bool up = graph_[from].kind == VertexKind::nic;
            const ClusterVertex& nic = graph_[up ? from : to];
            (up ? switch_up : switch_down)[std::size_t{nic.node} * cluster.nics_per_node_ + nic.local] =
                fabric_index[up ? to : from];
        }
    });
    for (std::size_t i = 0; i < switch_up.size(); ++i) {
        if (switch_up[i] != switch_down[i]) {
            refuse("node {} nic {}: its links up and down lead to different switches", i / cluster.nics_per_node_,
                   i % cluster.nics_per_node_);
        }
    }
    auto router = std::make_unique<BfsRouter>(fabric, switch_up);
    if (cluster.node_count_ > 1) {
        std::vector<std::uint32_t> component(switches);
        boost::strong_components(
            fabric, boost::make_iterator_property_map(component.begin(), boost::get(boost::vertex_index, fabric)));
        for (std::size_t i = 1; i < switch_up.size(); ++i) {
            if (component[switch_up[i]] == component[switch_up[0]]) {
                continue;
            }
            const NicId first{0}, other{static_cast<std::uint32_t>(i)};
            std::vector<LinkId> unused;
            const bool there = router->append_fabric_links(first, other, unused);
            const std::size_t node = i / cluster.nics_per_node_;
            const std::size_t local = i % cluster.nics_per_node_;
            refuse("no route from {} to {}: their switches are not connected in this direction",
                   there ? vertex_name(nics_[node][local]) : vertex_name(nics_[0][0]),
                   there ? vertex_name(nics_[0][0]) : vertex_name(nics_[node][local]));
        }
    }
    return router;
}

Cluster ClusterBuilder::freeze(std::unique_ptr<Router> router) && {
    check_counts();
    Cluster cluster;
    cluster.node_count_ = static_cast<std::uint32_t>(gpus_.size());
    cluster.gpus_per_node_ = static_cast<std::uint32_t>(gpus_.front().size());
    cluster.nics_per_node_ = nics_.empty() ? 0 : static_cast<std::uint32_t>(nics_.front().size());
    place_links(cluster);
    check_links_complete(cluster);
    check_inside_nodes(cluster);
    std::unique_ptr<Router> searching = check_fabric(cluster);
    cluster.router_ = router ? std::move(router) : std::move(searching);
    cluster.links_ = std::move(links_);
    graph_.clear();
    gpus_.clear();
    nics_.clear();
    names_.clear();
    return cluster;
}

}  // namespace fabricast
