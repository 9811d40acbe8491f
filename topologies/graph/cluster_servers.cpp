// The part of the freeze that looks into servers: each becomes a small graph, equal ones share a table of routes.
#include <algorithm>

#include "topologies/graph/cluster_graph.hpp"
#include "topologies/graph/server_search.hpp"

namespace fabricast {
namespace {

constexpr std::uint32_t kNone = ServerGraph::kNone;

ServerGraph::Kind server_kind(VertexKind kind) {
    switch (kind) {
        case VertexKind::gpu: return ServerGraph::Kind::gpu;
        case VertexKind::nic: return ServerGraph::Kind::nic;
        case VertexKind::host: return ServerGraph::Kind::host;
        default: return ServerGraph::Kind::pcie_switch;
    }
}

std::uint32_t number(LinkId link) { return static_cast<std::uint32_t>(link); }

/// Links counted from the server's first one, so that equal servers look equal; returns the first.
std::uint32_t count_links_from_first(ServerGraph& server) {
    std::uint32_t first = kNone;
    for (const ServerGraph::Vertex& vertex : server.vertices) {
        first = std::min(first, vertex.limit);
    }
    for (const ServerGraph::Edge& edge : server.edges) {
        first = std::min(first, edge.link);
    }
    for (ServerGraph::Vertex& vertex : server.vertices) {
        vertex.limit -= vertex.limit == kNone ? 0 : first;
    }
    for (ServerGraph::Edge& edge : server.edges) {
        edge.link -= edge.link == kNone ? 0 : first;
    }
    return first;
}

std::uint64_t hash_of(const ServerGraph& server) {
    std::uint64_t hash = server.edges.size();
    for (const ServerGraph::Edge& edge : server.edges) {
        hash = mix_counter(hash, (std::uint64_t{edge.from} << 40) ^ (std::uint64_t{edge.to} << 20) ^ edge.link);
        hash = mix_counter(hash, static_cast<std::uint64_t>(edge.capacity));
    }
    return hash;
}

}  // namespace

void ClusterBuilder::place_server_routes(Cluster& cluster) const {
    std::vector<std::uint32_t> ordinal(boost::num_vertices(graph_), kNone);
    std::vector<ServerGraph> kinds;
    std::vector<std::uint64_t> hashes;
    std::vector<VertexId> members, nvswitches;
    const std::uint32_t nodes = copies_ > 0 ? 1 : cluster.node_count_;  // with vertices
    for (std::uint32_t node = 0; node < nodes; ++node) {
        ServerGraph server;
        server.gpus = cluster.gpus_per_node_;
        server.nics = cluster.nics_per_node_;
        members.clear();
        nvswitches.clear();
        for (const auto* part : {&gpus_, &nics_, &inside_}) {
            if (node < part->size()) {
                members.insert(members.end(), (*part)[node].begin(), (*part)[node].end());
            }
        }
        for (std::size_t i = 0; i < members.size(); ++i) {
            ordinal[members[i]] = static_cast<std::uint32_t>(i);
        }
        for (const VertexId member : members) {
            const ClusterVertex& from = graph_[member];
            ServerGraph::Vertex vertex = {.kind = server_kind(from.kind),
                                          .numa = from.numa,
                                          .limit = from.limit == kNoLink ? kNone : number(from.limit)};
            for (auto [position, end] = boost::out_edges(member, graph_); position != end; ++position) {
                const VertexId to = boost::target(*position, graph_);
                const ClusterEdge& edge = graph_[*position];
                if (graph_[to].kind == VertexKind::nvswitch) {
                    const auto known = std::find(nvswitches.begin(), nvswitches.end(), to);
                    vertex.nvswitch = static_cast<std::uint32_t>(known - nvswitches.begin());
                    if (known == nvswitches.end()) {
                        nvswitches.push_back(to);
                    }
                } else if (edge.kind != LinkKind::nic) {
                    server.edges.push_back({.from = ordinal[member],
                                            .to = ordinal[to],
                                            .link = edge.is_link ? number(edge.link) : kNone,
                                            .capacity = edge.capacity,
                                            .nvlink = edge.kind == LinkKind::nvlink,
                                            .c2c = edge.c2c});
                }
            }
            server.vertices.push_back(vertex);
        }
        const std::uint32_t first_link = count_links_from_first(server);
        const std::uint64_t hash = hash_of(server);
        std::size_t kind = 0;
        while (kind < kinds.size() && !(hashes[kind] == hash && kinds[kind] == server)) {
            ++kind;
        }
        if (kind == kinds.size()) {
            cluster.server_routes_.push_back(search_server_routes(server));
            kinds.push_back(std::move(server));
            hashes.push_back(hash);
        }
        cluster.servers_.push_back({static_cast<std::uint32_t>(kind), first_link});
    }
    cluster.servers_.reserve(cluster.node_count_);
    for (std::uint32_t node = nodes; node < cluster.node_count_; ++node) {
        const Cluster::Server before = cluster.servers_.back();
        cluster.servers_.push_back(
            {before.routes, before.first_link == kNone ? kNone : before.first_link + server_links_});
    }
}

}  // namespace fabricast
