// The part of the freeze that looks at the fabric: switches as a graph of their own, searched and checked.
#include <set>
#include <stdexcept>

#include <fmt/format.h>
#include <boost/graph/strong_components.hpp>

#include "topologies/graph/bfs_router.hpp"
#include "topologies/graph/cluster_graph.hpp"

namespace fabricast {
namespace {

constexpr bool is_switch(VertexKind kind) { return kind == VertexKind::leaf || kind == VertexKind::spine; }

/// Calls visit(source, target, edge) for the links of a kind, by source in vertex order.
template <typename Visit>
void for_each_link(const ClusterGraph& graph, LinkKind kind, Visit visit) {
    for (ClusterBuilder::VertexId source = 0; source < boost::num_vertices(graph); ++source) {
        for (auto [position, end] = boost::out_edges(source, graph); position != end; ++position) {
            if (graph[*position].is_link && graph[*position].kind == kind) {
                visit(source, boost::target(*position, graph), graph[*position]);
            }
        }
    }
}

}  // namespace

bool ClusterBuilder::needs_network(const Cluster& cluster) const {
    return cluster.node_count_ > 1 && !(cluster.has_nvswitch() && cluster.nvlink_domain_count_ == 1);
}

/// One network of switches (a strong component) holds a NIC of every GPU, or of every GPU of equal position.
/// Returns a router that searches the fabric, where one is wanted.
std::unique_ptr<Router> ClusterBuilder::check_fabric(const Cluster& cluster, bool wants_router) const {
    std::vector<std::uint32_t> fabric_index(boost::num_vertices(graph_), 0);
    std::uint32_t switches = 0;
    for (VertexId v = 0; v < boost::num_vertices(graph_); ++v) {
        if (is_switch(graph_[v].kind)) {
            fabric_index[v] = switches++;
        }
    }
    FabricGraph fabric(switches);
    std::vector<std::uint32_t> switch_up(cluster.nic_up_.size(), 0), switch_down(cluster.nic_down_.size(), 0);
    for_each_link(graph_, LinkKind::fabric, [&](VertexId from, VertexId to, const ClusterEdge& edge) {
        boost::add_edge(fabric_index[from], fabric_index[to], FabricEdge{edge.link}, fabric);
    });
    for_each_link(graph_, LinkKind::nic, [&](VertexId from, VertexId to, const ClusterEdge&) {
        const bool up = graph_[from].kind == VertexKind::nic;
        const ClusterVertex& nic = graph_[up ? from : to];
        (up ? switch_up : switch_down)[std::size_t{nic.node} * cluster.nics_per_node_ + nic.local] =
            fabric_index[up ? to : from];
    });
    for (std::size_t i = 0; i < nic_switch_.size(); ++i) {
        switch_up[i] = switch_down[i] = fabric_index[nic_switch_[i]];
    }
    for (std::size_t i = 0; i < switch_up.size(); ++i) {
        if (switch_up[i] != switch_down[i]) {
            throw std::invalid_argument(fmt::format("node {} nic {}: its links up and down lead to different switches",
                                                    i / cluster.nics_per_node_, i % cluster.nics_per_node_));
        }
    }
    std::unique_ptr<Router> router;
    if (wants_router) {
        router = std::make_unique<BfsRouter>(fabric, switch_up, routing_);
    }
    if (!needs_network(cluster)) {
        return router;
    }
    std::vector<std::uint32_t> component(switches);
    boost::strong_components(
        fabric, boost::make_iterator_property_map(component.begin(), boost::get(boost::vertex_index, fabric)));
    const std::uint32_t positions = rails_apart_ ? cluster.gpus_per_node_ : 1;
    for (std::uint32_t position = 0; position < positions; ++position) {
        std::set<std::uint32_t> common;  // networks that hold a NIC of every GPU so far
        for (const NicId nic : cluster.nics_of(GpuId{position})) {
            common.insert(component[switch_up[index(nic)]]);
        }
        const std::uint32_t of_first = component[switch_up[index(cluster.nic_of(GpuId{position}))]];
        for (std::uint32_t g = position; g < cluster.gpu_count(); g += positions) {
            if (common.size() == 1 && component[switch_up[index(cluster.nic_of(GpuId{g}))]] == of_first &&
                common.count(of_first) != 0) {
                continue;  // as most are
            }
            std::set<std::uint32_t> still;
            for (const NicId nic : cluster.nics_of(GpuId{g})) {
                const std::uint32_t network = component[switch_up[index(nic)]];
                if (common.count(network) != 0) {
                    still.insert(network);
                }
            }
            if (still.empty()) {
                const NicId first = cluster.nic_of(GpuId{position}), other = cluster.nic_of(GpuId{g});
                std::vector<LinkId> unused;
                const bool there = BfsRouter(fabric, switch_up, routing_).append_fabric_links(first, other, 0, unused);
                throw std::invalid_argument(
                    fmt::format("no route from {} to {}: their switches are not connected in this direction",
                                nic_name(there ? other : first), nic_name(there ? first : other)));
            }
            common.swap(still);
        }
    }
    return router;
}

}  // namespace fabricast
