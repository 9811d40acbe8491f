// The second half of ClusterBuilder: checks, and the step from the graph to flat arrays.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "topologies/graph/bfs_router.hpp"
#include "topologies/graph/cluster_graph.hpp"

namespace fabricast {
namespace {

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
    throw std::invalid_argument(fmt::format(text, std::forward<Args>(args)...));
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
    if (nics > 0 && gpus % nics != 0 && nics_of_gpus_.size() < gpus * gpus_.size()) {  // copies are told with the first
        refuse("{} GPUs and {} NICs a node: GPUs must be a multiple of NICs, or the NICs of each GPU be given", gpus,
               nics);
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
        const bool from_gpu = from.kind == VertexKind::gpu;
        if (from_gpu && to.kind == VertexKind::gpu) {
            cluster.has_direct_nvlink_ = true;
        } else if (edge.kind == LinkKind::nvlink) {
            place(from_gpu ? cluster.nvlink_up_ : cluster.nvlink_down_, gpu_total, gpu_index(from_gpu ? from : to),
                  edge);
        } else if (from_gpu || to.kind == VertexKind::gpu) {
            place(from_gpu ? cluster.pcie_up_ : cluster.pcie_down_, gpu_total, gpu_index(from_gpu ? from : to), edge);
        } else if (edge.kind == LinkKind::nic) {
            const bool up = from.kind == VertexKind::nic;
            place(up ? cluster.nic_up_ : cluster.nic_down_, nic_total, nic_index(up ? from : to), edge);
        }
    });
    for (auto* links : {&cluster.nvlink_up_, &cluster.nvlink_down_, &cluster.pcie_up_, &cluster.pcie_down_}) {
        for (std::size_t i = cluster.gpus_per_node_; copies_ > 0 && i < links->size(); ++i) {
            const LinkId first = (*links)[i - cluster.gpus_per_node_];
            (*links)[i] = first == kNoLink ? kNoLink : LinkId{static_cast<std::uint32_t>(index(first)) + server_links_};
        }
    }
    if (!nic_up_.empty()) {
        if (!cluster.nic_up_.empty() || !cluster.nic_down_.empty()) {
            refuse("NICs are linked by vertex and by number");
        }
        cluster.nic_up_ = nic_up_;
        cluster.nic_down_ = nic_down_;
    }
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
    const bool needs_pcie = (cluster.node_count_ > 1 && cluster.nics_per_node_ > 0) ||
                            (cluster.gpus_per_node_ > 1 && !cluster.has_nvswitch() && !cluster.has_direct_nvlink_);
    check(cluster.nvlink_up_, cluster.nvlink_down_, false, cluster.gpus_per_node_, "gpu", LinkKind::nvlink);
    check(cluster.pcie_up_, cluster.pcie_down_, needs_pcie, cluster.gpus_per_node_, "gpu", LinkKind::pcie);
    check(cluster.nic_up_, cluster.nic_down_, true, cluster.nics_per_node_, "nic", LinkKind::nic);
}

void ClusterBuilder::place_nvlink_domains(Cluster& cluster) const {
    const std::uint32_t gpus = copies_ > 0 ? cluster.gpus_per_node_ : cluster.gpu_count();  // with vertices
    const auto gpu_of = [&](const ClusterVertex& v) { return v.node * cluster.gpus_per_node_ + v.local; };
    std::vector<std::uint32_t> parent(gpus);
    for (std::uint32_t g = 0; g < gpus; ++g) {
        parent[g] = g;
    }
    const auto root = [&](std::uint32_t g) {
        while (parent[g] != g) {
            g = parent[g] = parent[parent[g]];
        }
        return g;
    };
    const auto join = [&](std::uint32_t a, std::uint32_t b) {
        a = root(a);
        b = root(b);
        parent[std::max(a, b)] = std::min(a, b);
    };
    std::vector<std::uint32_t> first_on_switch(cluster.has_nvswitch() ? boost::num_vertices(graph_) : 0, gpus);
    cluster.nvswitch_.assign(cluster.has_nvswitch() ? gpus : 0, 0);
    for_each_edge(graph_, [&](VertexId from, VertexId to, const ClusterEdge& edge) {
        if (edge.kind != LinkKind::nvlink || graph_[from].kind != VertexKind::gpu) {
            return;
        }
        const std::uint32_t gpu = gpu_of(graph_[from]);
        if (graph_[to].kind == VertexKind::gpu) {
            join(gpu, gpu_of(graph_[to]));
            return;
        }
        first_on_switch[to] = std::min(first_on_switch[to], gpu);
        cluster.nvswitch_[gpu] = static_cast<std::uint32_t>(to);
        join(gpu, first_on_switch[to]);
    });
    std::vector<std::uint32_t> number(gpus, 0);
    cluster.nvlink_domain_.reserve(cluster.gpu_count());
    for (std::uint32_t g = 0; g < gpus; ++g) {
        const std::uint32_t first = root(g);
        if (first == g) {
            number[g] = cluster.nvlink_domain_count_++;
        }
        cluster.nvlink_domain_.push_back(number[first]);
    }
    if (copies_ > 0) {
        const std::uint32_t domains = cluster.nvlink_domain_count_;
        for (std::uint32_t g = gpus; g < cluster.gpu_count(); ++g) {
            cluster.nvlink_domain_.push_back(cluster.nvlink_domain_[g - gpus] + domains);
        }
        cluster.nvlink_domain_count_ = domains * node_count();
        cluster.nvswitch_.reserve(cluster.gpu_count());
        for (std::uint32_t g = gpus; cluster.has_nvswitch() && g < cluster.gpu_count(); ++g) {
            cluster.nvswitch_.push_back(cluster.nvswitch_[g - gpus] + server_vertices_);
        }
    }
}

void ClusterBuilder::place_nics(Cluster& cluster) const {
    const std::uint32_t nics = cluster.nics_per_node_;
    const std::uint32_t gpus = copies_ > 0 ? cluster.gpus_per_node_ : cluster.gpu_count();  // with vertices
    std::vector<const std::vector<VertexId>*> told(nics_of_gpus_.empty() ? 0 : gpus, nullptr);
    for (const auto& [gpu, of_gpu] : nics_of_gpus_) {
        const auto*& entry = told[graph_[gpu].node * cluster.gpus_per_node_ + graph_[gpu].local];
        if (entry != nullptr) {
            refuse("{} is given NICs twice", vertex_name(gpu));
        }
        entry = &of_gpu;
    }
    cluster.first_nic_.reserve(cluster.gpu_count() + 1);
    for (std::uint32_t g = 0; g < cluster.gpu_count(); ++g) {
        const std::uint32_t first = g / cluster.gpus_per_node_ * nics;
        if (!told.empty() && told[g % gpus] != nullptr) {
            for (const VertexId nic : *told[g % gpus]) {
                cluster.gpu_nics_.push_back(NicId{first + graph_[nic].local});
            }
        } else if (nics > 0) {
            cluster.gpu_nics_.push_back(NicId{first + g % cluster.gpus_per_node_ % nics});
        }
        cluster.first_nic_.push_back(static_cast<std::uint32_t>(cluster.gpu_nics_.size()));
    }
}

/// Inside a server every GPU reaches every other and, where there is a network, its NICs.
void ClusterBuilder::check_inside_nodes(const Cluster& cluster) const {
    const std::uint32_t gpus = copies_ > 0 ? cluster.gpus_per_node_ : cluster.gpu_count();  // copies are alike
    for (std::uint32_t g = 0; g < gpus; ++g) {
        const GpuId gpu{g};
        const std::size_t node = index(cluster.node_of(gpu));
        const GpuId first{static_cast<std::uint32_t>(node) * cluster.gpus_per_node_};
        const VertexId vertex = gpus_[node][cluster.local_index(gpu)];
        if (cluster.path_type(first, gpu) == PathType::dis || cluster.path_type(gpu, first) == PathType::dis) {
            refuse("{} cannot reach gpu 0 of its node: their {} are not joined", vertex_name(vertex),
                   cluster.has_nvswitch() ? "NVSwitches" : "PCIe switches");
        }
        for (const NicId nic : cluster.nics_of(gpu)) {
            if (cluster.node_count_ > 1 && cluster.path_type(gpu, nic) == PathType::dis) {
                refuse("{} cannot reach {}: its PCIe switch is not attached to it", vertex_name(vertex),
                       vertex_name(nics_[node][cluster.local_index(nic)]));
            }
        }
        if (rails_apart_ && cluster.node_count_ > 1 &&
            cluster.nvlink_domain_of(gpu) != cluster.nvlink_domain_of(first)) {
            refuse("{} has no NVLink to gpu 0 of its node, which a network of rails apart needs", vertex_name(vertex));
        }
    }
}

Cluster ClusterBuilder::freeze(std::unique_ptr<Router> router) && {
    check_counts();
    Cluster cluster;
    cluster.node_count_ = node_count();
    cluster.gpus_per_node_ = static_cast<std::uint32_t>(gpus_.front().size());
    cluster.nics_per_node_ = nics_.empty() ? 0 : static_cast<std::uint32_t>(nics_.front().size());
    cluster.rails_apart_ = rails_apart_;
    cluster.routing_ = routing_;
    place_links(cluster);
    check_links_complete(cluster);
    place_nvlink_domains(cluster);
    if (cluster.nics_per_node_ == 0 && needs_network(cluster)) {
        refuse("{} nodes without a NIC: only a single node can do without", node_count());
    }
    place_nics(cluster);
    place_server_routes(cluster);
    check_inside_nodes(cluster);
    std::unique_ptr<Router> searching = check_fabric(cluster, router == nullptr);
    cluster.router_ = router ? std::move(router) : std::move(searching);
    cluster.place_ends();
    cluster.links_ = std::move(links_);
    graph_.clear();
    gpus_.clear();
    nics_.clear();
    inside_.clear();
    names_.clear();
    nics_of_gpus_.clear();
    return cluster;
}

}  // namespace fabricast
